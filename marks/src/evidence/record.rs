//! The file of one event: its name, its JSON, and what can be wrong with either.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Action, Evidence, Label, Moment, Outcome};
use crate::host::HostName;
use crate::id::OperationId;

/// Largest file in bytes; the longest record is about half of it.
pub const MAX_FILE: usize = 4096;

/// The format that is written here.
const VERSION: u32 = 1;

const SUFFIX: &str = ".alert";

/// Why a file is set apart. The name is the caller's to show; nothing of the content is part of the sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// Not the name of an event.
    #[error("its name is not that of an event")]
    Name,
    /// A symlink, a directory, a FIFO, a device, a socket.
    #[error("it is no regular file")]
    NotPlain,
    /// It has another name somewhere.
    #[error("it has more than one name (a hard link)")]
    Linked,
    /// Somebody else's file.
    #[error("it belongs to another user than the directory")]
    Owner,
    /// More than [`MAX_FILE`] bytes.
    #[error("it is larger than {MAX_FILE} bytes")]
    TooLarge,
    /// The system would not read it.
    #[error("it cannot be read")]
    Unreadable,
    /// Not a record, or with a value that no event can have.
    #[error("its content is no record of an event")]
    Content,
    /// A record of another format.
    #[error("its content has a format that this release does not know")]
    Version,
    /// A record of another event.
    #[error("its content belongs to another name")]
    Mismatch,
}

impl Flaw {
    /// A stable machine word.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::NotPlain => "not-plain",
            Self::Linked => "linked",
            Self::Owner => "owner",
            Self::TooLarge => "too-large",
            Self::Unreadable => "unreadable",
            Self::Content => "content",
            Self::Version => "version",
            Self::Mismatch => "mismatch",
        }
    }
}

/// The name of an event's file, `MICROSECONDS-OPERATION.alert`: made of digits and a UUID alone, sorted by time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventName(String);

impl EventName {
    /// The name for an event.
    pub fn of(evidence: &Evidence) -> Self {
        Self::new(evidence.at, evidence.operation)
    }

    fn new(at: Moment, operation: OperationId) -> Self {
        Self(format!("{:018}-{operation}{SUFFIX}", at.micros()))
    }

    /// Reads a name; only the spelling that is written here.
    pub fn parse(name: &str) -> Option<Self> {
        let (digits, operation) = name.strip_suffix(SUFFIX)?.split_once('-')?;
        let at = Moment::from_micros(digits.parse().ok()?)?;
        let canonical = Self::new(at, OperationId::parse(operation).ok()?);
        (canonical.0 == name).then_some(canonical)
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name under which a process writes the file until it is whole.
    pub(super) fn draft(&self, process: u32) -> String {
        format!(".{}.{process}", self.0)
    }

    /// Whether a name is that of such a draft.
    pub(super) fn is_draft(name: &str) -> bool {
        let parts = name.strip_prefix('.').and_then(|rest| rest.rsplit_once('.'));
        parts.is_some_and(|(event, process)| Self::parse(event).is_some() && process.parse::<u32>().is_ok())
    }
}

impl fmt::Display for EventName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Read first, so that a newer format is called that, whatever else it holds.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    version: u32,
    target: String,
    action: String,
    rc: i32,
    operation: String,
    at_micros: u64,
    executor: String,
    client: String,
    origin: String,
}

/// The content of the file.
pub(super) fn encode(evidence: &Evidence) -> Vec<u8> {
    let record = Record {
        version: VERSION,
        target: evidence.target.to_string(),
        action: evidence.action.as_str().to_owned(),
        rc: evidence.outcome.rc(),
        operation: evidence.operation.to_string(),
        at_micros: evidence.at.micros(),
        executor: evidence.executor.to_string(),
        client: evidence.client.to_string(),
        origin: evidence.origin.to_string(),
    };
    let mut bytes = serde_json::to_vec(&record).expect("a record holds nothing but texts and integers");
    bytes.push(b'\n');
    bytes
}

/// Reads the content of a file that has this name.
pub(super) fn decode(name: &EventName, bytes: &[u8]) -> Result<Evidence, Flaw> {
    if bytes.len() > MAX_FILE {
        return Err(Flaw::TooLarge);
    }
    let versioned: Versioned = serde_json::from_slice(bytes).map_err(|_| Flaw::Content)?;
    if versioned.version != VERSION {
        return Err(Flaw::Version);
    }
    let record: Record = serde_json::from_slice(bytes).map_err(|_| Flaw::Content)?;
    let evidence = record.check().ok_or(Flaw::Content)?;
    if EventName::of(&evidence) == *name { Ok(evidence) } else { Err(Flaw::Mismatch) }
}

impl Record {
    fn check(&self) -> Option<Evidence> {
        Some(Evidence {
            target: HostName::parse(&self.target).ok()?,
            action: Action::parse(&self.action)?,
            outcome: Outcome::from_rc(self.rc),
            operation: OperationId::parse(&self.operation).ok()?,
            at: Moment::from_micros(self.at_micros)?,
            executor: Label::exact(&self.executor)?,
            client: Label::exact(&self.client)?,
            origin: Label::exact(&self.origin)?,
        })
    }
}
