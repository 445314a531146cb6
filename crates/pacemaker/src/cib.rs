//! Pacemaker's configuration and status (CIB): the facts that a fence agent and an alerter need.
//!
//! Only these facts are kept; the rest of the document is ignored. The fencing topology's rules are those of Pacemaker's
//! fencer (`find_topology_for_host`, `fenced_register_level`), read in 2.1.5 and 3.0.

mod hosts;
mod index;
mod limit;
mod mark_devices;
mod operations;
mod parse;
mod paths;
mod pattern;
mod power;
pub mod releases;
mod resolve;
mod snapshot;
mod topology;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use marks::host::HostName;

use crate::xml::{Element, XmlError};
use hosts::Known;
use index::Index;
use operations::History;

pub use hosts::{Membership, is_same_controller, truth};
pub use limit::{interval, read as time_limit};
pub use mark_devices::{MarkFault, rival};
pub use operations::HEALTH_AGENT;
pub use paths::some;
pub use power::{POWERLESS, Powerless, WATCHDOG, powerless_device, surely_cuts};
pub use resolve::{Document, INFINITY, score};
pub use snapshot::{News, Snapshot, Wanted};
pub use topology::{LEVELS, LevelFault, MarkLevel};

/// The type of our fence device in the CIB (`stonith:fence_mark`).
pub const MARK_AGENT: &str = "fence_mark";

/// Its parameter that says whether instances are on shared storage, in both spellings that it takes.
const NO_SHARED_STORAGE: [&str; 2] = ["no_shared_storage", "no-shared-storage"];

/// Why a text is not a CIB. The message never shows the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the CIB is {0}")]
pub struct CibError(#[from] XmlError);

impl CibError {
    /// A stable machine word.
    pub fn kind(&self) -> &'static str {
        self.0.kind()
    }
}

/// Reads a whole CIB as a tree, for a caller that needs more than [`Cib`] keeps.
///
/// # Errors
/// [`CibError`] when it is malformed, cut off, or something else.
pub fn tree(xml: &str) -> Result<Element, CibError> {
    Ok(parse::tree(xml)?)
}

/// The relevant parts of a CIB.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cib {
    quorum: Option<bool>,
    /// The id of the DC that wrote the status.
    dc: String,
    /// The DC's release of Pacemaker.
    dc_version: String,
    /// The features that all controllers of the cluster have.
    feature_set: String,
    nodes: Vec<Node>,
    /// The index of each node's entries in `nodes`: a caller that asks about every host must not scan all of them each
    /// time.
    places: HashMap<HostName, Vec<usize>>,
    resources: Vec<Resource>,
    resource_defaults: Vec<(String, String)>,
    levels: Vec<Level>,
    states: Vec<NodeState>,
    histories: Vec<History>,
    stonith_timeouts: Vec<String>,
    maintenance_modes: Vec<String>,
    index: Arc<Index>,
    known: Arc<Known>,
}

/// A `stonith:fence_mark` device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkDevice {
    /// Its resource id.
    pub id: String,
    /// The shortest time limit that the fencer may use for its `off`; `None` if nothing is set (60 s then).
    pub off_limit: Option<Duration>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Node {
    name: String,
    kind: String,
    attributes: Vec<(String, String)>,
}

/// A node's own entry in the status section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct NodeState {
    /// For a remote node the same as its name.
    id: String,
    name: String,
    in_ccm: String,
    /// Whether its controller is a member, by `in_ccm` or as online and offline.
    crmd: String,
    fenced: String,
    /// The attributes that last until the node restarts.
    attributes: Vec<(String, String)>,
}

/// A primitive or a template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Resource {
    id: String,
    is_template: bool,
    class: String,
    provider: String,
    agent: String,
    template: String,
    parameters: Vec<(String, String)>,
    meta: Vec<(String, String)>,
}

/// An entry of the fencing topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// The nodes that it is for.
    pub target: Target,
    /// Its number.
    pub index: u32,
    /// Its devices, in order.
    pub devices: Vec<String>,
}

/// The nodes that a fencing level is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// The node of this name.
    Name(String),
    /// Every node whose name matches this POSIX extended regular expression.
    Pattern(String),
    /// Every node with this permanent attribute.
    Attribute {
        /// The attribute's name.
        name: String,
        /// Its value.
        value: String,
    },
}

impl Cib {
    /// Reads a whole CIB, as `cibadmin --query` prints it or as Pacemaker keeps it on disk.
    ///
    /// # Errors
    /// [`CibError`] when it is malformed, cut off, or something else.
    pub fn parse(xml: &str) -> Result<Self, CibError> {
        Ok(parse::cib(xml)?)
    }

    /// The path of the version and of every node's state, for a query without children.
    pub const STATES: &str = "/cib|/cib/status/node_state";

    /// The path of everything of the configuration that is kept here. It finds many elements: ask for [`some`] at a time.
    pub fn asks_configuration() -> String {
        paths::configuration()
    }

    /// The path of what decides whether a host may be marked, and which life of it ended; none for a name that cannot be
    /// written in XPath.
    pub fn asks_host(host: &HostName) -> Option<String> {
        paths::host(host)
    }

    /// The path of those devices of the added levels that were not added; none where there are none.
    pub fn asks_devices(&self) -> Option<String> {
        let is_here = |id: &&str| self.resources.iter().any(|resource| resource.id == *id);
        let devices = self.levels.iter().flat_map(|level| &level.devices).map(String::as_str);
        paths::primitives(devices.filter(|id| !is_here(id)))
    }

    /// The path of the operations on resources of this agent, beside [`Self::STATES`].
    pub fn asks_agent(agent: &str) -> Option<String> {
        paths::of_agent(agent)
    }

    /// Adds an answer to a query; returns how many elements were found. Call [`Self::indexed`] behind the last one.
    ///
    /// # Errors
    /// [`CibError`] when it is malformed or cut off.
    pub fn add_part(&mut self, answer: &str) -> Result<usize, CibError> {
        Ok(self.add(answer)?)
    }

    /// Adds the answer to the query for devices.
    ///
    /// # Errors
    /// [`CibError`] when it is malformed or cut off.
    pub fn add_devices(&mut self, answer: &str) -> Result<(), CibError> {
        let mut devices = Self::default();
        devices.add(answer)?;
        self.resources.append(&mut devices.resources);
        Ok(())
    }

    /// All `stonith:fence_mark` devices, also those with the type of a template.
    pub fn fence_mark_devices(&self) -> Vec<MarkDevice> {
        let devices = self.resources.iter().filter(|r| !r.is_template && self.is_mark(r));
        devices.map(|r| MarkDevice { id: r.id.clone(), off_limit: self.off_limit(r) }).collect()
    }

    /// Whether this partition had quorum when the document was written; `None` if it does not say so.
    pub fn quorum(&self) -> Option<bool> {
        self.quorum
    }

    /// The whole fencing topology, in the order of the document.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// The levels with a mark device that the fencer may use for this host.
    ///
    /// An entry whose target is exactly the host's name hides all others. Without one the fencer takes any entry that
    /// matches, in no order; so all of them are here.
    pub fn mark_levels_of(&self, host: &HostName) -> Vec<MarkLevel> {
        topology::levels_of(self, host)
    }

    /// Every level with a mark device, whatever its target.
    pub fn mark_levels(&self) -> Vec<MarkLevel> {
        topology::all_levels(self)
    }

    /// Whether the options of `fence_mark` say that a host's instances are not on shared storage: the value that all of its devices in the host's
    /// levels have. `None` if one has none, or another one.
    pub fn no_shared_storage(&self, host: &HostName) -> Option<bool> {
        let levels = self.mark_levels_of(host);
        let devices = levels.iter().flat_map(|level| &level.devices);
        let marks = self.resources.iter().filter(|r| !r.is_template && self.is_mark(r));
        let mut said =
            marks.filter(|r| devices.clone().any(|id| *id == r.id)).map(|r| self.flag(r, &NO_SHARED_STORAGE));
        let first = said.next()??;
        said.all(|other| other == Some(first)).then_some(first)
    }

    /// A flag of a fence device, in the agents' words: its own, else its template's.
    fn flag(&self, device: &Resource, names: &[&str]) -> Option<bool> {
        let of =
            |resource: &Resource| names.iter().find_map(|name| resource.values(name).last().map(agent_flag));
        of(device).or_else(|| self.template_of(device).and_then(of)).flatten()
    }

    fn template_of(&self, resource: &Resource) -> Option<&Resource> {
        self.resources.get(self.index.template(&resource.template)?)
    }

    fn is_mark(&self, resource: &Resource) -> bool {
        let typed = self.typed(resource);
        typed.class == "stonith" && typed.agent == MARK_AGENT
    }

    /// A resource's type: its own, or its template's.
    fn typed<'a>(&'a self, resource: &'a Resource) -> &'a Resource {
        let source = self.template_of(resource).unwrap_or(resource);
        if resource.agent.is_empty() { source } else { resource }
    }

    fn is_mark_device(&self, id: &str) -> bool {
        self.resources.iter().any(|r| !r.is_template && r.id == id && self.is_mark(r))
    }

    /// In the fencer's order: the device's own limit, then its `stonith-timeout`, then the cluster's.
    fn off_limit(&self, device: &Resource) -> Option<Duration> {
        let own = |name| limit::shortest(device.values(name));
        let inherited = |name| self.template_of(device).and_then(|t| limit::shortest(t.values(name)));
        let of_device = |name| own(name).or_else(|| inherited(name));
        of_device("pcmk_off_timeout")
            .or_else(|| of_device("stonith-timeout"))
            .or_else(|| limit::shortest(self.stonith_timeouts.iter().map(String::as_str)))
    }
}

/// The fence agents' words for yes and no.
fn agent_flag(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "yes" | "on" | "true" => Some(true),
        "0" | "no" | "off" | "false" => Some(false),
        _ => None,
    }
}

impl Resource {
    fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.parameters.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
mod recorded;
#[cfg(test)]
mod tests;
