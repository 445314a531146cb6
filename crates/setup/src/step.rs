//! One change of the configuration: what it is, what guards it, and its place among others.

use std::collections::BTreeMap;

use pacemaker::cib::Target;

/// One change of the configuration, whichever tool makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Makes a key of our own for the register, on this controller.
    MakeKey {
        /// Its file.
        file: String,
    },
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

/// What a step changes, what guards it, and how it is undone: `docs/writes.md` shows all of them.
#[derive(Debug)]
pub struct Write {
    /// What is done.
    pub what: &'static str,
    /// What must hold before it is done.
    pub guard: &'static str,
    /// How an operator undoes it.
    pub undo: &'static str,
}

/// What each kind of step changes, by its place.
pub static WRITES: [Write; 12] = [
    Write {
        what: "makes `register.key` beside the configuration, on this controller alone",
        guard: "the register is shared, no file of that name is there, and Corosync's key is none that can be used; nothing of the cluster changes, so nothing is tried on a copy",
        undo: "delete the file, on every controller",
    },
    Write {
        what: "creates the mark device",
        guard: "only for compute hosts that have levels with power, or get them by the same change",
        undo: "undo the levels first, then `pcs stonith delete ID`",
    },
    Write {
        what: "sets the fencing levels of a target",
        guard: "every node keeps each of its lists of devices, in its order; a node that is no compute host keeps its levels as they are",
        undo: "`cibadmin --replace --scope fencing-topology --xml-file FILE` with what `cibadmin --query --scope fencing-topology` gave before",
    },
    Write {
        what: "creates the alerter, for controllers alone",
        guard: "there is none",
        undo: "`pcs resource delete ID`; marks wait",
    },
    Write {
        what: "keeps the alerter to controllers",
        guard: "it stands alone, in no group and no clone; constraints of yours stay as they are",
        undo: "`pcs constraint delete ID`",
    },
    Write {
        what: "creates or corrects the alert",
        guard: "recipients of yours stay",
        undo: "`pcs alert remove ID`",
    },
    Write {
        what: "sets `concurrent-fencing`",
        guard: "`stonith-enabled` and its like are never set",
        undo: "`pcs property set concurrent-fencing=` where it was not set, else with the former value",
    },
    Write {
        what: "sets parameters of the mark device",
        guard: "every host that it is for stays in its list",
        undo: "`pcs stonith update ID NAME=VALUE` with the former value",
    },
    Write {
        what: "sets meta attributes of the alerter",
        guard: "no resource of yours is touched",
        undo: "`pcs resource meta ID NAME=VALUE` with the former value",
    },
    Write {
        what: "adds a monitor operation to the mark device or the alerter",
        guard: "it has none",
        undo: "`pcs resource op remove ID monitor`",
    },
    Write {
        what: "printed for you alone: enables a fence device or the alerter",
        guard: "proven on a copy; `setup` does not run it",
        undo: "`pcs resource disable ID`",
    },
    Write {
        what: "printed for you alone: removes a constraint that keeps the mark device from a controller",
        guard: "proven on a copy: it is about nothing else; `setup` does not run it",
        undo: "`pcs constraint location ID avoids NODE`",
    },
];

impl Step {
    /// The place of a step: the alerter finds its key when it starts, and an existing mark device gets new hosts only when these have their levels, since before that it
    /// could be chosen alone for them.
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
            Self::Enable { .. } => 10,
            Self::Unconstrain { .. } => 11,
        }
    }

    /// Takes another step of the same kind about the same thing into this one; gives it back where it is another matter.
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
