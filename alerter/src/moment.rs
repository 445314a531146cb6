//! A moment by both clocks: what stood still by the one went on by the other.

use std::time::{Duration, Instant};

use marks::time::Timestamp;

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
}
