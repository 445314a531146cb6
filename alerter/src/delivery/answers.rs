//! Answers that are not recorded yet. Those that come close together are recorded together; after a crash before that their attempts
//! are made again. Pure: the time is an argument.

use std::time::{Duration, Instant};

use journal::Ended;

/// No answer waits longer for others.
const LONGEST: Duration = Duration::from_millis(5);

/// As many go on record together: so many marks a crash has sent again at the most, and a storm's disk is still seldom waited for.
const TOGETHER: usize = 64;

/// What came of one attempt.
#[derive(Clone, Debug)]
pub struct Answer {
    /// For the journal.
    pub ended: Ended,
    /// The word of its outcome.
    pub outcome: &'static str,
}

/// The answers that wait.
#[derive(Debug, Default)]
pub struct Answers {
    waiting: Vec<Answer>,
    first: Option<Instant>,
}

impl Answers {
    /// One more.
    pub fn add(&mut self, answer: Answer, now: Instant) {
        self.first.get_or_insert(now);
        self.waiting.push(answer);
    }

    /// How long until they are to be recorded. `under_way`: whether there are attempts whose answers could go with them.
    pub fn rest(&self, now: Instant, under_way: bool) -> Option<Duration> {
        let first = self.first?;
        let full = self.waiting.len() >= TOGETHER || !under_way;
        Some(if full { Duration::ZERO } else { LONGEST.saturating_sub(now - first) })
    }

    /// Those that are recorded next.
    pub fn group(&self) -> &[Answer] {
        &self.waiting[..self.waiting.len().min(TOGETHER)]
    }

    /// So many of them are recorded.
    pub fn remove(&mut self, count: usize, now: Instant) {
        self.waiting.drain(..count);
        self.first = (!self.waiting.is_empty()).then_some(now);
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
