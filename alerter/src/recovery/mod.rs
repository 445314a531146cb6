//! Whether the instances of a failed host are up again: what Nova said is kept in a file for each mark, and shown. Nothing
//! here decides about a mark.

pub mod kept;
pub mod news;
mod said;

use marks::id::MarkId;
use marks::recovery::Tally;
use marks::time::Timestamp;

pub use self::said::{Sentence, sentence};

/// What is seen of one outage that is not over, for problems and metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sight {
    /// The mark.
    pub mark: MarkId,
    /// Its host's node name.
    pub node: String,
    /// How many instances are where.
    pub tally: Tally,
    /// `recovery-limit` is over, and instances are left.
    pub late: Option<Late>,
    /// Nova does not answer.
    pub unanswered: Option<Unanswered>,
    /// A question about it has ended since the daemon began: before that it is not known whether Nova answers.
    pub is_known: bool,
}

/// Instances that are left after `recovery-limit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Late {
    /// Since when.
    pub since: Timestamp,
    /// The names of those that are not known to be up.
    pub left: Vec<String>,
}

/// A Nova that does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// Since when.
    pub since: Timestamp,
    /// Its last failure, for people.
    pub why: String,
}
