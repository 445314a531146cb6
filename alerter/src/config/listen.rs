//! `uri`, `allowed-hosts`, `owner` and `group` of every table whose answers are served at addresses of its own.

use std::fmt;
use std::time::Duration;

use drivers::Step;
use marks::host::HostPatterns;
use nix::unistd::{Group, User};
use site::{Section, is_plain_name};

use crate::listen::{self, Address, Owner};

/// Where something is served, by its table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// `uri`; never empty.
    pub addresses: Vec<Address>,
    /// `owner` and `group` of unix sockets.
    pub owner: Owner,
    /// `allowed-hosts`: names that are answered beside addresses and those of this machine.
    pub allowed_hosts: Option<Vec<String>>,
}

/// It is allowed, but operators are warned.
const ROUTABLE: &str = "other machines may reach this address, and its answers need no password: use loopback or a unix socket, or put a firewall before it";

/// It is refused unless the site says that its network is safe.
const PLAIN: &str = "other machines may reach this address, and plain http shows them the tokens: use loopback or a unix socket behind a proxy that ends TLS, or set allow-http = true";

/// The addresses in use, each with its owner.
#[derive(Debug, Default)]
pub(super) struct Addresses(Vec<(Address, String)>);

impl Addresses {
    /// An address that is taken already, and by what.
    pub(super) fn reserve(&mut self, address: Address, by: &str) {
        self.0.push((address, by.to_owned()));
    }

    /// Reads the keys; without a `uri` nothing is served. Warns about addresses that other machines may reach.
    pub(super) fn read(&mut self, section: &mut Section<'_, '_>) -> Option<Served> {
        let served = self.places(section);
        let allowed_hosts = section.texts("allowed-hosts", host);
        let allowed_hosts = allowed_hosts.map(|names| names.into_iter().map(str::to_owned).collect());
        let served = Served { allowed_hosts, ..served? };
        if served.addresses.iter().any(Address::is_routable) {
            section.warn("uri", ROUTABLE);
        }
        Some(served)
    }

    /// The same where clients show tokens: no browser has one, so any name will do, and nothing else may see them.
    pub(super) fn read_for_tokens(&mut self, section: &mut Section<'_, '_>) -> Option<Served> {
        let served = self.places(section);
        let allow_http = section.flag("allow-http").unwrap_or(false);
        let served = served?;
        if !allow_http && served.addresses.iter().any(Address::is_routable) {
            section.complain("uri", PLAIN);
        }
        Some(served)
    }

    fn places(&mut self, section: &mut Section<'_, '_>) -> Option<Served> {
        let addresses = section.text("uri", listen::parse);
        let owner = Owner {
            user: section.text("owner", |name| id_of(name, "user", user)),
            group: section.text("group", |name| id_of(name, "group", group)),
        };
        let addresses = addresses?;
        self.take(section, &addresses);
        Some(Served { addresses, owner, allowed_hosts: None })
    }

    fn take(&mut self, section: &mut Section<'_, '_>, addresses: &[Address]) {
        let title = format!("[{}]", section.title());
        for address in addresses {
            match self.0.iter().find(|(known, _)| known == address) {
                Some((_, other)) => section
                    .complain("uri", format!("{other} has the same address: each needs one of its own")),
                None => self.0.push((address.clone(), title.clone())),
            }
        }
    }
}

/// As a browser or a scraper names it, without a port.
fn host(name: &str) -> Result<(), String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    match !name.is_empty() && name.chars().all(is_name) {
        true => Ok(()),
        false => Err("name a host without a port, as in metrics.my.cloud.com".to_owned()),
    }
}

fn id_of(name: &str, what: &str, find: impl Fn(&str) -> Option<u32>) -> Result<u32, String> {
    find(name).ok_or_else(|| format!("this machine has no {what} of this name"))
}

fn user(name: &str) -> Option<u32> {
    Some(User::from_name(name).ok()??.uid.as_raw())
}

fn group(name: &str) -> Option<u32> {
    Some(Group::from_name(name).ok()??.gid.as_raw())
}

/// A route's name: 1 to 64 of `A-Z a-z 0-9 _ -`; behind it, for a further step, what [`Step::suffix`] says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteName(String);

impl RouteName {
    /// Reads a name; `None` if it is no such name.
    pub fn parse(text: &str) -> Option<Self> {
        is_plain_name(text).then(|| Self(text.to_owned()))
    }

    /// The name of a step of this route.
    pub fn of_step(&self, step: Step) -> Self {
        Self(format!("{}{}", self.0, step.suffix()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RouteName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Which hosts a route takes.
pub(super) struct Reach<'a> {
    /// Its name, which may be none.
    pub(super) name: &'a str,
    pub(super) hosts: Option<HostPatterns>,
    pub(super) groups: Vec<String>,
    pub(super) required: bool,
}

impl Reach<'_> {
    /// Whether it surely takes every host of a group.
    pub(super) fn takes_all_of(&self, group: &str) -> bool {
        let everybody = self.hosts.is_none() && self.groups.is_empty();
        everybody || self.groups.iter().any(|own| own == group)
    }
}

/// A year: no longer time makes sense, in seconds.
const LONGEST: u32 = 31_536_000;

/// The table; it counts only where it has a `uri`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Healthcheck {
    /// `uri`, `owner` and `group`; none by default.
    pub served: Option<Served>,
    /// `ttl`: how long the result of a check holds; none: forever.
    pub ttl: Option<Duration>,
    /// `cache-control`, or what follows from `ttl` where it is unset.
    pub cache: CacheControl,
    /// `format`.
    pub format: HealthFormat,
}

/// The `Cache-Control` of an answer that is no failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheControl {
    /// Nothing, nor does a failure.
    Silent,
    /// `no-cache`.
    NoCache,
    /// `max-age`, in seconds.
    MaxAge(u32),
}

/// How an answer is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthFormat {
    /// As in Nova's specification of per-process health checks.
    Nova,
    /// As in the IETF's draft (draft-inadarei-api-health-check-06).
    Ietf,
}

/// Reads `[healthcheck]`.
pub(super) fn read(mut section: Section<'_, '_>, addresses: &mut Addresses) -> Healthcheck {
    let served = addresses.read(&mut section);
    let ttl = section.number("ttl", 0..=LONGEST).unwrap_or(300);
    let cache = section.whole("cache-control", -1..=LONGEST.into());
    let formats = [("nova", HealthFormat::Nova), ("ietf", HealthFormat::Ietf)];
    let format = section.choice("format", &formats).unwrap_or(HealthFormat::Nova);
    section.finish();
    let cache = match cache.unwrap_or(ttl.into()) {
        0 => CacheControl::Silent,
        age => u32::try_from(age).map_or(CacheControl::NoCache, CacheControl::MaxAge),
    };
    let ttl = (ttl > 0).then(|| Duration::from_secs(ttl.into()));
    Healthcheck { served, ttl, cache, format }
}
