//! One change of the configuration: its data, its guard, and its place among others.

use std::collections::BTreeMap;

use pacemaker::cib::Target;

use super::finding::Finding;

/// One change of the configuration, for any tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Makes our own key for the register, on this controller.
    MakeKey {
        /// Its file.
        file: String,
    },
    /// Creates the mark device.
    CreateMark {
        /// Its id.
        id: String,
        /// Its hosts.
        hosts: Vec<String>,
    },
    /// Replaces the levels of a target.
    SetLevels {
        /// The target.
        target: Target,
        /// The devices of each level, the first level first.
        levels: Vec<Vec<String>>,
    },
    /// Sets parameters of a resource.
    SetParameters {
        /// Its id.
        resource: String,
        /// The names and values.
        values: BTreeMap<String, String>,
    },
    /// Sets meta attributes of a resource.
    SetMeta {
        /// Its id.
        resource: String,
        /// The names and values.
        values: BTreeMap<String, String>,
    },
    /// Adds a monitor to a resource.
    AddMonitor {
        /// Its id.
        resource: String,
        /// The interval in seconds.
        interval: u32,
        /// The time limit in seconds.
        timeout: u32,
    },
    /// Creates the alerter.
    CreateAlerter {
        /// Its id.
        id: String,
        /// Its configuration file.
        config: String,
        /// The id of the constraint that keeps it to the controllers.
        constraint: String,
    },
    /// Keeps a resource to the controllers.
    KeepToControllers {
        /// Its id.
        resource: String,
        /// The constraint's id.
        id: String,
    },
    /// Creates or corrects the alert. Its correct parts stay.
    SetAlert {
        /// Its id.
        id: String,
        /// The program.
        path: String,
        /// All its recipients afterwards.
        recipients: Vec<String>,
        /// The selected events beside fencings, if any are selected.
        selected: Vec<String>,
    },
    /// Creates the clone of the agent for compute hosts, which observes.
    CreateHealth {
        /// The id of what is cloned; the clone's has `-clone` behind it.
        id: String,
    },
    /// Has Pacemaker fence hosts that fail their health check.
    FenceUnhealthy {
        /// The id of what is cloned.
        resource: String,
        /// The hosts that fail it now, each with the reason.
        now: Vec<String>,
    },
    /// Sets properties of the cluster.
    SetProperties(BTreeMap<String, String>),
}

/// A step's change, guard and undo: `docs/writes.md` shows all of them.
#[derive(Debug)]
pub struct Write {
    /// The change.
    pub what: &'static str,
    /// What must hold before it is done.
    pub guard: &'static str,
    /// How an operator undoes it.
    pub undo: &'static str,
}

/// The changes of each kind of step, by its place.
pub static WRITES: [Write; 12] = [
    Write {
        what: "makes `register.key` beside the configuration, on this controller alone",
        guard: "the register is shared, the file does not exist, and Corosync's key cannot be used; the cluster does not change, so nothing is tried on a copy",
        undo: "delete the file, on every controller",
    },
    Write {
        what: "creates the mark device",
        guard: "only for compute hosts that have levels with power, or get them with the same change",
        undo: "undo the levels first, then `pcs stonith delete ID`",
    },
    Write {
        what: "sets the fencing levels of a target",
        guard: "every node keeps each of its lists of devices, in its order; a node that is not a compute host keeps its levels",
        undo: "`cibadmin --replace --scope fencing-topology --xml-file FILE` with the earlier output of `cibadmin --query --scope fencing-topology`",
    },
    Write {
        what: "creates the alerter, for controllers alone",
        guard: "there is none",
        undo: "`pcs resource delete ID`; marks wait",
    },
    Write {
        what: "keeps the alerter to controllers",
        guard: "it is in no group and no clone; your own constraints stay",
        undo: "`pcs constraint delete ID`",
    },
    Write {
        what: "creates or corrects the alert",
        guard: "your own recipients stay",
        undo: "`pcs alert remove ID`",
    },
    Write {
        what: "sets `concurrent-fencing`",
        guard: "`stonith-enabled` and similar ones are never set",
        undo: "`pcs property set concurrent-fencing=` if it was not set, else with the former value",
    },
    Write {
        what: "sets parameters of the mark device",
        guard: "every host in its list stays there",
        undo: "`pcs stonith update ID NAME=VALUE` with the former value",
    },
    Write {
        what: "sets meta attributes of the alerter",
        guard: "your own resources are not changed",
        undo: "`pcs resource meta ID NAME=VALUE` with the former value",
    },
    Write {
        what: "adds a monitor operation to the mark device or the alerter",
        guard: "it has none",
        undo: "`pcs resource op remove ID monitor`",
    },
    Write {
        what: "creates the clone that observes compute hosts (`setup --health`)",
        guard: "there is none; it is for remote nodes alone, and fences nobody",
        undo: "`pcs resource delete ID`",
    },
    Write {
        what: "has Pacemaker fence compute hosts that fail their health check (`setup --health=fence`)",
        guard: "the clone is there; the step names the hosts that fail now",
        undo: "`pcs resource update ID reaction=observe`",
    },
];

/// The id of its clone, which pcs chooses.
pub(super) fn clone_of(id: &str) -> String {
    format!("{id}-clone")
}

impl Step {
    /// The place of a step: the alerter finds its key when it starts, and an existing mark device gets new hosts only
    /// after their levels, since it could be chosen alone for them before.
    pub(super) fn place(&self) -> u8 {
        match self {
            Self::MakeKey { .. } => 0,
            Self::CreateMark { .. } => 1,
            Self::SetLevels { .. } => 2,
            Self::CreateAlerter { .. } => 3,
            Self::KeepToControllers { .. } => 4,
            Self::SetAlert { .. } => 5,
            Self::SetProperties(_) => 6,
            Self::SetParameters { .. } => 7,
            Self::SetMeta { .. } => 8,
            Self::AddMonitor { .. } => 9,
            Self::CreateHealth { .. } => 10,
            Self::FenceUnhealthy { .. } => 11,
        }
    }

    /// Merges another step of the same kind for the same thing; returns it if it does not fit.
    pub(super) fn join(&mut self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::SetProperties(own), Self::SetProperties(more)) => own.extend(more),
            (
                Self::SetParameters { resource, values } | Self::SetMeta { resource, values },
                Self::SetParameters { resource: same, values: more }
                | Self::SetMeta { resource: same, values: more },
            ) if *resource == same => values.extend(more),
            (_, other) => return Some(other),
        }
        None
    }
}

/// The steps that put right what was found, as far as they do; none where nothing is wrong that they could put right.
pub fn steps(findings: &[Finding]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for step in findings.iter().filter_map(Finding::step) {
        if !steps.contains(step) {
            add(&mut steps, step.clone());
        }
    }
    steps.sort_by_key(Step::place);
    steps
}

fn add(steps: &mut Vec<Step>, step: Step) {
    let place = step.place();
    let mut left = Some(step);
    for own in steps.iter_mut().filter(|own| own.place() == place) {
        left = left.and_then(|step| own.join(step));
    }
    steps.extend(left);
}
