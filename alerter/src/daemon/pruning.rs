//! The daemon's part of retention: begins rounds through the journal and keeps each of their steps small.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use journal::{Bounds, Done, Journal, Round};
use marks::time::Timestamp;
use tracing::error;

use crate::cluster;
use crate::config::HistoryRules;
use crate::state::Shared;

/// A start has more urgent work, and a wrong clock, by which rows seem old, has time to be set.
const FIRST: Duration = Duration::from_secs(600);
/// A round begins so long after the one before has ended.
const BETWEEN: Duration = Duration::from_secs(86_400);
/// Between two steps the journal's thread is free for others.
const STEP: Duration = Duration::from_secs(1);
/// After the clock was set, by so much or more, nothing is removed for a while.
const CLOCK: Duration = Duration::from_secs(60);
/// How long.
const DOUBT: Duration = Duration::from_secs(3600);
/// Decisions about groups and hosts are kept so long after their end: the register forgets them in a week, and the history refers to
/// them.
const DECIDED: Duration = Duration::from_secs(30 * 86_400);

/// Where the daemon is with it.
#[derive(Debug)]
pub struct Pruner {
    next: Instant,
    round: Round,
    /// When this daemon began, by the monotonic clock, and the time of the newest row of the history then.
    began: (Instant, Option<Timestamp>),
}

impl Pruner {
    /// Begins its first round ten minutes from now. `newest` is when the last row of the history was written.
    pub fn new(now: Instant, newest: Option<Timestamp>) -> Self {
        Self { next: now + FIRST, round: Round::default(), began: (now, newest) }
    }

    /// A controller may start with a clock that is years ahead, and have it set right much later. So no later time is assumed than the
    /// newest row plus the age of this daemon. If nothing was written for long, rows are removed later than they could be.
    fn no_later_than_known(&self, wall: Timestamp, now: Instant) -> Timestamp {
        let (began, newest) = self.began;
        newest.map_or(wall, |newest| wall.min(newest + now.saturating_duration_since(began)))
    }

    /// How long until the next step.
    pub fn rest(&self, now: Instant) -> Duration {
        self.next.saturating_duration_since(now)
    }

    /// The clock was set by so many milliseconds: what seems old may be young.
    pub fn mind_the_clock(&mut self, set: i64, now: Instant) {
        if Duration::from_millis(set.unsigned_abs()) >= CLOCK {
            self.next = self.next.max(now + DOUBT);
        }
    }

    /// Does the next step if it is due. A fault that does not pass by itself puts the rest off by a day: no mark waits for this.
    ///
    /// # Errors
    /// As any write that may pass; the step is done again.
    pub async fn pass(&mut self, shared: &Arc<Shared>) -> Done {
        if self.rest(Instant::now()) > Duration::ZERO {
            return Ok(());
        }
        let (state, mut round) = (Arc::clone(shared), self.round.clone());
        let now = self.no_later_than_known(Timestamp::now(), Instant::now());
        let work = move |journal: &mut Journal| {
            step(journal, &state, &mut round, now)?;
            Ok(round)
        };
        let done = shared.base.store.run(work).await;
        self.go_on(done)
    }

    fn go_on(&mut self, done: Done<Round>) -> Done {
        self.round = match done {
            Err(error) if error.may_pass() => return Err(error),
            Err(error) => {
                let kind = error.kind();
                error!(
                    kind,
                    "{error}; old rows of the journal stay, and their removal is tried again in a day"
                );
                (self.round, self.next) = (Round::default(), Instant::now() + BETWEEN);
                return Ok(());
            }
            Ok(round) => round,
        };
        let pause = if self.round.is_done() { BETWEEN } else { STEP };
        if self.round.is_done() {
            self.round = Round::default();
        }
        self.next = Instant::now() + pause;
        Ok(())
    }
}

/// One step of a round at a given time. Before the register was read nothing is removed: what it has would be taken in again.
///
/// # Errors
/// As any write.
pub fn step(journal: &mut Journal, shared: &Shared, round: &mut Round, now: Timestamp) -> Done<usize> {
    let standing = match (&shared.base.cluster, &shared.base.seen().register) {
        (None, _) => BTreeSet::new(),
        (Some(_), None) => return Ok(0),
        (Some(_), Some(entries)) => entries.sound.keys().map(ToString::to_string).collect(),
    };
    let bounds = bounds(&shared.base.settings().history, now);
    journal.prune(&bounds, round, &|key| standing.contains(key), now)
}

fn bounds(rules: &HistoryRules, now: Timestamp) -> Bounds {
    Bounds {
        before: now - rules.keep,
        decided_before: now - DECIDED,
        max_bytes: rules.max_bytes,
        floor: now - cluster::KEPT,
    }
}

#[cfg(test)]
mod tests {
    use journal::JournalError;

    use super::*;

    /// A clock that jumps makes everything old at once: then nothing goes until somebody can have set it right.
    #[test]
    fn a_clock_that_was_set_puts_it_off() {
        let now = Instant::now();
        let mut pruner = Pruner::new(now, None);
        assert_eq!(pruner.rest(now), FIRST);
        for set in [59_999, -59_999] {
            pruner.mind_the_clock(set, now);
            assert_eq!(pruner.rest(now), FIRST, "{set}");
        }
        pruner.mind_the_clock(-60_000, now);
        assert_eq!(pruner.rest(now), DOUBT);
        pruner.next = now;
        pruner.mind_the_clock(i64::MIN, now);
        assert_eq!(pruner.rest(now), DOUBT);
    }

    /// The broken variant ends the daemon by a row that nobody needs any more; what may pass is tried again.
    #[test]
    fn a_fault_of_it_is_put_off_and_ends_nothing() {
        let mut pruner = Pruner::new(Instant::now(), None);
        let path = std::path::PathBuf::from("marks.db");
        let damaged = JournalError::Damaged { path: path.clone(), reason: "a byte".into() };
        assert!(pruner.go_on(Err(damaged)).is_ok());
        assert!(pruner.rest(Instant::now()) > FIRST);
        assert!(pruner.go_on(Err(JournalError::Busy { path })).is_err());
    }

    /// The broken variant believes the clock, and everything that has ended is old.
    #[test]
    fn a_clock_that_is_years_ahead_makes_nothing_old() {
        let (began, wall) = (Instant::now(), Timestamp(1_800_000_000_000));
        let (years, hour) = (Duration::from_secs(5 * 365 * 86_400), Duration::from_secs(3600));
        let pruner = Pruner::new(began, Some(wall));
        assert_eq!(pruner.no_later_than_known(wall + years, began + hour), wall + hour);
        assert_eq!(pruner.no_later_than_known(wall - hour, began + hour), wall - hour);
        let knows_nothing = Pruner::new(began, None);
        assert_eq!(knows_nothing.no_later_than_known(wall + years, began), wall + years);
    }

    /// S4-6: 400 days are kept. Whatever is configured, what the register still knows is not old.
    #[test]
    fn what_may_go_is_much_older_than_what_the_register_knows() {
        let (now, rules) = (Timestamp(1_800_000_000_000), HistoryRules::default());
        let bounds = bounds(&rules, now);
        assert_eq!(now.since(bounds.before), Duration::from_secs(400 * 86_400));
        assert!(bounds.before < bounds.decided_before && bounds.decided_before < bounds.floor);
        assert!(now.since(bounds.floor) >= cluster::KEPT);
    }
}
