//! Whether the instances of a failed host run elsewhere: what Nova said is kept in a file for each mark, and shown. Nothing
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
    /// What is wrong; `None` while all goes its way.
    pub trouble: Option<Trouble>,
}

/// What is wrong with a recovery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// `recovery-limit` is over, and these are left.
    Late {
        /// Since when.
        since: Timestamp,
        /// Their names.
        left: Vec<String>,
    },
    /// Nova does not answer.
    Unknown {
        /// Since when.
        since: Timestamp,
        /// Its failure, for people.
        why: String,
    },
}
