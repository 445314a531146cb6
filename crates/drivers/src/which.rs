//! What a service calls the hosts: Pacemaker, the event and Nova may each have another name for one.

use std::collections::{BTreeMap, BTreeSet};

use marks::host::HostName;
use marks::mark::Mark;
use site::Section;

/// What to set if a service does not know a host by the name that was sent.
pub(crate) const ADVICE: &str = "set host-name, or the host's name in host-names";

/// A host of the cluster, with both of its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Pacemaker's name.
    pub node: HostName,
    /// The name that every route sends.
    pub fqdn: HostName,
}

/// Which of a host's names is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhichName {
    /// The name that every route sends: `[hosts]` decides.
    #[default]
    Fqdn,
    /// The same without its domain.
    Short,
    /// Pacemaker's.
    Node,
}

impl WhichName {
    /// The words of the key `host-name`.
    pub const WORDS: [(&str, Self); 3] = [("fqdn", Self::Fqdn), ("short", Self::Short), ("node", Self::Node)];

    fn of_host(self, host: &Named) -> HostName {
        match self {
            Self::Fqdn => host.fqdn.clone(),
            Self::Short => host.fqdn.without_domain(),
            Self::Node => host.node.clone(),
        }
    }
}

/// What a service calls the hosts: one rule for all, and names of single hosts.
#[derive(Clone, Debug)]
pub struct HostNames {
    usual: WhichName,
    /// By Pacemaker's names.
    own: BTreeMap<HostName, HostName>,
    /// The table of these in the configuration, for people.
    table: String,
}

impl Default for HostNames {
    fn default() -> Self {
        WhichName::default().into()
    }
}

impl From<WhichName> for HostNames {
    fn from(usual: WhichName) -> Self {
        Self { usual, own: BTreeMap::new(), table: "host-names".to_owned() }
    }
}

impl PartialEq for HostNames {
    /// Capital letters count: they do at the service.
    fn eq(&self, other: &Self) -> bool {
        let own = |names: &Self| {
            names.own.iter().map(|(node, name)| (node.clone(), name.as_str().to_owned())).collect::<Vec<_>>()
        };
        self.usual == other.usual && own(self) == own(other)
    }
}

impl Eq for HostNames {}

impl HostNames {
    /// Reads `host-name` and the table `host-names`.
    pub fn read(table: &mut Section<'_, '_>) -> Self {
        let usual = table.choice("host-name", &WhichName::WORDS).unwrap_or_default();
        let section = table.section("host-names");
        let title = section.title().to_owned();
        let name = |text: &str| HostName::parse(text).map_err(|why| why.to_string());
        Self { usual, own: of_nodes(section, name), table: title }
    }

    /// What the service calls the host of a mark.
    pub fn of(&self, mark: &Mark) -> HostName {
        self.of_host(&Named { node: mark.node.clone(), fqdn: mark.fqdn.clone() })
    }

    /// The same for a host that has not failed.
    pub fn of_host(&self, host: &Named) -> HostName {
        self.own.get(&host.node).cloned().unwrap_or_else(|| self.usual.of_host(host))
    }

    /// What the service calls a host, and the setting that says so, where two hosts can have one name there that have
    /// different names elsewhere.
    pub(crate) fn there(&self, host: &Named) -> Option<(HostName, String)> {
        let may_clash = self.usual == WhichName::Short || !self.own.is_empty();
        may_clash.then(|| (self.of_host(host), format!("[{}]", self.table)))
    }

    /// What is wrong with the name of a host that the service does not know, and the setting that works. `known` are the
    /// service's own names, `hosts` all that are asked about.
    pub(crate) fn advice(&self, host: &Named, hosts: &[Named], known: &BTreeSet<&str>) -> String {
        let taken: BTreeSet<String> = hosts
            .iter()
            .filter(|other| other.node != host.node)
            .map(|other| self.of_host(other).as_str().to_owned())
            .collect();
        let free: Vec<&str> = known.iter().copied().filter(|name| !taken.contains(*name)).collect();
        let Some(there) = likely(host, &free) else {
            return format!("add it there, or set its name there in [{}]", self.table);
        };
        let fits = |which: &WhichName| {
            let name = |host: &Named| Self { usual: *which, ..self.clone() }.of_host(host);
            name(host).as_str() == there && hosts.iter().all(|host| known.contains(name(host).as_str()))
        };
        match WhichName::WORDS.iter().find(|(_, which)| fits(which)) {
            Some((word, _)) => format!("if it is {there} there, set host-name = \"{word}\""),
            None => {
                format!("if it is {there} there, set \"{}\" = \"{there}\" in [{}]", host.node, self.table)
            }
        }
    }
}

/// The name that a service probably has for a host: one of ours, in any spelling; or one whose first label is ours, or ends
/// or begins ours.
fn likely<'k>(host: &Named, known: &[&'k str]) -> Option<&'k str> {
    let label = |name: &str| name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let short = host.fqdn.without_domain();
    let ours = [host.fqdn.as_str(), short.as_str(), host.node.as_str()];
    let is_label = |name: &str| ours.iter().any(|own| label(own) == label(name));
    let is_part = |name: &str| {
        let (own, name) = (label(host.node.as_str()), label(name));
        !name.is_empty() && (own.ends_with(&format!("-{name}")) || own.starts_with(&format!("{name}-")))
    };
    let exact = |name: &str| ours.contains(&name);
    let spelt = |name: &str| ours.iter().any(|own| own.eq_ignore_ascii_case(name));
    let rules: [&dyn Fn(&str) -> bool; 4] = [&exact, &spelt, &is_label, &is_part];
    rules.iter().find_map(|rule| known.iter().copied().find(|name| rule(name)))
}

/// A table with nodes and the names of their hosts. One name for two hosts could report a live one, so it is refused.
pub fn of_nodes(
    mut section: Section<'_, '_>,
    read: fn(&str) -> Result<HostName, String>,
) -> BTreeMap<HostName, HostName> {
    let mut names = BTreeMap::new();
    for (key, entry) in section.entries() {
        let name = section.last_text(entry, read);
        let Ok(node) = HostName::parse(key) else {
            section.complain_at(entry.key, "the key must be a node name");
            continue;
        };
        let Some(name) = name else { continue };
        if names.values().any(|other| *other == name) {
            let why =
                format!("{node} has the same name as another node: one would be reported for the other");
            section.complain_at(entry.key, why);
        }
        if names.insert(node.clone(), name).is_some() {
            let why = format!("{node} is here twice (upper and lower case are the same): remove one");
            section.complain_at(entry.key, why);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(node: &str, fqdn: &str) -> Named {
        Named { node: HostName::parse(node).unwrap(), fqdn: HostName::parse(fqdn).unwrap() }
    }

    fn names(usual: WhichName, own: &[(&str, &str)]) -> HostNames {
        let own =
            own.iter().map(|(node, name)| (HostName::parse(node).unwrap(), HostName::parse(name).unwrap()));
        HostNames { own: own.collect(), table: "nova.a.host-names".to_owned(), ..usual.into() }
    }

    /// Four worlds at once. The broken variant has one rule for all: none of the three reports all four.
    #[test]
    fn every_mixture_of_names_can_be_said() {
        let hosts = [
            (host("compute1", "compute1.my.cloud.com"), "compute1"),
            (host("compute2.my.cloud.com", "compute2.my.cloud.com"), "compute2.my.cloud.com"),
            (host("Compute3", "Compute3.my.cloud.com"), "compute3"),
            (host("remote-compute4", "remote-compute4.my.cloud.com"), "compute4"),
        ];
        let own = [
            ("compute2.my.cloud.com", "compute2.my.cloud.com"),
            ("COMPUTE3", "compute3"),
            ("remote-compute4", "compute4"),
        ];
        for (host, there) in &hosts {
            assert_eq!(names(WhichName::Short, &own).of_host(host).as_str(), *there);
        }
        for (_, one) in WhichName::WORDS {
            assert!(hosts.iter().any(|(host, there)| names(one, &[]).of_host(host).as_str() != *there));
        }
        assert_ne!(names(WhichName::Fqdn, &[("a", "B")]), names(WhichName::Fqdn, &[("a", "b")]));
    }

    #[test]
    fn the_advice_is_the_setting_that_works() {
        let of = |hosts: &[Named], known: &[&str]| {
            names(WhichName::Fqdn, &[]).advice(&hosts[0], hosts, &known.iter().copied().collect())
        };
        let (one, two) = (host("c1", "c1.x.org"), host("c2.x.org", "c2.x.org"));
        let both = [one.clone(), two.clone()];
        assert_eq!(of(&both, &["c1", "c2"]), "if it is c1 there, set host-name = \"short\"");
        let entry = "if it is c1 there, set \"c1\" = \"c1\" in [nova.a.host-names]";
        assert_eq!(of(&both, &["c1", "c2.x.org"]), "if it is c1 there, set host-name = \"node\"");
        assert_eq!(of(&both, &["c1", "C2"]), entry, "no rule fits both");
        let odd = host("remote-c3", "remote-c3.x.org");
        let entry = "if it is c3 there, set \"remote-c3\" = \"c3\" in [nova.a.host-names]";
        assert_eq!(of(&[odd.clone(), one.clone()], &["c3", "c1"]), entry);
        // The name of another host that is asked about is never advised.
        let taken = [host("remote-c1", "remote-c1.x.org"), host("c1.x.org", "c1.x.org")];
        assert_eq!(of(&taken, &["c1.x.org"]), "add it there, or set its name there in [nova.a.host-names]");
    }
}
