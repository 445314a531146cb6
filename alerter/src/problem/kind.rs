//! Every kind of problem, with the words that `status`, `/health` and metrics use for it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Level;
use crate::policy::Hold;

/// What is the same of all problems of a kind.
pub(super) struct KindEntry {
    /// The word in `status` and metrics.
    word: &'static str,
    pub(super) level: Level,
    /// What to do, where that is the same for each.
    pub(super) then: &'static str,
    /// Whether the daemon calls itself degraded for it.
    pub(super) degrades: bool,
    /// The check of `/health` that it lowers, and the text there: no paths, no output of tools.
    pub(super) health: Option<(Part, &'static str)>,
}

/// The part of `/health` that a problem belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The register: a warning.
    Register,
    /// The register: a warning, and a failure where the next poll finds the same.
    RegisterLost,
    /// What waits for a person.
    Queue,
    /// The check of the problem's route.
    Driver,
    /// What the configuration asks for.
    Config,
}

/// What an entry leaves out.
const ENTRY: KindEntry =
    KindEntry { word: "", level: Level::Warning, then: "", degrades: false, health: None };

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $name:ident: $entry:tt)+) => {
        /// What is wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(from = "String", into = "&'static str")]
        pub enum Kind {
            $($(#[doc = $doc])+ $name,)+
            /// Marks are held, by this.
            Held(Hold),
            /// A kind that this program does not know: the daemon is newer.
            Unknown,
        }

        impl Kind {
            /// All but the holds.
            pub const OWN: &[Self] = &[$(Self::$name),+];

            pub(super) fn entry(self) -> KindEntry {
                match self {
                    $(Self::$name => kinds!(@ $entry),)+
                    Self::Held(hold) => KindEntry { word: hold.as_str(), ..ENTRY },
                    Self::Unknown => KindEntry { word: "degraded", ..ENTRY },
                }
            }
        }
    };
    (@ { $($field:ident: $value:expr $(=> $said:literal)?),+ $(,)? }) => {{
        let mut entry = ENTRY;
        $(entry.$field = kinds!(= $value $(, $said)?);)+
        entry
    }};
    (= $value:expr) => { $value };
    (= $part:expr, $said:literal) => { Some(($part, $said)) };
}

kinds! {
    /// This controller's alerter does not answer, and none runs elsewhere.
    NotRunning: { word: "not-running", level: Level::Critical }
    /// The alerter runs here and does not answer.
    Silent: { word: "silent", level: Level::Critical }
    /// The engine makes no progress.
    Stalled: {
        word: "stalled",
        level: Level::Critical,
        then: "check the journal's disk and the load of this controller",
        degrades: true,
    }
    /// The configuration is wrong, or a new one is not in force.
    Configuration: {
        word: "configuration",
        then: "find the mistake with `nova-host-alerter check-config`, correct it, then run `nova-host-alerter reload`",
        degrades: true,
        health: Part::Config => "the new configuration is not in force, the old one stays in use: see `nova-host-alerter check-config` and `nova-host-alerter status`",
    }
    /// One of our own addresses is not served.
    NotServed: {
        word: "not-served",
        then: "find the process that has the address with `ss -lntxp`; or correct the address in the configuration and run `nova-host-alerter reload`",
        degrades: true,
        health: Part::Config => "one of the alerter's own addresses is not served: see `nova-host-alerter status`, and check the configuration",
    }
    /// The journal cannot be read.
    Journal: { word: "journal", level: Level::Critical }
    /// The journal cannot be written.
    JournalUnwritable: {
        word: "journal-unwritable",
        level: Level::Critical,
        degrades: true,
    }
    /// Rows of the journal are damaged.
    Damaged: { word: "damaged", level: Level::Critical }
    /// Nothing shows what became of some fencings.
    Unaccounted: {
        word: "unaccounted",
        level: Level::Critical,
        degrades: true,
        health: Part::Queue => "a record of a fencing is unaccounted for: see `nova-host-alerter status`",
    }
    /// An operator's decision is about a group that is not configured.
    UnknownGroup: {
        word: "unknown-group",
        level: Level::Critical,
        then: "run that command when the decision is not needed any more; until then no mark is sent",
        degrades: true,
        health: Part::Queue => "an operator's decision is about a group that is not configured, so every mark is held: see `nova-host-alerter status`",
    }
    /// This partition of the cluster has no quorum.
    NoQuorum: {
        word: "no-quorum",
        level: Level::Critical,
        then: "bring the other controllers back: `crm_mon -1`, `corosync-quorumtool -s`",
        degrades: true,
        health: Part::Register => "this partition of the cluster has no quorum, so nothing is sent until the other controllers are back",
    }
    /// Whether this partition has quorum cannot be read.
    QuorumUnknown: {
        word: "quorum-unknown",
        level: Level::Critical,
        then: PACEMAKER,
        degrades: true,
        health: Part::RegisterLost => "quorum cannot be read, so nothing is sent: check Pacemaker, and see `nova-host-alerter status`",
    }
    /// The cluster was polled too long ago.
    NotPermitted: {
        word: "not-permitted",
        level: Level::Critical,
        then: "if this lasts, check Pacemaker on this controller: `crm_mon -1`",
    }
    /// The register cannot be read by a command.
    Register: { word: "register", then: "check Pacemaker on this controller: `crm_mon -1`" }
    /// The register cannot be read by the daemon.
    RegisterUnreadable: {
        word: "register-unreadable",
        then: PACEMAKER,
        degrades: true,
        health: Part::RegisterLost => "the register cannot be read, so nothing is sent: check Pacemaker, and see `nova-host-alerter status`",
    }
    /// The register cannot be written.
    RegisterUnwritable: {
        word: "register-unwritable",
        then: PACEMAKER,
        degrades: true,
        health: Part::RegisterLost => "the register cannot be written, so another controller may send marks again: see `nova-host-alerter status`",
    }
    /// The CIB cannot be read.
    CibUnreadable: {
        word: "cib-unreadable",
        then: PACEMAKER,
        degrades: true,
        health: Part::Register => "the CIB cannot be read, so Pacemaker confirms nothing: see `nova-host-alerter status`",
    }
    /// The fencing history cannot be read.
    HistoryUnreadable: {
        word: "history-unreadable",
        then: PACEMAKER,
        degrades: true,
        health: Part::Register => "the fencing history cannot be read: see `nova-host-alerter status`",
    }
    /// The evidence of Pacemaker's alerts cannot be used.
    Evidence: {
        word: "evidence",
        then: "check the file, then remove it",
        degrades: true,
        health: Part::Register => "the evidence of Pacemaker's alerts cannot be used: see `nova-host-alerter status`",
    }
    /// An entry of the register is not believed.
    RegisterEntry: {
        word: "register-entry",
        then: "find out who wrote it (root and the members of haclient can); if the configurations of two controllers differ, make them the same",
        degrades: true,
        health: Part::Register => "an entry of the register is not trusted: see `nova-host-alerter status`",
    }
    /// This controller has no register key, or another one than the other controllers.
    RegisterKey: {
        word: "register-key",
        then: "run `nova-host-alerter setup --check` on each controller and give all of them the same key",
        degrades: true,
        health: Part::Register => "the register's key is missing or differs between controllers: run `nova-host-alerter setup --check` on each",
    }
    /// This controller lacks a part of the register.
    RegisterPartial: {
        word: "register-partial",
        then: "if this lasts, restart Pacemaker on this controller: it then gets all entries from the other controllers",
        degrades: true,
        health: Part::Register => "this controller lacks a part of the register, so some marks are held: see `nova-host-alerter status`",
    }
    /// The register has grown past a quarter of its limit.
    RegisterSize: {
        word: "register-size",
        then: "settle the open marks (`nova-host-alerter list`), or move the register to etcd (docs/registers.md)",
        degrades: true,
        health: Part::Register => "the register has grown past a quarter of its limit: see `nova-host-alerter status`",
    }
    /// Clocks of controllers differ.
    ClockSkew: {
        word: "clock-skew",
        then: "check NTP on both controllers: `chronyc tracking`, or `timedatectl timesync-status`",
        degrades: true,
        health: Part::Register => "the clocks of controllers differ: check NTP, and see `nova-host-alerter status`",
    }
    /// Something else in the cluster recovers hosts too.
    OtherRecovery: {
        word: "other-recovery",
        level: Level::Critical,
        then: "finish the migration (docs/migrate.md); until then run `nova-host-alerter pause --reason TEXT`",
        degrades: true,
        health: Part::Register => "something else in the cluster recovers hosts too: run `nova-host-alerter status`",
    }
    /// A mark device is stopped, or failed on a controller.
    MarkDevice: { word: "mark-device" }
    /// A health check of hosts fails.
    HostHealth: {
        word: "host-health",
        then: "find out what is wrong there; `nova-host-alerter history` says since when, and docs/compute-health.md what follows",
    }
    /// A host is gone, and nobody fenced it.
    NotFenced: { word: "not-fenced" }
    /// `[hosts] match` names a guest node, which nobody fences.
    GuestNode: { word: "guest-node", then: "take it out of [hosts] match, and run `nova-host-alerter reload`" }
    /// A route accepts nothing.
    Failing: {
        word: "failing",
        health: Part::Driver => "route ROUTE accepts nothing (FAILURE) and is retried: check its endpoint",
    }
    /// A route's endpoint refuses every mark until somebody changes something.
    Refused: {
        word: "refused",
        health: Part::Driver => "route ROUTE refuses every mark (FAILURE): correct its endpoint or its configuration, then run `nova-host-alerter retry --all`",
    }
    /// A route has rejected the marks of several hosts, and accepted none since.
    RejectsAll: { word: "rejects-all" }
    /// Marks wait for a route that is not configured any more.
    Stranded: {
        word: "stranded",
        degrades: true,
        health: Part::Queue => "marks wait for a route that is not configured any more: see `nova-host-alerter status`",
    }
    /// The row of a mark, or of a delivery of it, is damaged.
    Quarantined: {
        word: "quarantined",
        level: Level::Critical,
        degrades: true,
        health: Part::Queue => "the journal has damaged rows, which are neither sent nor dropped: see `nova-host-alerter list`",
    }
    /// No route that a mark waits for is configured.
    NoRoute: {
        word: "no-route",
        level: Level::Critical,
        degrades: true,
        health: Part::Queue => "some open marks have no configured route left: see `nova-host-alerter list`, and check the routes",
    }
    /// A route does not accept a mark.
    Rejected: {
        word: "rejected",
        level: Level::Critical,
        degrades: true,
        health: Part::Queue => "marks are parked because their endpoints reject or refuse them: see `nova-host-alerter status`, and check the endpoints",
    }
    /// A route's terms, or its recovery controller's answer, hold a mark.
    HeldOnRoute: {
        word: "held-on-route",
        degrades: true,
        health: Part::Queue => "marks are held by the terms of a route, or by the answer of its recovery controller: see `nova-host-alerter status`",
    }
    /// No step of a mark's chain was acknowledged.
    ChainExhausted: {
        word: "chain-exhausted",
        level: Level::Critical,
        degrades: true,
        health: Part::Queue => "no step of a chain acknowledged its mark, and the last one is retried: see `nova-host-alerter list`",
    }
    /// Hosts were fenced and are not marked yet.
    NotMarked: { word: "not-marked", level: Level::Critical }
    /// A pause that holds no mark at the moment.
    Paused: { word: "paused" }
    /// A mark is open for too long.
    Old: { word: "old" }
}

const PACEMAKER: &str = "check Pacemaker on this controller: `crm_mon -1`, and its log";

impl Kind {
    /// The word in `status` and metrics.
    pub fn as_str(self) -> &'static str {
        self.entry().word
    }

    /// Whether the metrics have it also where there is none: what degrades, what `/health` has, and what the cluster lacks.
    pub fn is_watched(self) -> bool {
        let entry = self.entry();
        entry.degrades
            || entry.health.is_some()
            || matches!(self, Self::MarkDevice | Self::HostHealth | Self::NotFenced)
    }

    /// Whether it is about a route's endpoint as a whole.
    pub fn is_of_endpoint(self) -> bool {
        matches!(self, Self::Failing | Self::Refused)
    }

    /// What `/health` says of it, and where.
    pub fn health(self) -> Option<(Part, &'static str)> {
        self.entry().health
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<Kind> for &'static str {
    fn from(kind: Kind) -> Self {
        kind.as_str()
    }
}

impl From<String> for Kind {
    fn from(word: String) -> Self {
        let own = Self::OWN.iter().find(|kind| kind.as_str() == word).copied();
        own.or_else(|| Hold::parse(&word).map(Self::Held)).unwrap_or(Self::Unknown)
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    /// What degrades the daemon lowers a check of `/health`, where that does not see it by itself.
    #[test]
    fn what_degrades_is_said_everywhere() {
        for kind in Kind::OWN.iter().filter(|kind| kind.entry().degrades) {
            let by_itself = matches!(kind, Kind::Stalled | Kind::JournalUnwritable);
            assert!(by_itself || kind.health().is_some(), "{kind}: no check of /health");
        }
    }

    /// Anybody may read `/health`.
    #[test]
    fn what_is_said_in_public_names_no_path() {
        let said = Kind::OWN.iter().filter_map(|kind| kind.health());
        assert!(said.into_iter().all(|(_, says)| !says.contains(" /") && !says.contains("://")));
    }
}
