//! This agent's pages in the register. Each of its calls may change them, so they take turns.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use marks::fencing::Fencing;
use marks::register::{Entry, KEPT, Key, Part, Writer};
use marks::time::Timestamp;
use nix::fcntl::{Flock, FlockArg};
use pacemaker::aside;
use register::pages::{self, Line, Pages};
use register::{Access, Done, is_understood};

use crate::call::{Call, controller};

/// The pause between two attempts to take the turn.
const PAUSE: Duration = Duration::from_millis(10);
/// An alerter that passes a fencing on has long decided about it by then.
const PASSED_ON: Duration = Duration::from_secs(3600);

/// A call's turn to change the pages; it ends when this is dropped.
#[must_use]
pub(crate) struct Turn {
    /// None where it did not come in time. Another call may overwrite these entries then: the next monitor writes them again.
    _held: Option<Flock<File>>,
    /// Another call had its turn meanwhile.
    pub(crate) has_waited: bool,
}

impl Turn {
    /// Waits for half of the time until `deadline`. Where there are no pages a turn still saves others the same work.
    pub(crate) fn of(call: &Call, deadline: Instant) -> Self {
        let half = deadline.saturating_duration_since(Instant::now()) / 2;
        let at_once = hold(&call.paths.lock, Instant::now());
        let has_waited = at_once.is_none();
        Self { _held: at_once.or_else(|| hold(&call.paths.lock, Instant::now() + half)), has_waited }
    }
}

/// Adds entries to this agent's pages, and removes those that alerters have taken over.
///
/// # Errors
/// [`register::RegisterError`]: some of the entries may not be there.
pub(crate) fn add(_turn: &Turn, access: &Access, new: &[Entry], deadline: Instant) -> Done {
    let found = access.pages(deadline)?;
    let (writer, now) = (Part::Agent.on(&controller()), Timestamp::now());
    let wanted: Vec<Line> = new.iter().map(Entry::line).chain(still_needed(&found, &writer, now)).collect();
    let there = (&found, Timestamp(0));
    match pages::own_writes(there, (&writer, &wanted, is_understood), (&BTreeSet::new(), false), now) {
        Some(writes) => access.write_pages(&writes, deadline),
        None => Ok(()),
    }
}

/// The entries on this writer's pages that no alerter has taken over.
fn still_needed(pages: &Pages, writer: &Writer, now: Timestamp) -> Vec<Line> {
    let alerters = pages.keys().filter(|writer| writer.part == Part::Alerter);
    let said: BTreeSet<&str> = alerters.flat_map(|writer| pages::keys_on(pages, writer)).collect();
    let is_needed = |(key, value): &&Line| {
        let entry = Entry::read(key, value).ok();
        entry
            .as_ref()
            .and_then(Entry::fencing)
            .is_some_and(|fencing| now.since(fencing.asked_at) < KEPT && !is_taken_over(fencing, &said, now))
    };
    pages::standing(pages, writer).filter(is_needed).cloned().collect()
}

/// Whether an alerter has an end of a fencing: it made a mark of it, or has known it for long.
fn is_taken_over(fencing: &Fencing, said: &BTreeSet<&str>, now: Timestamp) -> bool {
    let is_old = now.since(fencing.committed_at) > PASSED_ON;
    let says = |key: Key| said.contains(key.to_string().as_str());
    let mark = fencing.id.into();
    says(Key::Mark(mark))
        || says(Key::Settled(mark))
        || is_old && (says(Key::Fencing(fencing.id)) || says(Key::Again(fencing.id)))
}

/// Waits for its turn to change the pages.
fn hold(path: &Path, deadline: Instant) -> Option<Flock<File>> {
    let mut file = aside::open(path).ok()?;
    loop {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(held) => return Some(held),
            Err((back, _)) if Instant::now() + PAUSE < deadline => file = back,
            Err(_) => return None,
        }
        thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use marks::mark::Settlement;
    use marks::register::Settled;
    use register::pages::{HEAD, Page};

    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    fn page(is_sealed: bool, all: &[Entry]) -> BTreeMap<u16, Page> {
        let lines = all.iter().map(Entry::line).collect();
        BTreeMap::from([(HEAD, Page { is_sealed, lines, ..Page::default() })])
    }

    /// How many of its own entries the agent keeps, for a fencing of that age, if another writer has that.
    fn kept(age: Duration, other: (Part, bool), says: impl Fn(&Fencing) -> Entry) -> usize {
        let fencing = samples::fencing("compute1", NOW - age);
        let (own, (part, is_sealed)) = (Part::Agent.on("ctl1"), other);
        let pages = Pages::from([
            (own.clone(), page(true, &[Entry::Fencing(fencing.clone())])),
            (part.on("ctl2"), page(is_sealed, &[says(&fencing)])),
        ]);
        still_needed(&pages, &own, NOW).len()
    }

    /// The broken variants drop a fencing that an alerter has read and not decided on yet, or that a forger calls
    /// settled.
    #[test]
    fn a_fencing_stays_until_an_alerter_says_what_became_of_it() {
        let end = |fencing: &Fencing| {
            let how = Settlement::Acknowledged;
            Entry::Settled(Settled { mark: fencing.id.into(), how, at: NOW, by: "ctl2".into() })
        };
        let copy = |fencing: &Fencing| Entry::Fencing(fencing.clone());
        let (minute, hours) = (Duration::from_secs(60), Duration::from_secs(7200));
        assert_eq!(kept(minute, (Part::Alerter, true), end), 0);
        assert_eq!(kept(minute, (Part::Alerter, false), end), 1);
        assert_eq!(kept(minute, (Part::Agent, true), end), 1);
        assert_eq!([minute, hours].map(|ago| kept(ago, (Part::Alerter, true), copy)), [1, 0]);
        assert_eq!(kept(KEPT, (Part::Agent, true), copy), 0, "it is not needed any more");
    }

    #[test]
    fn one_call_at_a_time_changes_the_pages() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run/fence_mark.lock");
        let soon = || Instant::now() + Duration::from_millis(100);
        let held = hold(&path, soon()).expect("nobody else has it");
        assert!(hold(&path, soon()).is_none());
        drop(held);
        assert!(hold(&path, soon()).is_some());
        assert!(hold(Path::new("/proc/none/lock"), soon()).is_none());
    }
}
