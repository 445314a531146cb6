//! What the reading commands say of a mark, for people and for scripts alike.

use std::collections::BTreeSet;

use marks::delivery::{Attempt, Delivery, State};
use marks::fencing::Fencing;
use marks::id::MarkId;
use marks::journal::{Damage, HeldMark, HistoryRow, Journal, JournalError, MarkRow};
use marks::register::Acknowledgement;
use marks::time::Timestamp;
use serde::Serialize;

use super::merged::{self, Found, Look};
use crate::policy::{self, Hold};

/// One mark with its deliveries.
#[derive(Debug, Serialize)]
pub(super) struct MarkReport {
    /// `cluster`, or `local view`: this controller's word alone.
    pub(super) view: &'static str,
    /// Whether this controller's journal knows it; else only the register does.
    pub(super) in_journal: bool,
    #[serde(flatten)]
    pub(super) mark: MarkRow,
    /// `open`, `held`, or how it was settled.
    pub(super) state: &'static str,
    pub(super) holds: Vec<Hold>,
    /// What the policy says of the first of its holds; absent where it holds nothing.
    pub(super) held: Option<HeldReport>,
    pub(super) fence_count: u32,
    pub(super) deliveries: Vec<DeliveryReport>,
    pub(super) damaged: Vec<Damage>,
    /// The routes of which the register says that they took it.
    pub(super) acknowledged: Vec<Taken>,
}

/// Why the policy holds a mark.
#[derive(Debug, Serialize)]
pub(super) struct HeldReport {
    /// One sentence.
    pub(super) why: String,
    pub(super) since: Timestamp,
    /// When it ends by itself, where that is known.
    pub(super) until: Option<Timestamp>,
}

/// A route that took a mark, as the register says.
#[derive(Debug, Serialize)]
pub(super) struct Taken {
    pub(super) route: String,
    pub(super) at: Timestamp,
    /// The controller whose alerter had told it.
    pub(super) by: String,
}

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

/// A mark's whole story.
#[derive(Debug, Serialize)]
pub(super) struct Story {
    #[serde(flatten)]
    pub(super) report: MarkReport,
    /// Who speaks of it, one sentence each.
    pub(super) came_from: Vec<String>,
    /// Where it stands now, one sentence each.
    pub(super) kept_in: Vec<String>,
    /// Who vouches for it.
    pub(super) vouched: String,
    pub(super) fencings: Vec<Fencing>,
    pub(super) history: Vec<HistoryRow>,
}

/// What is still to be done, oldest first: marks that are not settled, and settled ones that a route which is not required
/// has not taken yet. `rows` are the journal's, as [`Journal::unfinished_marks`] gives them.
pub(super) fn unfinished(
    journal: Option<&Journal>,
    rows: Vec<MarkRow>,
    look: &Look,
) -> Result<Vec<MarkReport>, JournalError> {
    let here: BTreeSet<MarkId> = rows.iter().map(|row| row.id).collect();
    let wanted = |mark: &MarkRow| mark.settled.is_none() || here.contains(&mark.id);
    let found = merged::marks(journal, rows, look, wanted)?;
    let reports: Result<Vec<MarkReport>, JournalError> =
        found.iter().map(|found| report(journal, look, found)).collect();
    // The register may say of the rest that it has ended elsewhere.
    Ok(reports?.into_iter().filter(MarkReport::is_unfinished).collect())
}

impl MarkReport {
    fn is_unfinished(&self) -> bool {
        let is_open = |delivery: &DeliveryReport| !delivery.state.is_final();
        self.mark.settled.is_none() || self.deliveries.iter().any(is_open) || !self.damaged.is_empty()
    }

    /// What the policy holds comes behind the doubts about the mark itself.
    fn add_hold(&mut self, held: Option<HeldMark>) {
        let Some(held) = held else { return };
        self.holds.extend(held.words.iter().filter_map(|word| Hold::parse(word)));
        self.state = "held";
        self.held = Some(HeldReport { why: held.why, since: held.since, until: held.until });
    }

    /// Whether one of the routes can still tell it.
    pub(super) fn can_be_told_by(&self, routes: &BTreeSet<String>) -> bool {
        self.deliveries.iter().any(|delivery| !delivery.state.is_final() && routes.contains(&delivery.route))
    }
}

/// Collects what belongs to one mark.
pub(super) fn report(
    journal: Option<&Journal>,
    look: &Look,
    found: &Found,
) -> Result<MarkReport, JournalError> {
    let mark = found.mark.clone();
    let taken: Vec<Taken> = look.acknowledged(mark.id).into_iter().map(Taken::from).collect();
    let Some(journal) = journal.filter(|_| found.in_journal) else {
        let count = look.first_fencing(mark.id).map_or(0, |_| 1);
        return Ok(assemble(look, found, Vec::new(), taken, count));
    };
    let kept = journal.deliveries_of(mark.id)?;
    let mut deliveries: Vec<DeliveryReport> = kept.sound.into_iter().map(DeliveryReport::from).collect();
    deliveries.iter_mut().for_each(|delivery| merged::end_elsewhere(delivery, found, look));
    count_steps(&mut deliveries);
    let mut report = assemble(look, found, deliveries, taken, journal.fence_count(mark.id)?);
    if found.mark.settled.is_none() {
        report.add_hold(journal.hold_of(mark.id)?);
    }
    Ok(MarkReport { damaged: kept.damaged, ..report })
}

/// The chain is as long as its last step says.
fn count_steps(deliveries: &mut [DeliveryReport]) {
    let last = deliveries.iter().filter_map(|delivery| delivery.chain.as_ref()).map(|chain| chain.step).max();
    let chains = deliveries.iter_mut().filter_map(|delivery| delivery.chain.as_mut());
    chains.for_each(|chain| chain.steps = last.unwrap_or(chain.step));
}

fn assemble(
    look: &Look,
    found: &Found,
    deliveries: Vec<DeliveryReport>,
    acknowledged: Vec<Taken>,
    fence_count: u32,
) -> MarkReport {
    let holds = found.holds();
    let state = match found.mark.settled {
        Some((how, _)) => how.as_str(),
        None if holds.is_empty() => "open",
        None => "held",
    };
    MarkReport {
        view: look.view(),
        in_journal: found.in_journal,
        mark: found.mark.clone(),
        state,
        holds,
        held: None,
        fence_count,
        deliveries,
        damaged: Vec::new(),
        acknowledged,
    }
}

impl Found {
    /// The holds as this controller knows them. Whether the mark of another journal is held is not known here; one that
    /// stands in the register was not when it was written.
    pub(super) fn holds(&self) -> Vec<Hold> {
        if self.in_journal { policy::doubts(&self.mark) } else { Vec::new() }
    }
}

impl From<&Acknowledgement> for Taken {
    fn from(taken: &Acknowledgement) -> Self {
        Self { route: taken.route.clone(), at: taken.at, by: taken.by.clone() }
    }
}

impl ChainReport {
    fn of(delivery: &Delivery) -> Option<Self> {
        let (step, waits) = (delivery.chain?, delivery.waits_in_chain());
        Some(Self {
            step: step.link.step,
            steps: step.link.step,
            timeout: step.link.timeout.as_secs(),
            waits,
            since: step.since().filter(|_| !waits),
            until: step.until,
            left: step.left.map(|left| left.as_secs()),
            exhausted_at: step.exhausted_at,
        })
    }
}

impl From<Delivery> for DeliveryReport {
    fn from(d: Delivery) -> Self {
        Self {
            chain: ChainReport::of(&d),
            next_due: Some(d.next_due).filter(|_| d.state.may_be_sent()),
            body: String::from_utf8_lossy(&d.body).into_owned(),
            route: d.route,
            required: d.required,
            state: d.state,
            attempts: d.attempts,
            ambiguous: d.ambiguous,
            last: d.last,
            reference: d.reference,
            ended_at: d.ended_at,
        }
    }
}
