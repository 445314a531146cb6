//! Limits how many lines of one cause are logged in a minute: the first ones are, and the last one with the number of the others. Pure.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::record::Record;

/// How long lines of one cause are counted together.
pub const WINDOW: Duration = Duration::from_secs(60);
/// Causes that are counted at once. Of more, the oldest are forgotten; no line is lost by that.
pub const CAUSES: usize = 256;
/// Leaves a sentence room for how many more there were.
const SENTENCE: usize = 900;

/// The causes of the last minute.
#[derive(Debug)]
pub struct Fold {
    /// Lines of one cause in a window; 0 is without a limit.
    limit: u32,
    causes: HashMap<Cause, Window>,
    took_first: bool,
    /// When the first of the windows ends: until then none is checked.
    next_end: Option<Instant>,
}

/// What makes lines alike: their place in the source, their kind and their route.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Cause {
    place: (&'static str, u32),
    kind: String,
    route: String,
}

#[derive(Debug)]
struct Window {
    since: Instant,
    said: u32,
    held_back: u64,
    /// The last one that was held back.
    last: Option<Record>,
}

impl Fold {
    /// Nothing was logged yet.
    pub fn new(limit: u32) -> Self {
        Self { limit, causes: HashMap::new(), took_first: false, next_end: None }
    }

    /// Takes a line; gives the lines to log now, in order.
    pub fn take(&mut self, record: Record, now: Instant) -> Vec<Record> {
        if self.limit == 0 {
            return vec![record];
        }
        let mut said = self.due(now);
        let cause = Cause::of(&record);
        if !self.causes.contains_key(&cause) && self.causes.len() >= CAUSES {
            said.extend(self.forget_oldest());
        }
        self.next_end.get_or_insert(now + WINDOW);
        let new = || Window { since: now, said: 0, held_back: 0, last: None };
        let window = self.causes.entry(cause).or_insert_with(new);
        if window.said < self.limit {
            window.said += 1;
            said.push(record);
        } else {
            self.took_first |= window.held_back == 0;
            window.held_back += 1;
            window.last = Some(record);
        }
        said
    }

    /// Whether a window has begun to hold lines back since the last call.
    pub fn took_first(&mut self) -> bool {
        std::mem::take(&mut self.took_first)
    }

    /// The lines to log for windows that have ended.
    pub fn due(&mut self, now: Instant) -> Vec<Record> {
        if self.next_end.is_none_or(|end| now < end) {
            return Vec::new();
        }
        let is_over = |window: &Window| now.saturating_duration_since(window.since) >= WINDOW;
        let over = self.causes.extract_if(|_, window| is_over(window));
        let said = over.filter_map(|(_, window)| window.summary()).collect();
        self.next_end = self.causes.values().map(|window| window.since + WINDOW).min();
        said
    }

    /// How long until there is something to log.
    pub fn rest(&self, now: Instant) -> Option<Duration> {
        let waiting = self.causes.values().filter(|window| window.last.is_some());
        waiting.map(|window| (window.since + WINDOW).saturating_duration_since(now)).min()
    }

    /// Ends all windows; gives the lines that they held back.
    pub fn all(&mut self) -> Vec<Record> {
        self.causes.drain().filter_map(|(_, window)| window.summary()).collect()
    }

    /// How many causes are known.
    pub fn len(&self) -> usize {
        self.causes.len()
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.causes.is_empty()
    }

    fn forget_oldest(&mut self) -> Option<Record> {
        let oldest = self.causes.iter().min_by_key(|(_, window)| window.since)?.0.clone();
        self.causes.remove(&oldest)?.summary()
    }
}

impl Cause {
    fn of(record: &Record) -> Self {
        let field = |name| record.field(name).unwrap_or_default().to_owned();
        Self { place: (record.file, record.line), kind: field("kind"), route: field("route") }
    }
}

impl Window {
    /// The last line that was held back, and how many others were.
    fn summary(self) -> Option<Record> {
        let mut last = self.last?;
        last.more = self.held_back - 1;
        if last.more > 0 {
            let sentence: String = last.message.chars().take(SENTENCE).collect();
            last.message = format!("{sentence} … and {} more like it in the last minute", last.more);
            last.fields.push(("more", last.more.to_string()));
        }
        Some(last)
    }
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    fn record(message: &str, line: u32, fields: &[(&'static str, &str)]) -> Record {
        let mut record = Record::new(Level::ERROR, "x.rs", line);
        message.clone_into(&mut record.message);
        record.fields = fields.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        record
    }

    fn messages(records: Vec<Record>) -> Vec<String> {
        records.into_iter().map(|record| record.message).collect()
    }

    /// A flood at virtual time, a line each millisecond: each minute has its first lines and one that counts the rest. The
    /// broken variant that forgets the last window says nothing of what it held back.
    #[test]
    fn a_flood_is_counted_and_not_written() {
        let (mut fold, begun) = (Fold::new(10), Instant::now());
        let mut said = Vec::new();
        for number in 0..100_000 {
            let now = begun + Duration::from_millis(number);
            said.extend(fold.take(record("no", 1, &[("mark", &number.to_string())]), now));
            assert_eq!(fold.len(), 1);
        }
        said.extend(fold.all());
        assert_eq!(said.len(), 22);
        let all = said.iter().map(|record| record.more + 1).sum::<u64>();
        assert_eq!(all, 100_000);
        assert_eq!(said[10].message, "no … and 59989 more like it in the last minute");
        assert_eq!(said[10].field("mark"), Some("59999"), "the last of them");
        assert_eq!(said[10].field("more"), Some("59989"));
    }

    /// The broken variant that counts all lines of a place together drops the first word of another route's trouble.
    #[test]
    fn what_is_new_is_always_said() {
        let (mut fold, now) = (Fold::new(1), Instant::now());
        let one = |route| record("no", 1, &[("route", route), ("kind", "refused")]);
        assert_eq!(fold.take(one("a"), now).len(), 1);
        assert_eq!(fold.take(one("a"), now).len(), 0);
        assert_eq!(fold.take(one("b"), now).len(), 1);
        assert_eq!(fold.take(record("no", 2, &[("route", "a"), ("kind", "refused")]), now).len(), 1);
        assert_eq!(fold.take(record("no", 1, &[("route", "a"), ("kind", "tls")]), now).len(), 1);
    }

    /// Ten thousand causes: each is said, and the memory stays as it is.
    #[test]
    fn more_causes_than_are_counted_cost_no_line_and_no_memory() {
        let (mut fold, now) = (Fold::new(1), Instant::now());
        let mut said = 0;
        for number in 0..10_000 {
            let kind = number.to_string();
            said += fold.take(record("no", 1, &[("kind", &kind)]), now).len();
            assert!(fold.len() <= CAUSES);
        }
        assert_eq!(said, 10_000);
        // What was held back of a cause that is forgotten is said when it is.
        fold.take(record("held back", 1, &[("kind", "9999")]), now);
        let later = (0..CAUSES).flat_map(|n| fold.take(record("new", 2, &[("kind", &n.to_string())]), now));
        assert!(messages(later.collect()).contains(&"held back".to_owned()));
    }

    #[test]
    fn what_was_held_back_is_said_when_its_minute_is_over() {
        let (mut fold, begun) = (Fold::new(1), Instant::now());
        assert_eq!(messages(fold.take(record("first", 1, &[]), begun)), ["first"]);
        assert_eq!(fold.rest(begun), None);
        assert!(!fold.took_first());
        let later = begun + Duration::from_secs(20);
        assert!(fold.take(record("second", 1, &[]), later).is_empty());
        assert!(fold.took_first() && !fold.took_first());
        assert_eq!(fold.rest(later), Some(Duration::from_secs(40)));
        assert!(fold.due(begun + Duration::from_secs(59)).is_empty());
        assert_eq!(messages(fold.due(begun + WINDOW)), ["second"], "one alone is said as it was");
        assert_eq!((fold.rest(later), fold.is_empty()), (None, true));
        assert_eq!(messages(fold.take(record("third", 1, &[]), begun + WINDOW)), ["third"]);
    }

    #[test]
    fn no_limit_is_none() {
        let (mut fold, now) = (Fold::new(0), Instant::now());
        assert!((0..1000).all(|_| fold.take(record("x", 1, &[]), now).len() == 1));
    }
}
