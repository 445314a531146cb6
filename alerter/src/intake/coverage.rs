//! Which hosts are notified at all. Pure.

use marks::host::HostName;
use pacemaker::cib::Cib;

use crate::config::HostRules;

/// Whether a host is notified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coverage {
    /// It is.
    Told,
    /// `[hosts] match` names it not, or it is a controller or a guest that nobody named literally.
    Not,
    /// The cluster does not know it (any more).
    Unknown,
}

/// What the rules say of a host; without a cluster every host is notified that `match` does not leave out.
pub(super) fn of(node: &HostName, rules: &HostRules, cib: Option<&Cib>) -> Coverage {
    match (&rules.matching, cib) {
        (Some(patterns), _) if !patterns.covers(node) => Coverage::Not,
        (Some(patterns), _) if patterns.names_literally(node) => Coverage::Told,
        (_, Some(cib)) if cib.is_cluster_node(node) || cib.is_guest_node(node) => Coverage::Not,
        (None, Some(cib)) if !cib.is_remote_node(node) => Coverage::Unknown,
        _ => Coverage::Told,
    }
}
