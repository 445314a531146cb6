//! The numbers of a report: what became of the outages of some days. Pure: the facts are an argument.

use std::collections::{BTreeMap, BTreeSet};

use marks::delivery::{Delivery, TAKEN, is_step};
use marks::mark::{MarkRow, Settlement};
use marks::recovery::Recovery;
use marks::time::Timestamp;
use serde::Serialize;

use super::downtime::{Downtime, downtimes};
use super::history::{Event, History};
use super::percentile::Percentiles;
use super::spans::{Held, Trouble, between};
use crate::surface::timeline::Episode;

/// So many of the slowest marks are named.
const SLOWEST: usize = 10;

/// What happened in some days, as the journal has it.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Marks of hosts that failed in these days, with their deliveries.
    pub outages: Vec<(MarkRow, Vec<Delivery>)>,
    /// The figures of the history of these days.
    pub history: History,
    /// What Nova said of the instances, for each mark that it was asked about.
    pub recoveries: Vec<(MarkRow, Recovery)>,
    /// Damaged rows of any kind.
    pub damaged: usize,
}

impl Facts {
    /// The facts of these marks; their history is still to be read.
    pub fn of(outages: Vec<(MarkRow, Vec<Delivery>)>) -> Self {
        let history = History::of(slowest(&outages).into_iter().map(|(_, row)| row.id));
        Self { outages, history, recoveries: Vec::new(), damaged: 0 }
    }
}

/// All that a report says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Numbers {
    /// From when,
    pub from: Timestamp,
    /// and until when.
    pub to: Timestamp,
    /// Marks whose host failed in that time, by their state.
    pub outages: Outages,
    /// Marks that were held, and for how long.
    pub held: Held,
    /// Marks that a route refused for a while.
    pub parked: usize,
    /// Further fencings of outages that had a mark already: notified once.
    pub duplicates: usize,
    /// From the failure to the last required acknowledgement.
    pub acknowledged: Option<Percentiles>,
    /// The same for each route by itself.
    pub by_route: BTreeMap<String, Percentiles>,
    /// The slowest marks, and why.
    pub slowest: Vec<Slow>,
    /// Hosts with more than one outage, the worst first.
    pub repeated: Vec<Repeated>,
    /// Marks and deliveries that ended without an acknowledgement.
    pub ended: Vec<Event>,
    /// When routes did not accept.
    pub trouble: Vec<Trouble>,
    /// What people did.
    pub operators: Vec<Event>,
    /// How long instances were down, for each host and month; empty where Nova is not asked.
    pub downtime: Vec<Downtime>,
    /// Damaged rows, which are not counted.
    pub damaged: usize,
}

/// Marks by their state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Outages {
    /// All of them.
    pub all: usize,
    /// Of so many hosts.
    pub hosts: usize,
    /// Every required route acknowledged.
    pub acknowledged: usize,
    /// Ended by an operator.
    pub dismissed: usize,
    /// Ended by a rule.
    pub cancelled: usize,
    /// Found too late.
    pub expired: usize,
    /// Not ended yet.
    pub open: usize,
}

/// One of the slowest marks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Slow {
    /// The host.
    pub host: String,
    /// The mark.
    pub mark: String,
    /// When the host failed.
    pub failed: Timestamp,
    /// How long it took, in milliseconds.
    pub took: u64,
    /// What delayed it, in the words of the history.
    pub causes: Vec<String>,
}

/// A host with several outages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Repeated {
    /// The host.
    pub host: String,
    /// How many.
    pub outages: usize,
}

/// The outages as they are drawn.
pub fn episodes(facts: &Facts) -> Vec<Episode> {
    let episode = |(row, deliveries): &(MarkRow, Vec<Delivery>)| {
        Episode::of(row, deliveries, facts.history.stretches.of(&row.id.to_string()))
    };
    facts.outages.iter().map(episode).collect()
}

impl Numbers {
    /// Counts what happened between two times.
    pub fn of(facts: &Facts, from: Timestamp, to: Timestamp) -> Self {
        let took = |(row, deliveries): &(MarkRow, Vec<Delivery>)| took(row, deliveries);
        Self {
            from,
            to,
            outages: outages(&facts.outages),
            held: facts.history.stretches.held(to),
            parked: facts.history.refused.len(),
            duplicates: facts.history.duplicates,
            acknowledged: Percentiles::of(facts.outages.iter().filter_map(took).collect()),
            by_route: by_route(&facts.outages),
            slowest: slow(facts),
            repeated: repeated(&facts.outages),
            ended: facts.history.ended.clone(),
            trouble: facts.history.troubles.all(),
            operators: facts.history.operators.clone(),
            downtime: downtimes(&facts.recoveries, &facts.history.lost),
            damaged: facts.damaged,
        }
    }
}

fn outages(all: &[(MarkRow, Vec<Delivery>)]) -> Outages {
    let hosts: BTreeSet<String> = all.iter().map(|(row, _)| row.node.as_str().to_ascii_lowercase()).collect();
    let mut found = Outages { all: all.len(), hosts: hosts.len(), ..Outages::default() };
    for (row, _) in all {
        *match row.settled.map(|(how, _)| how) {
            Some(Settlement::Acknowledged) => &mut found.acknowledged,
            Some(Settlement::Dismissed) => &mut found.dismissed,
            Some(Settlement::Cancelled) => &mut found.cancelled,
            Some(Settlement::Expired) => &mut found.expired,
            None => &mut found.open,
        } += 1;
    }
    found
}

/// The time to the last required acknowledgement; for a mark that only the register knows, to its end.
fn took(row: &MarkRow, deliveries: &[Delivery]) -> Option<u64> {
    let (_, settled) = row.settled.filter(|(how, _)| *how == Settlement::Acknowledged)?;
    let taken = deliveries.iter().filter(|delivery| delivery.required).filter_map(taken_at).max();
    Some(between(row.failure_time, taken.unwrap_or(settled)))
}

fn taken_at(delivery: &Delivery) -> Option<Timestamp> {
    let last = delivery.last.as_ref()?;
    let is_taken =
        delivery.state == marks::delivery::State::Acknowledged && TAKEN.contains(&last.kind.as_str());
    delivery.ended_at.filter(|_| is_taken)
}

fn by_route(all: &[(MarkRow, Vec<Delivery>)]) -> BTreeMap<String, Percentiles> {
    let mut times: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (row, deliveries) in all {
        for delivery in deliveries {
            if let Some(at) = taken_at(delivery).filter(|_| !is_step(&delivery.route)) {
                times.entry(delivery.route.clone()).or_default().push(between(row.failure_time, at));
            }
        }
    }
    times.into_iter().filter_map(|(route, times)| Some((route, Percentiles::of(times)?))).collect()
}

fn slowest(outages: &[(MarkRow, Vec<Delivery>)]) -> Vec<(u64, &MarkRow)> {
    let timed = outages.iter().filter_map(|(row, deliveries)| Some((took(row, deliveries)?, row)));
    let mut timed: Vec<(u64, &MarkRow)> = timed.collect();
    timed.sort_by_key(|(took, row)| (std::cmp::Reverse(*took), row.id));
    timed.truncate(SLOWEST);
    timed
}

fn slow(facts: &Facts) -> Vec<Slow> {
    let slow = slowest(&facts.outages).into_iter().map(|(took, row)| Slow {
        host: row.node.to_string(),
        mark: row.id.to_string(),
        failed: row.failure_time,
        took,
        causes: facts.history.causes.get(&row.id).cloned().unwrap_or_default(),
    });
    slow.collect()
}

fn repeated(all: &[(MarkRow, Vec<Delivery>)]) -> Vec<Repeated> {
    let mut counts: BTreeMap<String, (String, usize)> = BTreeMap::new();
    for (row, _) in all {
        let name = row.node.to_string();
        counts.entry(name.to_ascii_lowercase()).or_insert((name, 0)).1 += 1;
    }
    let mut found: Vec<Repeated> = counts
        .into_values()
        .filter(|(_, outages)| *outages > 1)
        .map(|(host, outages)| Repeated { host, outages })
        .collect();
    found.sort_by(|a, b| b.outages.cmp(&a.outages).then_with(|| a.host.cmp(&b.host)));
    found
}
