//! Whether a poll can be trusted: a controller that was suspended wakes up before its cluster stack has noticed that.

use std::time::{Duration, Instant};

use crate::moment::Moment;

/// Polls are 1.5 s apart and take at most as long, and longer work is noted meanwhile. After a longer gap this process, or the
/// whole machine, may have been suspended.
const GAP: Duration = Duration::from_secs(4);
/// Longer than corosync needs to notice that it was left out: its token timeout is 1 s, on some systems 3 s.
const PAUSE: Duration = Duration::from_secs(5);

/// When this process was last seen to run, by two clocks: the monotonic one stands still with the machine.
#[derive(Debug, Default)]
pub struct Trust {
    last: Option<Moment>,
    from: Option<Instant>,
}

impl Trust {
    /// This process runs: a poll begins, or long work goes on.
    pub fn note(&mut self, now: Moment) {
        if self.stood_still(now) {
            tracing::warn!(
                "this alerter was suspended for a while: nothing is sent until the cluster has caught up"
            );
            self.from = Some(now.instant + PAUSE);
        }
        self.last = Some(now);
    }

    /// Whether a poll that began at `taken` may be acted on now.
    pub fn allows(&self, taken: Instant, now: Moment) -> bool {
        !self.stood_still(now) && self.from.is_none_or(|from| taken >= from)
    }

    fn stood_still(&self, now: Moment) -> bool {
        self.last.is_some_and(|last| now.since(last) >= GAP)
    }
}

#[cfg(test)]
mod tests {
    use marks::time::Timestamp;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Notes at these seconds of the monotonic and the wall clock; then whether a poll `after` the last is trusted.
    fn trusted(notes: &[(u32, u32)], after: Duration) -> bool {
        let (mut trust, begun) = (Trust::default(), Instant::now());
        let mut last = moment(begun, (0, 0));
        for at in notes {
            last = moment(begun, *at);
            trust.note(last);
        }
        trust.allows(last.instant + after, last)
    }

    fn moment(begun: Instant, (monotonic, wall): (u32, u32)) -> Moment {
        Moment { instant: begun + SECOND * monotonic, wall: Timestamp(0) + SECOND * wall }
    }

    #[test]
    fn after_a_gap_by_either_clock_polls_are_not_trusted_for_a_while() {
        assert!(trusted(&[(0, 0), (2, 2), (5, 5)], Duration::ZERO));
        for woken in [&[(0, 0), (2, 2), (6, 6)], &[(0, 0), (2, 2), (4, 3600)]] {
            assert!(!trusted(woken, SECOND * 4), "{woken:?}");
            assert!(trusted(woken, SECOND * 5), "{woken:?}");
        }
    }

    /// A poll is acted on only by a process that has run all the time since: the next note may come too late to show a gap.
    #[test]
    fn a_poll_from_before_a_gap_is_not_trusted() {
        let (mut trust, begun) = (Trust::default(), Instant::now());
        trust.note(moment(begun, (0, 0)));
        assert!(trust.allows(begun, moment(begun, (2, 2))));
        for woken in [(4, 4), (1, 3600)] {
            assert!(!trust.allows(begun, moment(begun, woken)), "{woken:?}");
        }
    }

    #[test]
    fn a_clock_that_is_set_back_is_no_gap() {
        assert!(trusted(&[(0, 5000), (2, 5)], Duration::ZERO));
    }

    /// A register that cannot be written must not keep everything back for ever; but a process that stood still in the
    /// middle of a write stood still. The broken variant takes all of a write's time for time in which it ran.
    #[test]
    fn a_write_that_takes_long_is_no_gap_but_one_in_it_is() {
        let write: Vec<(u32, u32)> = (0..=10).map(|second| (second, second)).collect();
        assert!(trusted(&write, Duration::ZERO));
        let frozen: Vec<(u32, u32)> = write.into_iter().filter(|(at, _)| !(3..9).contains(at)).collect();
        assert!(!trusted(&frozen, Duration::ZERO));
    }

    #[test]
    fn the_first_poll_is_trusted() {
        assert!(trusted(&[(0, 0)], Duration::ZERO));
    }
}
