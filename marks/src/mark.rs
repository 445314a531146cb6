//! A mark: what is told, one per outage of a host; what made it, and whether Pacemaker agrees.

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
    /// It was found long after the outage, and nobody can say whether it was told (design, section 6, horizon).
    Expired,
}

impl Settlement {
    const ALL: [Self; 4] = [Self::Acknowledged, Self::Dismissed, Self::Cancelled, Self::Expired];

    /// The word in the journal.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Acknowledged => "acknowledged",
            Self::Dismissed => "dismissed",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
        }
    }

    /// Reads the word of the journal.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|how| how.as_str() == word)
    }
}

/// What a mark was made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// A record of `fence_mark`, or an operator's word.
    Fencing,
    /// Pacemaker's alert about a fencing.
    Alert,
    /// Pacemaker's fencing history.
    History,
    /// `node_fenced` in the CIB.
    NodeFenced,
}

impl Source {
    const ALL: [Self; 4] = [Self::Fencing, Self::Alert, Self::History, Self::NodeFenced];

    /// The word in the journal and the register.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fencing => "fencing",
            Self::Alert => "alert",
            Self::History => "history",
            Self::NodeFenced => "node-fenced",
        }
    }

    /// Reads that word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.as_str() == word)
    }
}

/// Whether a mark may be believed (design, section 6, proof).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It may.
    Proven(Proof),
    /// It is held until a proof comes.
    Doubtful(Doubt),
}

/// Who vouches for a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// There is no cluster to ask: `register = "none"`.
    Alone,
    /// Pacemaker's fencer ran `fence_mark` on this controller.
    Journal,
    /// Pacemaker's alert.
    Alert,
    /// Pacemaker's fencing history.
    History,
    /// `node_fenced` in the CIB.
    NodeFenced,
    /// An operator.
    Operator,
}

/// Why nobody vouches for it; the name of its hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Somebody else than the fencer says so, or somebody confirmed a host that the cluster sees as a member.
    Unconfirmed,
    /// Only the register says so, which every member of `haclient` can write.
    Unproven,
    /// Found after a failover without a trace in the register; the host is back.
    OutcomeUnknown,
    /// Fenced once more, and nothing shows that the host was back in between: long after the mark of its outage had ended, or so
    /// soon after an outage of an unknown connection that clocks cannot tell the two apart.
    FencedAgain,
}

impl Standing {
    const ALL: [Self; 10] = [
        Self::Proven(Proof::Alone),
        Self::Proven(Proof::Journal),
        Self::Proven(Proof::Alert),
        Self::Proven(Proof::History),
        Self::Proven(Proof::NodeFenced),
        Self::Proven(Proof::Operator),
        Self::Doubtful(Doubt::Unconfirmed),
        Self::Doubtful(Doubt::Unproven),
        Self::Doubtful(Doubt::OutcomeUnknown),
        Self::Doubtful(Doubt::FencedAgain),
    ];

    /// The word in the journal.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Proven(Proof::Alone) => "alone",
            Self::Proven(Proof::Journal) => "journal",
            Self::Proven(Proof::Alert) => "alert",
            Self::Proven(Proof::History) => "history",
            Self::Proven(Proof::NodeFenced) => "node-fenced",
            Self::Proven(Proof::Operator) => "operator",
            Self::Doubtful(Doubt::Unconfirmed) => "unconfirmed",
            Self::Doubtful(Doubt::Unproven) => "unproven",
            Self::Doubtful(Doubt::OutcomeUnknown) => "outcome-unknown",
            Self::Doubtful(Doubt::FencedAgain) => "fenced-again",
        }
    }

    /// Reads the word of the journal.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|standing| standing.as_str() == word)
    }

    /// The doubt, where there is one.
    pub fn doubt(self) -> Option<Doubt> {
        match self {
            Self::Doubtful(doubt) => Some(doubt),
            Self::Proven(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_round_trip() {
        assert!(Settlement::ALL.into_iter().all(|word| Settlement::parse(word.as_str()) == Some(word)));
        assert!(Source::ALL.into_iter().all(|word| Source::parse(word.as_str()) == Some(word)));
        assert!(Standing::ALL.into_iter().all(|word| Standing::parse(word.as_str()) == Some(word)));
        assert_eq!(Standing::parse("proven"), None);
    }
}
