//! `uri`, `allowed-hosts`, `owner` and `group` of every table whose answers are served at addresses of its own.

use nix::unistd::{Group, User};
use site::Section;

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
