//! Times as Pacemaker's tools print them for people, read into one point in time.

use marks::time::Timestamp;

const DAY: i64 = 86_400;

/// Reads `2026-11-20 15:27:38Z`, with a fraction of a second (from 2.1.6 on) or without, and with an offset (`+01:00`) in
/// place of the `Z`. `None` for anything else: a time without a zone is ambiguous.
pub(super) fn read(text: &str) -> Option<Timestamp> {
    let (date, time) = text.trim().split_once([' ', 'T'])?;
    let split = time.find(|c: char| !matches!(c, '0'..='9' | ':' | '.'))?;
    let (time, zone) = time.split_at(split);
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let seconds = day(date)? * DAY + of_day(time)? - offset(zone.trim())?;
    Some(Timestamp(seconds * 1000 + milliseconds(fraction)?))
}

/// Days since the epoch of a date `YYYY-MM-DD`. Years begin in March here, so that the leap day is the last.
fn day(date: &str) -> Option<i64> {
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    if !(1..=12).contains(&month) || !(1..=length(year, month)).contains(&day) {
        return None;
    }
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * month + 2) / 5 + day - 1;
    // There are 719,468 days between the first of March of the year 0 and the epoch.
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

fn length(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Seconds since midnight; a leap second is the first of the next minute.
fn of_day(time: &str) -> Option<i64> {
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    (hour < 24 && minute < 60 && second <= 60).then_some(hour * 3600 + minute * 60 + second)
}

/// How far east of Greenwich, in seconds.
fn offset(zone: &str) -> Option<i64> {
    let (sign, rest) = match zone.split_at_checked(1)? {
        ("Z", "") => return Some(0),
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let [hour, minute] = numbers(rest, ':', [2, 2])?;
    (hour < 24 && minute < 60).then_some(sign * (hour * 3600 + minute * 60))
}

/// The first three digits of a fraction.
fn milliseconds(fraction: &str) -> Option<i64> {
    let plain = (1..=9).contains(&fraction.len()) && fraction.bytes().all(|b| b.is_ascii_digit());
    if !plain {
        return None;
    }
    format!("{fraction:0<3}")[..3].parse().ok()
}

/// Numbers of a fixed count of digits each.
fn numbers<const COUNT: usize>(text: &str, between: char, digits: [usize; COUNT]) -> Option<[i64; COUNT]> {
    let parts: Vec<&str> = text.split(between).collect();
    let parts: [&str; COUNT] = parts.try_into().ok()?;
    let mut all = [0; COUNT];
    for ((part, digits), number) in parts.into_iter().zip(digits).zip(&mut all) {
        if part.len() != digits || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        *number = part.parse().ok()?;
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert_eq, proptest};

    /// Computed with `date -u -d TIME +%s`.
    #[test]
    fn every_form_that_pacemaker_prints_is_read() {
        for (text, milliseconds) in [
            ("2026-11-20 15:27:38Z", 1_795_188_458_000),
            ("2026-11-20 16:27:38 +01:00", 1_795_188_458_000),
            ("2026-11-20 16:27:38+01:00", 1_795_188_458_000),
            ("2026-11-20 10:57:38 -04:30", 1_795_188_458_000),
            ("2026-11-20 15:27:38.123456Z", 1_795_188_458_123),
            ("2026-11-20 16:27:38.123456 +01:00", 1_795_188_458_123),
            ("2026-11-20 15:27:38.5Z", 1_795_188_458_500),
            ("2026-11-20T15:27:38Z", 1_795_188_458_000),
            ("2024-02-29 23:59:59Z", 1_709_251_199_000),
            ("2024-03-01 00:00:00Z", 1_709_251_200_000),
            ("2100-03-01 00:00:00Z", 4_107_542_400_000),
            ("1970-01-01 00:00:00Z", 0),
            ("1969-12-31 23:59:59Z", -1000),
        ] {
            assert_eq!(read(text), Some(Timestamp(milliseconds)), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in [
            "",
            "Z",
            "2026-11-20",
            "2026-11-20 15:27:38",
            "2026-11-20 15:27Z",
            "2026-11-20 24:00:00Z",
            "2026-11-31 00:00:00Z",
            "2023-02-29 00:00:00Z",
            "2100-02-29 00:00:00Z",
            "2026-00-10 00:00:00Z",
            "2026-13-10 00:00:00Z",
            "+026-11-20 15:27:38Z",
            "2026-11-20 15:27:38ZZ",
            "2026-11-20 15:27:38 CET",
            "2026-11-20 15:27:38 +25:00",
            "2026-11-20 15:27:38.Z",
            "2026-11-20 15:27:38.1234567890Z",
            "2026-11-20 15:27:38é",
            "20261-1-20 15:27:38Z",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    proptest! {
        /// Each day is one later than the day before it, through all lengths of months and years.
        #[test]
        fn days_follow_one_another(year in 1971..2400_i64, month in 1..=12_i64, of_month in 1..=31_i64) {
            let of_month = of_month.min(length(year, month));
            let next = match (month, of_month == length(year, month)) {
                (12, true) => (year + 1, 1, 1),
                (_, true) => (year, month + 1, 1),
                (_, false) => (year, month, of_month + 1),
            };
            let days = |(year, month, day_of): (i64, i64, i64)| day(&format!("{year:04}-{month:02}-{day_of:02}")).unwrap();
            prop_assert_eq!(days((year, month, of_month)) + 1, days(next));
        }

        #[test]
        fn no_text_is_too_odd(text in "\\PC{0,40}", tail in "[0-9:. +Z-]{0,30}") {
            let _none = (read(&text), read(&tail), read(&format!("2026-11-20 {tail}")));
        }
    }
}
