//! A moment by both clocks: while one stands still, the other goes on.

use std::fs;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use marks::id::NoteId;
use marks::time::{Boot, Timestamp};
use nix::time::{ClockId, clock_gettime};

/// Both clocks: the monotonic one stands still with the machine, the other one can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The monotonic clock.
    pub instant: Instant,
    /// The wall clock.
    pub wall: Timestamp,
}

impl Moment {
    /// This one.
    pub fn now() -> Self {
        Self { instant: Instant::now(), wall: Timestamp::now() }
    }

    /// How long ago `earlier` was, by the clock that says more.
    pub fn since(self, earlier: Self) -> Duration {
        self.instant.saturating_duration_since(earlier.instant).max(self.wall.since(earlier.wall))
    }

    /// By how many milliseconds the wall clock was set since `earlier`, where a second and more counts; below zero where it
    /// was set back.
    pub fn set_since(self, earlier: Self) -> Option<i64> {
        let expected = earlier.wall + self.instant.saturating_duration_since(earlier.instant);
        let set = self.wall.0.saturating_sub(expected.0);
        (set.unsigned_abs() >= 1000).then_some(set)
    }
}

/// This boot. Where the kernel does not say which it is, it counts as another one at each start of this program.
pub fn boot() -> Boot {
    static ID: LazyLock<String> = LazyLock::new(|| {
        let read = fs::read_to_string("/proc/sys/kernel/random/boot_id");
        read.map_or_else(|_| NoteId::generate().to_string(), |id| id.trim().to_owned())
    });
    let up = clock_gettime(ClockId::CLOCK_BOOTTIME).map(Duration::from).expect("every Linux has this clock");
    Boot { id: ID.clone(), began: Timestamp::now() - up }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_is_distinguished_from_one_that_goes_on() {
        let then = Moment { instant: Instant::now(), wall: Timestamp(1_000_000) };
        let later = |wall| Moment { instant: then.instant + Duration::from_secs(10), wall: Timestamp(wall) };
        for (wall, set) in
            [(1_010_000, None), (1_010_999, None), (1_110_000, Some(100_000)), (910_000, Some(-100_000))]
        {
            assert_eq!(later(wall).set_since(then), set, "{wall}");
        }
    }
}
