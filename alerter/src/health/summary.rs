//! Sums up the checks. Pure: the time is an argument.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::check::Check;
use crate::moment::Moment;

/// The words of the specification and of the IETF's draft, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// All is well.
    Pass,
    /// It works, but somebody should check it.
    Warn,
    /// It does not work.
    Fail,
}

impl Status {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// The last result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its status.
    pub status: Status,
    /// Why, in a sentence; none where it passed.
    pub output: Option<String>,
    /// When. Its age is counted by the monotonic clock: a clock that is set makes nothing old.
    pub at: Moment,
}

impl Item {
    /// Whether the result is older than `ttl`; never, without one.
    pub(super) fn is_expired(&self, now: Instant, ttl: Option<Duration>) -> bool {
        ttl.is_some_and(|ttl| now.saturating_duration_since(self.at.instant) > ttl)
    }
}

/// A check in the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Its status.
    pub status: Status,
    /// When that was found.
    pub at: Moment,
    /// Why; there is always one where it does not pass.
    pub output: Option<String>,
}

/// The whole answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The worst of all checks; `pass` if there is no result yet.
    pub status: Status,
    /// Each of them.
    pub checks: BTreeMap<Check, Shown>,
}

const EXPIRED: &str = "this check has had no result for longer than ttl: check with `nova-host-alerter status` whether the alerter still works";

/// Sums up: nothing known passes; what has expired is unknown, which is a warning, and a failure where all of it has.
pub fn sum_up(items: &BTreeMap<Check, Item>, now: Instant, ttl: Option<Duration>) -> Report {
    let all_expired = items.values().all(|item| item.is_expired(now, ttl));
    let unknown = if all_expired { Status::Fail } else { Status::Warn };
    let shown = |item: &Item| match item.is_expired(now, ttl) {
        false => Shown { status: item.status, at: item.at, output: item.output.clone() },
        true => Shown { status: unknown, at: item.at, output: Some(expired(item)) },
    };
    let checks: BTreeMap<Check, Shown> =
        items.iter().map(|(check, item)| (check.clone(), shown(item))).collect();
    let status = checks.values().map(|shown| shown.status).max().unwrap_or(Status::Pass);
    Report { status, checks }
}

fn expired(item: &Item) -> String {
    match &item.output {
        None => EXPIRED.to_owned(),
        Some(last) => format!("{EXPIRED}; the last result was {}: {last}", item.status.as_str()),
    }
}
