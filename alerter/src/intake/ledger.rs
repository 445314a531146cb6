//! Records of fencings that the intake has seen and not written down: those that wait, and those that a rule sets aside at each poll.
//! Lost with the daemon: what is still there is seen again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use marks::account::{Record, Trace, Waiting};
use marks::host::HostName;
use marks::id::MarkId;
use marks::rule::Rule;
use marks::time::Timestamp;

/// The alerter polls every two seconds: a fencing that it has not decided about for so long was missed.
const UNDECIDED: Duration = Duration::from_secs(120);

/// Where records come from; each poll of a source replaces all that was noted of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    /// The journal's fencings that the intake has left without an end.
    Fencings,
    /// The files of `alert_mark`.
    Files,
    /// What Pacemaker remembers: its history and `node_fenced`.
    Memory,
    /// The journal's fencings without an end that the account has found.
    Journal,
}

/// What became of a record without a row of its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// It waits until it has been known for so long.
    Waits(Duration),
    /// A rule sets it aside at each poll.
    Aside(Rule),
    /// The mark that it would make is there, and its row is damaged.
    Blocked(MarkId),
}

/// A record: its key, its host and its time.
pub(crate) type Named<'r> = (String, &'r HostName, Timestamp);

#[derive(Clone, Debug)]
struct Noted {
    node: HostName,
    at: Timestamp,
    first_seen: Instant,
    /// Since when it waits, if it does: a rule may have set it aside before.
    since: Instant,
    left: Left,
}

/// The ledger. A poll that a fault cuts off leaves the records that it has not reached as they were.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    now: BTreeMap<(Source, String), Noted>,
    before: BTreeMap<(Source, String), Noted>,
    /// Every record that was met, and whether this run saw it appear: it was not there at the first look at its source.
    met: BTreeMap<(Source, String), bool>,
    looked: BTreeSet<Source>,
}

impl Ledger {
    /// A poll of a source begins.
    pub(crate) fn begin(&mut self, source: Source) {
        let (mut of_source, others) =
            std::mem::take(&mut self.now).into_iter().partition(|((of, _), _)| *of == source);
        self.now = others;
        self.before.append(&mut of_source);
    }

    /// A record of it that has no row of its end.
    pub(crate) fn note(&mut self, source: Source, (key, node, at): Named<'_>, left: Left, now: Instant) {
        let key = (source, key);
        let before = self.before.remove(&key);
        let first_seen = before.as_ref().map_or(now, |before| before.first_seen);
        let waited = before.filter(|before| matches!(before.left, Left::Waits(_)));
        let since = waited.map_or(now, |before| before.since);
        self.now.insert(key, Noted { node: node.clone(), at, first_seen, since, left });
    }

    /// It has ended: what was not met again is over.
    pub(crate) fn end(&mut self, source: Source) {
        self.before.retain(|(of, _), _| *of != source);
        self.looked.insert(source);
    }

    /// A record is met: whether this run saw it appear, if it `is_new` to its source. What is there at the first look may be of any time,
    /// whatever a clock says.
    pub(crate) fn meet(&mut self, source: Source, key: String, is_new: bool) -> bool {
        let has_looked = self.looked.contains(&source);
        *self.met.entry((source, key)).or_insert(has_looked && is_new)
    }

    /// Whether this run met it, and saw it appear.
    pub(crate) fn saw_appear(&self, source: Source, key: String) -> bool {
        self.met.get(&(source, key)) == Some(&true)
    }

    /// For how long a record has been left without an end.
    pub(crate) fn waited(&self, source: Source, key: String, now: Instant) -> Duration {
        let key = (source, key);
        let noted = self.before.get(&key).or_else(|| self.now.get(&key));
        noted.map_or(Duration::ZERO, |noted| now.saturating_duration_since(noted.first_seen))
    }

    /// Fencings that have no end in the journal.
    pub(crate) fn note_undecided<'r>(&mut self, records: impl Iterator<Item = Named<'r>>, now: Instant) {
        self.begin(Source::Journal);
        records.for_each(|record| self.note(Source::Journal, record, Left::Waits(UNDECIDED), now));
        self.end(Source::Journal);
    }

    /// Every record of it, once.
    pub(crate) fn records(&self) -> Vec<Record> {
        let all = self.before.iter().chain(&self.now);
        // The intake's own note of a fencing is better than that the journal has no end of it.
        let is_known = |key: &String| self.now.contains_key(&(Source::Fencings, key.clone()));
        let own = all.filter(|((source, key), _)| *source != Source::Journal || !is_known(key));
        own.map(|((_, key), entry)| record(key, entry)).collect()
    }
}

fn record(key: &str, entry: &Noted) -> Record {
    let trace = match entry.left {
        Left::Waits(lasts) => Trace::Waits(Waiting { since: entry.since, lasts }),
        Left::Aside(rule) => Trace::Aside(rule),
        Left::Blocked(mark) => Trace::Blocked(mark),
    };
    Record { key: key.to_owned(), node: Some(entry.node.clone()), at: Some(entry.at), trace }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn note(ledger: &mut Ledger, source: Source, key: &str, left: Left, now: Instant) {
        let node = HostName::parse("compute1").unwrap();
        ledger.note(source, (key.to_owned(), &node, Timestamp(0)), left, now);
    }

    fn waits(ledger: &Ledger) -> Vec<(String, Duration, Instant)> {
        let of = |record: Record| match record.trace {
            Trace::Waits(waiting) => Some((record.key, waiting.lasts, waiting.since)),
            _ => None,
        };
        ledger.records().into_iter().filter_map(of).collect()
    }

    /// The broken variants begin each poll with the wait, so that what is put off again and again never ends, and count from first sight.
    #[test]
    fn a_wait_is_counted_from_the_first_poll_that_has_it_wait() {
        let (mut ledger, now) = (Ledger::default(), Instant::now());
        for poll in 0..5 {
            ledger.begin(Source::Files);
            let left = if poll == 0 { Left::Aside(Rule::Past) } else { Left::Waits(SECOND * 10) };
            note(&mut ledger, Source::Files, "alert 1", left, now + SECOND * poll);
            ledger.end(Source::Files);
        }
        assert_eq!(waits(&ledger), [("alert 1".to_owned(), SECOND * 10, now + SECOND)]);
    }

    #[test]
    fn what_a_poll_does_not_meet_again_is_over_and_another_source_stays() {
        let (mut ledger, now) = (Ledger::default(), Instant::now());
        note(&mut ledger, Source::Files, "alert 1", Left::Waits(SECOND), now);
        note(&mut ledger, Source::Memory, "history 1", Left::Aside(Rule::Past), now);
        ledger.begin(Source::Files);
        assert_eq!(ledger.records().len(), 2, "a fault has cut it off");
        ledger.begin(Source::Files);
        ledger.end(Source::Files);
        assert_eq!(ledger.records().len(), 1);
    }

    #[test]
    fn what_is_there_at_the_first_look_was_not_seen_to_appear() {
        let mut ledger = Ledger::default();
        let mut look = |keys: &[&str]| -> Vec<bool> {
            ledger.begin(Source::Files);
            let seen = keys.iter().map(|key| ledger.meet(Source::Files, (*key).to_owned(), true)).collect();
            ledger.end(Source::Files);
            seen
        };
        assert_eq!(look(&["alert 1"]), [false]);
        assert_eq!(look(&["alert 1", "alert 2"]), [false, true]);
        assert_eq!(look(&["alert 2"]), [true]);
        assert!(!ledger.saw_appear(Source::Files, "alert 3".to_owned()), "an earlier run kept it");
    }

    #[test]
    fn what_the_intake_says_of_a_fencing_goes_before_that_nobody_has_decided() {
        let (mut ledger, now) = (Ledger::default(), Instant::now());
        let node = HostName::parse("compute1").unwrap();
        ledger.note_undecided([("f.1".to_owned(), &node, Timestamp(0))].into_iter(), now);
        assert_eq!(waits(&ledger), [("f.1".to_owned(), UNDECIDED, now)]);
        let mark = marks::id::FencingId::generate().into();
        note(&mut ledger, Source::Fencings, "f.1", Left::Blocked(mark), now);
        assert!(waits(&ledger).is_empty() && ledger.records().len() == 1);
    }
}
