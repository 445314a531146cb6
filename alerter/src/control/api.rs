//! What is said over the control socket: HTTP/1.1 with JSON.

use std::path::PathBuf;

use marks::time::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};

use crate::intake::account::Unaccounted;
use crate::policy::groups::GroupStatus;
use crate::problem::Problem;

/// `GET /v1/health`: answered from memory, without asking any endpoint or disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// The daemon works: its engine has got on within the watchdog's limit.
    pub healthy: bool,
    /// Its journal cannot be written, and another controller is there to run it.
    #[serde(default)]
    pub better_elsewhere: bool,
    /// It works, but somebody should check it.
    pub degraded: bool,
    /// Why, one sentence each.
    pub reasons: Vec<String>,
    /// Its journal: another one may have the same control socket.
    #[serde(default)]
    pub journal: PathBuf,
}

/// `GET /v1/status`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Daemon {
    /// The program's version.
    pub version: String,
    /// Its process id.
    pub pid: u32,
    /// The controller it runs on.
    pub controller: String,
    /// As of `GET /v1/health`.
    pub health: Health,
    /// The configured routes.
    pub routes: Vec<RouteStatus>,
    /// The cluster; absent where `register = "none"`.
    pub cluster: Option<ClusterStatus>,
    /// The groups, in the order of the configuration.
    pub groups: Vec<GroupStatus>,
    /// Pauses and maintenances that are in force, one sentence each.
    pub orders: Vec<String>,
    /// What is wrong with the alerter, its routes and its cluster.
    pub problems: Vec<Problem>,
    /// Fencings and sightings that have no end that can be shown.
    pub unaccounted: Vec<Unaccounted>,
}

/// What the daemon has seen of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterStatus {
    /// Where the register is.
    pub register: String,
    /// Whether marks may be notified: there is quorum, and the register can be read.
    pub permitted: bool,
    /// Milliseconds since the last poll began.
    pub age_ms: Option<u64>,
    /// Entries in the register that are of use.
    pub entries: usize,
}

/// One route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteStatus {
    /// Its name.
    pub name: String,
    /// Its driver.
    pub driver: String,
    /// Where it leads, without secrets.
    pub endpoint: String,
    /// Whether marks stay open until it has them.
    pub required: bool,
    /// Milliseconds that one exchange may take.
    pub limit_ms: u64,
    /// Open deliveries.
    pub waiting: usize,
    /// Since when nothing was accepted; absent while all is well.
    pub failing_since: Option<Timestamp>,
    /// The newest failure's machine word.
    pub failure: Option<String>,
    /// The newest failure in a sentence.
    pub detail: Option<String>,
    /// Whether its endpoint takes no mark until somebody changes something.
    #[serde(default)]
    pub refuses: bool,
    /// Until when its marks wait for its endpoint, which is asked again then; absent while it is expected to accept them.
    pub waits_until: Option<Timestamp>,
}

/// `PATCH /v1/hosts/{host}`: these two keys and no other.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostRequest {
    /// Whether the host has failed, or what is open of it is to be ended.
    pub mark_unhealthy: bool,
    /// Why; a stated default is on record where it is left out.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub resource_status_reason: Option<String>,
}

/// Its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostAnswer {
    /// The mark, where the host was called failed.
    pub mark: Option<String>,
    /// Whether it was made now; else the host was already marked in this outage.
    pub new: bool,
    /// How many marks were made or ended.
    pub changed: usize,
    /// One sentence.
    pub message: String,
}

/// `PATCH /v1/marks/{id}`: these keys and no other.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MarkRequest {
    /// Whether the receiver has the mark, or refuses it.
    pub acknowledged: bool,
    /// Of which route; may be left out where only one is confirmed like this.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// The receiver's own name for what it made of it.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Why.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkAnswer {
    /// The mark.
    pub mark: String,
    /// The route that was meant.
    pub route: String,
    /// Whether anything has changed.
    pub changed: bool,
    /// One sentence.
    pub message: String,
}

/// What an operator asks: the body of each `POST`, which reads what it needs of it. Who asks stands in the header.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// A host's node name, or a mark's id.
    pub target: Option<String>,
    /// A group's name.
    pub group: Option<String>,
    /// A route's name.
    pub route: Option<String>,
    /// How long a pause or a maintenance lasts.
    pub seconds: Option<u64>,
    /// `unmark`: where nothing else of the mark is open, its returns end too, also those that nobody refuses.
    pub returns: bool,
    /// `release`: also of a host that lives by the cluster.
    pub insist: bool,
    /// `reload`: the main file, where it is another than that of the last time; absolute.
    pub file: Option<String>,
    /// Why; for the history.
    pub reason: String,
}

impl Request {
    /// With this reason, and nothing else yet.
    pub fn because(reason: &str) -> Self {
        Self { reason: reason.to_owned(), ..Self::default() }
    }
}

/// The answer to `reload`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadAnswer {
    /// Whether the new configuration is in force; else nothing has changed.
    pub reloaded: bool,
    /// One sentence for each thing that is another one now.
    pub changes: Vec<String>,
    /// One sentence for each problem.
    pub problems: Vec<String>,
    /// Nothing is wrong with it: what `problems` says is in its way.
    #[serde(default)]
    pub busy: bool,
}

/// What a command has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeAnswer {
    /// How many marks, deliveries or decisions.
    pub changed: usize,
    /// One sentence.
    pub message: String,
}

/// What one route said to a test message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestAnswer {
    /// The route.
    pub route: String,
    /// Whether it accepted.
    pub accepted: bool,
    /// A machine word.
    pub kind: String,
    /// One sentence.
    pub detail: String,
}

/// Any answer that is no success.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorAnswer {
    /// A machine word.
    pub kind: String,
    /// One sentence.
    pub message: String,
}

/// For a field that may be left out, but not be null.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}
