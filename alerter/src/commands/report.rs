//! What the reading commands say of a mark, for people and for scripts alike.

use std::collections::{BTreeMap, BTreeSet};

use journal::{Damage, HeldMark, HistoryRow, Journal, JournalError, Rows};
use marks::delivery::{Delivery, State};
use marks::fencing::Fencing;
use marks::id::MarkId;
use marks::mark::MarkRow;
use marks::register::{Acknowledgement, Cause};
use marks::time::Timestamp;
use serde::Serialize;

use super::delivery::{ChainReport, DeliveryReport};
use super::merged::{self, Found, RegisterView};
use crate::outage::{Moment, Tries};
use crate::policy::{self, Hold};
use crate::problem::{DeliverySight, Finding};

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
    #[serde(skip)]
    pub(super) cause: Cause,
    pub(super) since: Timestamp,
    /// When it ends by itself, where that is known.
    pub(super) until: Option<Timestamp>,
    /// No daemon runs here: it is what the last one that did has said.
    pub(super) as_of_last_run: bool,
}

/// A route that took a mark, as the register says.
#[derive(Debug, Serialize)]
pub(super) struct Taken {
    pub(super) route: String,
    pub(super) at: Timestamp,
    /// The controller whose alerter had notified it.
    pub(super) by: String,
}

/// A mark's whole story.
#[derive(Debug, Serialize)]
pub(super) struct Story {
    #[serde(flatten)]
    pub(super) report: MarkReport,
    /// Who vouches for it.
    pub(super) vouched: String,
    pub(super) fencings: Vec<Fencing>,
    pub(super) history: Vec<HistoryRow>,
    /// The outage in the order of time.
    pub(super) timeline: Vec<Moment>,
}

/// What is still to be done, oldest first: marks that are not settled, and settled ones that a route which is not required
/// has not taken yet; and the damaged rows of deliveries. `rows` are the journal's, as [`Journal::unfinished_marks`] gives
/// them. A hundred thousand marks take as few questions as one, so that ended deliveries and the number of fencings are not in it.
///
/// # Errors
/// As any read.
pub(super) fn unfinished(
    journal: Option<&Journal>,
    rows: Vec<MarkRow>,
    register: &RegisterView,
) -> Result<(Vec<MarkReport>, Vec<Damage>), JournalError> {
    let found = maybe_unfinished(journal, rows, register)?;
    let Some(journal) = journal else {
        return Ok((found.iter().map(|found| elsewhere(register, found)).collect(), Vec::new()));
    };
    let (kept, mut holds) = (journal.open_deliveries()?, journal.holds()?);
    let mut deliveries: BTreeMap<MarkId, Vec<Delivery>> = BTreeMap::new();
    kept.sound.into_iter().for_each(|delivery| deliveries.entry(delivery.mark).or_default().push(delivery));
    let mut reports = Vec::new();
    for found in &found {
        let id = found.mark.id;
        let is_its = |damage: &&Damage| damage.key.starts_with(&id.to_string());
        let rows = Rows {
            sound: deliveries.remove(&id).unwrap_or_default(),
            damaged: kept.damaged.iter().filter(is_its).cloned().collect(),
        };
        let report = match found.in_journal {
            true => here(register, found, rows, 0, holds.remove(&id)),
            false => elsewhere(register, found),
        };
        reports.push(report);
    }
    // The register may say of some that they have ended elsewhere.
    reports.retain(MarkReport::is_unfinished);
    Ok((reports, kept.damaged))
}

/// Marks of which something may still be to be done, oldest first.
///
/// # Errors
/// As any read.
pub(super) fn maybe_unfinished(
    journal: Option<&Journal>,
    rows: Vec<MarkRow>,
    register: &RegisterView,
) -> Result<Vec<Found>, JournalError> {
    let here: BTreeSet<MarkId> = rows.iter().map(|row| row.id).collect();
    merged::marks(journal, rows, register, |mark| mark.settled.is_none() || here.contains(&mark.id))
}

impl MarkReport {
    pub(super) fn is_unfinished(&self) -> bool {
        let is_open = |delivery: &DeliveryReport| !delivery.state.is_final();
        self.mark.settled.is_none() || self.deliveries.iter().any(is_open) || !self.damaged.is_empty()
    }

    /// What the policy holds comes behind the doubts about the mark itself.
    fn add_hold(&mut self, held: Option<HeldMark>) {
        let Some(held) = held else { return };
        self.holds.extend(held.words.iter().filter_map(|word| Hold::parse(word)));
        self.state = "held";
        let HeldMark { why, cause, since, until, .. } = held;
        self.held = Some(HeldReport { why, cause, since, until, as_of_last_run: false });
    }

    /// Says of what the policy holds whether it is of a daemon that does not run any more.
    pub(super) fn is_of_former_daemon(&mut self, is_former: bool) {
        if let Some(held) = &mut self.held {
            held.as_of_last_run = is_former;
        }
    }

    /// The first of what holds it. A doubt stands in the mark's own row, and the policy has no say in it.
    pub(super) fn hold(&self) -> Option<Finding> {
        let first = *self.holds.first()?;
        let held = self.held.as_ref().filter(|_| !first.is_doubt());
        let by_policy =
            |held: &HeldReport| Finding::held(first, &held.why, &held.cause, held.since, held.until);
        Some(held.map_or_else(|| Finding::doubt(first, self.mark.made_at), by_policy))
    }

    /// Its state in one of the words that every surface uses: [`State::of_mark`].
    pub(super) fn stage(&self) -> State {
        if let Some((how, _)) = self.mark.settled {
            return State::at_the_end(how, true);
        }
        let sight = |delivery: &DeliveryReport| (delivery.state, delivery.sight().waits_in_chain);
        let sound = self.deliveries.iter().map(sight);
        let damaged = self.damaged.iter().map(|_| (State::Quarantined, false));
        State::of_open(!self.holds.is_empty(), sound.chain(damaged))
    }

    /// Whether one of the routes can still deliver it.
    pub(super) fn can_be_notified_by(&self, routes: &BTreeSet<String>) -> bool {
        self.deliveries.iter().any(|delivery| !delivery.state.is_final() && routes.contains(&delivery.route))
    }
}

impl From<&DeliveryReport> for Tries {
    fn from(delivery: &DeliveryReport) -> Self {
        Self {
            route: delivery.route.clone(),
            state: delivery.state,
            attempts: delivery.attempts,
            last_at: delivery.last.as_ref().map(|last| last.at),
            ended_at: delivery.ended_at,
        }
    }
}

impl DeliveryReport {
    /// As the problems of marks are worked out from.
    pub(super) fn sight(&self) -> DeliverySight<'_> {
        let has_own_wait =
            self.last.as_ref().zip(self.next_due).is_some_and(|(last, next_due)| next_due > last.at);
        DeliverySight {
            route: &self.route,
            state: self.state,
            is_rejected: self.state == State::Parked && has_own_wait,
            waits_in_chain: self.waits_in_chain(),
            exhausted_at: self.chain.as_ref().and_then(|chain| chain.exhausted_at),
            last: self.last.as_ref(),
        }
    }
}

/// Collects what belongs to one mark.
///
/// # Errors
/// As any read.
pub(super) fn report(
    journal: Option<&Journal>,
    register: &RegisterView,
    found: &Found,
) -> Result<MarkReport, JournalError> {
    let id = found.mark.id;
    let Some(journal) = journal.filter(|_| found.in_journal) else { return Ok(elsewhere(register, found)) };
    let (kept, count) = (journal.deliveries_of(id)?, journal.fence_count(id)?);
    let held = if found.mark.settled.is_none() { journal.hold_of(id)? } else { None };
    Ok(here(register, found, kept, count, held))
}

/// Of a mark that only the register knows.
fn elsewhere(register: &RegisterView, found: &Found) -> MarkReport {
    let count = register.first_fencing(found.mark.id).map_or(0, |_| 1);
    assemble(register, found, Vec::new(), count)
}

/// Of a mark of this journal.
fn here(
    register: &RegisterView,
    found: &Found,
    kept: Rows<Delivery>,
    fence_count: u32,
    held: Option<HeldMark>,
) -> MarkReport {
    let mut deliveries: Vec<DeliveryReport> = kept.sound.into_iter().map(DeliveryReport::from).collect();
    deliveries.iter_mut().for_each(|delivery| merged::end_elsewhere(delivery, found, register));
    count_steps(&mut deliveries);
    let mut report = assemble(register, found, deliveries, fence_count);
    report.add_hold(held.filter(|_| found.mark.settled.is_none()));
    MarkReport { damaged: kept.damaged, ..report }
}

/// The chain is as long as its last step says.
fn count_steps(deliveries: &mut [DeliveryReport]) {
    let last = deliveries.iter().filter_map(|delivery| delivery.chain.as_ref()).map(|chain| chain.step).max();
    let chains = deliveries.iter_mut().filter_map(|delivery| delivery.chain.as_mut());
    chains.for_each(|chain| chain.steps = last.unwrap_or(chain.step));
}

fn assemble(
    register: &RegisterView,
    found: &Found,
    deliveries: Vec<DeliveryReport>,
    fence_count: u32,
) -> MarkReport {
    let acknowledged: Vec<Taken> =
        register.acknowledged(found.mark.id).into_iter().map(Taken::from).collect();
    let holds = found.holds();
    let state = match found.mark.settled {
        Some((how, _)) => how.as_str(),
        None if holds.is_empty() => "open",
        None => "held",
    };
    MarkReport {
        view: register.view(),
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
