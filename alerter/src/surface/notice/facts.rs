//! Reads conditions from the journal, and only if it has changed.

use std::time::Duration;

use journal::{DueDelivery, HeldTogether, HistoryRow, Journal, JournalError, Oldest, Quarantined, Rows};
use marks::id::MarkId;
use marks::mark::MarkRow;
use marks::time::Timestamp;

/// So many conditions of one kind have a notice each.
pub(super) const LIMIT: u32 = 100;
/// What is older is no news.
pub(super) const DAY: Duration = Duration::from_secs(24 * 3600);
/// A starting daemon reads only so many of the newest rows of the history.
const BACK: i64 = 10_000;

/// The question to the journal; while nobody writes, the same question has the same answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Question {
    /// Rejected and held deliveries, and last steps of chains, that a target was notified of.
    pub(super) rejected: Vec<(MarkId, String)>,
    /// Marks of which a target was notified that they are held, or that their row is damaged.
    pub(super) held: Vec<String>,
    /// Damaged deliveries that a target was notified of: the mark, a blank, the route.
    pub(super) quarantined: Vec<String>,
}

/// Its answer.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) held: Oldest<MarkRow>,
    pub(super) rejected: Oldest<DueDelivery>,
    /// Deliveries that their route's terms, or its recovery controller's answer, hold.
    pub(super) kept: Oldest<DueDelivery>,
    /// The last steps of chains of which no step was acknowledged.
    pub(super) exhausted: Oldest<DueDelivery>,
    /// Of the rejected and held deliveries and last steps that the question named, those that are not over.
    pub(super) open: Vec<(MarkId, String)>,
    /// What the policy holds, grouped by what holds it.
    pub(super) together: Vec<HeldTogether>,
    /// Of the marks that the question named, those that are held: they may not be among the oldest any more.
    pub(super) still_held: Rows<MarkRow>,
    pub(super) quarantined: Vec<Quarantined>,
    /// Of the damaged deliveries that the question named, those that are not over.
    pub(super) still_quarantined: Vec<String>,
    /// What came too late to be notified, oldest first.
    pub(super) expired: Vec<HistoryRow>,
    /// The question that it answers.
    of: Asked,
}

#[derive(Clone, Debug)]
struct Asked {
    question: Question,
    version: (i64, i64),
    /// The history is read up to here.
    history: i64,
}

impl Facts {
    /// Asks; gives none where the known answer is still right.
    ///
    /// # Errors
    /// As any read.
    pub(super) fn ask(
        journal: &Journal,
        question: Question,
        known: Option<&Self>,
        now: Timestamp,
    ) -> Result<Option<Self>, JournalError> {
        let version = journal.version()?;
        if known.is_some_and(|known| known.of.version == version && known.of.question == question) {
            return Ok(None);
        }
        let history = journal.newest_history()?;
        let facts = Self {
            held: journal.held_marks(LIMIT)?,
            rejected: journal.rejected_deliveries(LIMIT)?,
            kept: journal.held_deliveries(LIMIT)?,
            exhausted: journal.exhausted_chains(LIMIT)?,
            together: journal.held_together(LIMIT)?,
            open: still_open(journal, &question.rejected)?,
            still_held: journal.held_among(&question.held)?,
            quarantined: journal.quarantined_deliveries(LIMIT)?,
            still_quarantined: journal.quarantined_among(&question.quarantined)?,
            expired: expired(journal, known, history, now)?,
            of: Asked { question, version, history },
        };
        Ok(Some(facts))
    }
}

fn still_open(
    journal: &Journal,
    deliveries: &[(MarkId, String)],
) -> Result<Vec<(MarkId, String)>, JournalError> {
    let mut open = Vec::new();
    for (mark, route) in deliveries {
        if journal.is_open(*mark, route)? {
            open.push((*mark, route.clone()));
        }
    }
    Ok(open)
}

/// The newest of the last day: the history is read once, and then what is new in it.
fn expired(
    journal: &Journal,
    known: Option<&Facts>,
    newest: i64,
    now: Timestamp,
) -> Result<Vec<HistoryRow>, JournalError> {
    let since = now - DAY;
    let after = known.map_or(newest - BACK, |known| known.of.history);
    let mut all = known.map(|known| known.expired.clone()).unwrap_or_default();
    all.extend(journal.history_of("expired", after, since)?.sound);
    all.retain(|row| row.at >= since);
    let over = all.len().saturating_sub(LIMIT as usize);
    Ok(all.split_off(over))
}

#[cfg(test)]
impl Facts {
    /// A journal in which all is well.
    pub(super) fn nothing() -> Self {
        fn no_rows<T>() -> Rows<T> {
            Rows { sound: Vec::new(), damaged: Vec::new() }
        }
        fn none<T>() -> Oldest<T> {
            Oldest { rows: no_rows(), in_all: 0 }
        }
        Self {
            held: none(),
            rejected: none(),
            kept: none(),
            exhausted: none(),
            together: Vec::new(),
            open: Vec::new(),
            still_held: no_rows(),
            quarantined: Vec::new(),
            still_quarantined: Vec::new(),
            expired: Vec::new(),
            of: Asked { question: Question::default(), version: (0, 0), history: 0 },
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use journal::{Role, Taken};
    use marks::fencing::Fencing;

    use marks::id::FencingId;
    use marks::mark::MarkRow;

    use super::*;

    /// Of this host, which failed then, and of which nobody knows the name.
    pub(in crate::surface::notice) fn row(node: &str, at: Timestamp) -> MarkRow {
        MarkRow { fqdn: None, ..samples::mark_of(node, at) }
    }

    /// Makes that mark, of a fencing of its own.
    pub(in crate::surface::notice) fn make(journal: &mut Journal, row: &MarkRow) {
        let fencing = Fencing {
            id: FencingId::parse(&row.id.to_string()).unwrap(),
            ..samples::fencing(row.node.as_str(), row.made_at)
        };
        journal.append_fencing(&fencing).unwrap();
        journal.make_mark(row, Taken::Fencing(&fencing), &[], row.made_at).unwrap();
    }

    fn expire(journal: &mut Journal, node: &str, at: Timestamp) {
        let row = row(node, at);
        make(journal, &row);
        assert!(journal.expire(row.id, "it went out as another mark", at).unwrap());
    }

    fn hosts(facts: &Facts) -> Vec<&str> {
        facts.expired.iter().filter_map(|row| row.node.as_deref()).collect()
    }

    #[test]
    fn the_journal_is_asked_only_where_it_or_the_question_has_changed() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(&dir.path().join("state/marks.db"), Role::Alerter).unwrap();
        let now = Timestamp::now();
        expire(&mut journal, "long-ago", now - DAY * 2);
        expire(&mut journal, "compute1", now);
        let question = Question::default;
        let first = Facts::ask(&journal, question(), None, now).unwrap().unwrap();
        assert_eq!(hosts(&first), ["compute1"]);
        assert!(Facts::ask(&journal, question(), Some(&first), now).unwrap().is_none());
        let other = Question { held: vec!["recovery".into()], ..question() };
        assert!(Facts::ask(&journal, other, Some(&first), now).unwrap().is_some());
        expire(&mut journal, "compute2", now);
        let second = Facts::ask(&journal, question(), Some(&first), now).unwrap().unwrap();
        assert_eq!(hosts(&second), ["compute1", "compute2"]);
        expire(&mut journal, "compute3", now + DAY);
        let third = Facts::ask(&journal, question(), Some(&second), now + DAY * 2).unwrap().unwrap();
        assert_eq!(hosts(&third), ["compute3"], "a day is enough");
    }

    #[test]
    fn of_many_that_came_too_late_the_newest_are_notified() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(&dir.path().join("state/marks.db"), Role::Alerter).unwrap();
        let now = Timestamp::now();
        (0..=LIMIT).for_each(|number| expire(&mut journal, &format!("compute{number}"), now));
        let facts = Facts::ask(&journal, Question::default(), None, now).unwrap().unwrap();
        let said = hosts(&facts);
        assert_eq!((said.len(), said[0]), (LIMIT as usize, "compute1"));
    }
}
