//! A notification as Masakari has it, and why one is unknown.

use serde::Deserialize as _;
use serde_json::Value;

use super::body::{Payload, Stored};
use crate::driver::Outcome;
use crate::times::{self, seconds};

/// Why it is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unseen {
    /// Masakari did not answer, and may the next time.
    NotNow(Outcome),
    /// The user may not read it.
    Hidden(Outcome),
    /// Masakari never shows it.
    Never(Outcome),
}

impl Unseen {
    /// The outcome if nothing else was asked.
    pub(super) fn outcome(self) -> Outcome {
        match self {
            Self::NotNow(outcome) | Self::Hidden(outcome) | Self::Never(outcome) => outcome,
        }
    }
}

/// A notification that Masakari has of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) uuid: String,
    pub(super) status: String,
    pub(super) payload: Payload,
    /// Its own time; whole seconds.
    pub(super) generated: i64,
    /// When Masakari took it.
    pub(super) created: Option<i64>,
    /// When it was changed last.
    pub(super) changed: Option<i64>,
}

impl Row {
    /// Reads one that Masakari shows.
    pub(super) fn read(entry: &Value) -> Option<Self> {
        Some(Self {
            uuid: uuid(&entry["notification_uuid"])?,
            status: entry["status"].as_str()?.to_owned(),
            payload: Payload::deserialize(&entry["payload"]).unwrap_or_default(),
            generated: times::of(&entry["generated_time"])?,
            created: times::of(&entry["created_at"]),
            changed: times::of(&entry["updated_at"]),
        })
    }

    /// Whether it is the stored notification.
    pub(super) fn is(&self, stored: &Stored) -> bool {
        Some(self.generated) == seconds(&stored.generated_time) && self.payload == stored.payload
    }

    /// Whether it reports a failure.
    pub(super) fn is_failure(&self) -> bool {
        self.payload.event == "STOPPED"
    }

    /// Whether Masakari is not done with it.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.status.as_str(), "new" | "running" | "error")
    }

    /// Whether it is later than the stored notification.
    pub(super) fn is_after(&self, stored: &Stored) -> bool {
        seconds(&stored.generated_time).is_some_and(|stored| self.generated > stored)
    }
}

/// It becomes a part of a path.
pub(super) fn uuid(value: &Value) -> Option<String> {
    let is_uuid = |text: &&str| {
        (1..=36).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
    };
    value.as_str().filter(is_uuid).map(str::to_owned)
}
