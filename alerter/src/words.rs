//! How times and lengths of time are written for people.

use std::time::Duration;

use marks::time::Timestamp;

/// UTC, to the second.
pub fn utc(at: Timestamp) -> String {
    written(at, "%Y-%m-%d %H:%M:%SZ")
}

/// The same in other words, as `strftime` has them.
pub(crate) fn written(at: Timestamp, format: &str) -> String {
    match jiff::Timestamp::from_millisecond(at.0) {
        Ok(at) => at.strftime(format).to_string(),
        Err(_) => format!("{at} s"),
    }
}

/// A length of time in its two largest units: `240 ms`, `4 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`.
pub fn length(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds == 0 {
        return format!("{} ms", time.as_millis());
    }
    let units = [
        (seconds / 86_400, "d"),
        (seconds / 3600 % 24, "h"),
        (seconds / 60 % 60, "min"),
        (seconds % 60, "s"),
    ];
    let first = units.iter().position(|(amount, _)| *amount > 0).unwrap_or(units.len() - 1);
    let shown = units.iter().skip(first).take(2).filter(|(amount, _)| *amount > 0);
    shown.map(|(amount, unit)| format!("{amount} {unit}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_has_its_two_largest_units() {
        let of = |seconds| length(Duration::from_secs(seconds));
        assert_eq!(length(Duration::from_millis(240)), "240 ms");
        assert_eq!(
            (of(0), of(4), of(60), of(200)),
            ("0 ms".into(), "4 s".into(), "1 min".into(), "3 min 20 s".into())
        );
        assert_eq!(
            (of(7500), of(273_600), of(86_400 + 59)),
            ("2 h 5 min".into(), "3 d 4 h".into(), "1 d".into())
        );
    }

    #[test]
    fn a_time_is_written_in_utc() {
        assert_eq!(utc(Timestamp(1_800_000_000_999)), "2027-01-15 08:00:00Z");
        assert_eq!(utc(Timestamp(i64::MAX)), "9223372036854775.807 s");
    }
}
