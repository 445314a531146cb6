//! Reads a group's limits and times.

use std::ops::RangeInclusive;
use std::time::Duration;

use site::Section;

use super::members::Members;

use crate::config::rules::{Amount, Limit, Rules};

/// The longest time, in seconds: a day is longer than anything that makes sense.
const DAY: u32 = 86_400;
/// The longest time back to a failure that still counts, in seconds.
const MONTH: u32 = 31 * DAY;
/// The longest text of a range, as in Cluster API.
const RANGE_LENGTH: usize = 32;

/// Reads the rules of a group. `is_alone`: there is no cluster that knows how many hosts it has.
pub(super) fn read(table: &mut Section<'_, '_>, members: Option<&Members>, is_alone: bool) -> Rules {
    let usual = Rules::default();
    let rules = Rules {
        limit: limit(table),
        window: seconds(table, "window", 1..=MONTH),
        cooldown: seconds(table, "cooldown", 0..=DAY).unwrap_or(usual.cooldown),
        max_hold: seconds(table, "max-hold", 1..=DAY).unwrap_or(usual.max_hold),
        deliver_after: seconds(table, "deliver-after", 0..=DAY).unwrap_or(usual.deliver_after),
        healthy_delay: seconds(table, "healthy-delay", 0..=DAY).unwrap_or(usual.healthy_delay),
        max_in_flight: table.number("max-in-flight", 1..=100_000),
        serial: table.flag("serial").unwrap_or(usual.serial),
    };
    check_size(table, rules.limit, members, is_alone);
    rules
}

fn seconds(table: &mut Section<'_, '_>, key: &'static str, range: RangeInclusive<u32>) -> Option<Duration> {
    table.number(key, range).map(|seconds| Duration::from_secs(seconds.into()))
}

/// The range overrides the number.
fn limit(table: &mut Section<'_, '_>) -> Limit {
    let most = table.number_or_text("max-unhealthy", 0..=u32::MAX, Amount::Hosts, |text| {
        percent(text).map(Amount::Percent)
    });
    let range = table.text("unhealthy-range", range);
    if table.has("max-unhealthy") && table.has("unhealthy-range") {
        table.warn("max-unhealthy", "unhealthy-range overrides max-unhealthy: remove one");
    }
    range.or(most.map(Limit::AtMost)).unwrap_or_default()
}

fn percent(text: &str) -> Result<u32, String> {
    let digits = text.strip_suffix('%').unwrap_or_default();
    let is_plain = (1..=3).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let percent = digits.parse().ok().filter(|percent| is_plain && *percent <= 100);
    percent.ok_or_else(|| {
        "must be a number of hosts such as 4, or a whole percentage in quotes such as \"40%\"".to_owned()
    })
}

fn range(text: &str) -> Result<Limit, String> {
    let number = |digits: &str| -> Option<u32> {
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let ends = inner.filter(|_| text.len() <= RANGE_LENGTH).and_then(|inner| inner.split_once('-'));
    match ends.map(|(low, high)| (number(low), number(high))) {
        Some((Some(low), Some(high))) if low <= high => Ok(Limit::Range { low, high }),
        Some((Some(_), Some(_))) => Err("the first number must not be greater than the second".to_owned()),
        _ => Err("must be a range of whole numbers such as \"[1-4]\"".to_owned()),
    }
}

/// What depends on how many hosts there are.
fn check_size(table: &mut Section<'_, '_>, limit: Limit, members: Option<&Members>, is_alone: bool) {
    let Some(members) = members else { return };
    let key = match limit {
        Limit::Range { .. } => "unhealthy-range",
        Limit::AtMost(Amount::Percent(_)) => "max-unhealthy",
        Limit::None | Limit::AtMost(Amount::Hosts(_)) => return,
    };
    match members.count() {
        None if is_alone => table.complain(
            key,
            "[store] register = \"none\" has no cluster that knows how many hosts are in this group: name each host in hosts, or set max-unhealthy to a number",
        ),
        None => {}
        Some(size) => {
            if let Some(why) = zero(limit, size) {
                table.warn(key, why);
            }
        }
    }
}

/// For people.
pub(super) fn shown(limit: Limit) -> String {
    match limit {
        Limit::None => "no limit".to_owned(),
        Limit::AtMost(Amount::Hosts(most)) => format!("held above {most} unhealthy"),
        Limit::AtMost(Amount::Percent(percent)) => {
            format!("held above {percent}% unhealthy, rounded down")
        }
        Limit::Range { low, high } => format!("held outside of {low} to {high} unhealthy"),
    }
}

/// A warning about a percentage that is no host in a group of this size.
pub(super) fn zero(limit: Limit, size: usize) -> Option<String> {
    match limit {
        Limit::AtMost(amount @ Amount::Percent(percent)) if size > 0 && amount.of(size) == 0 => {
            Some(format!(
                "{percent}% of {size} host(s) is none, so every mark is held at first: raise max-unhealthy, or set it to a number"
            ))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S4-23, S4-24: what the implementations accept by accident is refused.
    #[test]
    fn a_percentage_is_whole_and_at_most_a_hundred() {
        for (text, read) in [("0%", 0), ("5%", 5), ("40%", 40), ("100%", 100)] {
            assert_eq!(percent(text), Ok(read), "{text}");
        }
        for bad in [
            "150%", "101%", "-3%", "2", "", "%", "33.3%", " 5%", "5% ", "5 %", "+5%", "0x5%", "1000%", "5%%",
            "٥%",
        ] {
            assert!(percent(bad).is_err(), "{bad:?}");
        }
    }

    /// S4-11: the form of Cluster API, and what it finds out only at run time.
    #[test]
    fn a_range_has_two_numbers_in_order() {
        for (text, low, high) in
            [("[1-4]", 1, 4), ("[0-0]", 0, 0), ("[3-3]", 3, 3), ("[0-4294967295]", 0, u32::MAX)]
        {
            assert_eq!(range(text), Ok(Limit::Range { low, high }), "{text}");
        }
        for bad in [
            "",
            "[]",
            "[-]",
            "1-4",
            "[1-4",
            "1-4]",
            "[1]",
            "[1-]",
            "[-4]",
            "[1-4] ",
            "[ 1-4]",
            "[1--4]",
            "[+1-4]",
            "[1-4-5]",
            "[a-b]",
            "[1-4.5]",
            "[0-4294967296]",
            "[4-3]",
            "[٣-٤]",
        ] {
            assert!(range(bad).is_err(), "{bad:?}");
        }
        let long = |zeros: usize| format!("[{}1-4]", "0".repeat(zeros));
        assert!(range(&long(27)).is_ok() && range(&long(28)).is_err());
    }

    /// The broken variant: a limit that is none by its number is meant so.
    #[test]
    fn a_percentage_that_is_nobody_is_worth_a_warning() {
        let share = |percent| Limit::AtMost(Amount::Percent(percent));
        assert!(zero(share(33), 3).is_some() && zero(share(33), 4).is_none());
        assert!(zero(share(33), 0).is_none(), "there is nobody to hold");
        assert!(zero(Limit::AtMost(Amount::Hosts(0)), 3).is_none() && zero(Limit::None, 3).is_none());
    }
}
