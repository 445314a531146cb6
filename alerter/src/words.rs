//! How times, lengths of time and commands are written for people.

use site::blanked;
use std::borrow::Borrow;
use std::time::Duration;

use marks::terms::RETURNED;
use marks::time::Timestamp;

/// The command that lets go what a route's terms hold by this word.
pub(crate) fn release_of_held(who: &str, word: &str) -> String {
    let insist = if word == RETURNED { " --insist" } else { "" };
    format!("nova-host-alerter release {who}{insist} --reason TEXT")
}

/// UTC, to the second.
pub fn utc(at: Timestamp) -> String {
    at.written("%Y-%m-%d %H:%M:%SZ")
}

/// The same: in one format on the day of `now`, in another on any other day.
pub(crate) fn near(at: Timestamp, now: Timestamp, today: &str, other_day: &str) -> String {
    let day = |at: Timestamp| at.written("%Y-%m-%d");
    at.written(if day(at) == day(now) { today } else { other_day })
}

/// A length of time in the largest unit that has at least two of it, rounded down: `90s`, `3m`, `2h`, `4d`.
pub(crate) fn short(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
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

/// `1 delivery`, `2 deliveries`.
pub(crate) fn counted(count: usize, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

/// So many hosts or instances are named; the others are counted.
pub const NAMED: usize = 3;

/// Some of these by name; the others are counted.
pub fn named(all: &[String]) -> String {
    named_up_to(all, NAMED)
}

/// The same with another number of names.
pub fn named_up_to(all: &[impl Borrow<str>], most: usize) -> String {
    let more = all.len().saturating_sub(most);
    let named = all[..all.len() - more].join(", ");
    if more > 0 { format!("{named} and {more} more") } else { named }
}

/// What the register keeps of a text, in bytes.
const TEXT_MAX: usize = 1024;

/// A text as far as it is safe in a log, and no longer than the register keeps it.
pub(crate) fn plain(text: &str) -> String {
    let letters = blanked(text.trim()).take(512);
    let mut room = TEXT_MAX;
    let fits = |c: &char| {
        room = room.saturating_sub(c.len_utf8());
        room > 0
    };
    letters.take_while(fits).collect()
}

/// A user's name as far as it is safe in a log.
pub(crate) fn person(name: &str) -> String {
    let name: String = plain(name).chars().take(64).collect();
    if name.is_empty() { "root".to_owned() } else { name }
}

/// Who decided something, as `root (uid 0)`, without the number.
pub(crate) fn without_uid(actor: &str) -> &str {
    actor.split(" (").next().unwrap_or(actor)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The broken variant counts letters alone: what is longer never gets into the register.
    #[test]
    fn a_reason_is_cut_to_what_the_register_keeps() {
        assert_eq!(plain(" a\nb "), "a b");
        assert_eq!(plain(&"a".repeat(600)).len(), 512);
        let long = plain(&"€".repeat(600));
        assert!(long.len() <= TEXT_MAX && long.chars().count() > 300, "{}", long.len());
    }
}
