//! Spans of time as operators write them: `90`, `30m`, `2h`, `1d`. Pure.

use std::time::Duration;

use marks::time::Timestamp;

/// A longer span is a mistake.
pub const LONGEST: Duration = Duration::from_secs(366 * 86_400);

/// Why a text is no span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpanError {
    /// Something else than a number and a unit.
    #[error(
        "write a whole number followed by s, m, h or d, as in 90s, 30m, 2h or 1d; without a letter it is seconds"
    )]
    Form,
    /// Nothing, or more than a year.
    #[error("it must be at least 1 s and at most 366 d")]
    Range,
}

impl SpanError {
    /// A stable machine word.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Form => "form",
            Self::Range => "range",
        }
    }
}

/// Reads one: a whole number of seconds, or of the unit behind it.
///
/// # Errors
/// [`SpanError`]
pub fn parse(text: &str) -> Result<Duration, SpanError> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text.strip_prefix(digits).ok_or(SpanError::Form)? {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(SpanError::Form),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(SpanError::Form);
    }
    let number: u64 = digits.parse().map_err(|_| SpanError::Range)?;
    of_seconds(number.saturating_mul(unit))
}

/// The same of a number of seconds.
///
/// # Errors
/// [`SpanError::Range`]
pub fn of_seconds(seconds: u64) -> Result<Duration, SpanError> {
    let span = Duration::from_secs(seconds);
    if span.is_zero() || span > LONGEST { Err(SpanError::Range) } else { Ok(span) }
}

/// Reads a time: as RFC 3339 has it, the beginning of a day in UTC, or so long before `now`.
///
/// # Errors
/// How to write a time, one sentence.
pub fn moment(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    if let Ok(ago) = parse(text) {
        return Ok(now - ago);
    }
    let day = format!("{text}T00:00:00Z");
    let at = [text, &day].into_iter().find_map(|text| Timestamp::parse(text).ok());
    at.ok_or_else(|| {
        "write a time as 2026-11-22T03:00:00Z or 2026-11-22, or how long ago it was as 90s, 30m, 2h or 30d (366d at most)"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{ProptestConfig, prop_assert_eq, proptest};

    use super::*;

    #[test]
    fn a_span_is_a_number_and_a_unit() {
        for (text, seconds) in [
            ("90", 90),
            ("90s", 90),
            ("30m", 1800),
            ("2h", 7200),
            ("1d", 86_400),
            ("007", 7),
            ("366d", 31_622_400),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in
            ["", "h", "-1", "+1", "1.5h", "1 h", " 1", "1h30m", "2H", "2 hours", "2w", "1hm", "٣", "1é"]
        {
            assert_eq!(parse(text), Err(SpanError::Form), "{text}");
        }
        for text in ["0", "0d", "367d", "99999999999999999999", "18446744073709551615d"] {
            assert_eq!(parse(text), Err(SpanError::Range), "{text}");
        }
    }

    #[test]
    fn a_moment_is_a_time_or_how_long_ago_it_was() {
        let now = Timestamp(1_800_000_000_000);
        assert_eq!(moment("2h", now), Ok(now - Duration::from_secs(7200)));
        for same in ["2027-01-15T08:00:00Z", "2027-01-15 08:00:00Z", "2027-01-15T09:00:00+01:00"] {
            assert_eq!(moment(same, Timestamp(0)), Ok(now), "{same}");
        }
        assert_eq!(moment("2027-01-15", now), Ok(now - Duration::from_secs(8 * 3600)));
        for wrong in ["", "yesterday", "2027-13-01", "2027-13-01T00:00:00Z", "-2h", "367d"] {
            assert!(moment(wrong, now).is_err(), "{wrong}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn no_text_is_too_odd(text in ".{0,12}") {
            if let Ok(span) = parse(&text) {
                prop_assert_eq!(parse(&span.as_secs().to_string()), Ok(span));
            }
        }
    }
}
