//! Clocks that differ from this controller's.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use marks::time::{CLOCK_SKEW, Timestamp};
use tracing::{info, warn};

use crate::moment::Moment;

/// A smaller difference proves nothing: polls are seconds apart, and a connection is dated when it began to be made.
const NOTABLE: Duration = Duration::from_secs(20);
/// A difference that was not seen again for so long is over.
const OVER: Duration = Duration::from_secs(3600);

/// Whose times differ, by how many milliseconds, and when that was seen last.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    all: BTreeMap<String, (i64, Instant)>,
}

impl Clocks {
    /// Compares a time with the span of this controller's clock in which the thing happened.
    pub(super) fn compare(
        &mut self,
        whose: &str,
        time: Timestamp,
        (from, to): (Timestamp, Timestamp),
        now: Instant,
    ) {
        let nearest = time.max(from).min(to);
        let off = time.0.saturating_sub(nearest.0);
        if off.unsigned_abs() <= NOTABLE.as_millis() as u64 {
            if self.all.remove(whose).is_some() {
                info!("{whose} agrees with this controller's clock again");
            }
        } else if self.all.insert(whose.to_owned(), (off, now)).is_none() {
            warn!("{}", sentence(whose, off));
        }
    }

    /// One sentence for each; one for all where several controllers agree that this one's clock is wrong.
    pub(super) fn sentences(&self, now: Instant) -> Vec<String> {
        let is_known = |seen: &Instant| now.saturating_duration_since(*seen) < OVER;
        let known = self.all.iter().filter(|(_, (_, seen))| is_known(seen));
        let known: Vec<(&str, i64)> = known.map(|(whose, (off, _))| (whose.as_str(), *off)).collect();
        match odd(&known) {
            Some(own) => vec![own],
            None => known.into_iter().map(|(whose, off)| sentence(whose, off)).collect(),
        }
    }
}

/// That this controller's clock is the wrong one: those of two others or more differ from it alike.
fn odd(known: &[(&str, i64)]) -> Option<String> {
    // The DC is one of them under another name.
    let others = known.iter().filter_map(|(whose, off)| Some((whose.strip_prefix(OF)?, *off)));
    let others: Vec<(&str, i64)> = others.filter(|(name, _)| !name.contains(' ')).collect();
    let (_, off) = others.first()?;
    let is_alike =
        |other: i64| other.signum() == off.signum() && other.abs_diff(*off) <= CLOCK_SKEW.as_millis() as u64;
    let are_alike = others.iter().all(|(_, other)| is_alike(*other));
    let names: Vec<&str> = others.iter().map(|(name, _)| *name).collect();
    let (seconds, side) = (off.unsigned_abs() / 1000, if *off > 0 { "behind" } else { "ahead of" });
    (are_alike && names.len() > 1).then(|| {
        format!(
            "this controller's clock is {seconds} s {side} those of {}: run `chronyc makestep` here, and see that NTP (chrony) runs; what cannot be told apart without it is held",
            names.join(" and ")
        )
    })
}

/// What every other controller's clock is called.
const OF: &str = "the clock of ";

fn sentence(whose: &str, off: i64) -> String {
    let seconds = off.unsigned_abs() / 1000;
    let side = if off > 0 { "ahead of" } else { "behind" };
    format!(
        "{whose} is {seconds} s {side} this controller's clock: have NTP (chrony) set the clocks of all controllers; they may differ by {} s at most",
        CLOCK_SKEW.as_secs()
    )
}

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

    #[test]
    fn a_clock_that_differs_is_said_until_it_agrees_again() {
        let (mut clocks, now) = (Clocks::default(), Instant::now());
        let second = Timestamp::from_seconds;
        let said = |clocks: &Clocks, at| clocks.sentences(at);
        let span = (second(100), second(110));
        clocks.compare("the clock of ctl2", second(130), span, now);
        assert!(said(&clocks, now).is_empty(), "20 s are nothing");
        clocks.compare("the clock of ctl2", second(131), span, now);
        clocks.compare("the clock of ctl3", second(40), span, now);
        let both = said(&clocks, now);
        assert!(
            both[0].starts_with("the clock of ctl2 is 21 s ahead of this controller's clock: "),
            "{both:?}"
        );
        assert!(
            both[1].starts_with("the clock of ctl3 is 60 s behind this controller's clock: "),
            "{both:?}"
        );
        assert!(both[1].contains("NTP") && both[1].contains("120 s"), "{both:?}");
        clocks.compare("the clock of ctl2", second(105), span, now);
        assert_eq!(said(&clocks, now).len(), 1);
        assert!(said(&clocks, now + OVER).is_empty(), "nobody has seen it for an hour");
    }

    /// The broken variants: only one other clock is known, and two that differ.
    #[test]
    fn the_clock_that_differs_from_all_others_is_this_one() {
        let (now, second) = (Instant::now(), Timestamp::from_seconds);
        let said = |ahead: &[(&str, i64)]| {
            let mut clocks = Clocks::default();
            for (name, seconds) in ahead {
                let time = second(1000 + seconds);
                clocks.compare(&format!("the clock of {name}"), time, (second(1000), second(1000)), now);
            }
            clocks.sentences(now).concat()
        };
        let odd = said(&[("ctl1", 3600), ("ctl3", 3590)]);
        assert!(
            odd.starts_with("this controller's clock is 3600 s behind those of ctl1 and ctl3: "),
            "{odd}"
        );
        assert!(odd.contains("chronyc makestep"), "{odd}");
        for others in [&[("ctl1", 3600)][..], &[("ctl1", 3600), ("ctl3", 200)]] {
            assert!(said(others).starts_with("the clock of ctl1 is 3600 s ahead"), "{others:?}");
        }
    }

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
