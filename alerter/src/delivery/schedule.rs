//! When the next attempt is due. Pure: the random number is an argument.

use std::time::Duration;

/// No endpoint is asked more often than this for one mark.
pub const FLOOR: Duration = Duration::from_secs(1);
/// A recovered endpoint is noticed within this time: a longer wait would prolong the outage of the host's instances.
pub const CAP: Duration = Duration::from_secs(30);
/// How often a recovery controller is asked about its work, if its driver gives no other time.
pub const POLL: Duration = Duration::from_secs(10);
/// The longest `Retry-After` that is honoured.
pub const LONGEST_ASKED: Duration = Duration::from_secs(900);

/// An endpoint that refuses is asked again after this time,
pub const PARKED: Duration = Duration::from_secs(60);
/// and after twice as long each time, up to this.
pub const PARKED_CAP: Duration = Duration::from_secs(900);
/// A mark that its endpoint rejects is tried again after this time,
pub const SLOW: Duration = Duration::from_secs(300);
/// and after twice as long each time, up to this.
pub const SLOW_CAP: Duration = journal::SLOWEST;

/// The wait of an endpoint that refused `failures` times in a row.
pub fn parked(failures: u32) -> Duration {
    PARKED.saturating_mul(2u32.saturating_pow(failures.saturating_sub(1))).min(PARKED_CAP)
}

/// The wait of a mark that its endpoint rejected, after a last wait of `before`: up to a quarter less than twice that, so that many
/// of them do not come at once.
///
/// `random` lies in `0.0..1.0`.
pub fn slow(before: Duration, random: f64) -> Duration {
    let window = before.saturating_mul(2).clamp(SLOW, SLOW_CAP);
    window.mul_f64(1.0 - random.clamp(0.0, 1.0) / 4.0)
}

/// The wait after attempt number `attempts` failed: full jitter over a window that doubles up to [`CAP`], at least
/// [`FLOOR`], and at least what the receiver asked for.
///
/// `random` lies in `0.0..1.0`.
pub fn wait(attempts: u32, random: f64, asked: Option<Duration>) -> Duration {
    let window = 2f64.powi(attempts.min(16).cast_signed()).min(CAP.as_secs_f64());
    let jittered = Duration::from_secs_f64(window * random.clamp(0.0, 1.0));
    jittered.max(FLOOR).max(asked.unwrap_or_default().min(LONGEST_ASKED))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_window_doubles_up_to_the_cap() {
        let widest = |attempts| wait(attempts, 1.0, None).as_secs();
        assert_eq!([1, 2, 3, 4, 5, 6, 4_000_000_000].map(widest), [2, 4, 8, 16, 30, 30, 30]);
    }

    #[test]
    fn what_the_receiver_asks_is_honoured_within_reason() {
        assert_eq!(wait(1, 0.5, Some(Duration::from_secs(60))), Duration::from_secs(60));
        assert_eq!(wait(1, 0.5, Some(Duration::from_secs(1_000_000))), LONGEST_ASKED);
    }

    #[test]
    fn an_endpoint_that_refuses_is_asked_every_quarter_of_an_hour_in_the_end() {
        let minutes = |failures| parked(failures).as_secs() / 60;
        assert_eq!([1, 2, 3, 4, 5, 4_000_000_000].map(minutes), [1, 2, 4, 8, 15, 15]);
    }

    #[test]
    fn a_rejected_mark_is_tried_every_hour_in_the_end() {
        let mut wait = Duration::ZERO;
        let waits = std::iter::repeat_with(|| {
            wait = slow(wait, 0.0);
            wait.as_secs() / 60
        });
        assert_eq!(waits.take(6).collect::<Vec<_>>(), [5, 10, 20, 40, 60, 60]);
        assert_eq!(slow(Duration::MAX, 1.0), SLOW_CAP.mul_f64(0.75));
    }

    proptest! {
        #[test]
        fn no_wait_is_shorter_than_the_floor_or_longer_than_the_cap(attempts: u32, random in -1.0f64..2.0) {
            let wait = wait(attempts, random, None);
            prop_assert!((FLOOR..=CAP).contains(&wait));
        }
    }
}
