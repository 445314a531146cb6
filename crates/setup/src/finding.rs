//! The findings of a cluster, each with a stable word, and what to do.

use super::step::Step;

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The kind.
    pub kind: Kind,
    /// The host, resource or controller that it concerns.
    pub about: String,
    /// One sentence: what is wrong, and its consequence.
    pub what: String,
    /// What to do.
    pub then: Then,
}

/// What to do about a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Then {
    /// `setup` does it.
    Setup(Step),
    /// A task for the operator, or a question that only the operator can answer.
    Do(String),
}

impl Finding {
    pub(super) fn new(kind: Kind, about: impl Into<String>, what: impl Into<String>, then: Then) -> Self {
        Self { kind, about: about.into(), what: what.into(), then }
    }

    /// The step of `setup` for it.
    pub fn step(&self) -> Option<&Step> {
        match &self.then {
            Then::Setup(step) => Some(step),
            Then::Do(_) => None,
        }
    }
}

/// Declares the kinds with their words, so that the list is always complete.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $word:literal,)*) => {
        /// The kinds of findings.
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
    /// The agent for compute hosts is not in the cluster.
    NoHealth = "no-health",
    /// It only observes.
    HealthObserves = "health-observes",
    /// A part of the product is missing on a controller.
    NotInstalled = "not-installed",
    /// The CIB is too large for one answer of Pacemaker.
    CibTooLarge = "cib-too-large",
    /// Nobody says whether the instances of a compute host are on shared storage.
    NoStorage = "no-storage",
    /// Something else recovers hosts in this cluster.
    OtherRecovery = "other-recovery",
    /// There is no wanted remote node.
    NoComputeHost = "no-compute-host",
    /// A virtual machine of the cluster is named among the compute hosts.
    GuestNode = "guest-node",
    /// No fence device lists a compute host.
    NoPowerDevice = "no-power-device",
    /// There is no mark device.
    NoMarkDevice = "no-mark-device",
    /// No level of a host has the mark.
    NoLevel = "no-level",
    /// The mark device could be asked although no device has fenced the host.
    MarkAlone = "mark-alone",
    /// Another device is behind the mark.
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
    /// A fence device does not list its hosts.
    NoHostList = "no-host-list",
    /// A fence device is in a level of a host that it does not list.
    HostNotListed = "host-not-listed",
    /// The mark device may be killed before it has reported why it failed.
    OffTimeout = "off-timeout",
    /// The mark device is asked twice, and the fencer sleeps between.
    OffRetries = "off-retries",
    /// A fence device runs several calls at once, which kills the fencer.
    ActionLimit = "action-limit",
    /// A resource is not monitored.
    NoMonitor = "no-monitor",
    /// All or a part of the cluster is in maintenance.
    Maintenance = "maintenance",
    /// Everything is ordered to stop.
    StopAllResources = "stop-all-resources",
    /// A resource is unmanaged.
    Unmanaged = "unmanaged",
    /// The alerter may run more than once.
    SeveralAlerters = "several-alerters",
    /// A resource is disabled.
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
    /// The alerter may run or be probed on compute hosts.
    AlerterOnComputes = "alerter-on-computes",
    /// Evidence of fencings is not kept.
    NoAlert = "no-alert",
    /// The alert's program is missing.
    AlertPath = "alert-path",
    /// The alert does not select fencings.
    AlertSelect = "alert-select",
    /// The alert is switched off.
    AlertOff = "alert-off",
    /// The alert writes to another directory than the alerter reads.
    AlertRecipient = "alert-recipient",
    /// The alert cannot write.
    EvidenceDirectory = "evidence-directory",
    /// There is no key for this controller's entries in the register.
    NoRegisterKey = "no-register-key",
    /// A file with a key of the register cannot be used.
    BadRegisterKey = "bad-register-key",
    /// The register is in etcd, but its tool is missing here.
    NoEtcdctl = "no-etcdctl",
    /// Hosts are fenced one after the other.
    ConcurrentFencing = "concurrent-fencing",
    /// Nothing is fenced.
    StonithEnabled = "stonith-enabled",
    /// Connections to a dead host are retried all the time, or never.
    ReconnectInterval = "reconnect-interval",
    /// A failing connection would get the controller fenced.
    StartOnFail = "start-on-fail",
    /// Something is wrong only while a rule holds, or only while it does not.
    NotJudged = "not-judged",
}
