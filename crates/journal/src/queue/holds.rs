//! Marks that the policy holds: a row for each, which holds its deliveries as long as it exists.
//!
//! A row has no digest: it only holds. If one is lost, a proven mark may be sent, and the next plan writes it again.

use std::collections::{BTreeMap, HashSet};

use rusqlite::{OptionalExtension, Row, params};

use crate::history::{self, ALERTER, NewHistory};
use crate::queue::delivery_row::{UNDER_WAY, WAITING};
use crate::row::{self, mark_of};
use crate::store::digest::Rows;
use crate::{Done, Journal, Writing, Wrote};
use marks::delivery::ACCEPTED;
use marks::id::{MarkId, NoteId};
use marks::mark::MarkRow;
use marks::register::{Cause, Scope};
use marks::time::Timestamp;

/// A wait for one's turn is not news for the history.
pub(crate) const TURN: &str = "max-in-flight";

/// As [`decode`] reads them.
const COLUMNS: &str = "mark, words, until, why, since, scope, decision";

/// How many rows are written in one transaction: `fence_mark` waits for each.
const PAGE: usize = 256;

/// What holds a mark, as of the policy's last plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldMark {
    /// The mark.
    pub mark: MarkId,
    /// The policy's words, the displayed one first.
    pub words: Vec<String>,
    /// When the first one ends by itself, if known.
    pub until: Option<Timestamp>,
    /// The first one in a sentence.
    pub why: String,
    /// The scope of the first one, and its decision.
    pub cause: Cause,
    /// Since when the mark is held, for any reason.
    pub since: Timestamp,
}

impl Journal {
    /// Writes the policy's new decisions: what is held, and what may be sent. `HeldMark::since` counts for marks that
    /// were not held before.
    ///
    /// # Errors
    /// As any write. What was written before an error stays.
    pub fn hold(&mut self, held: &[HeldMark], freed: &[MarkId], now: Timestamp) -> Done {
        for page in held.chunks(PAGE) {
            self.write_at(now, |writing| page.iter().try_for_each(|held| writing.hold(held)))?;
        }
        for page in freed.chunks(PAGE) {
            self.write_at(now, |writing| page.iter().try_for_each(|mark| writing.free(*mark)))?;
        }
        Ok(())
    }

    /// Every mark that is held by the policy.
    ///
    /// # Errors
    /// As any read.
    pub fn holds(&self) -> Done<BTreeMap<MarkId, HeldMark>> {
        let found = self.list(&format!("SELECT {COLUMNS} FROM hold"), [], decode)?;
        Ok(found.into_iter().flatten().map(|held| (held.mark, held)).collect())
    }

    /// What holds one mark.
    ///
    /// # Errors
    /// As any read.
    pub fn hold_of(&self, mark: MarkId) -> Done<Option<HeldMark>> {
        let sql = format!("SELECT {COLUMNS} FROM hold WHERE mark = ?1");
        Ok(self.list(&sql, [mark.to_string()], decode)?.into_iter().flatten().next())
    }

    /// The marks with rows in the history after the row number `after`, and the newest number.
    ///
    /// # Errors
    /// As any read.
    pub fn touched_since(&self, after: i64) -> Done<(Vec<MarkId>, i64)> {
        let newest = self.newest_history()?;
        let sql = "SELECT DISTINCT mark FROM history WHERE seq > ?1 AND seq <= ?2 AND mark IS NOT NULL";
        let touched = self.list(sql, [after, newest], mark_of)?;
        Ok((touched.into_iter().flatten().collect(), newest))
    }

    /// The marks that are being sent, or were accepted and await their confirmation. A return does not count: a step behind an
    /// acknowledgement has a dot in its name, which no route has.
    ///
    /// # Errors
    /// As any read.
    pub fn busy_marks(&self, now: Timestamp) -> Done<HashSet<MarkId>> {
        let sql = format!(
            "SELECT d.mark FROM delivery d WHERE {UNDER_WAY} AND d.state = 'in-flight' AND instr(d.route, '.') = 0
             UNION SELECT d.mark FROM delivery d
               WHERE {WAITING} AND d.state = 'pending' AND d.last_kind = '{ACCEPTED}' AND d.next_due > ?1"
        );
        Ok(self.list(&sql, [now.0], mark_of)?.into_iter().flatten().collect())
    }

    /// Marks whose hosts may be down: open ones, and those that ended at `since` or later, or whose host is not back.
    ///
    /// # Errors
    /// As any read.
    pub fn marks_that_count(&self, since: Timestamp) -> Done<Rows<MarkRow>> {
        let sql = format!(
            "SELECT {} FROM mark m WHERE m.settlement IS NULL OR m.settled_at >= ?1 OR m.returned_at >= ?1
             OR (m.settlement = 'acknowledged' AND m.returned_at IS NULL)",
            row::COLUMNS
        );
        self.rows(&sql, [since.0], row::decode)
    }
}

fn decode(row: &Row<'_>) -> rusqlite::Result<Option<HeldMark>> {
    // An unreadable row is written again, or deleted by its key.
    let words: String = row.get(1).unwrap_or_default();
    let until = row.get::<_, Option<i64>>(2)?.map(Timestamp);
    let (why, since) = (row.get(3).unwrap_or_default(), Timestamp(row.get(4)?));
    let mark = row.get::<_, String>(0).ok().and_then(|id| MarkId::parse(&id).ok());
    let words = words.split(' ').map(str::to_owned).collect();
    let cause = cause(row, 5);
    Ok(mark.map(|mark| HeldMark { mark, words, until, why, cause, since }))
}

/// Reads the columns from that one on.
fn cause(row: &Row<'_>, at: usize) -> Cause {
    let text = |at| row.get::<_, Option<String>>(at).ok().flatten();
    let scope = text(at).and_then(|scope| Scope::of_text(&scope));
    Cause { scope, decision: text(at + 1).and_then(|id| NoteId::parse(&id).ok()) }
}

impl Writing<'_> {
    fn hold(self, held: &HeldMark) -> Wrote {
        let mark = held.mark.to_string();
        let before: Option<String> = self
            .prepare_cached("SELECT words FROM hold WHERE mark = ?1")?
            .query_row([&mark], |row| Ok(row.get(0).unwrap_or_default()))
            .optional()?;
        self
            .prepare_cached(
                "INSERT INTO hold (mark, words, until, why, since, scope, decision) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                 ON CONFLICT (mark) DO UPDATE SET words = ?2, until = ?3, why = ?4, scope = ?6, decision = ?7",
            )?
            .execute(params![
                mark,
                held.words.join(" "),
                held.until.map(|at| at.0),
                held.why,
                held.since.0,
                held.cause.scope.as_ref().map(Scope::text),
                held.cause.decision.map(|id| id.to_string()),
            ])?;
        let first = held.words.first().map_or("", String::as_str);
        let is_news = before.is_none_or(|before| before.split(' ').next() != Some(first));
        if is_news && first != TURN {
            let event = ("held", Some(first));
            self.note_hold(held.mark, event, &format!("{first}: {}", held.why))?;
        }
        Ok(())
    }

    fn free(self, mark: MarkId) -> Wrote {
        let words: Option<Option<String>> = self
            .prepare_cached("DELETE FROM hold WHERE mark = ?1 RETURNING words")?
            .query_row([mark.to_string()], |row| Ok(row.get(0).ok()))
            .optional()?;
        // A mark that has ended is not freed.
        let is_news = words.is_some_and(|words| words.as_deref() != Some(TURN));
        if is_news && row::load_open(&self, mark)?.is_some() {
            self.note_hold(mark, ("freed", None), "nothing holds it any more")?;
        }
        Ok(())
    }

    /// A damaged mark has no name; its history goes on.
    fn note_hold(self, mark: MarkId, (event, outcome): (&str, Option<&str>), detail: &str) -> Wrote {
        let row = row::load(&self, mark).ok().flatten();
        let node = row.as_ref().map(|row| &row.node);
        let new = NewHistory {
            at: self.now,
            event,
            mark: Some(mark),
            node,
            route: None,
            outcome,
            detail,
            actor: ALERTER,
        };
        history::append(&self, &new)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Capacity;
    use crate::tests::{Home, NOW, acknowledged, events, marked};

    const LATER: Timestamp = Timestamp(NOW.0 + 60_000);

    fn held(mark: MarkId, words: &[&str]) -> HeldMark {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        HeldMark {
            mark,
            words,
            until: None,
            why: "too many hosts are down".into(),
            cause: Cause::default(),
            since: NOW,
        }
    }

    fn begun(journal: &mut Journal) -> Vec<MarkId> {
        let dispatched = journal.dispatch(&[], &[Capacity::of("recovery", 8)], None, LATER).unwrap();
        dispatched.begun.iter().map(|due| due.mark.id).collect()
    }

    /// S4-11: a held mark is not sent and blocks no later one. The broken variant is the same mark after it was freed.
    #[test]
    fn a_held_mark_is_not_sent_until_it_is_freed_and_blocks_no_other() {
        let (_home, mut journal, first) = Home::marked();
        let other = marked(&mut journal, "compute2", NOW);
        journal.hold(&[held(first, &["storm", "delay"])], &[], NOW).unwrap();
        assert_eq!(begun(&mut journal), [other]);
        let later = marked(&mut journal, "compute1", NOW + Duration::from_secs(1));
        assert_eq!(begun(&mut journal), [later]);
        journal.finish_attempt(later, "recovery", &acknowledged(), LATER).unwrap();
        journal.hold(&[], &[first], LATER).unwrap();
        assert_eq!(begun(&mut journal), [first]);
        assert_eq!(events(&journal, first), ["marked", "held", "freed"]);
    }

    #[test]
    fn what_is_held_is_read_as_it_was_written() {
        let (_home, mut journal, mark) = Home::marked();
        let cause = Cause { scope: Some(Scope::Group("rack 1".into())), decision: Some(NoteId::generate()) };
        let first = HeldMark { until: Some(LATER), cause, ..held(mark, &["pause", "storm"]) };
        journal.hold(std::slice::from_ref(&first), &[], NOW).unwrap();
        assert_eq!(journal.hold_of(mark).unwrap(), Some(first.clone()));
        let again =
            HeldMark { since: LATER, words: vec!["storm".into()], cause: Cause::default(), ..first.clone() };
        journal.hold(std::slice::from_ref(&again), &[], LATER).unwrap();
        let expected = HeldMark { since: NOW, ..again };
        assert_eq!(journal.holds().unwrap(), BTreeMap::from([(mark, expected)]));
        assert_eq!(events(&journal, mark), ["marked", "held", "held"]);
        journal.hold(&[], &[mark, mark], LATER).unwrap();
        assert_eq!((journal.hold_of(mark).unwrap(), journal.holds().unwrap().len()), (None, 0));
    }

    /// A damaged byte in a row holds no other mark, and the row is written again.
    #[test]
    fn a_row_that_cannot_be_read_is_one_to_be_freed() {
        let (home, mut journal, mark) = Home::marked();
        journal.hold(&[held(mark, &["storm"])], &[], NOW).unwrap();
        home.raw()
            .execute("UPDATE hold SET words = CAST(x'ff' AS TEXT), why = CAST(x'fe' AS TEXT)", [])
            .unwrap();
        assert_eq!(journal.holds().unwrap().keys().collect::<Vec<_>>(), [&mark]);
        journal.hold(&[], &[mark], NOW).unwrap();
        assert_eq!(begun(&mut journal), [mark]);
    }

    /// The routes that would send a mark, in the words of the query itself: neither a held one, nor a second mark of a
    /// host behind its first, also if the first waits for its turn.
    #[test]
    fn a_mark_is_due_where_it_would_be_sent() {
        let (_home, mut journal, first) = Home::marked();
        let later = marked(&mut journal, "compute1", NOW + Duration::from_secs(1));
        journal.hold(&[held(first, &["storm"])], &[], NOW).unwrap();
        let capacity = [Capacity::of("recovery", 0), Capacity::of("gone", 4)];
        let due = |journal: &Journal, mark| -> Vec<&str> {
            let due = journal.due_on(mark, &capacity, None, LATER).unwrap();
            due.into_iter().map(|(route, tried)| if tried.is_none() { route } else { "tried" }).collect()
        };
        assert_eq!((due(&journal, first), due(&journal, later)), (vec!["recovery"], vec!["recovery"]));
        journal.hold(&[], &[first], NOW).unwrap();
        assert_eq!((due(&journal, first), due(&journal, later)), (vec!["recovery"], vec![]));
        journal.hold(&[held(first, &["max-in-flight"])], &[], NOW).unwrap();
        assert_eq!((due(&journal, first), due(&journal, later)), (vec!["recovery"], vec![]));
        assert_eq!(begun(&mut journal), [], "a waiting mark is not overtaken by its own host's");
        journal.hold(&[], &[first], NOW).unwrap();
        assert!(journal.busy_marks(LATER).unwrap().is_empty());
        assert_eq!(begun(&mut journal), [first]);
        assert!(due(&journal, first).is_empty());
        assert_eq!(journal.busy_marks(LATER).unwrap(), HashSet::from([first]));
    }
}
