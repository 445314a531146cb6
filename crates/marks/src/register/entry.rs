//! One entry of the register: a key that identifies it, and a value with all of it.

use std::fmt;

use super::key::Key;
use super::notes::{Acknowledgement, Decision, Ending, MarkEntry, Operation, Returned, Settled, Watermark};
use super::value;
use crate::fencing::Fencing;
use crate::time::Timestamp;

/// The first field of every value that this release writes.
const VERSION: &str = "1";

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A fencing, with all data of its journal.
    Fencing(Fencing),
    /// A fencing that was in a register before: its sender may have been lost with the entries beside it.
    Again(Fencing),
    /// A mark.
    Mark(MarkEntry),
    /// A route took a mark.
    Acknowledged(Acknowledgement),
    /// A mark has ended.
    Settled(Settled),
    /// The host of a mark is back.
    Returned(Returned),
    /// An operation of Pacemaker belongs to the outage of a mark.
    Operation(Operation),
    /// An operator's decision.
    Decision(Decision),
    /// The end of one.
    Ending(Ending),
    /// When the alerter first ran.
    Watermark(Watermark),
}

/// What the present value under its key means for an entry that is to be published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// Nothing is there.
    Absent,
    /// It is there, or another alerter's entry on the same matter, which counts as well.
    Counts,
    /// Something else is there.
    Other,
}

/// Why an entry is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The key of another release, or foreign.
    Key,
    /// The value of another release.
    Version,
    /// A value that none of our programs wrote.
    Malformed,
    /// A second value under a key.
    Second,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Key => "its key is unknown",
            Self::Version => "its value is of another release",
            Self::Malformed => "its value is malformed",
            Self::Second => "there are two values under its key",
        })
    }
}

impl Entry {
    /// Its key.
    pub fn key(&self) -> Key {
        match self {
            Self::Fencing(fencing) => Key::Fencing(fencing.id),
            Self::Again(fencing) => Key::Again(fencing.id),
            Self::Mark(entry) => Key::Mark(entry.mark.id),
            Self::Acknowledged(entry) => Key::Acknowledged(entry.mark, entry.route.clone()),
            Self::Settled(entry) => Key::Settled(entry.mark),
            Self::Returned(entry) => Key::Returned(entry.mark),
            Self::Operation(entry) => Key::Operation(entry.id),
            Self::Decision(entry) => Key::Decision(entry.id),
            Self::Ending(entry) => Key::Ending(entry.id),
            Self::Watermark(entry) => Key::Watermark(entry.id),
        }
    }

    /// The fencing, whether it was in a register before or not.
    pub fn fencing(&self) -> Option<&Fencing> {
        match self {
            Self::Fencing(fencing) | Self::Again(fencing) => Some(fencing),
            _ => None,
        }
    }

    /// The controller that it names as its writer, if any.
    pub fn by(&self) -> Option<&str> {
        match self {
            Self::Fencing(it) | Self::Again(it) => Some(&it.seen_by),
            Self::Mark(it) => Some(&it.made_by),
            Self::Acknowledged(it) => Some(&it.by),
            Self::Settled(it) => Some(&it.by),
            Self::Returned(it) => Some(&it.by),
            Self::Operation(it) => Some(&it.by),
            Self::Watermark(it) => Some(&it.by),
            Self::Decision(_) | Self::Ending(_) => None,
        }
    }

    /// When it was written, by its writer's clock.
    pub fn at(&self) -> Timestamp {
        match self {
            Self::Fencing(it) | Self::Again(it) => it.committed_at,
            Self::Mark(it) => it.made_at,
            Self::Acknowledged(it) => it.at,
            Self::Settled(it) => it.at,
            Self::Returned(it) => it.at,
            Self::Operation(it) => it.at,
            Self::Decision(it) => it.at,
            Self::Ending(it) => it.at,
            Self::Watermark(it) => it.at,
        }
    }

    /// Orders several entries on one matter: by time, then by text.
    pub(super) fn rank(&self) -> (Timestamp, String) {
        (self.at(), self.value())
    }

    /// Its value, in the register's alphabet.
    pub fn value(&self) -> String {
        let fields = match self {
            Self::Fencing(fencing) | Self::Again(fencing) => value::of_fencing(fencing),
            Self::Mark(entry) => value::of_mark(entry),
            Self::Acknowledged(entry) => value::of_acknowledgement(entry),
            Self::Settled(entry) => value::of_settled(entry),
            Self::Returned(entry) => value::of_returned(entry),
            Self::Operation(entry) => value::of_operation(entry),
            Self::Decision(entry) => value::of_decision(entry),
            Self::Ending(entry) => value::of_ending(entry),
            Self::Watermark(entry) => value::of_watermark(entry),
        };
        format!("{VERSION};{fields}")
    }

    /// Its key and its value, as texts.
    pub fn line(&self) -> (String, String) {
        (self.key().to_string(), self.value())
    }

    /// Reads a value back. Anybody who can write the register may have written it.
    ///
    /// # Errors
    /// [`Why`] for everything that [`Entry::value`] would not have written.
    pub fn parse(key: Key, value: &str) -> Result<Self, Why> {
        let (version, rest) = value.split_once(';').ok_or(Why::Malformed)?;
        if version != VERSION {
            return Err(Why::Version);
        }
        // A number has several spellings; stored values are compared as text.
        let entry = Self::of_fields(key, rest).filter(|entry| entry.value() == value);
        entry.ok_or(Why::Malformed)
    }

    /// The same with its key.
    ///
    /// # Errors
    /// [`Why`] it is not used.
    pub fn read(key: &str, value: &str) -> Result<Self, Why> {
        Self::parse(Key::parse(key).ok_or(Why::Key)?, value)
    }

    fn of_fields(key: Key, fields: &str) -> Option<Self> {
        Some(match key {
            Key::Fencing(id) => Self::Fencing(value::fencing(id, fields)?),
            Key::Again(id) => Self::Again(value::fencing(id, fields)?),
            Key::Mark(id) => Self::Mark(value::mark(id, fields)?),
            Key::Acknowledged(mark, route) => {
                Self::Acknowledged(value::acknowledgement(mark, route, fields)?)
            }
            Key::Settled(mark) => Self::Settled(value::settled(mark, fields)?),
            Key::Returned(mark) => Self::Returned(value::returned(mark, fields)?),
            Key::Operation(id) => Self::Operation(value::operation(id, fields)?),
            Key::Decision(id) => Self::Decision(value::decision(id, fields)?),
            Key::Ending(id) => Self::Ending(value::ending(id, fields)?),
            Key::Watermark(id) => Self::Watermark(value::watermark(id, fields)?),
        })
    }

    /// Compares it with the value that was read under its key; an empty one counts as missing.
    ///
    /// A fencing or a decision has an id of its own, which no other writer uses. Two alerters' entries on one mark, or
    /// two operators' on the end of one decision, may differ in time and name; the first one stays.
    pub fn held(&self, value: &str) -> Held {
        let own_id = matches!(self, Self::Fencing(_) | Self::Again(_) | Self::Decision(_));
        match value {
            "" => Held::Absent,
            value if value == self.value() => Held::Counts,
            value if !own_id && Self::parse(self.key(), value).is_ok() => Held::Counts,
            _ => Held::Other,
        }
    }

    /// Whether key and value read back the same; a text that is too long or has control characters does not.
    pub fn is_fit(&self) -> bool {
        let key = self.key();
        Key::parse(&key.to_string()).as_ref() == Some(&key)
            && Self::parse(key, &self.value()).as_ref() == Ok(self)
    }
}
