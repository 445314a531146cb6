//! The settings of this call: the given options, else those of the site.

use std::path::PathBuf;
use std::time::Duration;

use marks::host::{HostName, HostNameError, HostPatternError, HostPatterns};
use marks::outage::COALESCE;
use marks::register::{Part, Register};
use register::{Access, Etcd, SealKeys};
use site::Site;

use crate::given::{Given, whole};
use crate::paths::Paths;
use crate::table::{Parameter, Use};

/// The host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its Pacemaker node name.
    pub node: HostName,
    /// The name that it is mapped to (`pcmk_host_map`), if it is another one.
    pub plug: Option<HostName>,
}

/// Why there is no host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Neither `nodename` nor `plug`.
    #[error("no host was given: pass nodename or plug")]
    Missing,
    /// Not a host name. The message does not show it.
    #[error("{option} is not a host name: {source}")]
    Name {
        /// The option.
        option: &'static str,
        /// The fault.
        source: HostNameError,
    },
}

impl Target {
    /// The node is `nodename`, or `plug` without it (design, section 2). A plug beside it that is not a host name is
    /// ignored, with a warning.
    ///
    /// # Errors
    /// [`TargetError`] if there is no host.
    pub fn from_given(given: &Given, warn: &mut dyn FnMut(&str)) -> Result<Self, TargetError> {
        let (option, name) = match (given.filled("nodename"), given.filled("plug")) {
            (Some(name), _) => ("nodename", name),
            (None, Some(name)) => ("plug", name),
            (None, None) => return Err(TargetError::Missing),
        };
        let node = HostName::parse(name).map_err(|source| TargetError::Name { option, source })?;
        let plug = given.filled("plug").and_then(|plug| {
            let parsed = HostName::parse(plug);
            if let Err(e) = &parsed {
                warn(&format!("the plug of {node} is ignored: {e}"));
            }
            parsed.ok()
        });
        Ok(Self { plug: plug.filter(|plug| *plug != node), node })
    }
}

/// Which options are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// All of them, also unused ones.
    Everything,
    /// Those that have an effect.
    WhatIsUsed,
}

/// The options and the site's settings together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The journal.
    pub store: PathBuf,
    /// Whether a missing journal is created: another one than the site's may be a typo.
    pub creates_store: bool,
    /// The register; of a word that is none, what is used instead: a typo must not leave a host unmarked.
    pub register: Result<Register, Register>,
    /// The settings of etcd, if the site has them.
    pub etcd: Option<Etcd>,
    /// The keys that seal the register's entries.
    pub keys: SealKeys,
    /// The option `domain`.
    pub domain: Option<String>,
    /// The opposite of `no_shared_storage`, if given.
    pub shared_storage: Option<bool>,
    /// The delay before the mark.
    pub delay: Duration,
    /// Records of a host within this are one outage, if nothing better is known.
    pub coalesce: Duration,
    /// Hosts that may be marked.
    pub hosts: HostPatterns,
}

/// Why a setting cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// Not an absolute path.
    #[error("store is not an absolute path: use one such as {default}", default = site::DEFAULT_STORE)]
    Store,
    /// Not a list of patterns.
    #[error("hosts is not a list of patterns: {0}")]
    Hosts(HostPatternError),
}

impl Settings {
    /// Merges options and site; an empty option counts as missing.
    ///
    /// # Errors
    /// [`SettingsError`] if it is unknown what may be marked, or where.
    pub fn new(given: &Given, site: Site) -> Result<Self, SettingsError> {
        let text = |name| given.filled(name).map(str::to_owned);
        let own = text("store").map(PathBuf::from).filter(|own| *own != site.store);
        let creates_store = own.is_none() || given.flag("create_store") == Some(true);
        let store = own.unwrap_or(site.store);
        if !store.is_absolute() {
            return Err(SettingsError::Store);
        }
        Ok(Self {
            store,
            creates_store,
            register: register(text("register"), site.register),
            etcd: site.etcd,
            keys: SealKeys::default(),
            domain: text("domain").or_else(|| text("compute_domain")).or(site.domain),
            shared_storage: given.flag("no_shared_storage").map(|without| !without),
            coalesce: site.coalesce.unwrap_or(COALESCE),
            delay: Duration::from_secs(given.get("delay").and_then(whole).unwrap_or(0).into()),
            hosts: hosts(given)?,
        })
    }

    /// Everything that an operator should correct before it is needed, in whole sentences.
    pub fn complaints(&self, given: &Given, depth: Depth) -> Vec<String> {
        let matters =
            |parameter: &&Parameter| depth == Depth::Everything || parameter.usage != Use::Compatibility;
        let mistyped = given.mistyped().into_iter().filter(matters);
        let mut all: Vec<String> =
            mistyped.map(|parameter| format!("the value of {} has the wrong type", parameter.name)).collect();
        let asked = ["help", "version"].into_iter().filter(|name| given.flag(name) == Some(true));
        all.extend(asked.map(|name| format!("{name} is ignored, since there is an action: remove it")));
        if let Some(Err(e)) = self.domain.as_deref().map(domain) {
            all.push(format!("domain is not a domain name: {e}"));
        }
        // The message does not show it.
        all.extend(self.register_complaint());
        all
    }

    /// What is wrong with the word for the register.
    pub fn register_complaint(&self) -> Option<String> {
        let instead = self.register.err()?.as_str();
        Some(format!(
            "register is none of \"attrd\", \"cib\", \"etcd\", \"none\": fence_mark uses {instead}, correct the device or alerter.toml"
        ))
    }

    /// The register in use.
    pub fn register(&self) -> Register {
        self.register.unwrap_or_else(|instead| instead)
    }

    /// How the register is reached, as the site sets it.
    pub fn access(&self, paths: &Paths) -> Access {
        let (tools, keys) = (paths.tools.clone(), self.keys.clone());
        Access { tools, keys, part: Part::Agent, ..Access::to(self.register(), self.etcd.clone()) }
    }
}

/// The register of the option, else of the site, where the alerter looks; instead of a word that is none the next one counts.
fn register(own: Option<String>, of_site: Option<String>) -> Result<Register, Register> {
    let read = |word: Option<String>| word.map(|word| Register::parse(&word));
    let (own, of_site) = (read(own), read(of_site));
    let instead = of_site.flatten().unwrap_or_default();
    own.or(of_site).unwrap_or(Some(instead)).ok_or(instead)
}

/// Hosts that may be marked: the option `hosts`, or all hosts.
///
/// # Errors
/// [`SettingsError::Hosts`]
pub fn hosts(given: &Given) -> Result<HostPatterns, SettingsError> {
    HostPatterns::parse(given.filled("hosts").unwrap_or("*")).map_err(SettingsError::Hosts)
}

/// A domain has the form of a host name; a dot before it is ignored.
///
/// # Errors
/// As a host name.
pub fn domain(text: &str) -> Result<HostName, HostNameError> {
    HostName::parse(text.strip_prefix('.').unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::given::tests_support::given;

    /// Conformance 16: `no_shared_storage=false` means that storage is shared.
    #[test]
    fn shared_storage_is_what_was_said() {
        let shared = |word| {
            Settings::new(&given(&[("no_shared_storage", word)]), Site::default()).unwrap().shared_storage
        };
        assert_eq!((shared("false"), shared("1"), shared("?")), (Some(true), Some(false), None));
    }

    #[test]
    fn a_place_or_a_bound_that_cannot_be_read_is_refused() {
        let relative = Settings::new(&given(&[("store", "marks.db")]), Site::default());
        assert_eq!(relative, Err(SettingsError::Store));
        let hosts = Settings::new(&given(&[("hosts", "a;b")]), Site::default());
        assert!(matches!(hosts, Err(SettingsError::Hosts(_))));
    }

    #[test]
    fn complaints_name_options_and_show_no_values() {
        let odd = given(&[("delay", "s3kr1t"), ("register", "s3kr1t"), ("domain", "s3kr1t!")]);
        let complaints = Settings::new(&odd, Site::default()).unwrap().complaints(&odd, Depth::Everything);
        assert_eq!(complaints.len(), 3, "{complaints:?}");
        assert!(!complaints.concat().contains("s3kr1t"));
        let known = given(&[("register", "cib")]);
        let settings = Settings::new(&known, Site::default()).unwrap();
        assert_eq!(settings.complaints(&known, Depth::Everything), Vec::<String>::new());
        assert_eq!(settings.register(), Register::Cib);
    }

    /// The broken variant writes where no alerter of this site looks.
    #[test]
    fn instead_of_a_word_that_is_no_register_that_of_the_site_is_used() {
        let of_site = |word: Option<&str>| word.map(str::to_owned);
        for (own, site, register) in [
            (None, None, Ok(Register::Attrd)),
            (None, Some("cib"), Ok(Register::Cib)),
            (Some("etcd"), Some("cib"), Ok(Register::Etcd)),
            (Some("zoo"), Some("cib"), Err(Register::Cib)),
            (Some("zoo"), Some("zoo"), Err(Register::Attrd)),
            (Some("zoo"), None, Err(Register::Attrd)),
            (None, Some("zoo"), Err(Register::Attrd)),
        ] {
            assert_eq!(super::register(of_site(own), of_site(site)), register, "{own:?} {site:?}");
        }
    }
}
