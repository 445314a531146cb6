//! The keys of conditions: what a condition is told apart by, and what the journal is asked of one that was told.

use std::collections::BTreeSet;

use journal::Damage;
use marks::id::MarkId;

use super::body::printable;
use super::facts::Question;
use super::{Key, What};
use crate::policy::Hold;

/// Longest part of a sentence that is a key: evidence files are told apart by what is said of them.
pub(super) const KEY: usize = 200;

pub(super) fn held_key(mark: MarkId, hold: Hold) -> Key {
    Key::new(What::Held, format!("{mark} {}", hold.as_str()))
}

pub(super) fn rejected_key(mark: MarkId, route: &str) -> Key {
    Key::new(What::Rejected, format!("{mark} {route}"))
}

pub(super) fn exhausted_key(mark: MarkId, route: &str) -> Key {
    Key::new(What::Exhausted, format!("{mark} {route}"))
}

/// What the journal is asked where these conditions hold or were told.
pub(super) fn question<'k>(keys: impl Iterator<Item = &'k Key>) -> Question {
    // Two targets were told the same: it is asked once.
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
        What::Held => key.of.split(' ').next(),
        What::Quarantined => key.of.strip_prefix("mark "),
        _ => None,
    };
    mark.map(str::to_owned)
}

/// The mark and the route that the key of a damaged delivery stands for.
pub(super) fn quarantined_of(key: &Key) -> Option<String> {
    let delivery = key.of.strip_prefix("delivery ").filter(|_| key.what == What::Quarantined);
    delivery.map(str::to_owned)
}

/// The delivery that the key of a rejected one, or of the last step of a chain, stands for.
pub(super) fn rejected_of(key: &Key) -> Option<(MarkId, String)> {
    let is_one = matches!(key.what, What::Rejected | What::Exhausted);
    let (mark, route) = key.of.split_once(' ').filter(|_| is_one)?;
    Some((MarkId::parse(mark).ok()?, route.to_owned()))
}

pub(super) fn quarantined_key(delivery: &str) -> Key {
    Key::new(What::Quarantined, printable(&format!("delivery {delivery}")))
}

pub(super) fn damage_key(Damage { table, key }: &Damage) -> Key {
    Key::new(What::Quarantined, format!("{table} {key}"))
}

/// There is one of each kind, but as many about evidence as there are files that are not used.
pub(super) fn reason_key(kind: &str, sentence: &str) -> Key {
    let of = match kind {
        "evidence" => format!("{kind} {}", printable(sentence).chars().take(KEY).collect::<String>()),
        _ => kind.to_owned(),
    };
    Key::new(What::Cluster, of)
}
