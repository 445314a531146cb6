//! A delivery as it is shown.

use std::borrow::Cow;

use marks::delivery::{Attempt, Delivery, State};
use marks::time::Timestamp;
use serde::Serialize;

/// One delivery.
#[derive(Debug, Serialize)]
pub(super) struct DeliveryReport<'a> {
    route: &'a str,
    required: bool,
    state: State,
    attempts: u32,
    ambiguous: u32,
    next_due: Option<Timestamp>,
    last: Option<&'a Attempt>,
    reference: Option<&'a str>,
    ended_at: Option<Timestamp>,
    /// Its place in the mark's escalation chain.
    #[serde(skip_serializing_if = "Option::is_none")]
    chain: Option<ChainReport>,
    body: Cow<'a, str>,
}

impl<'a> DeliveryReport<'a> {
    /// `steps`: how many the mark's chain has.
    pub(super) fn of(delivery: &'a Delivery, steps: u32) -> Self {
        Self {
            route: &delivery.route,
            required: delivery.required,
            state: delivery.state,
            attempts: delivery.attempts,
            ambiguous: delivery.ambiguous,
            next_due: next_due(delivery),
            last: delivery.last.as_ref(),
            reference: delivery.reference.as_deref(),
            ended_at: delivery.ended_at,
            chain: ChainReport::of(delivery, steps),
            body: String::from_utf8_lossy(&delivery.body),
        }
    }
}

/// When the next attempt is due, where there is one.
pub(super) fn next_due(delivery: &Delivery) -> Option<Timestamp> {
    Some(delivery.next_due).filter(|_| delivery.state.may_be_sent())
}

/// What the last attempt failed with, while that still counts.
pub(super) fn failure(delivery: &Delivery) -> Option<&Attempt> {
    delivery.last.as_ref().filter(|_| !delivery.state.is_final() && !delivery.waits_in_chain())
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

impl ChainReport {
    pub(super) fn of(delivery: &Delivery, steps: u32) -> Option<Self> {
        let (step, waits) = (delivery.chain?, delivery.waits_in_chain());
        Some(Self {
            step: step.link.step,
            steps,
            timeout: step.link.timeout.as_secs(),
            waits,
            since: step.since().filter(|_| !waits),
            until: step.until,
            left: step.left.map(|left| left.as_secs()),
            exhausted_at: step.exhausted_at,
        })
    }
}
