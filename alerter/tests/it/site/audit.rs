//! The audit after every scenario: every fenced host reported, once, the same id and bytes, in order, and nothing sent that
//! was not fenced.

use std::collections::{BTreeMap, BTreeSet};

use marks::id::MarkId;
use marks::time::Timestamp;

use super::{Notified, ROUTES};

/// Clocks of controllers differ by less.
const SKEW: i64 = 5;

/// A host was really down, and fenced.
#[derive(Clone, Debug)]
pub(crate) struct Outage {
    pub(crate) host: &'static str,
    pub(crate) began: Timestamp,
    /// When the host was connected again.
    pub(crate) ended: Option<Timestamp>,
    /// The ids that marks of it may have: a message with one of these is about it, whatever its time.
    pub(crate) ids: BTreeSet<MarkId>,
}

impl Outage {
    /// Whether the time in a message lies in it, as far as clocks agree.
    fn contains(&self, notified: &Notified, skew: i64) -> bool {
        let after = notified.failure_time >= self.began.seconds() - skew;
        let before = self.ended.is_none_or(|end| notified.failure_time <= end.seconds() + skew);
        self.host == notified.node && after && before
    }
}

/// What is wrong, one sentence each; clocks differ by less than `skew` seconds.
pub(super) fn complaints(outages: &[Outage], notified: &[Notified], skew: i64) -> Vec<String> {
    let of = |said: &Notified| outage_of(outages, said, skew + SKEW);
    let mut wrong = Vec::new();
    for said in notified.iter().filter(|said| of(said).is_none()) {
        wrong.push(format!("{} was reported by {} and was not fenced then", said.node, said.by));
    }
    for (rank, outage) in outages.iter().enumerate() {
        let of_it: Vec<&Notified> = notified.iter().filter(|said| of(said) == Some(rank)).collect();
        wrong.extend(about(outage, &of_it));
    }
    wrong.extend(ROUTES.iter().filter_map(|route| disorder(notified, route, of)));
    wrong
}

/// The outage that a message is about: the one whose id it has, else of two that touch the one whose beginning is nearer. One
/// that says a time when its outage was not, is about none.
fn outage_of(outages: &[Outage], notified: &Notified, skew: i64) -> Option<usize> {
    let ranked = || outages.iter().enumerate();
    let of_id = ranked().find(|(_, outage)| outage.ids.iter().any(|id| id.to_string() == notified.id));
    let fitting = |outage: &Outage| outage.contains(notified, skew);
    match of_id {
        Some((rank, outage)) => fitting(outage).then_some(rank),
        None => {
            let near = ranked().filter(|(_, outage)| fitting(outage));
            near.min_by_key(|(_, o)| notified.failure_time.abs_diff(o.began.seconds())).map(|(rank, _)| rank)
        }
    }
}

/// A route was not notified of an outage.
pub(super) fn not_notified(outage: &Outage, route: &str) -> String {
    format!("{} was fenced at {} and {route} was not notified", outage.host, outage.began)
}

fn about(outage: &Outage, notified: &[&Notified]) -> Vec<String> {
    let host = outage.host;
    let mut wrong = Vec::new();
    for route in ROUTES {
        match notified.iter().filter(|said| said.route == route).count() {
            1 => {}
            0 => wrong.push(not_notified(outage, route)),
            n => wrong.push(format!("{host} was sent {n} times to {route}")),
        }
    }
    let ids: BTreeSet<&str> = notified.iter().map(|said| said.id.as_str()).collect();
    let bodies: BTreeSet<&[u8]> = notified.iter().map(|said| said.body.as_slice()).collect();
    if ids.len() > 1 {
        wrong.push(format!("one outage of {host} was sent under {} ids", ids.len()));
    }
    if bodies.len() > ids.len() {
        wrong.push(format!("{host} was sent under one id in different bytes"));
    }
    wrong
}

/// The outages of one host reach a route in the order in which they happened.
fn disorder(notified: &[Notified], route: &str, of: impl Fn(&Notified) -> Option<usize>) -> Option<String> {
    let mut newest: BTreeMap<&str, usize> = BTreeMap::new();
    for said in notified.iter().filter(|said| said.route == route) {
        let Some(rank) = of(said) else { continue };
        let last = newest.entry(&said.node).or_insert(rank);
        if rank < *last {
            return Some(format!("{} was sent to {route} after a later outage", said.node));
        }
        *last = rank;
    }
    None
}
