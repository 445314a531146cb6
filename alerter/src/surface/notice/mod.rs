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

use crate::problem::Condition;

pub use target::run;

/// One condition: what is the matter, and with what.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    what: Condition,
    of: String,
}

impl Key {
    fn new(what: Condition, of: impl Into<String>) -> Self {
        Self { what, of: of.into() }
    }

    /// Reads the text of the journal.
    fn parse(text: &str) -> Option<Self> {
        let (what, of) = text.split_once(' ')?;
        Some(Self::new(Condition::parse(what)?, of))
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
struct Current {
    since: Timestamp,
    about: About,
    /// One sentence: what happened, to whom, and what to do.
    message: String,
}

/// Everything that holds now, as far as this daemon can see.
#[derive(Clone, Debug, Default)]
struct Conditions {
    holds: BTreeMap<Key, Current>,
    /// What may hold: no news in either direction.
    open: BTreeSet<Key>,
    /// Of these nothing was seen yet.
    unknown: BTreeSet<Condition>,
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
        for (what, _) in Condition::ALL {
            let key = Key::new(what, "0193b3a4 with more");
            assert_eq!(Key::parse(&key.to_string()), Some(key));
        }
        assert_eq!(Key::parse("held"), None);
        assert_eq!(Key::parse("gone compute1"), None);
    }
}
