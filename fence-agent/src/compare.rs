//! What the register says of this controller's fencings, and what it has lost of them. Pure.

use marks::fencing::Fencing;
use marks::id::MarkId;
use marks::register::{Entries, Entry, Key, SETTLED_MAX};
use marks::time::{CLOCK_SKEW, Timestamp};

/// What became of fencings that have stood in the register.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    /// Keys of ends that stand there, of which this controller knew nothing: they are not looked for again.
    pub(crate) ended: Vec<String>,
    /// Nothing stands there of these: neither the fencing nor what was said of it.
    pub(crate) lost: Vec<Fencing>,
}

/// Compares the fencings with the register. Where so many marks have ended that the oldest left it, nothing is lost.
pub(crate) fn compare(fencings: Vec<Fencing>, found: &Entries, now: Timestamp) -> Compared {
    let mut compared = Compared::default();
    let ends = found.sound.keys().filter(|key| matches!(key, Key::Settled(_))).count();
    for fencing in fencings {
        if has_ended(&fencing, found, now) {
            compared.ended.push(Key::Settled(fencing.id.into()).to_string());
        } else if ends < SETTLED_MAX && !stands(&fencing, found) {
            compared.lost.push(fencing);
        }
    }
    compared
}

/// Whether its own mark has ended, or that of the outage that it surely belongs to.
fn has_ended(fencing: &Fencing, found: &Entries, now: Timestamp) -> bool {
    let is_settled = |mark: MarkId| {
        let end = found.sound.get(&Key::Settled(mark));
        matches!(end, Some(Entry::Settled(end)) if end.at <= now + CLOCK_SKEW)
    };
    let is_of = |entry: &Entry| match entry {
        Entry::Mark(entry) => {
            // A host that was not fenced since it was connected may have had a connection that is forgotten.
            let is_same = fencing.incarnation.is_some()
                && entry.incarnation == fencing.incarnation
                && fencing.already_down != Some(false);
            let is_earlier = entry.mark.failure_time <= fencing.asked_at;
            entry.mark.node == fencing.node && is_same && is_earlier && is_settled(entry.mark.id)
        }
        _ => false,
    };
    is_settled(fencing.id.into()) || found.sound.values().any(is_of)
}

fn stands(fencing: &Fencing, found: &Entries) -> bool {
    let mark = fencing.id.into();
    let keys = [Key::Fencing(fencing.id), Key::Again(fencing.id), Key::Mark(mark), Key::Settled(mark)];
    keys.iter().any(|key| found.sound.contains_key(key))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use marks::fencing::{Incarnation, Origin};
    use marks::host::HostName;
    use marks::id::FencingId;
    use marks::mark::{Mark, Settlement, Source};
    use marks::register::{MarkEntry, Settled};

    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    fn fencing(asked_at: Timestamp) -> Fencing {
        Fencing {
            id: FencingId::generate(),
            node: HostName::parse("compute1").unwrap(),
            plug: None,
            asked_at,
            committed_at: asked_at,
            seen_by: "ctl1".into(),
            origin: Origin::Fencer,
            incarnation: Some(Incarnation::new("ctl1", 7, 5)),
            already_down: None,
            given_domain: None,
            given_shared_storage: None,
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
        let Compared { ended, lost } = compare(vec![fencing.clone()], &found(entries), NOW);
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
            "it is of a time to come"
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

    /// Of so many the oldest were removed: to write them again would let the register grow without end.
    #[test]
    fn where_the_register_is_full_of_ends_nothing_is_lost() {
        let own = fencing(NOW);
        let ends = |count| (0..count).map(|_| end(&fencing(NOW), NOW)).collect();
        assert_eq!(compared(&own, ends(SETTLED_MAX - 1)), (0, 1));
        assert_eq!(compared(&own, ends(SETTLED_MAX)), (0, 0));
    }
}
