//! The relevant part of the cluster. Plain data, which `read` fills in.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use marks::host::{HostName, HostPatterns};
use pacemaker::cib::releases::{FENCING_ENABLED, Release};
use pacemaker::cib::{Level, MARK_AGENT, Powerless, Target, interval, powerless_device, surely_cuts, truth};

use super::local::Here;

/// `class:provider:type` of the alerter's resource.
pub(super) const ALERTER_AGENT: &str = "ocf:openstack:nova-host-alerter";
/// The alert agent's name.
pub(super) const ALERT_PROGRAM: &str = "alert_mark";

/// A cluster's configuration, and the wanted state.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    /// Pacemaker's release, from the DC.
    pub pacemaker: Option<Release>,
    /// Cluster nodes, remote nodes and guest nodes.
    pub nodes: Vec<Node>,
    /// Every primitive.
    pub resources: Vec<Resource>,
    /// The fencing topology, in the order of the document.
    pub levels: Vec<Level>,
    /// Every alert.
    pub alerts: Vec<Alert>,
    /// Every location constraint.
    pub locations: Vec<Location>,
    /// The cluster's properties, from the first set that counts.
    pub properties: BTreeMap<String, String>,
    /// Hosts with a health check that fails, each with what its agent says.
    pub unhealthy: BTreeMap<HostName, String>,
    /// Operations that failed last, on any node.
    pub failures: Vec<Failure>,
    /// The same cluster with one rule in force that cannot be judged here, and the id of the rule's set or constraint. In
    /// this one none is.
    pub under_rules: Vec<(String, Cluster)>,
    /// The hosts that Pacemaker would fence as soon as fencing is switched on; `None` if unknown.
    pub would_fence: Option<Vec<String>>,
    /// All ids of the configuration.
    pub taken: BTreeSet<String>,
    /// The state of this controller.
    pub here: Here,
    /// The wanted state.
    pub wanted: Wanted,
}

/// The variable part of the wanted state.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The compute hosts among the remote nodes; all if unset.
    pub hosts: Option<HostPatterns>,
    /// The configuration of the alerter.
    pub config: String,
    /// The directory of evidence.
    pub evidence: String,
    /// The hosts of which nobody says whether their instances are on shared storage, if the configuration can be read.
    pub unsaid: Vec<HostName>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: HostName,
    /// Its kind.
    pub kind: NodeKind,
    /// Its permanent attributes.
    pub attributes: Vec<(String, String)>,
}

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// With Corosync: a controller.
    Cluster,
    /// A resource of `ocf:pacemaker:remote`: a compute host.
    Remote,
    /// A virtual machine of the cluster itself.
    Guest,
}

impl NodeKind {
    /// Its value of `#kind` in rules.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Cluster => "cluster",
            Self::Remote => "remote",
            Self::Guest => "container",
        }
    }
}

/// A primitive, with the settings of its template, its parents and the defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resource {
    /// Its id.
    pub id: String,
    /// The id of its group or clone, else its own.
    pub top: String,
    /// Whether it is in a clone or a bundle.
    pub is_cloned: bool,
    /// `class:provider:type`; a fence device has no provider.
    pub agent: String,
    /// The id of its template.
    pub template: Option<String>,
    /// Its parameters.
    pub parameters: BTreeMap<String, String>,
    /// Its meta attributes.
    pub meta: BTreeMap<String, String>,
    /// Its operations.
    pub operations: Vec<Operation>,
    /// `on-fail` of its start, if set.
    pub on_failing_start: Option<String>,
}

/// An operation that is configured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operation {
    /// Such as `monitor`.
    pub name: String,
    /// The interval, as written.
    pub interval: String,
    /// Its time limit, as written.
    pub timeout: String,
    /// Its id.
    pub id: String,
    /// What Pacemaker does if it fails, if set.
    pub on_fail: String,
    /// It is disabled, or for a stopped resource.
    pub is_off: bool,
}

/// What follows for a compute host whose health check fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Reaction {
    /// It is shown.
    Observe,
    /// It is fenced, if it fails alone.
    Fence,
}

/// A location constraint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// Its id.
    pub id: String,
    /// Its resources.
    pub resources: Vec<String>,
    /// `resource-discovery`, as it is written.
    pub discovery: String,
    /// Its scores.
    pub parts: Vec<Part>,
}

/// A score for the nodes that meet a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// From minus to plus one million.
    pub score: i64,
    /// The condition.
    pub condition: Condition,
}

/// A condition for a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Its name.
    Named(String),
    /// All of these.
    All(Vec<Condition>),
    /// One of these.
    Any(Vec<Condition>),
    /// A comparison of one of its attributes.
    Attribute {
        /// Its name, such as `#kind`.
        name: String,
        /// `eq`, `ne`, `defined`, `not_defined`; others are not evaluated.
        operation: String,
        /// The compared value.
        value: String,
    },
    /// Not evaluated here, such as a date.
    Other,
}

/// An alert.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alert {
    /// Its id.
    pub id: String,
    /// The program.
    pub path: String,
    /// Whether the program exists on this controller.
    pub is_here: bool,
    /// The selected events; all if nothing is selected.
    pub selected: Vec<String>,
    /// Its recipients, without disabled ones.
    pub recipients: Vec<String>,
    /// It is switched off, as releases since 2.1.6 can.
    pub is_off: bool,
}

/// A failed operation that was the last of its resource on its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The resource.
    pub resource: String,
    /// The node.
    pub node: String,
    /// Its exit code by OCF.
    pub code: i64,
    /// Its message.
    pub reason: String,
}

/// Whether an interval is more than 0. Pacemaker takes 0 for what is none.
pub(super) fn is_some_time(text: &str) -> bool {
    interval(text).is_some_and(|time| !time.is_zero())
}

impl Cluster {
    /// Whether all is the same that a rule can change.
    pub(super) fn has_settings_of(&self, other: &Self) -> bool {
        self.properties == other.properties
            && self.resources == other.resources
            && self.nodes == other.nodes
            && self.alerts == other.alerts
            && self.locations == other.locations
    }

    /// This one, and those in which a rule is in force that cannot be judged here.
    pub(super) fn possible(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(self.under_rules.iter().map(|(_, other)| other))
    }

    /// The compute hosts: the remote nodes that are wanted.
    pub(super) fn computes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| self.is_compute(node))
    }

    /// How many compute hosts there are.
    pub fn compute_hosts(&self) -> usize {
        self.computes().count()
    }

    /// Whether the whole product is on this controller.
    pub fn is_installed(&self) -> bool {
        self.here.missing.is_empty()
    }

    pub(super) fn is_compute(&self, node: &Node) -> bool {
        let wanted = self.wanted.hosts.as_ref();
        node.kind == NodeKind::Remote && wanted.is_none_or(|patterns| patterns.covers(&node.name))
    }

    /// Whether a cluster node is a compute host too: `[hosts] match` names it.
    pub(super) fn has_member_hosts(&self) -> bool {
        let wanted = self.wanted.hosts.as_ref();
        let is_named = |node: &Node| wanted.is_some_and(|patterns| patterns.names_literally(&node.name));
        self.nodes.iter().any(|node| node.kind == NodeKind::Cluster && is_named(node))
    }

    pub(super) fn resource(&self, id: &str) -> Option<&Resource> {
        self.resources.iter().find(|resource| resource.id == id)
    }

    /// The mark devices.
    pub(super) fn marks(&self) -> impl Iterator<Item = &Resource> {
        self.resources.iter().filter(|resource| resource.is_mark())
    }

    pub(super) fn is_mark(&self, id: &str) -> bool {
        self.marks().any(|mark| mark.id == id)
    }

    /// The fence devices that are no mark devices.
    pub(super) fn powers(&self) -> impl Iterator<Item = &Resource> {
        self.resources.iter().filter(|resource| resource.is_fence_device() && !resource.is_mark())
    }

    /// Whether a device of this level cuts power, so that a mark behind it is true. A name without a device never
    /// succeeds.
    pub(super) fn cuts_power(&self, devices: &[String]) -> bool {
        let mut own = devices.iter().filter_map(|id| self.resource(id));
        own.any(|resource| resource.is_fence_device() && resource.powerless().is_none())
    }

    pub(super) fn alerters(&self) -> impl Iterator<Item = &Resource> {
        self.resources.iter().filter(|resource| resource.agent == ALERTER_AGENT)
    }

    /// Whether a level of this target applies to a node; `None` if unknown.
    pub(super) fn is_target(&self, node: &Node, target: &Target) -> Option<bool> {
        let attributes = node.attributes.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        target.covers(node.name.as_str(), attributes)
    }

    /// Whether Pacemaker starts, stops and fences this resource's host.
    pub(super) fn is_managed(&self, resource: &Resource) -> bool {
        let by_default = self.is_on("is-managed-default") != Some(false);
        let in_maintenance = resource.meta("maintenance").and_then(truth) == Some(true);
        !in_maintenance && resource.meta("is-managed").and_then(truth).unwrap_or(by_default)
    }

    /// The value of a boolean property.
    pub(super) fn is_on(&self, property: &str) -> Option<bool> {
        self.property(property).and_then(truth)
    }

    /// The name of the property that switches fencing off, if any.
    pub(super) fn switched_off(&self) -> Option<&'static str> {
        let set = FENCING_ENABLED.into_iter().find(|name| self.property(name).is_some());
        set.filter(|name| self.is_on(name) == Some(false))
    }

    pub(super) fn property(&self, name: &str) -> Option<&str> {
        self.properties.get(name).map(String::as_str)
    }

    /// The levels of a target that the fencer uses, in its order. Entries of the same number are one level.
    pub(super) fn levels_of(&self, target: &Target) -> BTreeMap<u32, Vec<String>> {
        let own = self.levels.iter().filter(|level| level.target == *target && level.holds());
        own.map(|level| (level.index, self.entries_of(target, level.index).concat())).collect()
    }

    /// The entries of a target with one number.
    pub(super) fn entries_of(&self, target: &Target, index: u32) -> Vec<Vec<String>> {
        let own = self.levels.iter().filter(|level| level.target == *target && level.index == index);
        own.map(|level| level.devices.clone()).collect()
    }

    /// Every target of the topology once, in the order of the document.
    pub(super) fn targets(&self) -> Vec<&Target> {
        targets(self.levels.iter())
    }

    /// A free id that no level names: its meaning there would be unknown.
    pub(super) fn free_id(&self, wish: &str) -> String {
        self.free_ids(wish).next().expect("there are more numbers than ids")
    }

    /// All of them.
    pub(super) fn free_ids(&self, wish: &str) -> impl Iterator<Item = String> {
        let others = (2..).map(move |number| format!("{wish}-{number}"));
        let ids = std::iter::once(wish.to_owned()).chain(others);
        let is_named = |id: &String| self.levels.iter().any(|level| level.devices.contains(id));
        ids.filter(move |id| !self.taken.contains(id) && !is_named(id))
    }
}

/// The targets of levels, each once.
pub(super) fn targets<'a>(levels: impl Iterator<Item = &'a Level>) -> Vec<&'a Target> {
    let mut seen = HashSet::new();
    levels.map(|level| &level.target).filter(|target| seen.insert(*target)).collect()
}

impl Resource {
    pub(super) fn is_fence_device(&self) -> bool {
        self.agent.starts_with("stonith:")
    }

    pub(super) fn is_mark(&self) -> bool {
        self.agent.strip_prefix("stonith:").is_some_and(|agent| agent == MARK_AGENT)
    }

    /// What a fence device does instead of cutting power; `None` if it counts as cutting power.
    pub(super) fn powerless(&self) -> Option<&'static Powerless> {
        powerless_device(self.agent.strip_prefix("stonith:")?, |name| self.parameter(name))
    }

    /// Whether its agent is known to cut power: without a level no operator has confirmed that.
    pub(super) fn surely_cuts(&self) -> bool {
        self.agent.strip_prefix("stonith:").is_some_and(surely_cuts)
    }

    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    pub(super) fn meta(&self, name: &str) -> Option<&str> {
        self.meta.get(name).map(String::as_str)
    }

    /// Its configured hosts, by `pcmk_host_list` and `pcmk_host_map`; `None` without either.
    pub(super) fn hosts(&self) -> Option<Vec<&str>> {
        let list = self.parameter("pcmk_host_list").map(|list| list.split([' ', ',', ';', '\t', '\n']));
        let map = self.parameter("pcmk_host_map").map(|map| map.split([' ', ';', '\t', '\n']));
        if list.is_none() && map.is_none() {
            return None;
        }
        let mapped = map.into_iter().flatten().filter_map(|pair| pair.split([':', '=']).next());
        Some(list.into_iter().flatten().chain(mapped).filter(|name| !name.is_empty()).collect())
    }

    /// Whether it lists this host; `None` if it lists none.
    pub(super) fn lists(&self, host: &str) -> Option<bool> {
        self.hosts().map(|hosts| hosts.iter().any(|name| name.eq_ignore_ascii_case(host)))
    }

    /// Whether it is for a node, in use now or not; `None` if only the device itself knows.
    pub(super) fn is_for(&self, node: &Node) -> Option<bool> {
        let is_listed = self.parameter("pcmk_host_check").is_none_or(|how| how == "static-list");
        if is_listed { self.lists(node.name.as_str()) } else { None }
    }

    /// Pacemaker never uses a disabled device, and never starts a disabled resource.
    pub(super) fn is_stopped(&self) -> bool {
        self.meta("target-role").is_some_and(|role| role.eq_ignore_ascii_case("stopped"))
    }

    pub(super) fn is_monitored(&self) -> bool {
        let runs = |operation: &Operation| !operation.is_off && is_some_time(&operation.interval);
        self.operations.iter().any(|operation| operation.name == "monitor" && runs(operation))
    }
}
