//! Sums up the rows of the history one by one: of a long history only the figures of the report are kept. Pure.

use std::collections::{BTreeMap, BTreeSet};

use journal::HistoryRow;
use marks::id::MarkId;
use marks::mark::Settlement;
use marks::time::Timestamp;
use serde::Serialize;

use super::spans::{Stretches, Troubles};

/// So many causes are kept of each of the slowest.
const CAUSES: usize = 4;
/// What makes a mark slow, in the words of the history.
const SLOW: [&str; 7] =
    ["held", "not-accepted", "refused", "escalated", "exhausted", "interrupted", "quarantined"];
/// Actors that are programs.
const MACHINES: [&str; 4] = ["nova-host-alerter", "fence_mark", "operator", "api"];
/// Decisions of people, also where they came by the register.
const DECIDED: [&str; 4] = ["paused", "resumed", "maintenance-began", "maintenance-ended"];

/// A line of the history for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// When.
    pub at: Timestamp,
    /// The word.
    pub event: String,
    /// The host or the route that it is about.
    pub about: String,
    /// Who did it.
    pub actor: String,
    /// The details and the reason.
    pub detail: String,
    /// How many such lines there were at once.
    pub count: usize,
}

/// What happened in some days.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub(super) stretches: Stretches,
    pub(super) troubles: Troubles,
    /// Marks that a route refused.
    pub(super) refused: BTreeSet<String>,
    /// Fencings of outages that had a mark already.
    pub(super) duplicates: usize,
    /// The first sentences of each of the slowest marks that say something new.
    pub(super) causes: BTreeMap<MarkId, Vec<String>>,
    /// What ended without an acknowledgement, and by whom.
    pub(super) ended: Vec<Event>,
    /// What people did.
    pub(super) operators: Vec<Event>,
    /// When the cluster lost the host of a mark.
    pub(super) lost: BTreeMap<MarkId, Timestamp>,
}

impl History {
    /// Empty; causes are kept of these marks alone.
    pub(super) fn of(slowest: impl Iterator<Item = MarkId>) -> Self {
        Self { causes: slowest.map(|mark| (mark, Vec::new())).collect(), ..Self::default() }
    }

    /// The next row, in the order of writing.
    pub fn take(&mut self, row: &HistoryRow) {
        let is_end = is_end(row);
        self.stretches.take(row);
        self.troubles.take(row, is_end);
        match (row.event.as_str(), &row.mark) {
            ("refused", Some(mark)) => drop(self.refused.insert(mark.clone())),
            ("fenced-again", _) => self.duplicates += 1,
            _ => self.take_loss(row),
        }
        self.take_cause(row);
        if is_end {
            add(&mut self.ended, row);
        }
        if !MACHINES.contains(&row.actor.as_str()) || DECIDED.contains(&row.event.as_str()) {
            add(&mut self.operators, row);
        }
    }

    /// The row, if it says when the cluster lost a host.
    pub(super) fn take_loss(&mut self, row: &HistoryRow) {
        let mark = row.mark.as_deref().filter(|_| row.event == "lost");
        self.lost.extend(mark.and_then(|mark| MarkId::parse(mark).ok()).map(|mark| (mark, row.at)));
    }

    fn take_cause(&mut self, row: &HistoryRow) {
        if !SLOW.contains(&row.event.as_str()) {
            return;
        }
        let mark = row.mark.as_deref().and_then(|mark| MarkId::parse(mark).ok());
        let Some(known) = mark.and_then(|mark| self.causes.get_mut(&mark)) else { return };
        let route = row.route.as_ref().map(|route| format!(" ({route})")).unwrap_or_default();
        let cause = format!("{}{route}: {}", row.event, row.detail);
        if known.len() < CAUSES && !known.contains(&cause) {
            known.push(cause);
        }
    }
}

/// One line for what was done to many at once: the same word by the same person at the same time for the same reason.
fn add(events: &mut Vec<Event>, row: &HistoryRow) {
    let is_same = |event: &&mut Event| {
        event.at == row.at
            && event.event == row.event
            && event.actor == row.actor
            && event.detail == row.detail
    };
    match events.last_mut().filter(is_same) {
        Some(event) => event.count += 1,
        None => events.push(Event {
            at: row.at,
            event: row.event.clone(),
            about: row.node.clone().or_else(|| row.route.clone()).unwrap_or_default(),
            actor: row.actor.clone(),
            detail: row.detail.clone(),
            count: 1,
        }),
    }
}

/// Whether a mark, or its way to a route, ended without an acknowledgement.
fn is_end(row: &HistoryRow) -> bool {
    match row.event.as_str() {
        "settled" | "settled-elsewhere" => row.outcome.as_deref() != Some(Settlement::Acknowledged.as_str()),
        event => matches!(event, "dismissed" | "cancelled" | "expired"),
    }
}
