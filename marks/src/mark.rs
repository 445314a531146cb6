//! A mark: what is told, one per outage of a host.

use serde::Serialize;

use crate::host::HostName;
use crate::id::MarkId;
use crate::time::Timestamp;

/// What is told about one outage. Everything here is settled at intake and never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mark {
    /// The id of its first fencing.
    pub id: MarkId,
    /// The host's Pacemaker node name.
    pub node: HostName,
    /// The name that is told.
    pub fqdn: HostName,
    /// Whether the host's instances are backed by shared storage.
    pub on_shared_storage: bool,
    /// When the fence agent was asked.
    pub failure_time: Timestamp,
    /// When the first fencing was committed.
    pub generated_time: Timestamp,
}

/// How a mark ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Settlement {
    /// Every required delivery was acknowledged.
    Acknowledged,
    /// An operator ended it.
    Dismissed,
    /// A configured rule ended it.
    Cancelled,
}

impl Settlement {
    /// The word in the journal.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Acknowledged => "acknowledged",
            Self::Dismissed => "dismissed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Reads the word of the journal.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Acknowledged, Self::Dismissed, Self::Cancelled].into_iter().find(|s| s.as_str() == word)
    }
}
