//! The covered hosts, and the names under which their marks would be sent. Pure.

use std::sync::Arc;

use drivers::{Failure, Finding, Named};
use marks::host::HostName;
use pacemaker::cib::Cib;

use super::coverage::{self, Coverage};
use super::naming::Names;
use super::storage::Storage;
use crate::config::{Group, HostRules, Route, Settings};

/// The hosts of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roll {
    /// Those whose names are known.
    pub named: Vec<Named>,
    /// Those that have the name of another node.
    pub clashes: Vec<Finding>,
    /// Those whose full names are not configured here; `fence_mark` may have been given a domain or a mapped plug.
    pub unnamed: Vec<HostName>,
    /// Those of which nobody says whether their instances are on shared storage.
    pub unsaid: Vec<HostName>,
}

/// Calls the roll, in the order of the names.
pub fn of(settings: &Settings, cib: &Cib) -> Roll {
    of_all((&settings.hosts, &settings.groups, &settings.routes), cib)
}

fn of_all((hosts, groups, routes): (&HostRules, &[Group], &[Arc<Route>]), cib: &Cib) -> Roll {
    let names = Names::new(hosts, Some(cib)).with_routes(routes);
    let storage = Storage { hosts, groups, cib: Some(cib) };
    let mut roll = Roll::default();
    for node in nodes(hosts, cib) {
        if storage.of(&node, None).is_none() {
            roll.unsaid.push(node.clone());
        }
        match names.of_node(&node) {
            Ok(Some(fqdn)) => roll.named.push(Named { node, fqdn }),
            Ok(None) => roll.unnamed.push(node),
            Err(clash) => {
                let says = format!(
                    "it would be reported as {}, which is also the name of {}: correct {}",
                    clash.name, clash.other, clash.setting
                );
                roll.clashes.push(Finding { host: Some(node), why: Failure::new("no-fqdn", &says) });
            }
        }
    }
    roll
}

/// Guest nodes that `[hosts] match` names literally, as if they were compute hosts. A mark that an operator makes of one is sent all
/// the same.
pub fn guests(rules: &HostRules, cib: &Cib) -> Vec<Finding> {
    let is_named = |node: &&HostName| rules.matching.as_ref().is_some_and(|all| all.names_literally(node));
    let named = cib.guest_nodes().iter().filter(is_named);
    named.map(|node| Finding { host: Some(node.clone()), why: Failure::new("guest-node", GUEST) }).collect()
}

const GUEST: &str = "it is a guest node, a virtual machine of the cluster, which no device fences, so it is never marked: take it out of [hosts] match";

/// Every covered node of the cluster.
pub(crate) fn nodes(rules: &HostRules, cib: &Cib) -> Vec<HostName> {
    let mut nodes = [cib.remote_nodes(), cib.guest_nodes(), cib.cluster_nodes()].concat();
    nodes.retain(|node| coverage::of(node, rules, Some(cib)) == Coverage::Covered);
    nodes.sort();
    nodes.dedup();
    nodes
}

/// The hosts of a cluster by their groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grouped {
    /// How many hosts are in each group, in the order of the groups.
    pub sizes: Vec<usize>,
    /// Those that are in more than one.
    pub twice: Vec<Finding>,
    /// What an operator should know of groups of these sizes.
    pub warnings: Vec<String>,
}

/// Finds which host is in which group.
pub fn grouped(settings: &Settings, cib: &Cib) -> Grouped {
    let attribute = |node: &HostName, name: &str| cib.node_attribute(node, name).map(str::to_owned);
    let mut sizes = vec![0; settings.groups.len()];
    let mut twice = Vec::new();
    for node in nodes(&settings.hosts, cib) {
        let own = settings.group_of(&node, &attribute);
        let at = settings.groups.iter().position(|group| group.name == own.name);
        sizes[at.expect("it is one of these")] += 1;
        twice.extend(in_two(&node, &settings.groups_of(&node, &attribute)));
    }
    // Groups with a list of names were checked with the configuration.
    let unlisted = settings.groups.iter().zip(&sizes).filter(|(group, _)| group.members.count().is_none());
    let warnings = unlisted.filter_map(|(group, size)| group.warning(*size)).collect();
    Grouped { sizes, twice, warnings }
}

fn in_two(node: &HostName, groups: &[&Group]) -> Option<Finding> {
    let names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
    let says = format!(
        "it is in more than one group ({}), and only the first counts: leave it in one of them",
        names.join(", ")
    );
    let is_twice = names.len() > 1;
    is_twice.then(|| Finding { host: Some(node.clone()), why: Failure::new("groups", &says) })
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

    /// As the intake names them: controllers and guests are not notified, and no name is base.
    #[test]
    fn the_hosts_are_those_that_would_be_notified() {
        let of = |hosts: &HostRules| of_all((hosts, &[Group::rest()], &[]), &cib());
        let domain = HostRules { domain: Some("x.org".into()), ..HostRules::default() };
        let roll = of(&domain);
        assert_eq!(
            named(&roll),
            [("c2.other.org", "c2.other.org"), ("c3", "c3.x.org"), ("Compute1", "Compute1.x.org")]
        );
        assert!(roll.clashes.is_empty() && roll.unnamed.is_empty());

        assert_eq!(roll.unsaid.len(), 3, "nobody says it");
        let said = HostRules { on_shared_storage: Some(false), ..domain.clone() };
        assert!(of(&said).unsaid.is_empty());

        let none = of(&HostRules::default());
        assert_eq!(none.unnamed, [host("c3"), host("Compute1")]);

        let names = BTreeMap::from([(host("c3"), host("compute1.x.org"))]);
        let roll = of(&HostRules { names, ..domain });
        let clashes: Vec<_> = roll.clashes.iter().map(|clash| clash.host.clone().unwrap()).collect();
        assert_eq!((named(&roll).len(), clashes), (1, vec![host("c3"), host("Compute1")]));
    }
}
