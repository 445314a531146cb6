//! The cluster's full nodes in corosync's configuration.

use std::net::IpAddr;

use marks::host::HostName;

/// The node names in the nodelist of a `corosync.conf`.
///
/// As Pacemaker chooses them: `name`, else `ring0_addr` unless it is an address. A node with neither is named by its own
/// kernel and is not in the result. An invalid host name cannot be asked for, and is ignored.
pub fn corosync_nodes(text: &str) -> Vec<HostName> {
    let mut open: Vec<&str> = Vec::new();
    let mut names = Vec::new();
    let mut node = Listed::default();
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        if let Some(section) = line.strip_suffix('{') {
            open.push(section.trim());
            node = Listed::default();
        } else if line == "}" {
            if is_node(&open) {
                names.extend(node.name());
            }
            open.pop();
        } else if let (true, Some((key, value))) = (is_node(&open), line.split_once(':')) {
            node.set(key.trim(), value.trim());
        }
    }
    names
}

fn is_node(open: &[&str]) -> bool {
    matches!(open, ["nodelist", "node"])
}

/// One node of the nodelist.
#[derive(Default)]
struct Listed<'a> {
    given: Option<&'a str>,
    address: Option<&'a str>,
}

impl<'a> Listed<'a> {
    fn set(&mut self, key: &str, value: &'a str) {
        match key {
            "name" => self.given = Some(value),
            "ring0_addr" => self.address = Some(value),
            _ => {}
        }
    }

    fn name(&self) -> Option<HostName> {
        let address = self.address.filter(|text| text.parse::<IpAddr>().is_err());
        HostName::parse(self.given.or(address)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        corosync_nodes(text).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn names_come_from_the_nodelist_alone() {
        let text = "totem {\n  cluster_name: name\n  interface {\n  name: no\n }\n}\n# nodelist {\nnodelist {\n\tnode {\n\t\tname: ctl1\n\t\tring0_addr: 10.0.0.1\n\t}\n  node{\n ring0_addr: ctl2.example.com\n nodeid: 2\n }\n}\n";
        assert_eq!(names(text), ["ctl1", "ctl2.example.com"]);
    }

    #[test]
    fn an_address_is_no_name() {
        let text = "nodelist {\n node {\n ring0_addr: 10.0.0.1\n }\n node {\n ring0_addr: fe80::1\n }\n}\n";
        assert_eq!(names(text), Vec::<String>::new());
    }

    #[test]
    fn one_node_does_not_leak_into_the_next() {
        let text = "nodelist {\n node {\n name: ctl1\n }\n node {\n ring0_addr: 10.0.0.2\n }\n}\n";
        assert_eq!(names(text), ["ctl1"]);
    }

    #[test]
    fn junk_is_passed_over() {
        assert!(names("}\n}\n{\nname: a\nnodelist {\nnode {\nname: ../etc\n}\n").is_empty());
        assert!(names("").is_empty());
    }
}
