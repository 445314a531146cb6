//! The keys of `[senlin.NAME]`.

use site::Section;

use super::body::{CLUSTER, NODE, Operation, Recovery, Whose};
use crate::openstack::{self, ByHost, is_uuid};
use crate::which::HostNames;

/// The longest time for a deletion, in seconds.
const LONGEST: u32 = 3600;

/// What a `senlin` route is made of.
#[derive(Clone, Debug)]
pub struct Options {
    /// The cloud that Senlin belongs to.
    pub cloud: openstack::CloudOptions,
    /// Which of a host's names Nova knows.
    pub host_name: HostNames,
    /// The targets of each host.
    pub targets: Targets,
    /// The recovery.
    pub recovery: Recovery,
}

/// The targets of each host, by Senlin's ids.
#[derive(Clone, Debug)]
pub enum Targets {
    /// Nodes.
    Nodes(ByHost<String>),
    /// Whole clusters.
    Clusters(ByHost<String>),
}

impl Targets {
    /// All of them, and their kind.
    pub(super) fn all(&self) -> (Whose, &ByHost<String>) {
        match self {
            Self::Nodes(all) => (NODE, all),
            Self::Clusters(all) => (CLUSTER, all),
        }
    }
}

/// Reads the route's table.
pub(super) fn read(table: &mut Section<'_, '_>) -> Option<Options> {
    let cloud = openstack::read_options(table);
    let host_name = HostNames::read(table);
    let targets = targets(table);
    let operation = operation(table);
    let check = table.flag("check");
    let check_capacity = table.flag("check-capacity");
    if check_capacity.is_some() && matches!(targets, Some(Targets::Nodes(_))) {
        table.complain("check-capacity", "is for clusters: remove it, or name clusters instead of nodes");
    }
    let (Some(targets), Some(operation), true) = (targets, operation, table.is_sound()) else { return None };
    let recovery = Recovery { operation, check, check_capacity };
    Some(Options { cloud, host_name, targets, recovery })
}

/// `nodes` or `clusters`: the one with entries.
fn targets(table: &mut Section<'_, '_>) -> Option<Targets> {
    let nodes = ByHost::read(table.section("nodes"), id);
    let clusters = ByHost::read(table.section("clusters"), id);
    match (nodes.is_empty(), clusters.is_empty()) {
        (false, true) => Some(Targets::Nodes(nodes)),
        (true, false) => Some(Targets::Clusters(clusters)),
        (false, false) => {
            table.complain("clusters", "cannot be combined with nodes: make a route for each");
            None
        }
        (true, true) => {
            if table.is_sound() {
                let title = table.title().to_owned();
                table.missing(format!("[{title}] names nothing to recover: add a table nodes, or clusters"));
            }
            None
        }
    }
}

/// A name is not unique, and actions are found by ids alone.
fn id(text: &str) -> Result<String, String> {
    is_uuid(text).then(|| text.to_ascii_lowercase()).ok_or_else(|| "must be Senlin's id, a UUID".to_owned())
}

/// S0-31: an operation has its own parameters, and no others.
fn operation(table: &mut Section<'_, '_>) -> Option<Operation> {
    let kind = table.choice("reboot-type", &[("soft", "SOFT"), ("hard", "HARD")]);
    let delete_timeout = table.number("delete-timeout", 1..=LONGEST);
    let force = table.flag("force-recreate");
    let words = [
        ("reboot", Operation::Reboot(kind)),
        ("rebuild", Operation::Rebuild),
        ("recreate", Operation::Recreate { delete_timeout, force }),
    ];
    let operation = table.choice("operation", &words);
    table.needs("operation", "set it to reboot, rebuild or recreate");
    let operation = operation?;
    let why = "does not belong to this operation: remove it, or change operation";
    table.complain_if(!matches!(operation, Operation::Reboot(_)), "reboot-type", why);
    for key in ["delete-timeout", "force-recreate"] {
        table.complain_if(!matches!(operation, Operation::Recreate { .. }), key, why);
    }
    Some(operation)
}
