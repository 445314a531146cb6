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
        let mut answers = Answers::default();
        assert_eq!(answers.rest(now, true), None);
        answers.add(answer(), now);
        assert_eq!(answers.rest(now, true), Some(LONGEST));
        assert_eq!(answers.rest(now, false), Some(Duration::ZERO), "nobody else will come");
        answers.add(answer(), now + LONGEST / 2);
        assert_eq!(answers.rest(now + LONGEST, true), Some(Duration::ZERO), "the first one has waited");
        (2..TOGETHER).for_each(|_| answers.add(answer(), now));
        assert_eq!(answers.rest(now, true), Some(Duration::ZERO), "the group is full");
    }

    #[test]
    fn a_group_is_no_larger_than_it_may_be() {
        let now = Instant::now();
        let mut answers = Answers::default();
        (0..=TOGETHER).for_each(|_| answers.add(answer(), now));
        assert_eq!(answers.group().len(), TOGETHER);
        answers.remove(TOGETHER, now + LONGEST);
        assert_eq!(answers.rest(now + LONGEST, true), Some(LONGEST), "the next group waits again");
        answers.remove(1, now);
        assert!(answers.is_empty() && answers.rest(now, true).is_none());
    }
}
