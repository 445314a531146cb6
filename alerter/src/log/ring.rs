//! The last events of the log, numbered, for those that follow them: never in the daemon's way, and of limited number.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use marks::time::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use super::record::Record;

/// How many events are kept: about a megabyte.
pub const KEPT: usize = 1000;
/// How many are given at once.
const PAGE: usize = 200;

/// One event of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEvent {
    /// Its number in this run of the daemon, from 1 on.
    pub seq: u64,
    /// When; milliseconds since the epoch.
    pub at: i64,
    /// `error`, `warn`, `info` or `debug`.
    pub level: String,
    /// The sentence.
    pub message: String,
    /// The fields by their names.
    pub fields: BTreeMap<String, String>,
}

/// Events that follow one another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// Which run of the daemon it is: numbers begin at 1 in each.
    pub run: String,
    /// How many were gone before they were asked for.
    pub lost: u64,
    /// The number of the last one that was given or is gone.
    pub last: u64,
    /// The events.
    pub events: Vec<LogEvent>,
}

/// The last events.
#[derive(Debug)]
pub struct Ring {
    run: String,
    kept: Mutex<Kept>,
    more: Notify,
}

#[derive(Debug, Default)]
struct Kept {
    last: u64,
    events: VecDeque<LogEvent>,
}

impl Default for Ring {
    fn default() -> Self {
        let run = format!("{}-{}", Timestamp::now().0, std::process::id());
        Self { run, kept: Mutex::default(), more: Notify::new() }
    }
}

impl Ring {
    /// Keeps an event; the oldest goes where there are too many.
    pub fn push(&self, record: &Record, at: Timestamp) {
        let fields = record.fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let (level, message) = (record.level.as_str().to_ascii_lowercase(), record.message.clone());
        {
            let mut kept = self.kept();
            kept.last += 1;
            let event = LogEvent { seq: kept.last, at: at.0, level, message, fields: fields.collect() };
            kept.events.push_back(event);
            if kept.events.len() > KEPT {
                kept.events.pop_front();
            }
        }
        self.more.notify_waiters();
    }

    /// No events, but the number where new ones begin.
    pub fn now(&self) -> Page {
        Page { run: self.run.clone(), lost: 0, last: self.kept().last, events: Vec::new() }
    }

    /// The events behind the number `after` of that run; of another run, all.
    pub fn after(&self, run: &str, after: u64) -> Page {
        let kept = self.kept();
        let after = if run == self.run { after.min(kept.last) } else { 0 };
        let first = kept.events.front().map_or(kept.last + 1, |event| event.seq);
        let lost = first.saturating_sub(after + 1);
        let events: Vec<LogEvent> =
            kept.events.iter().filter(|event| event.seq > after).take(PAGE).cloned().collect();
        let last = events.last().map_or(after + lost, |event| event.seq);
        Page { run: self.run.clone(), lost, last, events }
    }

    /// The same, once there is something to give.
    pub async fn wait_after(&self, run: &str, after: u64) -> Page {
        loop {
            let more = self.more.notified();
            let page = self.after(run, after);
            if page.run != run || !page.events.is_empty() || page.lost > 0 {
                return page;
            }
            more.await;
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    fn push(ring: &Ring, count: usize) {
        (0..count).for_each(|_| ring.push(&Record::new(Level::INFO), Timestamp(5)));
    }

    fn numbers(page: &Page) -> Vec<u64> {
        page.events.iter().map(|event| event.seq).collect()
    }

    /// The broken variant that begins at the oldest that it has says nothing of what is gone.
    #[test]
    fn a_slow_reader_sees_how_many_are_lost() {
        let ring = Ring::default();
        push(&ring, 3);
        let page = ring.after(&ring.run, 1);
        assert_eq!((numbers(&page), page.lost, page.last), (vec![2, 3], 0, 3));
        push(&ring, KEPT);
        let page = ring.after(&ring.run, 1);
        assert_eq!((page.lost, page.events[0].seq, page.events.len()), (2, 4, PAGE));
        let next = ring.after(&ring.run, page.last);
        assert_eq!((next.lost, next.events[0].seq), (0, page.last + 1));
    }

    #[test]
    fn another_run_is_read_from_its_beginning() {
        let ring = Ring::default();
        push(&ring, 2);
        assert_eq!(numbers(&ring.after("another", 77)), [1, 2]);
        let now = ring.now();
        assert_eq!((now.last, now.events.len()), (2, 0));
        assert_eq!(ring.after(&now.run, 77).last, 2, "a number that was never given");
    }

    #[tokio::test(flavor = "current_thread")]
    async fn who_waits_is_woken() {
        let ring = std::sync::Arc::new(Ring::default());
        let (same, run) = (std::sync::Arc::clone(&ring), ring.run.clone());
        let waiting = tokio::spawn(async move { same.wait_after(&run, 0).await });
        tokio::task::yield_now().await;
        push(&ring, 1);
        assert_eq!(numbers(&waiting.await.unwrap()), [1]);
    }
}
