//! Time limits as Pacemaker reads them.

use std::time::Duration;

/// The shortest of several values; values that are not times do not count.
pub(super) fn shortest<'a>(values: impl Iterator<Item = &'a str>) -> Option<Duration> {
    values.filter_map(read).min()
}

/// A time limit of a fence device. Up to 2.1.7 the fencer reads the leading digits as seconds, whatever unit follows
/// ("1min" is one second); later releases read the unit. The shorter of both is safe.
pub fn read(text: &str) -> Option<Duration> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number: u64 = text[..digits].parse().ok()?;
    let plain = Duration::from_secs(number);
    let unit = text[digits..].trim().to_ascii_lowercase();
    Some(with_unit(number, &unit).map_or(plain, |timed| timed.min(plain)))
}

/// Units as in Pacemaker's `crm_get_msec`: only their beginning counts.
fn with_unit(number: u64, unit: &str) -> Option<Duration> {
    let seconds = |each: u64| Some(Duration::from_secs(number.saturating_mul(each)));
    match unit {
        "" => seconds(1),
        u if u.starts_with("ms") => Some(Duration::from_millis(number)),
        u if u.starts_with("us") => Some(Duration::from_micros(number)),
        u if u.starts_with('s') => seconds(1),
        u if u.starts_with('m') => seconds(60),
        u if u.starts_with('h') => seconds(3600),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shorter_reading_counts() {
        let cases = [
            ("40s", 40_000),
            ("40", 40_000),
            (" 25 sec ", 25_000),
            ("1min", 1_000),
            ("500ms", 500),
            ("40000ms", 40_000),
        ];
        for (text, millis) in cases {
            assert_eq!(read(text), Some(Duration::from_millis(millis)), "{text}");
        }
        assert_eq!((read("soon"), read(""), read("-3")), (None, None, None));
    }

    #[test]
    fn the_shortest_of_several_rules_wins() {
        assert_eq!(shortest(["60s", "x", "20s"].into_iter()), Some(Duration::from_secs(20)));
        assert_eq!(shortest(std::iter::empty()), None);
    }
}
