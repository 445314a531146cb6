//! When the next attempt is due. Pure: the random number is an argument.

use std::time::Duration;

/// No endpoint is asked more often than this for one mark.
pub const FLOOR: Duration = Duration::from_secs(1);
/// A recovered endpoint is noticed within this time: a longer wait would be an outage of the host's machines.
pub const CAP: Duration = Duration::from_secs(30);
/// The longest `Retry-After` that is honoured.
pub const LONGEST_ASKED: Duration = Duration::from_secs(900);

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

    proptest! {
        #[test]
        fn no_wait_is_shorter_than_the_floor_or_longer_than_the_cap(attempts: u32, random in -1.0f64..2.0) {
            let wait = wait(attempts, random, None);
            prop_assert!((FLOOR..=CAP).contains(&wait));
        }
    }
}
