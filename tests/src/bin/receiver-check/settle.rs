//! When the receiver's list is the one to judge: it may act long after it has answered. Pure.

use std::time::Duration;

use super::judge::{self, Acted};
use super::script::Check;

/// So long the list must have been the same: what must not happen may follow what must.
const QUIET: Duration = Duration::from_secs(2);

/// The list as it was read last. Times are counted from the last message.
pub(super) struct Reading {
    pub(super) acted: Vec<Acted>,
    /// When it was first read like this.
    since: Duration,
}

impl Reading {
    /// The next reading. The order of the list does not count: a receiver may keep none.
    pub(super) fn next(earlier: Option<Self>, mut acted: Vec<Acted>, now: Duration) -> Self {
        acted.sort();
        let same = earlier.filter(|earlier| earlier.acted == acted);
        Self { acted, since: same.map_or(now, |same| same.since) }
    }

    /// Whether all is there that must be and nothing more has come for the quiet time, or the patience is over.
    pub(super) fn is_settled(&self, made: &[&Check], now: Duration, patience: Duration) -> bool {
        let is_whole = made.iter().all(|check| judge::has_all(check, &self.acted));
        let is_quiet = now.saturating_sub(self.since) >= QUIET;
        is_whole && is_quiet || now >= patience
    }
}

#[cfg(test)]
mod tests {
    use super::super::judge::tests::{acted, check};
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// The list that is judged and when, of a receiver whose list grows at these milliseconds; read four times in a second.
    fn judged(check: &Check, grows: &[(u64, Acted)], patience: Duration) -> (u64, usize) {
        let mut last = None;
        for now in (0..).step_by(250) {
            let there = grows.iter().filter(|(at, _)| *at <= now).map(|(_, one)| one.clone());
            let reading = Reading::next(last, there.collect(), Duration::from_millis(now));
            if reading.is_settled(&[check], Duration::from_millis(now), patience) {
                return (now, reading.acted.len());
            }
            last = Some(reading);
        }
        unreachable!("the patience ends")
    }

    /// The broken variant judges as soon as all is there that must be: it never sees what follows.
    #[test]
    fn what_follows_within_the_quiet_time_is_judged_too() {
        let twice = check("duplicate");
        let one = acted(&twice.acts[0], "host failure");
        let grows = [(500, one.clone()), (1_000, one.clone()), (2_750, one.clone())];
        assert_eq!(judged(&twice, &grows, PATIENCE), (4_750, 3));
        assert_eq!(judged(&twice, &grows[..1], PATIENCE), (2_500, 1));
        let careless = Reading::next(None, vec![one], Duration::ZERO);
        assert!(judge::has_all(&twice, &careless.acted), "all is there");
        assert!(!careless.is_settled(&[&twice], Duration::ZERO, PATIENCE));
    }

    /// Nothing may come after it, and still the list is awaited until it has what must be there.
    #[test]
    fn a_quiet_list_without_what_must_be_there_is_awaited() {
        let twice = check("duplicate");
        let late = [(10_000, acted(&twice.acts[0], "host failure"))];
        assert_eq!(judged(&twice, &late, PATIENCE), (12_000, 1));
        assert_eq!(judged(&twice, &[], PATIENCE), (60_000, 0));
    }

    #[test]
    fn the_patience_ends_the_quiet_time_too() {
        let twice = check("duplicate");
        let at_once = [(0, acted(&twice.acts[0], "host failure"))];
        assert_eq!(judged(&twice, &at_once, Duration::from_secs(1)), (1_000, 1));
        assert_eq!(judged(&twice, &at_once, Duration::ZERO), (0, 1));
    }

    /// The broken variant compares lists as they came.
    #[test]
    fn a_list_in_another_order_is_the_same() {
        let returned = check("returned");
        let list = ["host failure", "host returned"].map(|kind| acted(&returned.acts[0], kind)).to_vec();
        let turned: Vec<_> = list.iter().rev().cloned().collect();
        assert_ne!(list, turned);
        let first = Reading::next(None, list, Duration::ZERO);
        assert!(Reading::next(Some(first), turned, QUIET).is_settled(&[&returned], QUIET, PATIENCE));
    }
}
