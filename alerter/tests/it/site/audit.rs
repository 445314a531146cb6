//! The audit after every scenario: every fenced host told, once, the same id and bytes, in order, and nothing told that
//! was not fenced.

use std::collections::{BTreeMap, BTreeSet};

use marks::time::Timestamp;

use super::{ROUTES, Told};

/// Clocks of controllers differ by less.
const SKEW: i64 = 5;

/// A host was really down, and fenced.
#[derive(Clone, Debug)]
pub(crate) struct Outage {
    pub(crate) host: &'static str,
    pub(crate) began: Timestamp,
    /// When the host was connected again.
    pub(crate) ended: Option<Timestamp>,
}

impl Outage {
    fn contains(&self, told: &Told) -> bool {
        let after = told.failure_time >= self.began.seconds() - SKEW;
        let before = self.ended.is_none_or(|end| told.failure_time <= end.seconds() + SKEW);
        self.host == told.node && after && before
    }
}

/// What is wrong, one sentence each.
pub(super) fn complaints(outages: &[Outage], told: &[Told]) -> Vec<String> {
    let mut wrong = Vec::new();
    for said in told.iter().filter(|said| outage_of(outages, said).is_none()) {
        wrong.push(format!("{} was told by {} and was not fenced then", said.node, said.by));
    }
    for (rank, outage) in outages.iter().enumerate() {
        let of_it: Vec<&Told> = told.iter().filter(|said| outage_of(outages, said) == Some(rank)).collect();
        wrong.extend(about(outage, &of_it));
    }
    wrong.extend(ROUTES.iter().filter_map(|route| disorder(outages, told, route)));
    wrong
}

/// The outage that a message is about: of two that touch, the one whose beginning is nearer.
fn outage_of(outages: &[Outage], told: &Told) -> Option<usize> {
    let fitting = outages.iter().enumerate().filter(|(_, outage)| outage.contains(told));
    fitting.min_by_key(|(_, o)| told.failure_time.abs_diff(o.began.seconds())).map(|(rank, _)| rank)
}

fn about(outage: &Outage, told: &[&Told]) -> Vec<String> {
    let host = outage.host;
    let mut wrong = Vec::new();
    for route in ROUTES {
        match told.iter().filter(|said| said.route == route).count() {
            1 => {}
            0 => wrong.push(format!("{host} was fenced at {} and {route} was not told", outage.began)),
            n => wrong.push(format!("{host} was told {n} times to {route}")),
        }
    }
    let ids: BTreeSet<&str> = told.iter().map(|said| said.id.as_str()).collect();
    let bodies: BTreeSet<&[u8]> = told.iter().map(|said| said.body.as_slice()).collect();
    if ids.len() > 1 {
        wrong.push(format!("one outage of {host} was told under {} ids", ids.len()));
    }
    if bodies.len() > ids.len() {
        wrong.push(format!("{host} was told under one id in different bytes"));
    }
    wrong
}

/// The outages of one host reach a route in the order in which they happened.
fn disorder(outages: &[Outage], told: &[Told], route: &str) -> Option<String> {
    let mut newest: BTreeMap<&str, usize> = BTreeMap::new();
    for said in told.iter().filter(|said| said.route == route) {
        let Some(rank) = outage_of(outages, said) else { continue };
        let last = newest.entry(&said.node).or_insert(rank);
        if rank < *last {
            return Some(format!("{} was told to {route} after a later outage", said.node));
        }
        *last = rank;
    }
    None
}
