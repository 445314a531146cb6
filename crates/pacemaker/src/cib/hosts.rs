//! Hosts in the CIB: which remote nodes exist, and whether each is connected, wanted, or fenced.

use std::collections::{BTreeSet, HashSet};

use super::{Cib, NodeState, Resource};
use marks::host::HostName;
use marks::time::Timestamp;

/// The nodes by kind, computed once for each document: a caller that asks about every host must not scan all of them each
/// time.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    cluster: Nodes,
    guests: Nodes,
    remotes: Nodes,
}

impl Known {
    pub(super) fn of(cib: &Cib) -> Self {
        let full = cib.nodes.iter().filter(|node| matches!(node.kind.as_str(), "" | "member" | "normal"));
        let primitives = cib.resources.iter().filter(|resource| !resource.is_template);
        let remotes = cib.resources.iter().filter(|resource| cib.is_remote(resource));
        Self {
            cluster: Nodes::named(full.map(|node| node.name.as_str())),
            guests: Nodes::named(primitives.filter_map(|resource| cib.meta(resource, "remote-node"))),
            remotes: Nodes::named(remotes.map(|resource| resource.id.as_str())),
        }
    }
}

/// Whether a cluster node is a member, and since when by which DC's clock, if Pacemaker notes that (2.1.7 and later).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Membership {
    is_member: bool,
    since: Option<(String, i64)>,
}

impl Membership {
    /// Whether the node has joined between an earlier poll and this one. Every DC writes times of its own, so only those
    /// of one DC are compared.
    #[must_use]
    pub fn has_joined_since(&self, before: &Self) -> bool {
        let is_later = match (&before.since, &self.since) {
            (Some((one, then)), Some((other, now))) => one == other && now > then,
            _ => false,
        };
        self.is_member && (!before.is_member || is_later)
    }

    /// When the DC saw it join; a DC that joined later than the node has a time of its own here.
    #[must_use]
    pub fn joined_at(&self) -> Option<Timestamp> {
        // 1 is not a time: the node has left the process group, and is still a member.
        let second = self.since.as_ref().map(|(_, second)| *second).filter(|second| *second > 1);
        second.map(Timestamp::from_seconds)
    }
}

/// Nodes in the order of the document, with a quick test for membership.
#[derive(Debug, Default, PartialEq, Eq)]
struct Nodes {
    listed: Vec<HostName>,
    names: HashSet<HostName>,
}

impl Nodes {
    fn named<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let listed: Vec<HostName> = names.filter_map(|name| HostName::parse(name).ok()).collect();
        Self { names: listed.iter().cloned().collect(), listed }
    }
}

/// Pacemaker's name of a controller and the kernel's may differ by a domain.
pub fn is_same_controller(one: &str, other: &str) -> bool {
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    short(one) == short(other)
}

impl Cib {
    /// The names of the full cluster nodes (not of remote and guest nodes).
    pub fn cluster_nodes(&self) -> &[HostName] {
        &self.known.cluster.listed
    }

    /// Whether a controller, by its kernel's name, is a cluster node.
    pub fn has_controller(&self, name: &str) -> bool {
        self.cluster_nodes().iter().any(|node| is_same_controller(node.as_str(), name))
    }

    /// The same, for a cluster node that is a member now.
    pub fn has_controller_online(&self, name: &str) -> bool {
        let is_member = |node: &&HostName| self.membership(node) == Some(true);
        self.cluster_nodes().iter().filter(is_member).any(|node| is_same_controller(node.as_str(), name))
    }

    /// Whether a controller beside this one is a member that may run resources; `hosts` are cluster nodes that are none.
    pub fn has_other_controller_online(&self, own: &str, hosts: &[HostName]) -> bool {
        let is_up = |node: &HostName| self.membership(node) == Some(true) && !self.is_set_aside(node);
        let is_other = |node: &&HostName| !is_same_controller(node.as_str(), own) && !hosts.contains(node);
        self.cluster_nodes().iter().filter(is_other).any(is_up)
    }

    /// The remote nodes: the names of `ocf:pacemaker:remote` resources, also of those with a template.
    pub fn remote_nodes(&self) -> &[HostName] {
        &self.known.remotes.listed
    }

    /// The guest nodes: virtual machines of the cluster itself, which are never computes.
    pub fn guest_nodes(&self) -> &[HostName] {
        &self.known.guests.listed
    }

    /// Whether this is a full cluster node.
    pub fn is_cluster_node(&self, host: &HostName) -> bool {
        self.known.cluster.names.contains(host)
    }

    /// Whether this is a remote node.
    pub fn is_remote_node(&self, host: &HostName) -> bool {
        self.known.remotes.names.contains(host)
    }

    /// Whether this host joins the cluster by itself: a full cluster node whose name no remote node has.
    pub fn joins_itself(&self, host: &HostName) -> bool {
        self.is_cluster_node(host) && !self.is_remote_node(host)
    }

    /// Whether this is a guest node.
    pub fn is_guest_node(&self, host: &HostName) -> bool {
        self.known.guests.names.contains(host)
    }

    /// Whether the cluster should be connected to this remote node: its resource is to run and is managed, and neither it
    /// nor the cluster is in maintenance or standby.
    pub fn is_expected(&self, host: &HostName) -> bool {
        let mut own = self.index.resources(host.as_str()).iter().filter_map(|at| self.resources.get(*at));
        let Some(resource) = own.find(|resource| self.is_remote(resource)) else { return false };
        let unmanaged = self.meta(resource, "is-managed").and_then(truth) == Some(false)
            || self.meta(resource, "maintenance").and_then(truth) == Some(true)
            || self.maintenance_modes.iter().any(|mode| truth(mode) == Some(true));
        !self.is_stopped(resource) && !unmanaged && !self.is_set_aside(host)
    }

    /// Whether Pacemaker has this node as a member; `None` if it does not say so, or nothing that can be trusted.
    ///
    /// With a DC of 3.0 or later `in_ccm` says nothing of a remote node (`docs/pacemaker-releases.md`, 3); its connection
    /// decides. A connection to a host that counts as fenced decides nothing: somebody may have confirmed by hand a host
    /// that is alive. With an earlier DC a controller that joins may write that a host is lost although another one is
    /// connected to it.
    pub fn membership(&self, host: &HostName) -> Option<bool> {
        let state = self.state_of(host.as_str())?;
        if !self.is_overwritten(state, host) {
            return state.is_member().filter(|is_member| *is_member || !self.is_held(host));
        }
        self.is_connected(host).filter(|connected| !connected || state.fenced_at().is_none())
    }

    /// Whether every remote node is a member: then none can come back.
    pub fn has_all_remotes(&self) -> bool {
        self.remote_nodes().iter().all(|host| self.membership(host) == Some(true))
    }

    fn is_held(&self, host: &HostName) -> bool {
        self.is_remote_node(host) && self.is_connected(host) == Some(true)
    }

    fn is_overwritten(&self, state: &NodeState, host: &HostName) -> bool {
        self.overwrites_remotes() && !state.in_ccm.is_empty() && self.is_remote_node(host)
    }

    /// Every host that Pacemaker has as a member, and that was not fenced since it became one.
    pub fn members(&self) -> BTreeSet<HostName> {
        let names = self.states.iter().filter_map(|state| HostName::parse(state.known_as()).ok());
        let is_in =
            |name: &HostName| self.membership(name) == Some(true) && self.fenced_before(name) != Some(true);
        names.filter(is_in).collect()
    }

    /// The same for a cluster node, with the time of its joining if noted.
    pub fn membership_since(&self, host: &HostName) -> Option<Membership> {
        let state = self.state_of(host.as_str())?;
        let second = state.in_ccm.parse().ok();
        Some(Membership {
            is_member: state.is_member()?,
            since: second.map(|second| (self.dc.clone(), second)),
        })
    }

    /// Whether the CIB has the node's membership, but with an unknown value.
    pub fn is_membership_unclear(&self, host: &HostName) -> bool {
        let state = self.state_of(host.as_str());
        state.is_some_and(|state| !state.in_ccm.is_empty()) && self.membership(host).is_none()
    }

    /// When the node was last fenced, or confirmed as down by hand, epoch seconds; `None` once it is back.
    pub fn node_fenced(&self, host: &HostName) -> Option<i64> {
        self.state_of(host.as_str())?.fenced_at()
    }

    /// Whether the node was fenced and has not been back since. `Some(false)`: every connection sets `node_fenced` to 0.
    /// `None` if the CIB does not say so: for cluster nodes, and for remote nodes that have not been connected since all
    /// controllers were stopped.
    pub fn fenced_before(&self, host: &HostName) -> Option<bool> {
        let second: i64 = self.state_of(host.as_str())?.fenced.parse().ok()?;
        (second >= 0).then_some(second > 0)
    }

    /// All nodes that were fenced and are not back yet, with the epoch second of each.
    pub fn fenced_nodes(&self) -> Vec<(HostName, i64)> {
        let fenced = self.states.iter().filter_map(|state| Some((state.known_as(), state.fenced_at()?)));
        fenced.filter_map(|(name, second)| Some((HostName::parse(name).ok()?, second))).collect()
    }

    /// A permanent attribute of a cluster node or remote node, as `crm_attribute` and `pcs node attribute` set it; `None`
    /// without one.
    pub fn node_attribute(&self, host: &HostName, name: &str) -> Option<&str> {
        self.permanent(host).find_map(|list| value(list, name))
    }

    /// Every node with a permanent attribute of this name, with its value.
    pub fn nodes_with(&self, name: &str) -> Vec<(HostName, &str)> {
        let found = self.nodes.iter().filter_map(|node| Some((&node.name, value(&node.attributes, name)?)));
        found.filter_map(|(node, word)| Some((HostName::parse(node).ok()?, word))).collect()
    }

    pub(super) fn state_of(&self, name: &str) -> Option<&NodeState> {
        self.states.get(self.index.state(name)?)
    }

    fn is_remote(&self, resource: &Resource) -> bool {
        let typed = self.typed(resource);
        let agent = (typed.class.as_str(), typed.provider.as_str(), typed.agent.as_str());
        !resource.is_template && agent == ("ocf", "pacemaker", "remote")
    }

    /// Whether it is to be stopped.
    pub(super) fn is_stopped(&self, resource: &Resource) -> bool {
        self.meta(resource, "target-role").is_some_and(|role| role.eq_ignore_ascii_case("stopped"))
    }

    /// In Pacemaker's order: the resource's own, its template's, the default of all.
    fn meta<'a>(&'a self, resource: &'a Resource, name: &str) -> Option<&'a str> {
        let inherited = self.template_of(resource).map(|template| &template.meta);
        let lists = [Some(&resource.meta), inherited, Some(&self.resource_defaults)];
        lists.into_iter().flatten().find_map(|list| value(list, name))
    }

    fn permanent(&self, host: &HostName) -> impl Iterator<Item = &Vec<(String, String)>> {
        let places = self.places.get(host).into_iter().flatten();
        places.filter_map(|at| Some(&self.nodes.get(*at)?.attributes))
    }

    /// Whether it is in standby or maintenance, permanently or until its next start.
    fn is_set_aside(&self, host: &HostName) -> bool {
        let transient = self.state_of(host.as_str()).map(|state| &state.attributes);
        self.permanent(host).chain(transient).any(|list| {
            ["standby", "maintenance"].into_iter().any(|name| value(list, name).and_then(truth) == Some(true))
        })
    }
}

impl NodeState {
    pub(super) fn known_as(&self) -> &str {
        if self.name.is_empty() { &self.id } else { &self.name }
    }

    /// Pacemaker writes true or false; from 2.1.7 on, with the DC of that release, since when (epoch seconds), 0 for not.
    pub(super) fn is_member(&self) -> Option<bool> {
        let number: Option<i64> = self.in_ccm.parse().ok();
        number.map(|since| since > 0).or_else(|| truth(&self.in_ccm))
    }

    /// Whether it is a member with its controller: a controller that died leaves its operations behind.
    pub(super) fn takes_part(&self) -> bool {
        let has_left = self.crmd == "offline" || truth(&self.crmd) == Some(false);
        self.is_member() == Some(true) && !has_left
    }

    fn fenced_at(&self) -> Option<i64> {
        self.fenced.parse().ok().filter(|second| *second > 0)
    }
}

fn value<'a>(list: &'a [(String, String)], name: &str) -> Option<&'a str> {
    list.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

/// Pacemaker's words for true and false.
pub fn truth(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "on" | "yes" | "y" | "1" => Some(true),
        "false" | "off" | "no" | "n" | "0" => Some(false),
        _ => None,
    }
}
