//! What the reading commands say of a mark, for people and for scripts alike.

use std::collections::{BTreeMap, BTreeSet};

use journal::{Damage, Done, HeldMark, HistoryRow, Journal, Recent, Rows};
use marks::delivery::{Delivery, State};
use marks::fencing::Fencing;
use marks::id::MarkId;
use marks::mark::MarkRow;
use marks::register::Acknowledgement;
use marks::time::Timestamp;
use serde::{Serialize, Serializer};

use super::delivery::DeliveryReport;
use super::merged::{self, Found, Records, RegisterView};
use crate::outage::Moment;
use crate::policy::Hold;
use crate::problem;

/// One mark as it is known here.
#[derive(Debug)]
pub(super) struct MarkReport {
    /// What the journal has of it; of a mark that only the register knows, no more than the mark.
    pub(super) kept: Recent,
    /// `cluster`, or `local view`: this controller's word alone.
    pub(super) view: &'static str,
    /// Whether this controller's journal knows it; else only the register does.
    pub(super) in_journal: bool,
    pub(super) fence_count: u32,
    /// The routes of which the register says that they took it.
    pub(super) acknowledged: Vec<Taken>,
    /// No daemon runs here: what holds it is what the last one that did has said.
    pub(super) as_of_last_run: bool,
}

/// The same for programs.
#[derive(Serialize)]
struct MarkLine<'a> {
    view: &'static str,
    in_journal: bool,
    #[serde(flatten)]
    mark: &'a MarkRow,
    state: &'static str,
    holds: Vec<Hold>,
    /// What the policy says of the first of its holds; absent where it holds nothing.
    held: Option<HeldLine<'a>>,
    fence_count: u32,
    deliveries: Vec<DeliveryReport<'a>>,
    damaged: &'a [Damage],
    acknowledged: &'a [Taken],
}

/// Why the policy holds a mark.
#[derive(Serialize)]
struct HeldLine<'a> {
    /// One sentence.
    why: &'a str,
    since: Timestamp,
    /// When it ends by itself, where that is known.
    until: Option<Timestamp>,
    as_of_last_run: bool,
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
pub(super) fn unfinished(records: Records<'_>, rows: Vec<MarkRow>) -> Done<(Vec<MarkReport>, Vec<Damage>)> {
    let found = maybe_unfinished(records, rows)?;
    let Rows { sound, damaged } = records.here(Journal::open_deliveries)?;
    let mut holds = records.here(Journal::holds)?;
    let register = records.register;
    let mut deliveries: BTreeMap<MarkId, Vec<Delivery>> = BTreeMap::new();
    sound.into_iter().for_each(|delivery| deliveries.entry(delivery.mark).or_default().push(delivery));
    let mut report = |found: &Found| {
        let mark = found.mark.clone();
        let is_its = |damage: &&Damage| damage.key.starts_with(&mark.id.to_string());
        let kept = Recent {
            deliveries: deliveries.remove(&mark.id).unwrap_or_default(),
            damaged: damaged.iter().filter(is_its).cloned().collect(),
            held: holds.remove(&mark.id).filter(|_| mark.settled.is_none()),
            mark,
        };
        MarkReport::of(register, found, kept, if found.in_journal { 0 } else { fencings(register, found) })
    };
    let mut reports: Vec<MarkReport> = found.iter().map(&mut report).collect();
    // The register may say of some that they have ended elsewhere.
    reports.retain(MarkReport::is_unfinished);
    Ok((reports, damaged))
}

/// Marks of which something may still be to be done, oldest first.
///
/// # Errors
/// As any read.
pub(super) fn maybe_unfinished(records: Records<'_>, rows: Vec<MarkRow>) -> Done<Vec<Found>> {
    let here: BTreeSet<MarkId> = rows.iter().map(|row| row.id).collect();
    records.marks(rows, |mark| mark.settled.is_none() || here.contains(&mark.id))
}

/// Collects what belongs to one mark.
///
/// # Errors
/// As any read.
pub(super) fn report(Records { journal, register }: Records<'_>, found: &Found) -> Done<MarkReport> {
    let mark = found.mark.clone();
    let (kept, count) = match journal.filter(|_| found.in_journal) {
        Some(journal) => (journal.with_deliveries(mark)?, journal.fence_count(found.mark.id)?),
        None => {
            let kept = Recent { mark, deliveries: Vec::new(), damaged: Vec::new(), held: None };
            (kept, fencings(register, found))
        }
    };
    Ok(MarkReport::of(register, found, kept, count))
}

/// How many fencings the register has of a mark that it alone knows.
fn fencings(register: &RegisterView, found: &Found) -> u32 {
    register.first_fencing(found.mark.id).map_or(0, |_| 1)
}

impl MarkReport {
    fn of(register: &RegisterView, found: &Found, mut kept: Recent, fence_count: u32) -> Self {
        kept.deliveries.iter_mut().for_each(|delivery| merged::end_elsewhere(delivery, found, register));
        let acknowledged = register.acknowledged(found.mark.id).into_iter().map(Taken::from).collect();
        let (view, in_journal) = (register.view(), found.in_journal);
        Self { kept, view, in_journal, fence_count, acknowledged, as_of_last_run: false }
    }

    pub(super) fn is_unfinished(&self) -> bool {
        let Recent { mark, deliveries, damaged, .. } = &self.kept;
        let any_open = deliveries.iter().any(|delivery| !delivery.state.is_final());
        mark.settled.is_none() || any_open || !damaged.is_empty()
    }

    /// Whether the mark of another journal is held is not known here; one that stands in the register was not when it was written.
    pub(super) fn holds(&self) -> Vec<Hold> {
        if self.in_journal { problem::holds(&self.kept) } else { Vec::new() }
    }

    /// `open`, `held`, or how it was settled.
    pub(super) fn state(&self) -> &'static str {
        match self.kept.mark.settled {
            Some((how, _)) => how.as_str(),
            None if self.holds().is_empty() => "open",
            None => "held",
        }
    }

    /// Its state in one of the words that every surface uses: [`State::of_mark`].
    pub(super) fn stage(&self) -> State {
        match self.in_journal {
            true => problem::stage(&self.kept),
            false => State::of_mark(self.kept.mark.settled.map(|(how, _)| how), false, &[]),
        }
    }

    /// How many steps its chain has: as many as the last one says.
    pub(super) fn steps(&self) -> u32 {
        let steps = self.kept.deliveries.iter().filter_map(|delivery| delivery.chain);
        steps.map(|step| step.link.step).max().unwrap_or_default()
    }

    fn line(&self) -> MarkLine<'_> {
        let Recent { mark, deliveries, damaged, held } = &self.kept;
        let (as_of_last_run, steps) = (self.as_of_last_run, self.steps());
        MarkLine {
            view: self.view,
            in_journal: self.in_journal,
            mark,
            state: self.state(),
            holds: self.holds(),
            held: held.as_ref().map(|HeldMark { why, since, until, .. }| HeldLine {
                why,
                since: *since,
                until: *until,
                as_of_last_run,
            }),
            fence_count: self.fence_count,
            deliveries: deliveries.iter().map(|one| DeliveryReport::of(one, steps)).collect(),
            damaged,
            acknowledged: &self.acknowledged,
        }
    }
}

impl Serialize for MarkReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.line().serialize(serializer)
    }
}

impl From<&Acknowledgement> for Taken {
    fn from(taken: &Acknowledgement) -> Self {
        Self { route: taken.route.clone(), at: taken.at, by: taken.by.clone() }
    }
}
