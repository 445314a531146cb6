//! What a group's rules are, and their arithmetic. Pure.

use std::time::Duration;

/// A group's limits and times for its hosts' marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// `max-unhealthy` or `unhealthy-range`: how many hosts may be down before marks are held.
    pub limit: Limit,
    /// `window`: a host counts that failed no longer ago; none means for ever.
    pub window: Option<Duration>,
    /// `cooldown`: the limit must have been kept for so long before a hold ends.
    pub cooldown: Duration,
    /// `max-hold`: no storm holds a mark longer.
    pub max_hold: Duration,
    /// `deliver-after`: so long after its host failed a mark is sent.
    pub deliver_after: Duration,
    /// `healthy-delay`: so long a host must be back before that counts.
    pub healthy_delay: Duration,
    /// `max-in-flight`: how many hosts' marks may be sent at once.
    pub max_in_flight: Option<u32>,
    /// `serial`: one host after another, each until it is back.
    pub serial: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            limit: Limit::None,
            window: None,
            cooldown: Duration::ZERO,
            max_hold: Duration::from_secs(3600),
            deliver_after: Duration::ZERO,
            healthy_delay: Duration::ZERO,
            max_in_flight: None,
            serial: false,
        }
    }
}

/// How many hosts of a group may be unhealthy before marks are held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    /// Any number.
    #[default]
    None,
    /// `max-unhealthy`: so many and no more.
    AtMost(Amount),
    /// `unhealthy-range`: within these, both included.
    Range {
        /// The fewest.
        low: u32,
        /// The most.
        high: u32,
    },
}

/// A number of hosts, or a share of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// So many.
    Hosts(u32),
    /// So many of a hundred, 0 to 100; a fraction of a host is none, as in Cluster API.
    Percent(u32),
}

impl Amount {
    /// How many hosts that is in a group of `size`.
    pub fn of(self, size: usize) -> usize {
        match self {
            Self::Hosts(hosts) => usize::try_from(hosts).unwrap_or(usize::MAX),
            Self::Percent(percent) => {
                usize::try_from(u128::from(percent) * size as u128 / 100).unwrap_or(usize::MAX)
            }
        }
    }
}

impl Limit {
    /// Whether a group of `size` with so many unhealthy hosts is within the limit. Without an unhealthy host it always is.
    pub fn allows(self, unhealthy: usize, size: usize) -> bool {
        match self {
            _ if unhealthy == 0 => true,
            Self::None => true,
            Self::AtMost(amount) => unhealthy <= amount.of(size),
            Self::Range { low, high } => {
                let within = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
                (within(low)..=within(high)).contains(&unhealthy)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [usize; 6] = [1, 2, 3, 5, 7, 10];

    /// P9, S4-23, S4-24: literally the table of what Cluster API does. The broken variant rounds up.
    #[test]
    fn a_share_is_rounded_as_the_table_says() {
        for (share, hosts) in [
            (0, [0; 6]),
            (33, [0, 0, 0, 1, 2, 3]),
            (49, [0, 0, 1, 2, 3, 4]),
            (51, [0, 1, 1, 2, 3, 5]),
            (100, SIZES),
        ] {
            assert_eq!(SIZES.map(|size| Amount::Percent(share).of(size)), hosts, "{share}%");
        }
    }

    /// S4-23: held above the limit, sent at it.
    #[test]
    fn exactly_the_limit_is_allowed() {
        let limit = Limit::AtMost(Amount::Hosts(2));
        assert_eq!([0, 1, 2, 3].map(|n| limit.allows(n, 10)), [true, true, true, false]);
        let share = Limit::AtMost(Amount::Percent(40));
        assert_eq!([4, 5].map(|n| share.allows(n, 10)), [true, false]);
        assert!(!Limit::AtMost(Amount::Hosts(0)).allows(1, 10));
    }

    /// S4-11: both ends belong to the range; nobody unhealthy is not outside of it.
    #[test]
    fn a_range_includes_its_ends() {
        let limit = Limit::Range { low: 2, high: 4 };
        let allowed = [0, 1, 2, 3, 4, 5].map(|n| limit.allows(n, 10));
        assert_eq!(allowed, [true, false, true, true, true, false]);
        assert_eq!([0, 1].map(|n| Limit::Range { low: 0, high: 0 }.allows(n, 10)), [true, false]);
        assert!(Limit::Range { low: 3, high: 3 }.allows(3, 3));
    }
}
