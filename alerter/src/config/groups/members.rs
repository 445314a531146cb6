//! Who is in a group: `hosts`, or `attribute`, or everybody else.

use marks::host::{HostName, HostPatterns};
use site::Section;

use crate::config::values::patterns;

/// The group of every host that is in no other.
pub(super) const REST: &str = "default";

/// A permanent attribute of a node in the CIB; `None` where it has none, or where it is not known.
pub type Attributes<'f> = &'f dyn Fn(&HostName, &str) -> Option<String>;

/// Who is in a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Members {
    /// `hosts`: the nodes that these match.
    Hosts(HostPatterns),
    /// `attribute`: the nodes with this permanent attribute in the CIB.
    Attribute {
        /// What it is called.
        name: String,
        /// What it says.
        value: String,
    },
    /// The nodes that are in no other group.
    Rest,
}

impl Members {
    /// Whether a node is a member. Every node is one of the rest, so that is asked last.
    pub fn has(&self, node: &HostName, attribute: Attributes<'_>) -> bool {
        match self {
            Self::Hosts(patterns) => patterns.covers(node),
            Self::Attribute { name, value } => attribute(node, name).is_some_and(|own| own == *value),
            Self::Rest => true,
        }
    }

    /// How many there are; `None` where only the cluster knows.
    pub fn count(&self) -> Option<usize> {
        match self {
            Self::Hosts(patterns) => patterns.count(),
            Self::Attribute { .. } | Self::Rest => None,
        }
    }

    /// For people.
    pub fn shown(&self) -> String {
        match self {
            Self::Hosts(patterns) => format!("hosts {}", patterns.shown()),
            Self::Attribute { name, value } => format!("nodes with {name}={value}"),
            Self::Rest => "every other host".to_owned(),
        }
    }
}

/// Reads who is in a group of this name; `None` where that cannot be said.
pub(super) fn read(table: &mut Section<'_, '_>, name: &str, is_alone: bool) -> Option<Members> {
    let hosts = patterns(table, "hosts");
    let attribute = table.text("attribute", attribute);
    let title = table.title().to_owned();
    match (table.has("hosts"), table.has("attribute")) {
        (false, false) if name == REST => return Some(Members::Rest),
        (by_hosts, _) if name == REST => {
            let key = if by_hosts { "hosts" } else { "attribute" };
            table.complain(key, format!("[{title}] is for every host in no other group: remove {key}"));
        }
        (false, false) => table.missing(format!(
            "[{title}] has no hosts: name them or give it an attribute, or remove the table"
        )),
        (true, true) => table.complain("attribute", "a group has hosts or attribute: remove one of them"),
        (true, false) if hosts.as_ref().is_some_and(Vec::is_empty) => table.complain(
            "hosts",
            "the list is empty, so no host is in this group: name hosts, or remove the table",
        ),
        (false, true) if is_alone => table.complain(
            "attribute",
            "[store] register = \"none\" has no cluster that knows a node's attributes: name hosts",
        ),
        _ => {}
    }
    attribute.or_else(|| HostPatterns::from_entries(hosts?).ok().map(Members::Hosts))
}

fn attribute(text: &str) -> Result<Members, String> {
    let is_plain = |part: &str| !part.is_empty() && part.trim() == part && !part.contains(char::is_control);
    match text.split_once('=') {
        Some((name, value)) if is_plain(name) && is_plain(value) && !name.contains(' ') => {
            Ok(Members::Attribute { name: name.to_owned(), value: value.to_owned() })
        }
        _ => Err("must be NAME=VALUE, a permanent attribute of nodes such as \"zone=1\"".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_in_a_group_by_its_name_or_by_its_attribute() {
        let node = |name| HostName::parse(name).unwrap();
        let zone = |node: &HostName, name: &str| {
            (name == "zone").then(|| if node.as_str() == "c1" { "1".into() } else { "2".into() })
        };
        let by_zone = attribute("zone=1").unwrap();
        assert!(by_zone.has(&node("c1"), &zone) && !by_zone.has(&node("c2"), &zone));
        assert!(!attribute("Zone=1").unwrap().has(&node("c1"), &zone));
        assert!(!by_zone.has(&node("c1"), &|_, _| None), "nobody knows");
        let by_name = Members::Hosts(HostPatterns::parse("c1,d*").unwrap());
        assert!(by_name.has(&node("D7"), &zone) && !by_name.has(&node("c2"), &zone));
        assert!(Members::Rest.has(&node("c2"), &zone));
    }
}
