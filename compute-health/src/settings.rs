//! The parameters of the resource, as Pacemaker passes them in the environment.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use crate::limit::{Limit, Limits};

/// By which Pacemaker names the node.
pub(crate) const NODE: &str = "OCF_RESKEY_CRM_meta_on_node";

/// What can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A directory that takes no write, or whose mount is gone.
    Directory,
    /// A device that does not read.
    Device,
    /// A link or a bond without carrier.
    Link,
    /// What the kernel says of itself and of the memory.
    Kernel,
    /// No process can be started.
    Process,
}

/// Every kind with its word, its parameters and their defaults: what is checked, and after how many seconds a failure counts.
const KINDS: [(Kind, &str, &str, &str, u64); 5] = [
    (Kind::Directory, "directory", "directories", "/var/lib/nova/instances", 30),
    (Kind::Device, "device", "devices", "", 30),
    (Kind::Link, "link", "links", "", 15),
    (Kind::Kernel, "kernel", "kernel", "died machine-check memory", 0),
    (Kind::Process, "process", "processes", "start", 30),
];

impl Kind {
    pub(crate) fn word(self) -> &'static str {
        KINDS.iter().find(|row| row.0 == self).map_or("", |row| row.1)
    }

    pub(crate) fn parse(word: &str) -> Option<Self> {
        KINDS.iter().find(|row| row.1 == word).map(|row| row.0)
    }
}

/// What the kernel can say, each with the bit by which its check says it.
pub(crate) const KERNEL: [(&str, i32, &str); 4] = [
    ("died", 1, "the kernel had a fatal fault"),
    ("machine-check", 2, "the processor reported a machine check"),
    ("memory", 4, "memory has uncorrectable errors"),
    ("hung", 8, "processes hung in the kernel"),
];

/// One thing that is checked.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) kind: Kind,
    /// A path, a name, or the words of [`KERNEL`].
    pub(crate) name: String,
    /// For how long it fails before it counts.
    pub(crate) after: Duration,
}

/// All parameters.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) targets: Vec<Target>,
    /// From one look at everything to the next.
    pub(crate) interval: Duration,
    /// Whether a failure may fail the monitor.
    pub(crate) fences: bool,
    pub(crate) limits: Limits,
    /// The node's name in the cluster.
    pub(crate) host: String,
}

impl Settings {
    /// # Errors
    /// Which parameter is wrong.
    pub(crate) fn read() -> Result<Self, String> {
        let mut targets = Vec::new();
        for (kind, _, list, default, after) in KINDS {
            let after = Duration::from_secs(number(&format!("{list}_for"), after, 0)?);
            let listed = parameter(list).unwrap_or_else(|| default.to_owned());
            let words = listed.split_whitespace().collect::<Vec<_>>();
            check(kind, &words)?;
            let one = |name: String| Target { kind, name, after };
            match kind {
                Kind::Kernel if !words.is_empty() => targets.push(one(words.join(" "))),
                _ => targets.extend(words.into_iter().map(|name| one(name.to_owned()))),
            }
        }
        let fences = match parameter("reaction").as_deref() {
            None | Some("observe") => false,
            Some("fence") => true,
            Some(other) => return Err(format!("reaction is '{other}': say observe or fence")),
        };
        let limits = Limits {
            at_once: limit("max_unhealthy", Limit::Hosts(1))?,
            in_an_hour: limit("max_hourly", Limit::Percent(10))?,
        };
        let interval = Duration::from_secs(number("interval", 10, 1)?);
        Ok(Self { targets, interval, fences, limits, host: host() })
    }
}

fn check(kind: Kind, words: &[&str]) -> Result<(), String> {
    let fits = |word: &&&str| match kind {
        Kind::Directory | Kind::Device => word.starts_with('/'),
        Kind::Link => !word.contains('/') && !word.starts_with('.'),
        Kind::Kernel => KERNEL.iter().any(|(known, ..)| known == *word),
        Kind::Process => **word == "start",
    };
    match words.iter().find(|word| !fits(word)) {
        Some(word) => Err(format!("'{word}' is no {}: see the agent's meta-data", kind.word())),
        None => Ok(()),
    }
}

fn limit(name: &str, default: Limit) -> Result<Limit, String> {
    let Some(text) = parameter(name) else { return Ok(default) };
    Limit::parse(&text).ok_or_else(|| format!("{name} is '{text}': say a number of hosts, or a share as 10%"))
}

fn number(name: &str, default: u64, least: u64) -> Result<u64, String> {
    let Some(text) = parameter(name) else { return Ok(default) };
    let number = text.trim_end_matches('s').parse().ok().filter(|number| (least..=86_400).contains(number));
    number.ok_or_else(|| format!("{name} is '{text}': say seconds, {least} or more"))
}

/// A parameter of the resource.
fn parameter(name: &str) -> Option<String> {
    env::var(format!("OCF_RESKEY_{name}")).ok()
}

/// The node's name: Pacemaker's, else the kernel's.
fn host() -> String {
    let own =
        || nix::unistd::gethostname().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    env::var(NODE).ok().filter(|name| !name.is_empty()).unwrap_or_else(own)
}

/// The resource's name, without the number of a clone's instance.
pub(crate) fn instance() -> String {
    let name = env::var("OCF_RESOURCE_INSTANCE").unwrap_or_else(|_| "default".to_owned());
    name.split(':').next().unwrap_or_default().to_owned()
}

/// Where a program is.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_else(|| "/usr/sbin:/usr/bin:/sbin:/bin".into());
    env::split_paths(&path).map(|directory| directory.join(name)).find(|path| path.is_file())
}
