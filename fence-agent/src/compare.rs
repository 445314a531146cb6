//! This controller's fencings compared with the register, and those that it has lost. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

use marks::fencing::Fencing;
use marks::id::FencingId;
use marks::outage::Registered;
use marks::register::{Entries, Key, SETTLED_MAX};
use marks::time::Timestamp;

/// The result for fencings that have been in the register.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    /// Keys of ends that are there and were unknown here: they are not searched for again.
    pub(crate) ended: Vec<String>,
    /// The register has nothing of these: neither the fencing nor an entry about it.
    pub(crate) lost: Vec<Fencing>,
}

/// Compares the fencings with the register. If so many marks have ended that the oldest were removed, nothing is lost.
pub(crate) fn compare(
    fencings: Vec<Fencing>,
    found: &Entries,
    coalesce: Duration,
    now: Timestamp,
) -> Compared {
    let mut compared = Compared::default();
    let registered = Registered::of(found, &fencings, coalesce, now);
    let done: BTreeSet<FencingId> =
        fencings.iter().map(|f| f.id).filter(|id| registered.is_done(*id)).collect();
    let ends = found.sound.keys().filter(|key| matches!(key, Key::Settled(_))).count();
    for fencing in fencings {
        if done.contains(&fencing.id) {
            compared.ended.push(Key::Settled(fencing.id.into()).to_string());
        } else if ends < SETTLED_MAX && !stands(&fencing, found) {
            compared.lost.push(fencing);
        }
    }
    compared
}

fn stands(fencing: &Fencing, found: &Entries) -> bool {
    let mark = fencing.id.into();
    let keys = [Key::Fencing(fencing.id), Key::Again(fencing.id), Key::Mark(mark), Key::Settled(mark)];
    keys.iter().any(|key| found.sound.contains_key(key))
}

#[cfg(test)]
mod tests {
    use marks::fencing::Incarnation;

    use marks::mark::{Mark, Settlement, Source};
    use marks::outage::COALESCE;
    use marks::register::{Entry, MarkEntry, Returned, Settled};

    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    fn fencing(asked_at: Timestamp) -> Fencing {
        Fencing {
            incarnation: Some(Incarnation::new("ctl1", 7, 5)),
            ..samples::fencing("compute1", asked_at)
        }
    }

    fn end(of: &Fencing, at: Timestamp) -> Entry {
        Entry::Settled(Settled { mark: of.id.into(), how: Settlement::Acknowledged, at, by: "ctl2".into() })
    }

    fn mark(of: &Fencing) -> Entry {
        let mark = Mark {
            id: of.id.into(),
            node: of.node.clone(),
            fqdn: of.node.clone(),
            on_shared_storage: true,
            failure_time: of.asked_at,
            generated_time: of.asked_at,
        };
        let (incarnation, made_by) = (of.incarnation.clone(), "ctl2".to_owned());
        Entry::Mark(MarkEntry { mark, source: Source::Fencing, incarnation, made_by, made_at: of.asked_at })
    }

    fn found(entries: Vec<Entry>) -> Entries {
        let sound = entries.into_iter().map(|entry| (entry.key(), entry)).collect();
        Entries { sound, ..Entries::default() }
    }

    fn compared(fencing: &Fencing, entries: Vec<Entry>) -> (usize, usize) {
        let Compared { ended, lost } = compare(vec![fencing.clone()], &found(entries), COALESCE, NOW);
        (ended.len(), lost.len())
    }

    #[test]
    fn what_nothing_stands_of_is_lost() {
        let own = fencing(NOW);
        assert_eq!(compared(&own, vec![]), (0, 1));
        for standing in [Entry::Fencing(own.clone()), Entry::Again(own.clone()), mark(&own)] {
            assert_eq!(compared(&own, vec![standing]), (0, 0));
        }
        assert_eq!(compared(&own, vec![mark(&fencing(NOW)), end(&fencing(NOW), NOW)]), (0, 1), "another's");
    }

    #[test]
    fn what_has_ended_is_known_for_good() {
        let own = fencing(NOW);
        assert_eq!(compared(&own, vec![end(&own, NOW)]), (1, 0));
        assert_eq!(
            compared(&own, vec![end(&own, NOW + Duration::from_secs(121))]),
            (0, 0),
            "its time is in the future"
        );
        let first = fencing(NOW - Duration::from_secs(30));
        assert_eq!(compared(&own, vec![mark(&first), end(&first, NOW)]), (1, 0), "it was fenced again");
        assert_eq!(compared(&own, vec![mark(&first)]), (0, 1));
        let other = Fencing { incarnation: Some(Incarnation::new("ctl1", 8, 9)), ..first };
        assert_eq!(
            compared(&own, vec![mark(&other), end(&other, NOW)]),
            (0, 1),
            "the host was back in between"
        );
    }

    /// A fencing of an ended mark makes no mark here. For these the intake makes one: the host was back in between, or
    /// that is unknown, so long after. The broken variants are a repetition before the return, and one moments after the
    /// end.
    #[test]
    fn what_comes_after_a_return_or_long_after_the_end_has_not_ended() {
        let second = |back: u64| NOW - Duration::from_secs(back);
        let compared = |asked: u64, returned: Option<u64>| {
            let (first, again) = (fencing(second(3000)), fencing(second(asked)));
            let back = |at| Returned { mark: first.id.into(), at: second(at), by: "ctl2".into() };
            let returned = returned.map(|at| Entry::Returned(back(at)));
            let entries = [mark(&first), end(&first, second(2999))].into_iter().chain(returned).collect();
            compared(&again, entries)
        };
        assert_eq!((compared(2900, Some(2950)), compared(2950, Some(2900))), ((0, 1), (1, 0)));
        assert_eq!((compared(2699, None), compared(2700, None)), ((0, 1), (1, 0)));
    }

    /// The oldest of very many were removed: writing them again would let the register grow forever.
    #[test]
    fn where_the_register_is_full_of_ends_nothing_is_lost() {
        let own = fencing(NOW);
        let ends = |count| (0..count).map(|_| end(&fencing(NOW), NOW)).collect();
        assert_eq!(compared(&own, ends(SETTLED_MAX - 1)), (0, 1));
        assert_eq!(compared(&own, ends(SETTLED_MAX)), (0, 0));
    }
}
