//! What follows from all that is known of the checks. Pure: the time is given.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::check::Check;
use crate::moment::Moment;

/// The words of the specification and of the IETF's draft, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// All is well.
    Pass,
    /// It works, and somebody should look.
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

/// What was said last of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// How it was.
    pub status: Status,
    /// Why, in a sentence; none where it passed.
    pub output: Option<String>,
    /// When. Its age is counted by the monotonic clock: a clock that is set makes nothing old.
    pub at: Moment,
}

impl Item {
    /// Whether nothing was said of it for longer than `ttl`; never, without one.
    pub(super) fn is_expired(&self, now: Instant, ttl: Option<Duration>) -> bool {
        ttl.is_some_and(|ttl| now.saturating_duration_since(self.at.instant) > ttl)
    }
}

/// What is answered of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// How it is.
    pub status: Status,
    /// When that was said.
    pub at: Moment,
    /// Why; there is always one where it does not pass.
    pub output: Option<String>,
}

/// The whole answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The worst of all checks; `pass` where nothing was said yet.
    pub status: Status,
    /// Each of them.
    pub checks: BTreeMap<Check, Shown>,
}

const EXPIRED: &str = "nothing was heard of this for longer than ttl, so nothing is known of it: look whether the alerter still works, with `nova-host-alerter status`";

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
        Some(last) => format!("{EXPIRED}; the last word was {}: {last}", item.status.as_str()),
    }
}
