//! Whether too many hosts of a group are down at once, and since when: what a group's count was, over time. Pure.

use std::time::Duration;

use marks::time::Timestamp;

/// A storm of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Storm {
    /// There is none.
    #[default]
    Calm,
    /// The limit is not kept.
    Raging {
        /// When it began.
        since: Timestamp,
    },
    /// The limit is kept again, and the cooldown runs.
    Cooling {
        /// When the storm began.
        since: Timestamp,
        /// When the limit began to be kept.
        calm_since: Timestamp,
    },
}

impl Storm {
    /// The storm after a check of the group's count at a time, no earlier than the check before. If the limit is exceeded during
    /// the cooldown, the cooldown starts again; the storm is the same one.
    pub fn after(self, is_allowed: bool, at: Timestamp, cooldown: Duration) -> Self {
        match (self.at(at, cooldown), is_allowed) {
            (Self::Calm, true) => Self::Calm,
            (Self::Calm, false) => Self::Raging { since: at },
            (Self::Raging { since }, true) => Self::Cooling { since, calm_since: at }.at(at, cooldown),
            (Self::Cooling { since, .. }, false) => Self::Raging { since },
            (same, _) => same,
        }
    }

    /// The storm at a later time, if the count has not changed.
    pub fn at(self, now: Timestamp, cooldown: Duration) -> Self {
        match self.ends(cooldown) {
            Some(end) if end <= now => Self::Calm,
            _ => self,
        }
    }

    /// When it ends by itself, if the count does not change.
    pub fn ends(self, cooldown: Duration) -> Option<Timestamp> {
        match self {
            Self::Cooling { calm_since, .. } => Some(calm_since + cooldown),
            Self::Calm | Self::Raging { .. } => None,
        }
    }

    /// Since when it is there.
    pub fn since(self) -> Option<Timestamp> {
        match self {
            Self::Calm => None,
            Self::Raging { since } | Self::Cooling { since, .. } => Some(since),
        }
    }

    /// Whether marks are held.
    pub fn holds(self) -> bool {
        self != Self::Calm
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COOLDOWN: Duration = Duration::from_secs(10);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_seconds(second)
    }

    fn over(checks: &[(bool, i64)]) -> Storm {
        checks
            .iter()
            .fold(Storm::Calm, |storm, (allowed, second)| storm.after(*allowed, at(*second), COOLDOWN))
    }

    /// S4-11: the peer's first hole: a storm that ends with nobody unhealthy is over, and the next one is another.
    #[test]
    fn a_storm_ends_when_the_limit_was_kept_for_the_cooldown() {
        let ended = over(&[(false, 0), (true, 5)]);
        assert_eq!(ended.since(), Some(at(0)));
        assert_eq!(ended.at(at(14), COOLDOWN), ended);
        assert_eq!(ended.at(at(15), COOLDOWN), Storm::Calm);
        assert_eq!(over(&[(false, 0), (true, 5), (false, 100)]).since(), Some(at(100)));
    }

    /// The broken variant: the cooldown that goes on from the first calm ends at 15.
    #[test]
    fn another_storm_starts_the_cooldown_again() {
        let twice = over(&[(false, 0), (true, 5), (false, 12), (true, 13)]);
        assert_eq!(twice, Storm::Cooling { since: at(0), calm_since: at(13) });
        assert!(twice.at(at(22), COOLDOWN).holds() && !twice.at(at(23), COOLDOWN).holds());
    }

    #[test]
    fn without_a_cooldown_it_is_over_at_once() {
        let storm = Storm::Calm.after(false, at(0), Duration::ZERO);
        assert!(storm.holds());
        assert_eq!(storm.after(true, at(1), Duration::ZERO), Storm::Calm);
    }

    #[test]
    fn checks_without_news_change_nothing() {
        let checks = [(false, 0), (false, 1), (true, 5), (true, 6), (true, 9)];
        assert_eq!(over(&checks), Storm::Cooling { since: at(0), calm_since: at(5) });
    }
}
