//! The audit after every scenario: every fenced host told, once, the same id and bytes, in order, and nothing told that
//! was not fenced.

use std::collections::{BTreeMap, BTreeSet};

use marks::id::MarkId;
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
    /// The ids that marks of it may have: whatever clocks say, a message with one of these is about it.
    pub(crate) ids: BTreeSet<MarkId>,
}

impl Outage {
    /// Whether a message says of it when it was, as far as clocks agree.
    fn contains(&self, told: &Told, skew: i64) -> bool {
        let after = told.failure_time >= self.began.seconds() - skew;
        let before = self.ended.is_none_or(|end| told.failure_time <= end.seconds() + skew);
        self.host == told.node && after && before
    }
}

/// What is wrong, one sentence each; clocks differ by less than `skew` seconds.
pub(super) fn complaints(outages: &[Outage], told: &[Told], skew: i64) -> Vec<String> {
    let of = |said: &Told| outage_of(outages, said, skew + SKEW);
    let mut wrong = Vec::new();
    for said in told.iter().filter(|said| of(said).is_none()) {
        wrong.push(format!("{} was told by {} and was not fenced then", said.node, said.by));
    }
    for (rank, outage) in outages.iter().enumerate() {
        let of_it: Vec<&Told> = told.iter().filter(|said| of(said) == Some(rank)).collect();
        wrong.extend(about(outage, &of_it));
    }
    wrong.extend(ROUTES.iter().filter_map(|route| disorder(told, route, of)));
    wrong
}

/// The outage that a message is about: the one whose id it has, else of two that touch the one whose beginning is nearer. One
/// that says a time when its outage was not, is about none.
fn outage_of(outages: &[Outage], told: &Told, skew: i64) -> Option<usize> {
    let ranked = || outages.iter().enumerate();
    let of_id = ranked().find(|(_, outage)| outage.ids.iter().any(|id| id.to_string() == told.id));
    let fitting = |outage: &Outage| outage.contains(told, skew);
    match of_id {
        Some((rank, outage)) => fitting(outage).then_some(rank),
        None => {
            let near = ranked().filter(|(_, outage)| fitting(outage));
            near.min_by_key(|(_, o)| told.failure_time.abs_diff(o.began.seconds())).map(|(rank, _)| rank)
        }
    }
}

/// What a route was not told of an outage.
pub(super) fn untold(outage: &Outage, route: &str) -> String {
    format!("{} was fenced at {} and {route} was not told", outage.host, outage.began)
}

fn about(outage: &Outage, told: &[&Told]) -> Vec<String> {
    let host = outage.host;
    let mut wrong = Vec::new();
    for route in ROUTES {
        match told.iter().filter(|said| said.route == route).count() {
            1 => {}
            0 => wrong.push(untold(outage, route)),
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
fn disorder(told: &[Told], route: &str, of: impl Fn(&Told) -> Option<usize>) -> Option<String> {
    let mut newest: BTreeMap<&str, usize> = BTreeMap::new();
    for said in told.iter().filter(|said| said.route == route) {
        let Some(rank) = of(said) else { continue };
        let last = newest.entry(&said.node).or_insert(rank);
        if rank < *last {
            return Some(format!("{} was told to {route} after a later outage", said.node));
        }
        *last = rank;
    }
    None
}
