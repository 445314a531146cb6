//! What the alerter writes into the register beside fencings: marks, what became of them, and operators' decisions.

use crate::fencing::Incarnation;
use crate::id::{MarkId, NoteId};
use crate::mark::{Mark, Settlement, Source};
use crate::time::Timestamp;

/// `m.<mark>`: a mark, with everything that is told of it and what another alerter needs to know its outage again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkEntry {
    /// What is told.
    pub mark: Mark,
    /// What it was made of.
    pub source: Source,
    /// The connection that ended with the outage, where it is known.
    pub incarnation: Option<Incarnation>,
    /// The controller whose alerter made it.
    pub made_by: String,
    /// When.
    pub made_at: Timestamp,
}

/// `a.<mark>.<route>`: the recovery controller of a route took the mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// The mark.
    pub mark: MarkId,
    /// The route's name.
    pub route: String,
    /// When.
    pub at: Timestamp,
    /// The controller whose alerter had told it.
    pub by: String,
}

/// `s.<mark>`: a mark has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// The mark.
    pub mark: MarkId,
    /// How.
    pub how: Settlement,
    /// When.
    pub at: Timestamp,
    /// The controller whose alerter settled it.
    pub by: String,
}

/// `r.<mark>`: the host of a mark was seen to be back, so that its next fencing is another outage to every alerter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Returned {
    /// The mark.
    pub mark: MarkId,
    /// Since when it is back.
    pub at: Timestamp,
    /// The controller whose alerter saw it.
    pub by: String,
}

/// `p.<id>`: what an operator decided; it holds on every controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Its own id.
    pub id: NoteId,
    /// What was decided.
    pub kind: DecisionKind,
    /// The mark that it is about.
    pub mark: MarkId,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub actor: String,
    /// Why, in the operator's words.
    pub reason: String,
}

/// What an operator can decide for the whole cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionKind {
    /// A held mark may go.
    Release,
}

impl DecisionKind {
    /// The word in the register.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Release => "release",
        }
    }

    /// Reads that word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Release].into_iter().find(|kind| kind.as_str() == word)
    }
}

/// `w.<id>`: when the alerter first ran in this cluster; what Pacemaker remembers from before is not told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watermark {
    /// Its own id.
    pub id: NoteId,
    /// When.
    pub at: Timestamp,
    /// On which controller.
    pub by: String,
}
