//! Notices: what an operator should know, told apart from the recovery routes, once when it begins and once when it ends
//! (docs/notices.md).
//!
//! What is told is the difference between what holds now and what a target was told already, never an event: so what was
//! missed is told later, and what has passed meanwhile is not told at all.

mod body;
mod conditions;
mod facts;
mod held_back;
mod keeper;
mod keys;
mod memory;
mod target;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use marks::time::Timestamp;
use serde::{Deserialize, Serialize};

pub use target::run;

/// What may be the matter. A closed set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// A mark may not go.
    Held,
    /// The policy keeps marks back.
    HeldBack,
    /// It has done so for another day, and only a person ends it; its end is never told.
    Reminder,
    /// More marks than are told one by one.
    HeldMore,
    /// A route takes others, but not this mark.
    Rejected,
    /// More of them than are told one by one.
    RejectedMore,
    /// A route takes no mark until somebody changes something.
    Refused,
    /// A route has accepted nothing for long, whatever the reason.
    Failing,
    /// A row is damaged.
    Quarantined,
    /// It came too late to be told; its end is never told.
    Expired,
    /// The alerter cannot act in the cluster, or not see all of it.
    Cluster,
    /// A host is gone that nobody fenced.
    Missing,
    /// The journal cannot be written.
    Journal,
    /// No step of a mark's chain was acknowledged.
    Exhausted,
    /// Marks wait for a route that is not configured any more.
    Stranded,
}

impl What {
    const ALL: [Self; 15] = [
        Self::Held,
        Self::HeldBack,
        Self::Reminder,
        Self::HeldMore,
        Self::Rejected,
        Self::RejectedMore,
        Self::Refused,
        Self::Failing,
        Self::Quarantined,
        Self::Expired,
        Self::Cluster,
        Self::Missing,
        Self::Journal,
        Self::Exhausted,
        Self::Stranded,
    ];

    /// The word in a notice and in the journal.
    fn as_str(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::HeldBack => "held-back",
            Self::Reminder => "reminder",
            Self::HeldMore => "held-more",
            Self::Rejected => "rejected",
            Self::RejectedMore => "rejected-more",
            Self::Refused => "refused",
            Self::Failing => "failing",
            Self::Quarantined => "quarantined",
            Self::Expired => "expired",
            Self::Cluster => "cluster",
            Self::Missing => "missing",
            Self::Journal => "journal",
            Self::Exhausted => "exhausted",
            Self::Stranded => "stranded",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|what| what.as_str() == word)
    }
}

/// One condition: what is the matter, and with what.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    what: What,
    of: String,
}

impl Key {
    fn new(what: What, of: impl Into<String>) -> Self {
        Self { what, of: of.into() }
    }

    /// Reads the text of the journal.
    fn parse(text: &str) -> Option<Self> {
        let (what, of) = text.split_once(' ')?;
        Some(Self::new(What::parse(what)?, of))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.what.as_str(), self.of)
    }
}

/// What a condition is about; its end is told with the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct About {
    /// A word for machines.
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mark: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    route: Option<String>,
}

/// What holds now.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Condition {
    since: Timestamp,
    about: About,
    /// One sentence: what happened, to whom, and what to do.
    message: String,
}

/// Everything that holds now, as far as this daemon can see.
#[derive(Clone, Debug, Default)]
struct Conditions {
    holds: BTreeMap<Key, Condition>,
    /// What may hold: no news in either direction.
    open: BTreeSet<Key>,
    /// Of these nothing was seen yet.
    unknown: BTreeSet<What>,
}

impl Conditions {
    /// Whether nobody may say that it is over.
    fn may_hold(&self, key: &Key) -> bool {
        self.holds.contains_key(key) || self.open.contains(key) || self.unknown.contains(&key.what)
    }
}

/// Whether a condition has begun or has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Raised,
    Cleared,
}

impl State {
    fn as_str(self) -> &'static str {
        match self {
            Self::Raised => "raised",
            Self::Cleared => "cleared",
        }
    }
}

/// One message to one target.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Notice {
    state: State,
    key: Key,
    /// Since when the condition holds or held.
    since: Timestamp,
    /// When it was first to be told.
    time: Timestamp,
    about: About,
    message: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_round_trip() {
        for what in What::ALL {
            let key = Key::new(what, "0193b3a4 with more");
            assert_eq!(Key::parse(&key.to_string()), Some(key));
        }
        assert_eq!(Key::parse("held"), None);
        assert_eq!(Key::parse("gone compute1"), None);
    }
}
