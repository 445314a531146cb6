//! Whether a look can be trusted: a controller that stood still wakes up with a cluster that has not noticed it yet.

use std::time::{Duration, Instant};

use crate::moment::Moment;

/// Looks are 2 s apart and take at most 1.5 s. After a longer gap this process, or the whole machine, may have stood still.
const GAP: Duration = Duration::from_secs(4);
/// Longer than corosync needs to notice that it was left behind: its token timeout is 1 s, on some systems 3 s.
const PAUSE: Duration = Duration::from_secs(5);

/// When the last look was, by two clocks: the monotonic one stands still with the machine.
#[derive(Debug, Default)]
pub struct Trust {
    last: Option<Moment>,
    from: Option<Instant>,
}

impl Trust {
    /// A look begins.
    pub fn note(&mut self, now: Moment) {
        let gap = self.last.map(|last| now.since(last));
        if gap.is_some_and(|gap| gap >= GAP) {
            tracing::warn!(
                "this alerter stood still for a while: nothing is told until the cluster has caught up"
            );
            self.from = Some(now.instant + PAUSE);
        }
        self.last = Some(now);
    }

    /// Something that this process did within its limit of time has ended: it did not stand still meanwhile.
    pub fn was_busy(&mut self, now: Moment) {
        self.last = Some(now);
    }

    /// Whether a look that began then may be acted on.
    pub fn allows(&self, taken: Instant) -> bool {
        self.from.is_none_or(|from| taken >= from)
    }
}

#[cfg(test)]
mod tests {
    use marks::time::Timestamp;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Looks at these seconds of the monotonic and the wall clock; then whether one `after` the last is trusted.
    fn trusted(looks: &[(u32, u32)], after: Duration) -> bool {
        let (mut trust, begun) = (Trust::default(), Instant::now());
        let mut last = begun;
        for (monotonic, wall) in looks {
            last = begun + SECOND * *monotonic;
            trust.note(Moment { instant: last, wall: Timestamp(0) + SECOND * *wall });
        }
        trust.allows(last + after)
    }

    #[test]
    fn after_a_gap_by_either_clock_looks_are_not_trusted_for_a_while() {
        assert!(trusted(&[(0, 0), (2, 2), (5, 5)], Duration::ZERO));
        for woken in [&[(0, 0), (2, 2), (6, 6)], &[(0, 0), (2, 2), (4, 3600)]] {
            assert!(!trusted(woken, SECOND * 4), "{woken:?}");
            assert!(trusted(woken, SECOND * 5), "{woken:?}");
        }
    }

    #[test]
    fn a_clock_that_is_set_back_is_no_gap() {
        assert!(trusted(&[(0, 5000), (2, 5)], Duration::ZERO));
    }

    /// Else a register that cannot be written would keep everything back for ever.
    #[test]
    fn time_that_a_write_took_is_no_gap() {
        let (mut trust, begun) = (Trust::default(), Instant::now());
        trust.note(Moment { instant: begun, wall: Timestamp(0) });
        let later = Moment { instant: begun + SECOND * 10, wall: Timestamp(10_000) };
        trust.was_busy(later);
        trust.note(later);
        assert!(trust.allows(begun + SECOND * 10));
    }

    #[test]
    fn the_first_look_is_trusted() {
        assert!(trusted(&[(0, 0)], Duration::ZERO));
    }
}
