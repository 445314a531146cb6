//! Whether one host may be fenced: pure rules over what all hosts say, and over the last hour's fencings.

use std::collections::{BTreeMap, BTreeSet};

/// The word of a host on which nothing fails.
pub(crate) const OK: &str = "ok";

/// The name and the word of each host.
pub(crate) type Words = BTreeMap<String, String>;

/// The hosts that were fenced within an hour, and whether that is under way.
pub(crate) type Fenced = BTreeMap<String, bool>;

/// So many hosts, or such a share of all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// A number.
    Hosts(usize),
    /// Percent, and one host at least.
    Percent(usize),
}

impl Limit {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text.strip_suffix('%') {
            Some(share) => share.parse().ok().filter(|share| *share <= 100).map(Self::Percent),
            None => text.parse().ok().map(Self::Hosts),
        }
    }

    fn of(self, hosts: usize) -> usize {
        match self {
            Self::Hosts(number) => number,
            Self::Percent(share) => (hosts * share / 100).max(1),
        }
    }
}

/// How many hosts may be fenced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Hosts that fail or are out at one time.
    pub(crate) at_once: Limit,
    /// Those and the hosts that were fenced within an hour.
    pub(crate) in_an_hour: Limit,
}

/// What the limits say of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It may be fenced.
    Fence,
    /// It may not, for this reason.
    Hold(String),
}

/// Judges a host that has published its word. Its word must stand among all of them: whoever does not see it, or sees it alone, sees too little.
pub(crate) fn judge((host, word): (&str, &str), words: &Words, fenced: &Fenced, limits: Limits) -> Verdict {
    if words.get(host).map(String::as_str) != Some(word) || words.len() < 2 {
        return Verdict::Hold("the cluster does not show what the hosts say; none is fenced".to_owned());
    }
    if fenced.get(host) == Some(&false) {
        return Verdict::Hold("it was fenced within an hour; it is not fenced again".to_owned());
    }
    let failing: BTreeMap<&String, &String> = words.iter().filter(|(_, said)| *said != OK).collect();
    // A host that is out says nothing.
    let out = fenced.iter().filter(|(name, now)| **now || !words.contains_key(*name)).map(|(name, _)| name);
    let away: BTreeSet<&String> = failing.keys().copied().chain(out).collect();
    let (all, number) = (words.len(), away.len());
    if number > limits.at_once.of(all) {
        let is_same = |said: &&String| said.split(' ').next() == word.split(' ').next();
        let what = match failing.values().all(is_same) {
            _ if number > failing.len() => "fail or are out after a fencing",
            true => "fail the same check: a common cause",
            false => "fail a check: a common cause",
        };
        return Verdict::Hold(format!("{number} of {all} hosts {what}; none is fenced"));
    }
    let within_an_hour: BTreeSet<&String> = failing.keys().copied().chain(fenced.keys()).collect();
    if within_an_hour.len() > limits.in_an_hour.of(all) {
        let number = fenced.len();
        return Verdict::Hold(format!(
            "{number} of {all} hosts fenced within an hour; no further one is fenced"
        ));
    }
    Verdict::Fence
}

/// What `attrd_updater --query --all` prints: a line for each host. Who has said nothing, or has withdrawn it, has an empty one.
pub(crate) fn words(printed: &str) -> Option<Words> {
    let said = printed.lines().filter(|line| !line.ends_with("value=\"\""));
    said.map(|line| Some((value(line, "host")?.to_owned(), value(line, "value")?.to_owned()))).collect()
}

/// The hosts that were fenced within an hour, or are being fenced, of the XML of `stonith_admin --history` with times in UTC.
/// Clocks may differ by two minutes. `None` where a time cannot be read.
pub(crate) fn fenced(printed: &str, now: u64) -> Option<Fenced> {
    let off = |event: &&str| {
        matches!(value(event, "action"), Some("off" | "reboot")) && value(event, "status") != Some("failed")
    };
    printed.contains("<status code=\"0\"").then_some(())?;
    let events = printed.split("<fence_event ").skip(1).map(|event| event.split('>').next().unwrap_or(event));
    let mut hosts = Fenced::new();
    for event in events.filter(off) {
        let completed = value(event, "completed");
        let is_recent = match completed {
            Some(at) => seconds(at)? + 3600 + 120 > now,
            None => true,
        };
        if is_recent {
            *hosts.entry(value(event, "target")?.to_owned()).or_default() |= completed.is_none();
        }
    }
    Some(hosts)
}

/// The value of an attribute in quotes.
fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, behind) = text.split_once(&format!("{name}=\""))?;
    Some(behind.split_once("\"")?.0)
}

/// Seconds since the epoch of `2026-11-20 15:27:38Z`, or the same with a fraction.
fn seconds(at: &str) -> Option<u64> {
    let (time, zone) = at.split_at_checked(19)?;
    (zone.ends_with('Z') || zone.ends_with("+00:00")).then_some(())?;
    let mut parts = time.split(['-', ' ', ':']).map(|part| part.parse::<u64>().ok());
    let mut next = || parts.next().flatten();
    let (year, month, day) = (next()?, next()?, next()?);
    let clock = next()? * 3600 + next()? * 60 + next()?;
    // A year begins in March here: its last day is the leap day.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day;
    Some(days.checked_sub(719_469)? * 86_400 + clock)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { at_once: Limit::Hosts(1), in_an_hour: Limit::Percent(10) };

    /// So many hosts, the first of which fail.
    fn of(all: usize, failing: usize) -> Words {
        let word = |n| if n < failing { "link bond0" } else { OK };
        (0..all).map(|n| (format!("compute{n}"), word(n).to_owned())).collect()
    }

    fn judged(words: &Words, fenced: &[&str]) -> Verdict {
        let fenced = fenced.iter().map(|host| ((*host).to_owned(), false)).collect();
        judge(("compute0", "link bond0"), words, &fenced, LIMITS)
    }

    #[test]
    fn one_host_at_a_time_and_a_tenth_within_an_hour() {
        assert_eq!(judged(&of(100, 1), &[]), Verdict::Fence);
        assert_eq!(judged(&of(2, 1), &[]), Verdict::Fence);
        let said = "17 of 100 hosts fail the same check: a common cause; none is fenced";
        assert_eq!(judged(&of(100, 17), &[]), Verdict::Hold(said.to_owned()));
        assert!(matches!(judged(&of(12, 1), &["compute7"]), Verdict::Hold(_)));
        assert_eq!(judged(&of(30, 1), &["compute7", "compute8"]), Verdict::Fence);
        assert!(matches!(judged(&of(30, 1), &["compute7", "compute8", "compute9"]), Verdict::Hold(_)));
    }

    /// A check is wrong on all hosts, one after the other and twice: each is fenced once at most, and while one is out no other.
    #[test]
    fn one_wrong_word_fences_one_host_an_hour() {
        for (all, most) in [(5, 1), (20, 2), (100, 10)] {
            let well = of(all, 0);
            let mut fenced = Fenced::new();
            for (name, next) in well.keys().cycle().zip(well.keys().cycle().skip(1)).take(2 * all) {
                let judged = |words: &Words, name: &str, fenced: &Fenced| {
                    let mut words = words.clone();
                    words.insert(name.to_owned(), "link bond0".to_owned());
                    judge((name, "link bond0"), &words, fenced, LIMITS)
                };
                if judged(&well, name, &fenced) != Verdict::Fence {
                    continue;
                }
                fenced.insert(name.clone(), true);
                assert_eq!(
                    judged(&well, name, &fenced),
                    Verdict::Fence,
                    "its own fencing is no reason against it"
                );
                assert_ne!(judged(&well, next, &fenced), Verdict::Fence, "{name} is being fenced");
                fenced.insert(name.clone(), false);
                let mut without = well.clone();
                without.remove(name);
                assert_ne!(judged(&without, next, &fenced), Verdict::Fence, "{name} is out");
            }
            assert_eq!(fenced.len(), most, "of {all}");
        }
    }

    #[test]
    fn who_is_not_seen_is_not_fenced() {
        assert!(matches!(judged(&of(100, 0), &[]), Verdict::Hold(_)));
        assert!(matches!(judged(&Words::new(), &[]), Verdict::Hold(_)));
        assert!(matches!(judged(&of(1, 1), &[]), Verdict::Hold(_)), "alone it sees too little");
    }

    #[test]
    fn a_limit_is_a_number_or_a_share() {
        assert_eq!(Limit::parse("3"), Some(Limit::Hosts(3)));
        assert_eq!(Limit::parse("10%").map(|limit| (limit.of(5), limit.of(300))), Some((1, 30)));
        for wrong in ["", "-1", "101%", "%", "some"] {
            assert_eq!(Limit::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_the_tools_print_is_read() {
        let printed = "name=\"host-health\" host=\"compute1\" value=\"ok\"\nname=\"host-health\" host=\"c2\" value=\"link a\"\n";
        assert_eq!(words(printed).unwrap().get("c2").unwrap(), "link a");
        assert_eq!(words("name=\"host-health\" host=\"ctl1\" value=\"\"\n").unwrap().len(), 0);
        assert_eq!(words("Could not query"), None);
        let event =
            |target: &str, rest: &str| format!("<fence_event target=\"{target}\" action=\"reboot\" {rest}/>");
        let at = |time: &str| format!("status=\"success\" completed=\"{time}\"");
        let events = [
            event("new", &at("2026-11-29 09:00:00Z")),
            event("newer", &at("2026-11-29 09:00:00.5Z")),
            event("old", &at("2026-11-29 07:50:00Z")),
            event("pending", "status=\"pending\""),
            event("failed", &at("2026-11-29 09:00:00Z").replace("success", "failed")),
        ];
        let printed = format!("{}<status code=\"0\" message=\"OK\"/>", events.concat());
        let now = 1_795_945_800; // 2026-11-29 09:50:00
        let hosts = fenced(&printed, now).unwrap();
        let hosts: Vec<_> = hosts.iter().map(|(name, now)| (name.as_str(), *now)).collect();
        assert_eq!(hosts, [("new", false), ("newer", false), ("pending", true)]);
        assert_eq!(fenced(&printed.replace("07:50:00Z", "yesterday"), now), None);
        assert_eq!(fenced("", now), None, "nothing printed is no answer");
        assert_eq!(seconds("1970-01-01 00:00:00Z"), Some(0));
        assert_eq!(seconds("2000-02-29 12:00:00Z"), Some(951_825_600));
    }
}
