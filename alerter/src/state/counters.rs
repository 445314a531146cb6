//! Counters that only grow while the daemon runs: counted where an outcome is recorded, and read by each scrape.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use journal::{Recorded, Verdict};
use marks::delivery::ACCEPTED;
use marks::time::Timestamp;
use prometheus_client::metrics::histogram::Histogram;

use crate::delivery::answers::Answer;
use crate::lock::lock;

/// What became of an attempt whose delivery had ended in another way when its answer came.
const LATE: &str = "late";
/// The words of [`drivers::Outcome`], and the one of an answer that came too late to count.
pub const OUTCOMES: [&str; 10] = [
    "acknowledged",
    ACCEPTED,
    "unreachable",
    "retry",
    "refused",
    "rejected",
    "held",
    "unknown",
    "wait",
    LATE,
];

/// From one exchange on loopback to a day, in seconds.
const BUCKETS: [f64; 17] = [
    0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 14_400.0,
    86_400.0,
];

/// The counters of one daemon; all begin at zero with it.
#[derive(Debug, Default)]
pub struct Metrics {
    /// By route and outcome.
    attempts: Mutex<BTreeMap<(String, &'static str), u64>>,
    /// By route.
    acknowledgements: Mutex<BTreeMap<String, Histogram>>,
    register_reads: AtomicU64,
    register_writes: AtomicU64,
}

impl Metrics {
    /// An attempt's outcome was recorded.
    pub fn answered(&self, answer: &Answer, recorded: Recorded) {
        let route = &answer.ended.route;
        let outcome = if recorded.failed.is_some() { answer.outcome } else { LATE };
        *lock(&self.attempts).entry((route.clone(), outcome)).or_default() += 1;
        if let (Some(failed), Verdict::Acknowledged { .. }) = (recorded.failed, &answer.ended.verdict) {
            self.acknowledged(route, failed, answer.ended.at);
        }
    }

    /// A route has acknowledged a mark for the first time. Further steps of a route do not count.
    pub fn acknowledged(&self, route: &str, failed: Timestamp, at: Timestamp) {
        if !route.contains('.') {
            let mut acknowledgements = lock(&self.acknowledgements);
            let histogram = acknowledgements.entry(route.to_owned()).or_insert_with(empty);
            histogram.observe(at.since(failed).as_secs_f64());
        }
    }

    /// The register could not be read.
    pub fn register_unread(&self) {
        self.register_reads.fetch_add(1, Ordering::Relaxed);
    }

    /// The register could not be written.
    pub fn register_unwritten(&self) {
        self.register_writes.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn attempts(&self) -> BTreeMap<(String, &'static str), u64> {
        lock(&self.attempts).clone()
    }

    /// A histogram of a route; the clone is the same one.
    pub(crate) fn acknowledgements(&self, route: &str) -> Histogram {
        lock(&self.acknowledgements).get(route).cloned().unwrap_or_else(empty)
    }

    pub(crate) fn register_errors(&self) -> [(&'static str, u64); 2] {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [("read", read(&self.register_reads)), ("write", read(&self.register_writes))]
    }
}

fn empty() -> Histogram {
    Histogram::new(BUCKETS)
}

#[cfg(test)]
mod tests {

    use journal::Ended;
    use marks::id::FencingId;

    use super::*;

    fn answer(route: &str, outcome: &'static str) -> Answer {
        let verdict = match outcome {
            "acknowledged" => Verdict::Acknowledged { reference: None, detail: "taken".into() },
            _ => Verdict::Again {
                state: marks::delivery::State::Pending,
                ambiguous: false,
                kind: "connect".into(),
                detail: "refused".into(),
                next_due: Timestamp(0),
            },
        };
        let (mark, route) = (FencingId::generate().into(), route.to_owned());
        Answer { ended: Ended { mark, route, verdict, at: Timestamp(7_000) }, outcome }
    }

    /// The broken variant counts an answer as it comes, whatever became of its delivery.
    #[test]
    fn what_came_too_late_is_an_attempt_and_no_acknowledgement() {
        let metrics = Metrics::default();
        let counts = |failed| Recorded { failed };
        metrics.answered(&answer("a", "unreachable"), counts(Some(Timestamp(0))));
        metrics.answered(&answer("a", "acknowledged"), counts(Some(Timestamp(0))));
        metrics.answered(&answer("a", "acknowledged"), counts(None));
        metrics.answered(&answer("a.return", "acknowledged"), counts(Some(Timestamp(0))));
        let of = |route: &str, outcome| metrics.attempts().get(&(route.to_owned(), outcome)).copied();
        assert_eq!([of("a", "unreachable"), of("a", "acknowledged"), of("a", LATE)], [Some(1); 3]);
        assert_eq!(of("a.return", "acknowledged"), Some(1));
        assert_eq!(lock(&metrics.acknowledgements).keys().collect::<Vec<_>>(), ["a"], "no further step");
    }
}
