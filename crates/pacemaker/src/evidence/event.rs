//! What Pacemaker's alert reported to one controller: a fencing that has ended, or a node that has joined.

use std::fmt;
use std::num::NonZeroI32;
use std::time::{SystemTime, UNIX_EPOCH};

use marks::host::HostName;
use marks::id::OperationId;
use marks::sighting::{Sighting, Witness};
use marks::time::Timestamp;

/// Pacemaker's word for the executor of a fencing that an operator only confirmed.
const HUMAN: &str = "a human";

/// One ended fencing operation, as reported to one controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The node that was fenced or unfenced.
    pub target: HostName,
    /// What was asked for.
    pub action: Action,
    /// How it ended.
    pub outcome: Outcome,
    /// The fencer's id of the operation.
    pub operation: OperationId,
    /// When the controller got the report.
    pub at: Moment,
    /// The node that did it; "a human" if somebody only confirmed it.
    pub executor: Label,
    /// The program that asked for it.
    pub client: Label,
    /// The node on which that program ran.
    pub origin: Label,
}

impl Evidence {
    /// The sighting that it is, if it reports that a host was fenced.
    pub fn sighting(&self) -> Option<Sighting> {
        let fenced = matches!(self.action, Action::Off | Action::Reboot);
        (fenced && self.outcome == Outcome::Success).then(|| Sighting {
            node: self.target.clone(),
            witness: Witness::Alert(self.operation),
            at: self.at.timestamp(),
            by_human: is_human(self.executor.as_str()),
        })
    }
}

/// Whether that executor is a person: the fencing was only confirmed by hand.
pub(super) fn is_human(executor: &str) -> bool {
    executor == HUMAN
}

/// A cluster node that has become a member, as one controller saw it. It ends an outage of that node, and proves nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Join {
    /// The node.
    pub node: HostName,
    /// When the controller saw it.
    pub at: Moment,
}

/// What a fencing operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Power off.
    Off,
    /// Power off, then on.
    Reboot,
    /// Unfencing: never a failure of a host.
    On,
}

impl Action {
    /// Every action.
    pub const ALL: [Self; 3] = [Self::Off, Self::Reboot, Self::On];

    /// Reads Pacemaker's word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.as_str() == word)
    }

    /// Pacemaker's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Reboot => "reboot",
            Self::On => "on",
        }
    }
}

/// How a fencing operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was done.
    Success,
    /// It failed with this code, which is mostly a negative error number.
    Failure(NonZeroI32),
}

impl Outcome {
    /// From Pacemaker's return code.
    pub fn from_rc(rc: i32) -> Self {
        NonZeroI32::new(rc).map_or(Self::Success, Self::Failure)
    }

    /// Pacemaker's return code.
    pub fn rc(self) -> i32 {
        match self {
            Self::Success => 0,
            Self::Failure(rc) => rc.get(),
        }
    }
}

/// Microseconds since the Unix epoch, up to the end of the year 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

impl Moment {
    pub(super) const MAX: u64 = 253_402_300_799_999_999;

    /// The wall clock's time; a clock outside of the valid range counts as 1970.
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_micros()).ok().and_then(Self::from_micros).unwrap_or(Self(0))
    }

    /// From microseconds since the epoch; `None` beyond the year 9999.
    pub fn from_micros(micros: u64) -> Option<Self> {
        (micros <= Self::MAX).then_some(Self(micros))
    }

    /// Microseconds since the epoch.
    pub fn micros(self) -> u64 {
        self.0
    }

    /// The same in the journal's precision, rounded down.
    pub fn timestamp(self) -> Timestamp {
        Timestamp(i64::try_from(self.0 / 1000).unwrap_or(i64::MAX))
    }
}

/// A short text for people: at most 255 bytes, without a control character.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Label(String);

impl Label {
    /// Longest text in bytes.
    pub const MAX: usize = 255;

    /// Cuts a text to fit; a control character becomes `?`.
    pub fn lossy(text: &str) -> Self {
        let clean = text.chars().map(|c| if c.is_control() { '?' } else { c });
        let fits = clean.scan(0, |length, c| {
            *length += c.len_utf8();
            (*length <= Self::MAX).then_some(c)
        });
        Self(fits.collect())
    }

    /// Takes a text that is valid already.
    pub fn exact(text: &str) -> Option<Self> {
        let label = Self::lossy(text);
        (label.0 == text).then_some(label)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
