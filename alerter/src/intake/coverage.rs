//! Which hosts are covered: recovery controllers are notified of their outages. Pure.

use marks::host::HostName;
use pacemaker::cib::Cib;

use crate::config::HostRules;

/// Whether a host is covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coverage {
    /// It is.
    Covered,
    /// `[hosts] match` leaves it out, or it is a controller or a guest node that is not named literally.
    Not,
    /// The cluster does not know it (any more).
    Unknown,
}

/// Whether this is a compute host that is a cluster node.
pub(super) fn is_own_host(node: &HostName, rules: &HostRules, cib: &Cib) -> bool {
    cib.joins_itself(node) && of(node, rules, Some(cib)) == Coverage::Covered
}

/// All of them.
pub fn own_hosts(rules: &HostRules, cib: &Cib) -> Vec<HostName> {
    cib.cluster_nodes().iter().filter(|node| is_own_host(node, rules, cib)).cloned().collect()
}

/// Applies the rules to a host. Without a cluster every host is covered that `match` does not leave out.
pub(super) fn of(node: &HostName, rules: &HostRules, cib: Option<&Cib>) -> Coverage {
    match (&rules.matching, cib) {
        (Some(patterns), _) if !patterns.covers(node) => Coverage::Not,
        (Some(patterns), _) if patterns.names_literally(node) => Coverage::Covered,
        (_, Some(cib)) if cib.is_cluster_node(node) || cib.is_guest_node(node) => Coverage::Not,
        (None, Some(cib)) if !cib.is_remote_node(node) => Coverage::Unknown,
        _ => Coverage::Covered,
    }
}
