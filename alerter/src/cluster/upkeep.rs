//! Which entries the register lacks, and which have had their time (design, section 6). Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use marks::id::{MarkId, NoteId};
pub use marks::register::KEPT;
use marks::register::{Entries, Entry, Key, SETTLED_MAX};
use marks::time::Timestamp;

/// So many are written in one go: each costs about 20 ms.
const BATCH: usize = 50;
/// Fewer than so many are not worth a change of the configuration, of which Pacemaker keeps the last hundred.
const CLEARED_MIN: usize = 20;
/// Unless they wait for so long.
const CLEARED_LATEST: Duration = Duration::from_secs(86_400);

/// Of more settled marks and ended decisions than may stay, only the newest.
pub fn bounded(wanted: Vec<Entry>) -> Vec<Entry> {
    let found = Entries {
        sound: wanted.iter().map(|entry| (entry.key(), entry.clone())).collect(),
        ..Entries::default()
    };
    let ends = Ends::of(&found);
    wanted.into_iter().filter(|entry| ends.of_what(entry) != Some(LONG_AGO)).collect()
}

/// Entries that the register should have and has not.
pub fn missing(wanted: &[Entry], found: &Entries) -> Vec<Entry> {
    let lacking = wanted.iter().filter(|entry| !found.sound.contains_key(&entry.key()));
    lacking.take(BATCH).cloned().collect()
}

/// Entries that have had their time, once there are enough for a change; an entry in `wanted` never has.
pub fn over(wanted: &[Entry], found: &Entries, now: Timestamp) -> Vec<Key> {
    let wanted: BTreeSet<Key> = wanted.iter().map(Entry::key).collect();
    let ends = Ends::of(found);
    let age = |entry: &Entry| over_for(entry, &ends, now);
    let old = found.sound.iter().filter(|(key, _)| !wanted.contains(key));
    let old: Vec<(&Key, Duration)> = old.filter_map(|(key, entry)| Some((key, age(entry)?))).collect();
    let worth = old.len() >= CLEARED_MIN || old.iter().any(|(_, since)| *since >= CLEARED_LATEST);
    if worth { old.into_iter().map(|(key, _)| key.clone()).collect() } else { Vec::new() }
}

/// Whether the register needs an entry no more, given all that it holds.
pub(super) fn has_had_its_time(found: &Entries, now: Timestamp) -> impl Fn(&Entry) -> bool {
    let ends = Ends::of(found);
    move |entry| over_for(entry, &ends, now).is_some()
}

const LONG_AGO: Timestamp = Timestamp(0);
const NEVER: Timestamp = Timestamp(i64::MAX);

/// The mark that an entry belongs to; a fencing that became a mark's first carries the mark's id.
fn mark_of(entry: &Entry) -> Option<MarkId> {
    match entry {
        Entry::Fencing(fencing) | Entry::Again(fencing) => Some(fencing.id.into()),
        Entry::Mark(entry) => Some(entry.mark.id),
        Entry::Acknowledged(entry) => Some(entry.mark),
        Entry::Settled(entry) => Some(entry.mark),
        Entry::Returned(entry) => Some(entry.mark),
        Entry::Operation(entry) => Some(entry.mark),
        Entry::Decision(entry) => entry.about.mark(),
        Entry::Ending(_) | Entry::Watermark(_) => None,
    }
}

/// When each mark was settled and each decision ended by an operator; of too many, the oldest count as ended long ago, and of the others
/// those whose host is not back as never ended: Pacemaker may show the outage to the next alerter, and no clock ends that.
struct Ends {
    settled: BTreeMap<MarkId, Timestamp>,
    decided: BTreeMap<NoteId, Timestamp>,
}

impl Ends {
    fn of(found: &Entries) -> Self {
        let (mut settled, mut decided) = (Vec::new(), Vec::new());
        for entry in found.sound.values() {
            match entry {
                Entry::Settled(end) => settled.push((end.at, end.mark)),
                Entry::Ending(end) => decided.push((end.at, end.id)),
                _ => {}
            }
        }
        let mut settled = dated(settled);
        let is_back = |mark: &MarkId| found.sound.contains_key(&Key::Returned(*mark));
        let lasting = settled.iter_mut().filter(|(mark, at)| **at != LONG_AGO && !is_back(mark));
        lasting.for_each(|(_, at)| *at = NEVER);
        Self { settled, decided: dated(decided) }
    }

    /// The end of what an entry belongs to, where it has been ended.
    fn of_what(&self, entry: &Entry) -> Option<Timestamp> {
        let decided = match entry {
            Entry::Decision(decision) => self.decided.get(&decision.id),
            Entry::Ending(end) => self.decided.get(&end.id),
            _ => None,
        };
        decided.or_else(|| mark_of(entry).and_then(|mark| self.settled.get(&mark))).copied()
    }
}

fn dated<T: Ord>(mut ends: Vec<(Timestamp, T)>) -> BTreeMap<T, Timestamp> {
    ends.sort_unstable();
    let crowd = ends.len().saturating_sub(SETTLED_MAX);
    let dated =
        ends.into_iter().enumerate().map(|(rank, (at, id))| (id, if rank < crowd { LONG_AGO } else { at }));
    dated.collect()
}

/// How long an entry has been past its time; none while it is needed. What belongs to a mark goes with the mark, and the end of a
/// decision with the decision.
fn over_for(entry: &Entry, ends: &Ends, now: Timestamp) -> Option<Duration> {
    let end = ends.of_what(entry);
    let end = match entry {
        // One that is not its mark's first is only seconds younger than the mark.
        Entry::Fencing(fencing) | Entry::Again(fencing) => end.unwrap_or(fencing.asked_at),
        Entry::Decision(decision) => decision.over_at(end)?,
        _ => end?,
    };
    now.since(end).checked_sub(KEPT)
}

#[cfg(test)]
mod tests {
    use marks::id::NoteId;
    use marks::mark::Settlement;
    use marks::register::{About, Acknowledgement, Decision, Ending, Returned, Scope, Settled, Watermark};

    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);
    const DAY: Duration = Duration::from_secs(86_400);

    fn entries(all: &[Entry]) -> Entries {
        Entries { sound: all.iter().map(|e| (e.key(), e.clone())).collect(), ..Entries::default() }
    }

    /// A mark that was settled then, with everything that belongs to it.
    fn story(at: Timestamp) -> Vec<Entry> {
        let made = samples::entry(&samples::fencing("compute1", at), "ctl1");
        let (id, by) = (made.mark.id, || "ctl1".to_owned());
        vec![
            Entry::Mark(made),
            Entry::Acknowledged(Acknowledgement { mark: id, route: "r".into(), at, by: by() }),
            Entry::Settled(Settled { mark: id, how: Settlement::Acknowledged, at, by: by() }),
            Entry::Returned(Returned { mark: id, at, by: by() }),
        ]
    }

    #[test]
    fn nothing_goes_before_its_time_nor_without_an_end() {
        let young: Vec<Entry> = (0..10).flat_map(|_| story(NOW + DAY / 10 - 7 * DAY)).collect();
        assert!(over(&[], &entries(&young), NOW).is_empty());
        let open: Vec<Entry> = (0..30).map(|_| story(NOW - 60 * DAY).remove(0)).collect();
        assert!(over(&[], &entries(&open), NOW).is_empty(), "an open mark has no end");
        let down: Vec<Entry> = (0..30).flat_map(|_| story(NOW - 3650 * DAY).into_iter().take(3)).collect();
        assert!(over(&[], &entries(&down), NOW).is_empty(), "its host is not back");
        let first =
            Entry::Watermark(Watermark { id: NoteId::generate(), at: Timestamp(0), by: "ctl1".into() });
        assert!(over(&[], &entries(&[first]), NOW).is_empty());
    }

    #[test]
    fn of_too_many_settled_marks_the_oldest_go() {
        let many: Vec<Entry> = (0..1010).flat_map(|n| story(NOW - Duration::from_secs(2000 - n))).collect();
        assert_eq!(over(&[], &entries(&many), NOW).len(), 40);
        assert_eq!(bounded(many).len(), 4000);
    }

    fn decision(about: About, at: Timestamp) -> Entry {
        let (id, actor, reason) = (NoteId::generate(), "alice".into(), "new switch".into());
        Entry::Decision(Decision { id, about, at, actor, reason })
    }

    fn end_of(decision: &Entry, at: Timestamp) -> Entry {
        let Key::Decision(id) = decision.key() else { panic!("this is no decision") };
        Entry::Ending(Ending { id, at, actor: "bob".into(), reason: "it is in".into() })
    }

    /// S0-40: what is in force stays, however old it is. The broken variant lets a pause go by its own age, and the next
    /// alerter on another controller sends what is paused.
    #[test]
    fn a_decision_goes_seven_days_after_its_end_and_its_end_with_it() {
        let begun = NOW - 60 * DAY;
        let pause = || decision(About::Pause { scope: Scope::All, until: None }, begun);
        let maintenance = |until| {
            let scope = Scope::Group("rack1".into());
            decision(About::Maintenance { scope, until }, begun)
        };
        let kept = [pause(), maintenance(NOW + DAY), maintenance(NOW - 6 * DAY), pause()];
        let young = end_of(&kept[3], NOW - 6 * DAY);
        let released = decision(About::ReleaseGroup("rack1".into()), begun);
        let (by_itself, ended) = (maintenance(NOW - 8 * DAY), pause());
        let long_over = end_of(&ended, NOW - 8 * DAY);
        let gone = [by_itself, ended, long_over, released];
        let all: Vec<Entry> = kept.iter().chain(&gone).cloned().chain([young]).collect();
        let mut wanted: Vec<Key> = gone.iter().map(Entry::key).collect();
        wanted.sort();
        assert_eq!(over(&[], &entries(&all), NOW), wanted);
        assert_eq!(over(&gone, &entries(&all), NOW), []);
    }
}
