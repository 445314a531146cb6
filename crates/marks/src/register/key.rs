//! The key of an entry: what it concerns, in the register's alphabet.

use std::fmt;

use super::code::{escape, unescape};
use crate::id::{FencingId, MarkId, NoteId, OperationId};

/// The suffix of a decision's key for its end.
const END: &str = ".end";
/// The suffix of a fencing's key if it was in a register before.
const AGAIN: &str = ".again";

/// What an entry concerns. Every record has a key of its own, so that no two writers write the same one. If two alerters
/// write the same of a mark, either entry will do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// `f.<fencing>`: a fencing.
    Fencing(FencingId),
    /// `f.<fencing>.again`: a fencing that was in a register before, which was lost with the entries beside it.
    Again(FencingId),
    /// `m.<mark>`: a mark.
    Mark(MarkId),
    /// `a.<mark>.<route>`: a route took the mark. The route's name is escaped.
    Acknowledged(MarkId, String),
    /// `s.<mark>`: a mark has ended.
    Settled(MarkId),
    /// `r.<mark>`: the host of a mark is back.
    Returned(MarkId),
    /// `o.<operation>`: an operation of Pacemaker, or `node_fenced`, that belongs to the outage of a mark.
    Operation(OperationId),
    /// `p.<id>`: an operator's decision.
    Decision(NoteId),
    /// `p.<id>.end`: it has ended.
    Ending(NoteId),
    /// `w.<id>`: when the alerter first ran.
    Watermark(NoteId),
}

impl Key {
    /// Reads a key; `None` if this release does not know it.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once('.')?;
        let key = match kind {
            "f" => match rest.strip_suffix(AGAIN) {
                Some(id) => Self::Again(FencingId::parse(id).ok()?),
                None => Self::Fencing(FencingId::parse(rest).ok()?),
            },
            "m" => Self::Mark(mark(rest)?),
            "a" => {
                let (id, route) = rest.split_once('.')?;
                Self::Acknowledged(mark(id)?, unescape(route).filter(|route| !route.is_empty())?)
            }
            "s" => Self::Settled(mark(rest)?),
            "r" => Self::Returned(mark(rest)?),
            "o" => Self::Operation(OperationId::parse(rest).ok()?),
            "p" => match rest.strip_suffix(END) {
                Some(id) => Self::Ending(NoteId::parse(id).ok()?),
                None => Self::Decision(NoteId::parse(rest).ok()?),
            },
            "w" => Self::Watermark(NoteId::parse(rest).ok()?),
            _ => return None,
        };
        // A UUID has several spellings; only one of them is a key.
        (key.to_string() == text).then_some(key)
    }

    /// The mark that it concerns, if the key alone shows it.
    pub fn mark(&self) -> Option<MarkId> {
        match self {
            Self::Mark(id) | Self::Acknowledged(id, _) | Self::Settled(id) | Self::Returned(id) => Some(*id),
            Self::Fencing(_)
            | Self::Again(_)
            | Self::Operation(_)
            | Self::Decision(_)
            | Self::Ending(_)
            | Self::Watermark(_) => None,
        }
    }
}

fn mark(text: &str) -> Option<MarkId> {
    MarkId::parse(text).ok()
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fencing(id) => write!(f, "f.{id}"),
            Self::Again(id) => write!(f, "f.{id}{AGAIN}"),
            Self::Mark(id) => write!(f, "m.{id}"),
            Self::Acknowledged(id, route) => write!(f, "a.{id}.{}", escape(route)),
            Self::Settled(id) => write!(f, "s.{id}"),
            Self::Returned(id) => write!(f, "r.{id}"),
            Self::Operation(id) => write!(f, "o.{id}"),
            Self::Decision(id) => write!(f, "p.{id}"),
            Self::Ending(id) => write!(f, "p.{id}{END}"),
            Self::Watermark(id) => write!(f, "w.{id}"),
        }
    }
}
