//! What is wrong with a cluster, each by a stable word, and what puts it right.

use super::step::Step;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is.
    pub kind: Kind,
    /// The host, resource or controller that it is about.
    pub about: String,
    /// One sentence: what is wrong, and what comes of it.
    pub what: String,
    /// What puts it right.
    pub then: Then,
}

/// What puts it right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Then {
    /// `setup` does it.
    Setup(Step),
    /// A command that an operator decides on, and that was proven to take nothing from any host.
    Type(Step),
    /// What an operator does by hand, or a question that only an operator answers.
    Do(String),
}

impl Finding {
    pub(super) fn new(kind: Kind, about: impl Into<String>, what: impl Into<String>, then: Then) -> Self {
        Self { kind, about: about.into(), what: what.into(), then }
    }

    /// What `setup` does about it.
    pub fn step(&self) -> Option<&Step> {
        match &self.then {
            Then::Setup(step) => Some(step),
            Then::Type(_) | Then::Do(_) => None,
        }
    }
}

/// Declares the kinds with their words, so that no list of them is ever short of one.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $word:literal,)*) => {
        /// What can be wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Kind { $($(#[$doc])* $kind,)* }

        /// Every kind.
        pub const KINDS: &[Kind] = &[$(Kind::$kind,)*];

        impl Kind {
            /// Its stable word.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$kind => $word,)* }
            }
        }
    };
}

kinds! {
    /// A part of the product is missing on a controller.
    NotInstalled = "not-installed",
    /// Something else recovers hosts in this cluster.
    OtherRecovery = "other-recovery",
    /// There is no remote node that is wanted.
    NoComputeHost = "no-compute-host",
    /// A virtual machine of the cluster is named among the compute hosts.
    GuestNode = "guest-node",
    /// No fence device is known for a compute host.
    NoPowerDevice = "no-power-device",
    /// There is no mark device.
    NoMarkDevice = "no-mark-device",
    /// No level of a host has the mark.
    NoLevel = "no-level",
    /// The mark device could be asked although nothing has fenced the host.
    MarkAlone = "mark-alone",
    /// Another device stands behind the mark.
    MarkNotLast = "mark-not-last",
    /// No device before the mark cuts power.
    MarkWithoutPower = "mark-without-power",
    /// A level passes while the host runs.
    LevelWithoutPower = "level-without-power",
    /// A level fences a host without a mark.
    LevelWithoutMark = "level-without-mark",
    /// A failing mark would stop the fencing.
    NoFallback = "no-fallback",
    /// A level names a device that does not exist.
    UnknownDevice = "unknown-device",
    /// A fence device does not say for which hosts it is.
    NoHostList = "no-host-list",
    /// A fence device stands in a level of a host that it is not for.
    HostNotListed = "host-not-listed",
    /// The mark device may be killed before it has said why it failed.
    OffTimeout = "off-timeout",
    /// The mark device is asked twice, and the fencer sleeps between.
    OffRetries = "off-retries",
    /// The mark device marks one host at a time.
    ActionLimit = "action-limit",
    /// Nobody looks whether it works.
    NoMonitor = "no-monitor",
    /// Pacemaker is told to leave all or a part of the cluster as it is.
    Maintenance = "maintenance",
    /// Pacemaker is told to stop everything.
    StopAllResources = "stop-all-resources",
    /// Pacemaker is told to leave a resource as it is.
    Unmanaged = "unmanaged",
    /// The alerter is to run more than once.
    SeveralAlerters = "several-alerters",
    /// A resource is to be stopped.
    Stopped = "stopped",
    /// A resource of the recovery may not run or be used on a controller, or on any.
    Banned = "banned",
    /// The last operation of the mark device failed on a controller.
    FailsOn = "fails-on",
    /// There is no alerter.
    NoAlerter = "no-alerter",
    /// The alerter waits for fencings.
    Requires = "requires",
    /// The alerter moves without need.
    Stickiness = "stickiness",
    /// The alerter leaves a controller at its first failure, or never.
    MigrationThreshold = "migration-threshold",
    /// The alerter never comes back to a controller on which it failed.
    FailureTimeout = "failure-timeout",
    /// The alerter may run on compute hosts, or is looked for there.
    AlerterOnComputes = "alerter-on-computes",
    /// Pacemaker's word of fencings is not kept.
    NoAlert = "no-alert",
    /// The alert's program is not there.
    AlertPath = "alert-path",
    /// The alert is not told of fencings.
    AlertSelect = "alert-select",
    /// The alert is switched off.
    AlertOff = "alert-off",
    /// The alert writes where the alerter does not read.
    AlertRecipient = "alert-recipient",
    /// The alert cannot write.
    EvidenceDirectory = "evidence-directory",
    /// Nothing seals what this controller writes into the register.
    NoRegisterKey = "no-register-key",
    /// A file with a key of the register is there and cannot be used.
    BadRegisterKey = "bad-register-key",
    /// The register is in etcd, and nothing here speaks to it.
    NoEtcdctl = "no-etcdctl",
    /// Hosts are fenced one after the other.
    ConcurrentFencing = "concurrent-fencing",
    /// Nothing is fenced.
    StonithEnabled = "stonith-enabled",
    /// Connections to a host that is dead are started again and again, or never.
    ReconnectInterval = "reconnect-interval",
    /// A failing connection would have the controller fenced.
    StartOnFail = "start-on-fail",
}
