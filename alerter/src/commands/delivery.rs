//! A delivery as it is shown.

use marks::delivery::{Attempt, State};
use marks::time::Timestamp;
use serde::Serialize;

/// One delivery.
#[derive(Debug, Serialize)]
pub(super) struct DeliveryReport {
    pub(super) route: String,
    pub(super) required: bool,
    pub(super) state: State,
    pub(super) attempts: u32,
    pub(super) ambiguous: u32,
    pub(super) next_due: Option<Timestamp>,
    pub(super) last: Option<Attempt>,
    pub(super) reference: Option<String>,
    pub(super) ended_at: Option<Timestamp>,
    /// Its place in the mark's escalation chain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) chain: Option<ChainReport>,
    pub(super) body: String,
}

impl DeliveryReport {
    /// Whether it is another step's turn.
    pub(super) fn waits_in_chain(&self) -> bool {
        self.chain.as_ref().is_some_and(|chain| chain.waits)
    }

    /// What the last attempt failed with, while that still counts.
    pub(super) fn failure(&self) -> Option<&Attempt> {
        self.last.as_ref().filter(|_| !self.state.is_final() && !self.waits_in_chain())
    }
}

/// A step of a chain.
#[derive(Debug, Serialize)]
pub(super) struct ChainReport {
    /// Its order: the first is 1.
    pub(super) step: u32,
    /// How many there are.
    pub(super) steps: u32,
    /// Seconds that it has.
    pub(super) timeout: u64,
    /// Whether it is another step's turn.
    pub(super) waits: bool,
    /// Since when its clock runs, where it does.
    pub(super) since: Option<Timestamp>,
    /// When its time is over; of a step that was left, when that was.
    pub(super) until: Option<Timestamp>,
    /// Seconds that it has left, while the mark is held.
    pub(super) left: Option<u64>,
    /// Since when no step comes after it.
    pub(super) exhausted_at: Option<Timestamp>,
}
