//! Whether a host's instances are on shared storage: what somebody says, and never a guess. Pure.

use marks::host::HostName;
use pacemaker::cib::Cib;

use crate::config::{self, Group, HostRules};

/// Everybody who may say it, but for `fence_mark` itself.
#[derive(Clone, Copy)]
pub(super) struct Storage<'a> {
    pub(super) hosts: &'a HostRules,
    pub(super) groups: &'a [Group],
    /// None where there is no cluster to ask.
    pub(super) cib: Option<&'a Cib>,
}

impl Storage<'_> {
    /// The configuration's answer, else the one that `fence_mark` was given with a fencing, else the one that its devices in the host's
    /// levels have: a host may be fenced by power alone. A recovery controller that reads "shared" and finds otherwise refuses; the
    /// opposite rebuilds the disks from their images.
    pub(super) fn of(&self, node: &HostName, given: Option<bool>) -> Option<bool> {
        let attribute = |node: &HostName, name: &str| self.cib?.node_attribute(node, name).map(str::to_owned);
        let configured = config::shared_storage(self.hosts, self.groups, node, &attribute);
        configured.or(given).or_else(|| Some(!self.cib?.no_shared_storage(node)?))
    }
}
