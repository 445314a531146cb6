//! Keeps the results of the checks, counts how often the state has changed, and sums up for each request.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use site::blanked;

use super::check::Check;
use super::summary::{Item, Report, Status, sum_up};
use crate::lock::lock;
use crate::moment::Moment;

/// A loop without a pass for so long is stalled: three times as long as it ever waits.
const STALLED: Duration = Duration::from_secs(90);
/// Work on the journal that takes so long is slow,
pub const SLOW: Duration = Duration::from_secs(10);
/// and work that takes so long hangs.
pub const STUCK: Duration = Duration::from_secs(30);
/// No output is longer, in characters.
const LONGEST: usize = 1024;

/// What an error means for a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: it does not concern the check.
    Unrelated,
    /// Something was lost that may come back: the first time is a warning, the next one in a row a failure.
    Lost(String),
    /// It has failed.
    Failed(String),
}

/// Every error counts, with its message.
pub fn any<E: fmt::Display>(error: &E) -> Fault {
    Fault::Failed(error.to_string())
}

/// The state of the process at a request.
#[derive(Clone, Copy, Debug)]
pub struct Pulse {
    /// The time.
    pub now: Moment,
    /// How long the journal's thread has been busy with one piece of work; none while it waits for one.
    pub store_busy: Option<Duration>,
}

/// The manager. All of it is in memory, and begins empty at a start and at a reload.
#[derive(Debug)]
pub struct Health(Mutex<Kept>);

#[derive(Debug)]
struct Kept {
    items: BTreeMap<Check, Item>,
    /// Checks whose last word was that something is lost.
    lost: BTreeSet<Check>,
    /// Checks that were counted as expired.
    expired: BTreeSet<Check>,
    /// How often the state has changed.
    changes: u64,
    /// Distinguishes the lives of the daemon: each counts from 0.
    life: u32,
    /// When the loop last completed a pass.
    passed: Instant,
}

impl Default for Health {
    fn default() -> Self {
        Self(Mutex::new(Kept::new()))
    }
}

impl Kept {
    fn new() -> Self {
        Self {
            items: BTreeMap::new(),
            lost: BTreeSet::new(),
            expired: BTreeSet::new(),
            changes: 0,
            life: fastrand::u32(..),
            passed: Instant::now(),
        }
    }

    /// A check that only warns does not fail, whatever is said of it.
    fn note(&mut self, check: Check, status: Status, output: Option<&str>, at: Moment) {
        let status = if check.may_fail() { status } else { status.min(Status::Warn) };
        let output = output.filter(|_| status != Status::Pass).map(plain);
        let is_same = |item: &Item| item.status == status && item.output == output;
        let was_expired = self.expired.remove(&check);
        if was_expired || !self.items.get(&check).is_some_and(is_same) {
            self.changes += 1;
        }
        self.lost.remove(&check);
        self.items.insert(check, Item { status, output, at });
    }

    fn note_lost(&mut self, check: Check, why: &str, at: Moment) {
        let status = if self.lost.contains(&check) { Status::Fail } else { Status::Warn };
        self.note(check.clone(), status, Some(why), at);
        self.lost.insert(check);
    }

    /// What only a request can show: that no result comes any more.
    fn feel(&mut self, pulse: Pulse) {
        let Pulse { now, store_busy } = pulse;
        let stands = now.instant.saturating_duration_since(self.passed);
        if self.items.contains_key(&Check::Drain) && stands > STALLED {
            self.note(Check::Drain, Status::Fail, Some(STANDS), now);
        }
        match store_busy {
            Some(time) if time > STUCK => self.note(Check::Store, Status::Fail, Some(HANGS), now),
            Some(time) if time > SLOW => self.note(Check::Store, Status::Warn, Some(IS_SLOW), now),
            _ => {}
        }
    }

    fn count_expired(&mut self, now: Instant, ttl: Option<Duration>) {
        let is_old = |(check, item): (&Check, &Item)| item.is_expired(now, ttl).then(|| check.clone());
        let expired: BTreeSet<Check> = self.items.iter().filter_map(is_old).collect();
        if expired != self.expired {
            self.changes += 1;
            self.expired = expired;
        }
    }
}

const STANDS: &str = "the loop that sends marks has made no progress for 90 s: check the journal's disk and the load of this controller, or restart the alerter";
const HANGS: &str =
    "the journal's disk has not answered for 30 s, so nothing is marked or sent: check the disk";
const IS_SLOW: &str =
    "the journal's disk has not answered for 10 s: check the disk and the load of this controller";

impl Health {
    /// A check passes.
    pub fn pass(&self, check: Check) {
        self.kept().note(check, Status::Pass, None, Moment::now());
    }

    /// A check warns. Sentences must not count seconds or marks: each new sentence is a change.
    pub fn warn(&self, check: Check, why: &str) {
        self.kept().note(check, Status::Warn, Some(why), Moment::now());
    }

    /// A check has failed; a check of something outside of this process only warns.
    pub fn fail(&self, check: Check, why: &str) {
        self.kept().note(check, Status::Fail, Some(why), Moment::now());
    }

    /// Something was lost: a warning, and a failure where the next try fails too.
    pub fn lost(&self, check: Check, why: &str) {
        self.kept().note_lost(check, why, Moment::now());
    }

    /// Runs work that decides a check: success passes; `classify` says what an error means. Several pieces of work may decide the same
    /// check.
    ///
    /// # Errors
    /// As the work.
    pub async fn track<T, E>(
        &self,
        check: Check,
        classify: impl FnOnce(&E) -> Fault,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let done = work.await;
        match done.as_ref().map_err(classify) {
            Ok(_) => self.pass(check),
            Err(Fault::Unrelated) => {}
            Err(Fault::Lost(why)) => self.lost(check, &why),
            Err(Fault::Failed(why)) => self.fail(check, &why),
        }
        done
    }

    /// The loop has completed a pass.
    pub fn came_round(&self) {
        let mut kept = self.kept();
        let now = Moment::now();
        kept.passed = now.instant;
        kept.note(Check::Drain, Status::Pass, None, now);
    }

    /// Forgets everything: a reload begins empty, as a start does.
    pub fn reset(&self) {
        *self.kept() = Kept::new();
    }

    /// The sum of all checks.
    pub fn report(&self, pulse: Pulse, ttl: Option<Duration>) -> Report {
        self.report_with_tag(pulse, ttl).0
    }

    /// The same with an entity tag that changes with the state: the number of changes and the life. It is weak: times do not count.
    pub fn report_with_tag(&self, pulse: Pulse, ttl: Option<Duration>) -> (Report, String) {
        let mut kept = self.kept();
        kept.feel(pulse);
        kept.count_expired(pulse.now.instant, ttl);
        let tag = format!("W/\"{}-{:08x}\"", kept.changes, kept.life);
        (sum_up(&kept.items, pulse.now.instant, ttl), tag)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        lock(&self.0)
    }
}

/// On one line, and short.
fn plain(text: &str) -> String {
    blanked(text).take(LONGEST).collect()
}
