//! What may be wrong, by its kind.

use serde::{Deserialize, Serialize};

use crate::cluster::Matter;

/// What a reason is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A route has accepted nothing for long.
    Route,
    /// The journal cannot be written.
    Journal,
    /// One of our own addresses is not served.
    Unserved,
    /// A new configuration is not in force.
    Reload,
    /// Marks wait for a route that is not configured any more.
    Stranded,
    /// An operator's decision is about a group that is not configured.
    UnknownGroup,
    /// Fencings have no end that can be shown.
    Unaccounted,
    /// The cluster has no quorum, or that cannot be asked for.
    Quorum,
    /// The register, the CIB or the fencing history cannot be read or written.
    Cluster,
    /// The evidence of Pacemaker's alerts cannot be used.
    Evidence,
    /// The register says something that is not believed.
    Entry,
    /// Clocks of controllers differ.
    Clock,
    /// Something that this program does not know: the daemon is newer.
    #[serde(other)]
    Other,
}

impl Kind {
    /// What was seen of the cluster.
    pub fn of_fault(matter: Matter) -> Self {
        match matter {
            Matter::NoQuorum | Matter::QuorumUnknown => Self::Quorum,
            Matter::Evidence => Self::Evidence,
            Matter::RegisterEntry => Self::Entry,
            Matter::ClockSkew => Self::Clock,
            Matter::RegisterUnreadable
            | Matter::RegisterUnwritable
            | Matter::CibUnreadable
            | Matter::HistoryUnreadable => Self::Cluster,
        }
    }
}

/// Why the daemon works, but not well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// What it is about.
    pub kind: Kind,
    /// The route that is not configured any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// One sentence.
    pub message: String,
}

impl Reason {
    /// One that is about no route in particular.
    pub fn of(kind: Kind, message: String) -> Self {
        Self { kind, route: None, message }
    }
}
