//! One entry of the register: a key that says what it is, and a value that holds all of it.

use std::fmt;

use super::code::{escape, escape_maybe, unescape, unescape_maybe};
use crate::fencing::{Fencing, Incarnation, Origin};
use crate::host::HostName;
use crate::id::FencingId;
use crate::time::Timestamp;

/// The first field of every value that this release writes.
const VERSION: &str = "1";

/// What an entry is about. Every record has a key of its own, so that no two writers ever write the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// `f.<fencing>`: a fencing.
    Fencing(FencingId),
}

impl Key {
    /// Reads a key; `None` for what this release does not know.
    pub fn parse(text: &str) -> Option<Self> {
        let id = FencingId::parse(text.strip_prefix("f.")?).ok()?;
        let key = Self::Fencing(id);
        // A UUID can be written in several ways; only one of them is a key.
        (key.to_string() == text).then_some(key)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fencing(id) => write!(f, "f.{id}"),
        }
    }
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A fencing, with all that its journal knows of it.
    Fencing(Fencing),
}

/// Why a value cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// Another release wrote it.
    #[error("its version is unknown")]
    Version,
    /// Nobody of us wrote it so.
    #[error("it is malformed")]
    Malformed,
}

impl Entry {
    /// Its key.
    pub fn key(&self) -> Key {
        match self {
            Self::Fencing(fencing) => Key::Fencing(fencing.id),
        }
    }

    /// Its value, in the register's alphabet.
    pub fn value(&self) -> String {
        match self {
            Self::Fencing(fencing) => fencing_value(fencing),
        }
    }

    /// Reads a value back. It may come from anybody who can write the register.
    ///
    /// # Errors
    /// [`ValueError`] for everything that [`Entry::value`] would not have written.
    pub fn parse(key: Key, value: &str) -> Result<Self, ValueError> {
        let (version, rest) = value.split_once(';').ok_or(ValueError::Malformed)?;
        if version != VERSION {
            return Err(ValueError::Version);
        }
        let entry = match key {
            Key::Fencing(id) => fencing(id, rest).map(Self::Fencing),
        };
        // Numbers can be written in several ways; what is kept is compared as text.
        entry.filter(|entry| entry.value() == value).ok_or(ValueError::Malformed)
    }
}

fn fencing_value(fencing: &Fencing) -> String {
    let shared = match fencing.given_shared_storage {
        Some(true) => "y",
        Some(false) => "n",
        None => "",
    };
    [
        VERSION,
        &escape(fencing.node.as_str()),
        &escape_maybe(fencing.plug.as_ref().map(HostName::as_str)),
        &fencing.asked_at.0.to_string(),
        &fencing.committed_at.0.to_string(),
        &escape(&fencing.seen_by),
        fencing.origin.as_str(),
        &escape_maybe(fencing.incarnation.as_ref().map(Incarnation::as_str)),
        &escape_maybe(fencing.given_domain.as_deref()),
        shared,
    ]
    .join(";")
}

fn fencing(id: FencingId, fields: &str) -> Option<Fencing> {
    let fields: Vec<&str> = fields.split(';').collect();
    let [node, plug, asked_at, committed_at, seen_by, origin, incarnation, domain, shared] = fields[..]
    else {
        return None;
    };
    let plug = match unescape_maybe(plug)? {
        Some(name) => Some(HostName::parse(&name).ok()?),
        None => None,
    };
    let given_shared_storage = match shared {
        "y" => Some(true),
        "n" => Some(false),
        "" => None,
        _ => return None,
    };
    Some(Fencing {
        id,
        node: HostName::parse(&unescape(node)?).ok()?,
        plug,
        asked_at: Timestamp(asked_at.parse().ok()?),
        committed_at: Timestamp(committed_at.parse().ok()?),
        seen_by: unescape(seen_by)?,
        origin: Origin::parse(origin)?,
        incarnation: unescape_maybe(incarnation)?.map(Incarnation::from_journal),
        given_domain: unescape_maybe(domain)?,
        given_shared_storage,
    })
}
