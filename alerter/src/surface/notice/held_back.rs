//! What the policy holds, as conditions: one for all the marks that one thing holds, and one more each day for what only a person
//! ends. Pure: the time is an argument.

use std::time::Duration;

use journal::HeldTogether;
use marks::time::Timestamp;

use super::condition::{About, Conditions, Key};
use super::facts::DAY;
use crate::policy::Hold;
use crate::problem::{self, Condition, Place};

/// A host that is probed for so long needs a person; most are probed for moments.
const ASKED: Duration = Duration::from_secs(60);

/// Adds what holds now; gives how long until more of it begins by time alone.
pub(super) fn add(
    found: &mut Conditions,
    held: &[HeldTogether],
    now: Timestamp,
    place: &Place,
) -> Option<Duration> {
    held.iter().filter_map(|held| add_one(found, held, now, place)).min()
}

fn add_one(found: &mut Conditions, held: &HeldTogether, now: Timestamp, place: &Place) -> Option<Duration> {
    let hold = Hold::parse(&held.word).filter(|hold| !hold.passes())?;
    let age = now.since(held.since);
    if hold == Hold::Confirm && age < ASKED {
        return Some(ASKED - age);
    }
    let of = format!("{} {}", held.word, held.why);
    let about = About { kind: held.word.clone(), ..About::default() };
    let message = problem::of_held_together(hold, held, now, place).sentence();
    found.add(Key::new(Condition::HeldBack, &of), held.since, about.clone(), &message);
    // What ends by time needs no reminder.
    if held.until.is_some() {
        return None;
    }
    let days = age.as_secs() / DAY.as_secs();
    if days > 0 {
        let since = held.since + DAY * u32::try_from(days).unwrap_or(u32::MAX);
        let key = Key::new(Condition::Reminder, format!("{days} {of}"));
        found.add(key, since, about, &format!("for {days} day(s) already, {message}"));
    }
    Some(DAY - Duration::from_secs(age.as_secs() % DAY.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp(1_000_000_000);

    fn held(word: &str, until: Option<Timestamp>) -> HeldTogether {
        HeldTogether {
            word: word.into(),
            why: "of it".into(),
            cause: Default::default(),
            marks: 8,
            since: START,
            until,
        }
    }

    fn keys(held: &HeldTogether, now: Timestamp) -> (Vec<String>, Option<Duration>) {
        let mut found = Conditions::default();
        let rest = add(&mut found, std::slice::from_ref(held), now, &Place::default());
        (found.holds.keys().map(ToString::to_string).collect(), rest)
    }

    /// However many marks a storm holds, and for however long: it is notified once.
    #[test]
    fn what_ends_by_time_is_notified_once() {
        let storm = held("storm", Some(START + DAY * 9));
        for days in [0, 1, 5] {
            assert_eq!(keys(&storm, START + DAY * days), (vec!["held-back storm of it".into()], None));
        }
    }

    /// The broken variant above: what a person ends is said again every day.
    #[test]
    fn what_a_person_ends_is_said_again_each_day() {
        let pause = held("pause", None);
        let hour = Duration::from_secs(3600);
        assert_eq!(keys(&pause, START), (vec!["held-back pause of it".into()], Some(DAY)));
        let (held, rest) = keys(&pause, START + DAY * 2 + hour);
        assert_eq!(held, ["held-back pause of it", "reminder 2 pause of it"]);
        assert_eq!(rest, Some(DAY - hour));
    }

    #[test]
    fn what_passes_by_itself_wakes_nobody() {
        for word in ["delay", "returning", "max-in-flight", "what-is-this"] {
            assert_eq!(keys(&held(word, None), START + DAY), (Vec::new(), None), "{word}");
        }
        let asked = held("confirm", None);
        assert_eq!(keys(&asked, START), (Vec::new(), Some(ASKED)));
        assert_eq!(keys(&asked, START + ASKED).0, ["held-back confirm of it"]);
    }
}
