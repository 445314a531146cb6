//! What the reading commands say of a mark, for people and for scripts alike.

use marks::delivery::{Attempt, Delivery, State};
use marks::fencing::Fencing;
use marks::journal::{Damage, HistoryRow, Journal, JournalError, MarkRow};
use marks::time::Timestamp;
use serde::Serialize;

use crate::policy::{self, Hold};

/// Where the answer comes from; without a register it is this controller's word alone.
pub(super) const VIEW: &str = "local view";

/// One mark with its deliveries.
#[derive(Debug, Serialize)]
pub(super) struct MarkReport {
    pub(super) view: &'static str,
    #[serde(flatten)]
    pub(super) mark: MarkRow,
    /// `open`, `held`, or how it was settled.
    pub(super) state: &'static str,
    pub(super) holds: Vec<Hold>,
    pub(super) fence_count: u32,
    pub(super) deliveries: Vec<DeliveryReport>,
    pub(super) damaged: Vec<Damage>,
}

/// One delivery.
#[derive(Debug, Serialize)]
pub(super) struct DeliveryReport {
    pub(super) route: String,
    pub(super) state: State,
    pub(super) attempts: u32,
    pub(super) ambiguous: u32,
    pub(super) next_due: Option<Timestamp>,
    pub(super) last: Option<Attempt>,
    pub(super) reference: Option<String>,
    pub(super) ended_at: Option<Timestamp>,
    pub(super) body: String,
}

/// A mark's whole story.
#[derive(Debug, Serialize)]
pub(super) struct Story {
    #[serde(flatten)]
    pub(super) report: MarkReport,
    pub(super) fencings: Vec<Fencing>,
    pub(super) history: Vec<HistoryRow>,
}

/// Collects what belongs to one mark.
pub(super) fn report(journal: &Journal, mark: MarkRow) -> Result<MarkReport, JournalError> {
    let deliveries = journal.deliveries_of(mark.id)?;
    let holds = policy::holds(&mark);
    let state = match mark.settled {
        Some((how, _)) => how.as_str(),
        None if holds.is_empty() => "open",
        None => "held",
    };
    Ok(MarkReport {
        view: VIEW,
        state,
        holds,
        fence_count: journal.fence_count(mark.id)?,
        deliveries: deliveries.sound.into_iter().map(DeliveryReport::from).collect(),
        damaged: deliveries.damaged,
        mark,
    })
}

impl From<Delivery> for DeliveryReport {
    fn from(d: Delivery) -> Self {
        Self {
            next_due: Some(d.next_due).filter(|_| d.state.may_be_sent()),
            body: String::from_utf8_lossy(&d.body).into_owned(),
            route: d.route,
            state: d.state,
            attempts: d.attempts,
            ambiguous: d.ambiguous,
            last: d.last,
            reference: d.reference,
            ended_at: d.ended_at,
        }
    }
}
