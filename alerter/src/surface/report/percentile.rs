//! The one percentile: by nearest rank, a value that was measured. Pure.

use serde::Serialize;

/// The value of a sorted list that so many of a hundred do not exceed; none of an empty list.
///
/// `percent` above 100 counts as 100.
pub fn percentile<T: Copy>(sorted: &[T], percent: u8) -> Option<T> {
    let rank = (sorted.len() * usize::from(percent.min(100))).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied()
}

/// Percentiles by nearest rank, in milliseconds: the smallest value that so many percent of all are not greater than.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Percentiles {
    /// Of so many values.
    pub count: usize,
    /// Half of them.
    pub p50: u64,
    /// Nine of ten.
    pub p90: u64,
    /// Ninety-nine of a hundred.
    pub p99: u64,
    /// The greatest.
    pub max: u64,
}

impl Percentiles {
    /// None of an empty list.
    pub fn of(mut values: Vec<u64>) -> Option<Self> {
        values.sort_unstable();
        let at = |percent| percentile(&values, percent);
        Some(Self { count: values.len(), p50: at(50)?, p90: at(90)?, p99: at(99)?, max: at(100)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_value_that_was_there() {
        let values: Vec<u32> = (1..=100).collect();
        let of = |percent| percentile(&values, percent);
        assert_eq!(
            (of(0), of(50), of(99), of(100), of(200)),
            (Some(1), Some(50), Some(99), Some(100), Some(100))
        );
        assert_eq!(
            (percentile(&[7], 50), percentile(&[1, 2], 50), percentile::<u8>(&[], 50)),
            (Some(7), Some(1), None)
        );
    }
}
