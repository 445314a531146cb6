//! The hosts that are told if they fail, and under which names: the same that a mark of them would have. Pure.

use marks::cib::Cib;
use marks::host::HostName;

use super::coverage::{self, Coverage};
use super::naming::Names;
use crate::config::HostRules;
use crate::drivers::{Failure, Finding, Named};

/// The hosts of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roll {
    /// Those whose names are known.
    pub named: Vec<Named>,
    /// Those that have the name of another node.
    pub clashes: Vec<Finding>,
    /// Those of which nothing here says the full name; `fence_mark` may have been given a domain or a mapped plug.
    pub unnamed: Vec<HostName>,
}

/// Calls the roll, in the order of the names.
pub fn of(rules: &HostRules, cib: &Cib) -> Roll {
    let names = Names::new(rules, Some(cib));
    let mut nodes = [cib.remote_nodes(), cib.guest_nodes(), cib.cluster_nodes()].concat();
    nodes.retain(|node| coverage::of(node, rules, Some(cib)) == Coverage::Told);
    nodes.sort();
    nodes.dedup();
    let mut roll = Roll::default();
    for node in nodes {
        match names.of_node(&node) {
            Ok(Some(fqdn)) => roll.named.push(Named { node, fqdn }),
            Ok(None) => roll.unnamed.push(node),
            Err(clash) => {
                let says = format!(
                    "it would be told as {}, which is the name of {} too: correct [hosts.names]",
                    clash.name, clash.other
                );
                roll.clashes.push(Finding { host: Some(node), why: Failure::new("no-fqdn", &says) });
            }
        }
    }
    roll
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn host(text: &str) -> HostName {
        HostName::parse(text).unwrap()
    }

    fn cib() -> Cib {
        let remote = |node: &str| {
            format!(r#"<primitive id="{node}" class="ocf" provider="pacemaker" type="remote"/>"#)
        };
        let remote: String = ["c3", "Compute1", "c2.other.org"].map(remote).concat();
        let xml = format!(
            r#"<cib><configuration><crm_config/><nodes><node id="1" uname="ctl1"/></nodes><resources>{remote}</resources>
                <constraints/></configuration><status/></cib>"#
        );
        Cib::parse(&xml).unwrap()
    }

    fn named(roll: &Roll) -> Vec<(&str, &str)> {
        roll.named.iter().map(|host| (host.node.as_str(), host.fqdn.as_str())).collect()
    }

    /// As the intake names them: controllers and guests are not told, and no name is shared.
    #[test]
    fn the_hosts_are_those_that_would_be_told() {
        let domain = HostRules { domain: Some("x.org".into()), ..HostRules::default() };
        let roll = of(&domain, &cib());
        assert_eq!(
            named(&roll),
            [("c2.other.org", "c2.other.org"), ("c3", "c3.x.org"), ("Compute1", "Compute1.x.org")]
        );
        assert!(roll.clashes.is_empty() && roll.unnamed.is_empty());

        let none = of(&HostRules::default(), &cib());
        assert_eq!(none.unnamed, [host("c3"), host("Compute1")]);

        let names = BTreeMap::from([(host("c3"), host("compute1.x.org"))]);
        let roll = of(&HostRules { names, ..domain }, &cib());
        let clashes: Vec<_> = roll.clashes.iter().map(|clash| clash.host.clone().unwrap()).collect();
        assert_eq!((named(&roll).len(), clashes), (1, vec![host("c3"), host("Compute1")]));
    }
}
