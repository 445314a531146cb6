//! What may be wrong, by its kind.

use serde::{Deserialize, Serialize};

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
    /// By the word of what was seen of the cluster.
    pub fn of_fault(word: &str) -> Self {
        match word {
            "no-quorum" | "quorum-unknown" => Self::Quorum,
            "evidence" => Self::Evidence,
            "register-entry" => Self::Entry,
            "clock-skew" => Self::Clock,
            _ => Self::Cluster,
        }
    }
}
