//! The file of one event: its name, its JSON, and their possible faults.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::event::{Action, Evidence, Join, Label, Moment, Outcome};
use marks::host::HostName;
use marks::id::OperationId;

/// Largest file in bytes; the longest record is about half of it.
pub const MAX_FILE: usize = 4096;

/// The format that is written here.
const VERSION: u32 = 1;

/// A fencing.
const ALERT: &str = ".alert";

/// A node that has joined.
const JOIN: &str = ".join";

/// Why a file is set apart. The caller shows the name; the message never shows the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// Not the name of an event.
    #[error("its name is not an event's")]
    Name,
    /// A symlink, a directory, a FIFO, a device, a socket.
    #[error("it is not a regular file")]
    NotPlain,
    /// It has another name somewhere.
    #[error("it has more than one name (a hard link)")]
    Linked,
    /// Somebody else's file.
    #[error("its owner is not the directory's")]
    Owner,
    /// More than [`MAX_FILE`] bytes.
    #[error("it is larger than {MAX_FILE} bytes")]
    TooLarge,
    /// The system would not read it.
    #[error("it cannot be read")]
    Unreadable,
    /// Not a record, or with a value that no event can have.
    #[error("its content is not a record of an event")]
    Content,
    /// A record of another format.
    #[error("its content has a format of another release")]
    Version,
    /// A record of another event.
    #[error("its content does not fit its name")]
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

/// The name of an event's file: made of digits and a UUID, sorted by time. `MICROSECONDS-OPERATION.alert` is a fencing,
/// `MICROSECONDS-NODE.join` a node that has joined, with a UUID that is computed from its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventName(String);

impl EventName {
    /// The name for an event.
    pub fn of(evidence: &Evidence) -> Self {
        Self::new(evidence.at, evidence.operation, ALERT)
    }

    /// The name for a node that has joined.
    pub fn of_join(join: &Join) -> Self {
        Self::new(join.at, OperationId::of_join(&join.node), JOIN)
    }

    fn new(at: Moment, id: OperationId, suffix: &str) -> Self {
        Self(format!("{:018}-{id}{suffix}", at.micros()))
    }

    /// Reads a name; only our own spelling is valid.
    pub fn parse(name: &str) -> Option<Self> {
        let suffix = if name.ends_with(JOIN) { JOIN } else { ALERT };
        let (digits, id) = name.strip_suffix(suffix)?.split_once('-')?;
        let at = Moment::from_micros(digits.parse().ok()?)?;
        let canonical = Self::new(at, OperationId::parse(id).ok()?, suffix);
        (canonical.0 == name).then_some(canonical)
    }

    pub(super) fn is_join(&self) -> bool {
        self.0.ends_with(JOIN)
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of the file until it is complete.
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

/// Read first, so that a newer format is reported as such, whatever its other fields are.
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

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JoinRecord {
    version: u32,
    node: String,
    at_micros: u64,
}

/// The content of the file of a node that has joined.
pub(super) fn encode_join(join: &Join) -> Vec<u8> {
    let record = JoinRecord { version: VERSION, node: join.node.to_string(), at_micros: join.at.micros() };
    line(&record)
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
    line(&record)
}

fn line(record: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(record).expect("a record holds nothing but texts and integers");
    bytes.push(b'\n');
    bytes
}

/// Reads the content of a file that has this name.
pub(super) fn decode(name: &EventName, bytes: &[u8]) -> Result<Evidence, Flaw> {
    let evidence = parse::<Record>(bytes)?.check().ok_or(Flaw::Content)?;
    if EventName::of(&evidence) == *name { Ok(evidence) } else { Err(Flaw::Mismatch) }
}

/// The same of a node that has joined.
pub(super) fn decode_join(name: &EventName, bytes: &[u8]) -> Result<Join, Flaw> {
    let join = parse::<JoinRecord>(bytes)?.check().ok_or(Flaw::Content)?;
    if EventName::of_join(&join) == *name { Ok(join) } else { Err(Flaw::Mismatch) }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Flaw> {
    if bytes.len() > MAX_FILE {
        return Err(Flaw::TooLarge);
    }
    let versioned: Versioned = serde_json::from_slice(bytes).map_err(|_| Flaw::Content)?;
    if versioned.version != VERSION {
        return Err(Flaw::Version);
    }
    serde_json::from_slice(bytes).map_err(|_| Flaw::Content)
}

impl JoinRecord {
    fn check(&self) -> Option<Join> {
        Some(Join { node: HostName::parse(&self.node).ok()?, at: Moment::from_micros(self.at_micros)? })
    }
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
