//! Times as Pacemaker reads them.

use std::time::Duration;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: i64 = 24 * 3600;

/// The shortest of several values; values that are not times do not count.
pub(super) fn shortest<'a>(values: impl Iterator<Item = &'a str>) -> Option<Duration> {
    values.filter_map(read).min()
}

/// A time limit of a fence device (`pcmk_off_timeout` and its like), which is no interval: up to 2.1.7 the fencer reads
/// the leading digits as seconds, whatever unit follows ("1min" is one second); later releases read the unit. The shorter
/// of both is safe. No release reads an ISO 8601 duration there.
pub fn read(text: &str) -> Option<Duration> {
    let (number, unit) = number(text)?;
    let plain = Duration::from_secs(number);
    Some(with_unit(number, unit).map_or(plain, |timed| timed.min(plain)))
}

/// An interval, such as that of an operation, `reconnect_interval` or `cluster-recheck-interval`
/// (`crm_parse_interval_spec`): a number with a unit, or an ISO 8601 duration. `None` if it is neither; Pacemaker then
/// takes 0 for an interval, and the default for a property.
pub fn interval(text: &str) -> Option<Duration> {
    if text.starts_with('P') {
        return duration(text);
    }
    let (number, unit) = number(text)?;
    // It stops at the point of a decimal number.
    with_unit(number, unit.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit()).trim_start())
}

/// The leading digits, and what follows them.
fn number(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    let (digits, unit) = text.split_at(text.bytes().take_while(u8::is_ascii_digit).count());
    Some((digits.parse().ok()?, unit.trim()))
}

/// Units as in Pacemaker's `crm_get_msec`: only their beginning counts.
fn with_unit(number: u64, unit: &str) -> Option<Duration> {
    let seconds = |each: u64| Some(Duration::from_secs(number.saturating_mul(each)));
    match unit.to_ascii_lowercase().as_str() {
        "" => seconds(1),
        u if u.starts_with("ms") => Some(Duration::from_millis(number)),
        u if u.starts_with("us") => Some(Duration::from_micros(number)),
        u if u.starts_with('s') => seconds(1),
        u if u.starts_with('m') => seconds(MINUTE),
        u if u.starts_with('h') => seconds(HOUR),
        _ => None,
    }
}

/// As `crm_time_parse_duration` and `crm_time_get_seconds`: they want no order, end at a blank or `/`, take a month for 30
/// days, and, up to 3.0, count one day and one year less than is written, so `P1D` is 0.
fn duration(text: &str) -> Option<Duration> {
    let text = text.split(|c: char| c == '/' || c.is_ascii_whitespace()).next()?;
    let (mut rest, mut is_time) = (text.strip_prefix('P')?, false);
    let (mut years, mut months, mut days, mut seconds) = (0_i64, 0_i64, 0_i64, 0_i64);
    while let Some(first) = rest.chars().next() {
        if first == 'T' {
            (rest, is_time) = (&rest[1..], true);
            continue;
        }
        let digits = rest.strip_prefix(['-', '+', ':']).unwrap_or(rest);
        let at = digits.find(|c: char| !c.is_ascii_digit())?;
        let amount = i64::from(digits[..at].parse::<i32>().ok()?) * if first == '-' { -1 } else { 1 };
        let unit = digits[at..].chars().next()?;
        match unit {
            'Y' => years = amount,
            'M' if !is_time => months = amount,
            'M' => seconds += amount * 60,
            'W' => days += amount * 7,
            'D' => days += amount,
            'H' => seconds += amount * 3600,
            'S' => seconds += amount,
            _ => return None,
        }
        rest = &digits[at + 1..];
    }
    if (years, months, days, seconds) == (0, 0, 0, 0) {
        return None;
    }
    let all = (years - 1).max(0) * 365 + months.max(0) * 30 + (days - 1).max(0);
    u64::try_from(all * DAY + seconds).ok().map(Duration::from_secs)
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
        assert_eq!((read("soon"), read(""), read("-3"), read("PT1M")), (None, None, None, None));
    }

    #[test]
    fn the_shortest_of_several_rules_wins() {
        assert_eq!(shortest(["60s", "x", "20s"].into_iter()), Some(Duration::from_secs(20)));
        assert_eq!(shortest(std::iter::empty()), None);
    }

    /// Each was the interval of a monitor for `crm_simulate` of 2.1.5. The broken variant reads only numbers.
    #[test]
    fn intervals_are_read_as_pacemaker_reads_them() {
        let cases = [
            ("60", 60_000),
            ("60s", 60_000),
            (" 60", 60_000),
            ("60 s", 60_000),
            ("60S", 60_000),
            ("1m", 60_000),
            ("1min", 60_000),
            ("1.5m", 60_000),
            ("2h", 7_200_000),
            ("1hour", 3_600_000),
            ("1h30", 3_600_000),
            ("500ms", 500),
            ("90000ms", 90_000),
            ("5000us", 5),
            ("0", 0),
            ("00s", 0),
            ("PT1M", 60_000),
            ("PT01M", 60_000),
            ("PT+1M", 60_000),
            ("PT1MT1M", 120_000),
            ("PT1M 5", 60_000),
            ("PT5M", 300_000),
            ("PT1H30M", 5_400_000),
            ("PT90000S", 90_000_000),
            ("P1DT1H", 3_600_000),
            ("P1D", 0),
            ("P2D", 86_400_000),
            ("P1W", 518_400_000),
            ("P1M", 2_592_000_000),
            ("P1Y", 0),
        ];
        for (text, millis) in cases {
            assert_eq!(interval(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for wrong in [
            "", "soon", "60x", "-3", "pt1m", "P", "PT", "PT0S", "P1", "PT1.5M", "PT-1M", "PTM", "P\u{e4}",
            "P1\u{e4}",
        ] {
            assert_eq!(interval(wrong), None, "{wrong}");
        }
    }
}
