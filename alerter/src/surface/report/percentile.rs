//! The one percentile: by nearest rank, a value that was measured. Pure.

/// The value of a sorted list that so many of a hundred do not exceed; none of nothing.
///
/// `percent` above 100 counts as 100.
pub fn percentile<T: Copy>(sorted: &[T], percent: u8) -> Option<T> {
    let rank = (sorted.len() * usize::from(percent.min(100))).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied()
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
