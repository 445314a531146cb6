//! What is done about the findings: steps in an order in which no host is ever without a level, or its mark alone.

use std::collections::BTreeMap;

use drivers::writes::{What, Write};
use pacemaker::cib::Target;

use super::finding::Finding;

/// One change of the configuration, whichever tool makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Makes the mark device.
    CreateMark {
        /// Its id.
        id: String,
        /// The hosts that it is for.
        hosts: Vec<String>,
    },
    /// Gives a target these levels instead of those that it has.
    SetLevels {
        /// Of which nodes.
        target: Target,
        /// The devices of each level, the first level first.
        levels: Vec<Vec<String>>,
    },
    /// Sets parameters of a resource.
    SetParameters {
        /// Its id.
        resource: String,
        /// What to what.
        values: BTreeMap<String, String>,
    },
    /// Sets meta attributes of a resource.
    SetMeta {
        /// Its id.
        resource: String,
        /// What to what.
        values: BTreeMap<String, String>,
    },
    /// Has a resource looked at regularly.
    AddMonitor {
        /// Its id.
        resource: String,
        /// Seconds from one look to the next.
        interval: u32,
        /// Seconds that one look may take.
        timeout: u32,
    },
    /// Makes the alerter.
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
        /// The constraint's.
        id: String,
    },
    /// Makes or corrects the alert. What it has already and is right stays.
    SetAlert {
        /// Its id.
        id: String,
        /// The program.
        path: String,
        /// All its recipients then.
        recipients: Vec<String>,
        /// What it is told of, beside fencings, where anything is selected.
        selected: Vec<String>,
    },
    /// Sets properties of the cluster.
    SetProperties(BTreeMap<String, String>),
    /// Lets a resource run that is to be stopped.
    Enable {
        /// Its id.
        resource: String,
    },
    /// Takes a constraint away.
    Unconstrain {
        /// Its id.
        id: String,
    },
}

/// What each kind of step changes, by its place.
pub static WRITES: [Write; 11] = [
    Write {
        what: What::Other("creates the mark device"),
        guard: "only for compute hosts that have levels with power, or get them by the same change",
        undo: "undo the levels first, then `pcs stonith delete ID`",
    },
    Write {
        what: What::Other("sets the fencing levels of a target"),
        guard: "every node keeps each of its lists of devices, in its order; a node that is no compute host keeps its levels as they are",
        undo: "`cibadmin --replace --scope fencing-topology --xml-file FILE` with what `cibadmin --query --scope fencing-topology` gave before",
    },
    Write {
        what: What::Other("creates the alerter, for controllers alone"),
        guard: "there is none",
        undo: "`pcs resource delete ID`; marks wait",
    },
    Write {
        what: What::Other("keeps the alerter to controllers"),
        guard: "it stands alone, in no group and no clone; constraints of yours stay as they are",
        undo: "`pcs constraint delete ID`",
    },
    Write {
        what: What::Other("creates or corrects the alert"),
        guard: "recipients of yours stay",
        undo: "`pcs alert remove ID`",
    },
    Write {
        what: What::Other("sets `concurrent-fencing`"),
        guard: "`stonith-enabled` and its like are never set",
        undo: "`pcs property set concurrent-fencing=` where it was not set, else with the former value",
    },
    Write {
        what: What::Other("sets parameters of the mark device"),
        guard: "every host that it is for stays in its list",
        undo: "`pcs stonith update ID NAME=VALUE` with the former value",
    },
    Write {
        what: What::Other("sets meta attributes of the alerter"),
        guard: "no resource of yours is touched",
        undo: "`pcs resource meta ID NAME=VALUE` with the former value",
    },
    Write {
        what: What::Other("adds a monitor operation to the mark device or the alerter"),
        guard: "it has none",
        undo: "`pcs resource op remove ID monitor`",
    },
    Write {
        what: What::Other("printed for you alone: enables a fence device or the alerter"),
        guard: "proven on a copy; `setup` does not run it",
        undo: "`pcs resource disable ID`",
    },
    Write {
        what: What::Other(
            "printed for you alone: removes a constraint that keeps the mark device from a controller",
        ),
        guard: "proven on a copy: it is about nothing else; `setup` does not run it",
        undo: "`pcs constraint location ID avoids NODE`",
    },
];

impl Step {
    /// The place of a step: an existing mark device gets new hosts only when these have their levels, since before that it
    /// could be chosen alone for them.
    pub(super) fn place(&self) -> u8 {
        match self {
            Self::CreateMark { .. } => 0,
            Self::SetLevels { .. } => 1,
            Self::CreateAlerter { .. } => 2,
            Self::KeepToControllers { .. } => 3,
            Self::SetAlert { .. } => 4,
            Self::SetProperties(_) => 5,
            Self::SetParameters { .. } => 6,
            Self::SetMeta { .. } => 7,
            Self::AddMonitor { .. } => 8,
            Self::Enable { .. } => 9,
            Self::Unconstrain { .. } => 10,
        }
    }

    /// Takes another step of the same kind about the same thing into this one; gives it back where it is another matter.
    fn join(&mut self, other: Self) -> Option<Self> {
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
