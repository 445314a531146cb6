//! Answers that are not recorded yet. Those that come close together are recorded together; after a crash before that their attempts
//! are made again. Pure: the time is an argument.

use std::time::{Duration, Instant};

use journal::Ended;

/// No answer waits longer for others.
const LONGEST: Duration = Duration::from_millis(5);

/// What came of one attempt.
#[derive(Clone, Debug)]
pub struct Answer {
    /// For the journal.
    pub ended: Ended,
    /// The word of its outcome.
    pub outcome: &'static str,
}

/// The answers that wait.
#[derive(Debug)]
pub struct Answers {
    waiting: Vec<Answer>,
    first: Option<Instant>,
    /// `ack-batch`: how many go on record together.
    batch: usize,
}

impl Answers {
    /// None yet.
    pub fn new(batch: usize) -> Self {
        Self { waiting: Vec::new(), first: None, batch: batch.max(1) }
    }

    /// `ack-batch` is another from now on.
    pub fn set_batch(&mut self, batch: usize) {
        self.batch = batch.max(1);
    }

    /// One more.
    pub fn add(&mut self, answer: Answer, now: Instant) {
        self.first.get_or_insert(now);
        self.waiting.push(answer);
    }

    /// How long until they are to be recorded. `under_way`: whether there are attempts whose answers could go with them.
    pub fn rest(&self, now: Instant, under_way: bool) -> Option<Duration> {
        let first = self.first?;
        let full = self.waiting.len() >= self.batch || !under_way;
        Some(if full { Duration::ZERO } else { LONGEST.saturating_sub(now - first) })
    }

    /// Those that are recorded next.
    pub fn group(&self) -> &[Answer] {
        &self.waiting[..self.waiting.len().min(self.batch)]
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

#[cfg(test)]
mod tests {
    use journal::Verdict;
    use marks::id::FencingId;
    use marks::time::Timestamp;

    use super::*;

    fn answer() -> Answer {
        let verdict = Verdict::Acknowledged { reference: None, detail: "taken".into(), then: Vec::new() };
        let (mark, route) = (FencingId::generate().into(), "recovery".to_owned());
        Answer { ended: Ended { mark, route, verdict, at: Timestamp(0) }, outcome: "acknowledged" }
    }

    #[test]
    fn answers_wait_for_others_but_not_for_long_and_not_for_nothing() {
        let now = Instant::now();
        let mut answers = Answers::new(3);
        assert_eq!(answers.rest(now, true), None);
        answers.add(answer(), now);
        assert_eq!(answers.rest(now, true), Some(LONGEST));
        assert_eq!(answers.rest(now, false), Some(Duration::ZERO), "nobody else will come");
        answers.add(answer(), now + LONGEST / 2);
        assert_eq!(answers.rest(now + LONGEST, true), Some(Duration::ZERO), "the first one has waited");
        answers.add(answer(), now);
        assert_eq!(answers.rest(now, true), Some(Duration::ZERO), "the group is full");
    }

    #[test]
    fn a_group_is_no_larger_than_was_configured() {
        let now = Instant::now();
        let mut answers = Answers::new(2);
        (0..3).for_each(|_| answers.add(answer(), now));
        assert_eq!(answers.group().len(), 2);
        answers.remove(2, now + LONGEST);
        assert_eq!(answers.rest(now + LONGEST, true), Some(LONGEST), "the next group waits again");
        answers.remove(1, now);
        assert!(answers.is_empty() && answers.rest(now, true).is_none());
    }

    #[test]
    fn a_batch_of_one_is_each_by_itself() {
        let now = Instant::now();
        let mut answers = Answers::new(1);
        (0..2).for_each(|_| answers.add(answer(), now));
        assert_eq!((answers.group().len(), answers.rest(now, true)), (1, Some(Duration::ZERO)));
    }
}
