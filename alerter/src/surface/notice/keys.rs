//! The keys that distinguish conditions, and the question to the journal about those that were notified.

use std::collections::BTreeSet;

use journal::Damage;
use marks::id::MarkId;

use super::condition::{Key, printable};
use super::facts::Question;
use crate::problem::{Condition, Problem};

/// Longest part of a subject in a key: problems of evidence files are distinguished by their sentences.
pub(super) const KEY: usize = 200;

/// `of`: the hold, or the route.
pub(super) fn mark_key(what: Condition, mark: MarkId, of: &str) -> Key {
    Key::new(what, format!("{mark} {of}"))
}

/// The question to the journal about conditions that hold or were notified.
pub(super) fn question<'k>(keys: impl Iterator<Item = &'k Key>) -> Question {
    // What two targets were notified of is asked once.
    let keys: BTreeSet<&Key> = keys.collect();
    Question {
        rejected: keys.iter().filter_map(|key| rejected_of(key)).collect(),
        held: keys.iter().filter_map(|key| held_of(key)).collect(),
        quarantined: keys.iter().filter_map(|key| quarantined_of(key)).collect(),
    }
}

/// The mark that the key of a held or damaged one stands for.
pub(super) fn held_of(key: &Key) -> Option<String> {
    let mark = match key.what {
        Condition::Held => key.of.split(' ').next(),
        Condition::Quarantined => key.of.strip_prefix("mark "),
        _ => None,
    };
    mark.map(str::to_owned)
}

/// The mark and the route that the key of a damaged delivery stands for.
pub(super) fn quarantined_of(key: &Key) -> Option<String> {
    let delivery = key.of.strip_prefix("delivery ").filter(|_| key.what == Condition::Quarantined);
    delivery.map(str::to_owned)
}

/// The delivery that the key of a rejected one, or of the last step of a chain, stands for.
pub(super) fn rejected_of(key: &Key) -> Option<(MarkId, String)> {
    let is_one = matches!(key.what, Condition::Rejected | Condition::Exhausted);
    let (mark, route) = key.of.split_once(' ').filter(|_| is_one)?;
    Some((MarkId::parse(mark).ok()?, route.to_owned()))
}

pub(super) fn quarantined_key(delivery: &str) -> Key {
    Key::new(Condition::Quarantined, printable(&format!("delivery {delivery}")))
}

pub(super) fn damage_key(Damage { table, key }: &Damage) -> Key {
    Key::new(Condition::Quarantined, format!("{table} {key}"))
}

/// There is one of each kind, unless it has a subject.
pub(super) fn problem_key(what: Condition, problem: &Problem) -> Key {
    let word = problem.kind.as_str();
    let of = match (&problem.route, &problem.subject) {
        (Some(route), _) => printable(route),
        (None, Some(subject)) => {
            format!("{word} {}", printable(subject).chars().take(KEY).collect::<String>())
        }
        (None, None) => word.to_owned(),
    };
    Key::new(what, of)
}
