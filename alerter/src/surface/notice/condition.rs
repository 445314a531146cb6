//! A condition, all those that hold now, and the notice of one that has begun or ended.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use marks::time::Timestamp;
use serde::{Deserialize, Serialize};
use site::blanked;

use crate::problem::{Condition, Problem};

/// Longest sentence in characters.
pub(super) const MESSAGE: usize = 512;

/// One condition: what is wrong, and with what.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) what: Condition,
    pub(super) of: String,
}

impl Key {
    pub(super) fn new(what: Condition, of: impl Into<String>) -> Self {
        Self { what, of: of.into() }
    }

    /// Reads the text of the journal.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (what, of) = text.split_once(' ')?;
        Some(Self::new(Condition::parse(what)?, of))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.what.as_str(), self.of)
    }
}

/// What a condition is about; its end is notified with the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct About {
    /// A word for machines.
    pub(super) kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) host: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) mark: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) route: Option<String>,
}

impl About {
    pub(super) fn of(problem: &Problem) -> Self {
        Self {
            kind: problem.word().to_owned(),
            host: problem.only_host().map(str::to_owned),
            mark: None,
            route: problem.route.as_deref().map(printable),
        }
    }
}

/// What holds now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Current {
    pub(super) since: Timestamp,
    pub(super) about: About,
    /// One sentence: what happened, to whom, and what to do.
    pub(super) message: String,
}

/// Everything that holds now, as far as this daemon can see.
#[derive(Clone, Debug, Default)]
pub(super) struct Conditions {
    pub(super) holds: BTreeMap<Key, Current>,
    /// What may hold: neither begin nor end is notified.
    pub(super) open: BTreeSet<Key>,
    /// Conditions of which nothing was seen yet.
    pub(super) unknown: BTreeSet<Condition>,
}

impl Conditions {
    pub(super) fn add(&mut self, key: Key, since: Timestamp, about: About, message: &str) {
        self.holds.insert(key, Current { since, about, message: printable(message) });
    }

    /// Whether its end must not be notified.
    pub(super) fn may_hold(&self, key: &Key) -> bool {
        self.holds.contains_key(key) || self.open.contains(key) || self.unknown.contains(&key.what)
    }
}

/// Whether a condition has begun or has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    Raised,
    Cleared,
}

impl State {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Raised => "raised",
            Self::Cleared => "cleared",
        }
    }
}

/// One message to one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Notice {
    pub(super) state: State,
    pub(super) key: Key,
    /// Since when the condition holds or held.
    pub(super) since: Timestamp,
    /// When it should first have been notified.
    pub(super) time: Timestamp,
    pub(super) about: About,
    pub(super) message: String,
}

/// A sentence as it may be sent: on one line, with nothing hidden, cut at [`MESSAGE`] characters.
pub(super) fn printable(text: &str) -> String {
    blanked(text).take(MESSAGE).collect()
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
