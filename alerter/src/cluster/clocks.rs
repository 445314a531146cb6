//! Clocks that differ from this controller's.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use marks::time::{CLOCK_SKEW, Timestamp};
use tracing::{info, warn};

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

    /// One sentence for each.
    pub(super) fn sentences(&self, now: Instant) -> impl Iterator<Item = String> {
        let is_known = move |seen: &Instant| now.saturating_duration_since(*seen) < OVER;
        self.all
            .iter()
            .filter(move |(_, (_, seen))| is_known(seen))
            .map(|(whose, (off, _))| sentence(whose, *off))
    }
}

fn sentence(whose: &str, off: i64) -> String {
    let seconds = off.unsigned_abs() / 1000;
    let side = if off > 0 { "ahead of" } else { "behind" };
    format!(
        "{whose} is {seconds} s {side} this controller's clock: have NTP (chrony) set the clocks of all controllers; they may differ by {} s at most",
        CLOCK_SKEW.as_secs()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_differs_is_said_until_it_agrees_again() {
        let (mut clocks, now) = (Clocks::default(), Instant::now());
        let second = Timestamp::from_seconds;
        let said = |clocks: &Clocks, at| clocks.sentences(at).collect::<Vec<_>>();
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
}
