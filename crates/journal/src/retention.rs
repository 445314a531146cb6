//! Retention: old rows leave the journal, a few at a time.
//!
//! History goes by age and size; marks go by age, with their own records. Open ones stay, and so does what the intake
//! needs to recognise an outage: otherwise a mark that was sent would be made again.

use std::collections::HashMap;

use rusqlite::{Transaction, params};

use crate::history::{self, ALERTER, HistoryRow, NewHistory};
use crate::queue::delivery_row;
use crate::register::decisions;
use crate::store::digest::{Checked, raw_text};
use crate::{Done, Journal, Wrote, row};
use marks::delivery::Delivery;
use marks::id::MarkId;
use marks::mark::MarkRow;
use marks::time::Timestamp;

/// How many rows of the history are read at once: some milliseconds of the journal's thread.
const ROWS: usize = 500;
/// How many marks, each with several rows.
const MARKS: usize = 32;
/// How many fencings without a mark, or decisions.
const OTHERS: usize = 100;
/// How many marks a host without a noted return keeps: as many as its stored connections.
const LATER_MARKS: u32 = 16;

/// The limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// What ended before this may go.
    pub before: Timestamp,
    /// Decisions about groups and hosts that ended before this may go: the history has them.
    pub decided_before: Timestamp,
    /// Above this many bytes in use the oldest history goes early,
    pub max_bytes: u64,
    /// but no row that was written since then.
    pub floor: Timestamp,
}

/// The position of a round through the journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Round {
    part: Part,
    /// The last row that was read: a number or a text, depending on the part.
    number: i64,
    text: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    History,
    Marks,
    Fencings,
    Decisions,
    Endings,
    Done,
}

impl Part {
    fn next(self) -> Self {
        match self {
            Self::History => Self::Marks,
            Self::Marks => Self::Fencings,
            Self::Fencings => Self::Decisions,
            Self::Decisions => Self::Endings,
            Self::Endings | Self::Done => Self::Done,
        }
    }
}

impl Round {
    /// Whether everything was read.
    pub fn is_done(&self) -> bool {
        self.part == Part::Done
    }

    fn go_on(&mut self) {
        *self = Self { part: self.part.next(), ..Self::default() };
    }
}

/// What one step removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Removed {
    count: usize,
    /// The time of the newest.
    until: Option<Timestamp>,
}

impl Removed {
    fn add(&mut self, at: Timestamp) {
        self.count += 1;
        self.until = self.until.max(Some(at));
    }
}

impl Journal {
    /// Does one small step of a round: removes old rows among the next few, and writes one row of the history with their
    /// number and newest time. `stands` says whether an entry with this key is in the register: such records stay here,
    /// since they would be read again. Returns how many were removed.
    ///
    /// # Errors
    /// As any write; the round keeps its position then.
    pub fn prune(
        &mut self,
        bounds: &Bounds,
        round: &mut Round,
        stands: &dyn Fn(&str) -> bool,
        now: Timestamp,
    ) -> Done<usize> {
        let is_too_large = self.used()? > bounds.max_bytes;
        let mut at = round.clone();
        let removed = self.write(|transaction| {
            let (removed, what) = Step { transaction, bounds, is_too_large, stands }.take(&mut at)?;
            if let Some(until) = removed.until {
                let detail = format!(
                    "{} {what} were removed, the newest of {} s: see [history]",
                    removed.count,
                    until.seconds()
                );
                let row = NewHistory::new(now, "pruned", &detail, ALERTER);
                history::append(transaction, &row)?;
            }
            Ok(removed.count)
        })?;
        *round = at;
        Ok(removed)
    }

    /// Bytes in use: the pages of the database without the free ones, which are reused before the file grows.
    ///
    /// # Errors
    /// As any read.
    pub fn used(&self) -> Done<u64> {
        let ask =
            |name| self.sqlite(self.connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)));
        let pages = ask("page_count")?.saturating_sub(ask("freelist_count")?);
        Ok(u64::try_from(pages.saturating_mul(ask("page_size")?)).unwrap_or(0))
    }
}

/// One step of a round: what it looks at, and what may go.
struct Step<'s> {
    transaction: &'s Transaction<'s>,
    bounds: &'s Bounds,
    is_too_large: bool,
    stands: &'s dyn Fn(&str) -> bool,
}

impl Step<'_> {
    fn take(&self, round: &mut Round) -> Wrote<(Removed, &'static str)> {
        Ok(match round.part {
            Part::History => (self.old_rows(round)?, "rows of the history"),
            Part::Marks => (self.old_marks(round)?, "marks that had ended"),
            Part::Fencings => (self.aside(round)?, "fencings without a mark"),
            Part::Decisions => (self.old_decisions(round)?, "decisions that had ended"),
            Part::Endings => (self.lone_endings(round)?, "ends of decisions"),
            Part::Done => (Removed::default(), ""),
        })
    }

    /// A round goes through the history from its oldest row until all rows that it reads are young: rows are in the order of
    /// writing, whatever the clock was.
    fn old_rows(&self, round: &mut Round) -> Wrote<Removed> {
        let rows = history::page(self.transaction, round.number, ROWS)?;
        let (mut removed, mut open, mut young) = (Removed::default(), HashMap::new(), 0);
        for (seq, row) in &rows {
            round.number = *seq;
            // A damaged row's age and subject are unknown.
            let Ok(row) = row else { continue };
            if !may_go(row, self.bounds, self.is_too_large) {
                young += 1;
                continue;
            }
            if is_of_open_mark(self.transaction, row, &mut open)? {
                continue;
            }
            self.transaction.prepare_cached("DELETE FROM history WHERE seq = ?1")?.execute([seq])?;
            removed.add(row.at);
        }
        if rows.len() < ROWS || young == rows.len() {
            round.go_on();
        }
        Ok(removed)
    }

    fn old_marks(&self, round: &mut Round) -> Wrote<Removed> {
        let page = row::page(self.transaction, &round.text, MARKS)?;
        remove_each(&page, MARKS, (round, |round| &mut round.text), |row| {
            let Ok(row) = row else { return Ok(None) };
            if !self.is_long_over(row)? || self.stands_there(row.id)? {
                return Ok(None);
            }
            remove_mark(self.transaction, row.id)?;
            Ok(Some(row.settled.map_or(row.failure_time, |(_, at)| at)))
        })
    }

    /// Only a host's oldest mark: without a younger one, an older one would count as the host's last outage. Until its host
    /// was seen to be back, the next `off` may belong to its outage, however late.
    fn is_long_over(&self, row: &MarkRow) -> Wrote<bool> {
        let Some((_, settled)) = row.settled else { return Ok(false) };
        let times = [Some(settled), Some(row.made_at), Some(row.failure_time), row.returned_at];
        if times.into_iter().flatten().any(|at| at >= self.bounds.before) || is_open(self.transaction, row)? {
            return Ok(false);
        }
        let (older, later) = others_of_host(self.transaction, row)?;
        let is_left = row.returned_at.is_some() || later >= LATER_MARKS;
        Ok(older == 0 && is_left && !has_news(self.transaction, row.id, self.bounds.before)?)
    }

    /// Whether the register has anything of a mark.
    fn stands_there(&self, mark: MarkId) -> rusqlite::Result<bool> {
        let fencings = "SELECT fencing FROM folded WHERE mark = ?1";
        let decisions = "SELECT id FROM decision WHERE mark = ?1";
        let (fencings, decisions) =
            (texts(self.transaction, fencings, mark)?, texts(self.transaction, decisions, mark)?);
        // A damaged id is unknown.
        let Some((fencings, decisions)) = fencings.zip(decisions) else { return Ok(true) };
        let fencings = fencings.into_iter().map(|id| format!("f.{id}"));
        let decisions = decisions.into_iter().map(|id| format!("p.{id}"));
        let own = ["f", "m", "s", "r"].map(|kind| format!("{kind}.{mark}"));
        Ok(own.into_iter().chain(fencings).chain(decisions).any(|key| (self.stands)(&key)))
    }

    /// Records that were set aside or too old. Undecided ones stay, and so do those with a damaged decision.
    fn aside(&self, round: &mut Round) -> Wrote<Removed> {
        let sql = format!(
            "SELECT f.id, max(f.asked_at, f.committed_at),
               EXISTS (SELECT 1 FROM folded g WHERE g.fencing = f.id AND g.mark IS NULL AND g.digest = fold_digest(g.fencing, g.mark))
             FROM fencing f WHERE f.id > CAST(?1 AS TEXT) ORDER BY f.id LIMIT {OTHERS}"
        );
        let mut query = self.transaction.prepare_cached(&sql)?;
        let page = query.query_map([&round.text], |row| {
            let id = raw_text(row, 0)?;
            Ok((id.clone(), (id, Timestamp(row.get(1)?), row.get::<_, bool>(2)?)))
        })?;
        let page = page.collect::<rusqlite::Result<Vec<_>>>()?;
        remove_each(&page, OTHERS, (round, |round| &mut round.text), |(id, at, is_aside)| {
            let is_old = *is_aside && *at < self.bounds.before;
            let id = str::from_utf8(id).ok().filter(|id| is_old && !(self.stands)(&format!("f.{id}")));
            id.map_or(Ok(()), |id| remove_fencing(self.transaction, id))?;
            Ok(id.map(|_| *at))
        })
    }

    /// Pauses, maintenances and releases of groups. Those in effect have no end and stay.
    fn old_decisions(&self, round: &mut Round) -> Wrote<Removed> {
        let page = decisions::page(self.transaction, round.number, OTHERS)?;
        remove_each(&page, OTHERS, (round, |round| &mut round.number), |(decision, end)| {
            let Ok(decision) = decision else { return Ok(None) };
            let over = decision.over_at(*end).filter(|_| decision.about.mark().is_none());
            let before = self.bounds.decided_before;
            let over = over.filter(|over| *over < before && decision.at < before);
            self.remove_decision(&decision.id.to_string(), over)
        })
    }

    /// Ends of decisions that never came.
    fn lone_endings(&self, round: &mut Round) -> Wrote<Removed> {
        let page = decisions::lone_endings(self.transaction, round.number, OTHERS)?;
        remove_each(&page, OTHERS, (round, |round| &mut round.number), |(id, at)| {
            let Some(id) = id else { return Ok(None) };
            self.remove_decision(id, Some(*at).filter(|at| *at < self.bounds.decided_before))
        })
    }

    /// Removes a decision that was over then, and its end, unless the register has one of them.
    fn remove_decision(&self, id: &str, over: Option<Timestamp>) -> Wrote<Option<Timestamp>> {
        let over =
            over.filter(|_| !(self.stands)(&format!("p.{id}")) && !(self.stands)(&format!("p.{id}.end")));
        if over.is_some() {
            decisions::remove(self.transaction, id)?;
        }
        Ok(over)
    }
}

fn may_go(row: &HistoryRow, bounds: &Bounds, is_too_large: bool) -> bool {
    row.at < bounds.before || (is_too_large && row.at < bounds.floor)
}

fn is_of_open_mark(
    transaction: &Transaction<'_>,
    row: &HistoryRow,
    known: &mut HashMap<String, bool>,
) -> Wrote<bool> {
    let Some(mark) = &row.mark else { return Ok(false) };
    if let Some(is_open) = known.get(mark) {
        return Ok(*is_open);
    }
    let is_open = match row::find(transaction, mark)? {
        None => false,
        Some(Err(_)) => true,
        Some(Ok(row)) => is_open(transaction, &row)?,
    };
    known.insert(mark.clone(), is_open);
    Ok(is_open)
}

/// Whether anything of a mark may still be sent; a damaged delivery may be.
fn is_open(transaction: &Transaction<'_>, row: &MarkRow) -> Wrote<bool> {
    let is_over =
        |delivery: &Checked<Delivery>| delivery.as_ref().is_ok_and(|delivery| delivery.state.is_final());
    Ok(row.settled.is_none() || !delivery_row::load_all(transaction, row.id)?.iter().all(is_over))
}

/// Goes on through a page. `remove` says when that was what it removed; a page that is not full is the last.
fn remove_each<K: Clone, T>(
    page: &[(K, T)],
    most: usize,
    (round, place): (&mut Round, fn(&mut Round) -> &mut K),
    remove: impl Fn(&T) -> Wrote<Option<Timestamp>>,
) -> Wrote<Removed> {
    let mut removed = Removed::default();
    for (key, row) in page {
        place(round).clone_from(key);
        if let Some(at) = remove(row)? {
            removed.add(at);
        }
    }
    if page.len() < most {
        round.go_on();
    }
    Ok(removed)
}

/// How many marks of its host come before a mark, and how many after it.
fn others_of_host(transaction: &Transaction<'_>, row: &MarkRow) -> rusqlite::Result<(u32, u32)> {
    let sql = "SELECT count(*) FILTER (WHERE (failure_time, id) < (?2, ?3)),
             count(*) FILTER (WHERE (failure_time, id) > (?2, ?3)) FROM mark WHERE node = ?1";
    let given = params![row.node.as_str(), row.failure_time.0, row.id.to_string()];
    transaction.prepare_cached(sql)?.query_row(given, |found| Ok((found.get(0)?, found.get(1)?)))
}

/// Whether any record of a mark is younger than it: Pacemaker repeats `off`, and deliveries may end late. A damaged
/// record may be young.
fn has_news(transaction: &Transaction<'_>, mark: MarkId, before: Timestamp) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM delivery WHERE mark = ?1 AND ended_at >= ?2)
             OR EXISTS (SELECT 1 FROM sighting WHERE mark = ?1 AND at >= ?2)
             OR EXISTS (SELECT 1 FROM decision WHERE mark = ?1 AND at >= ?2)
             OR EXISTS (SELECT 1 FROM folded g JOIN fencing f ON f.id = g.fencing WHERE g.mark = ?1
               AND (f.asked_at >= ?2 OR f.committed_at >= ?2 OR g.digest <> fold_digest(g.fencing, g.mark)))";
    transaction.prepare_cached(sql)?.query_row(params![mark.to_string(), before.0], |row| row.get(0))
}

/// `None` if one of them is not text any more.
fn texts(transaction: &Transaction<'_>, sql: &str, mark: MarkId) -> rusqlite::Result<Option<Vec<String>>> {
    let mut query = transaction.prepare_cached(sql)?;
    let rows = query.query_map([mark.to_string()], |row| raw_text(row, 0))?;
    let rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(rows.into_iter().map(|text| String::from_utf8(text).ok()).collect())
}

/// With its own records. A fencing goes with the row that it was taken in, or it would be new again.
fn remove_mark(transaction: &Transaction<'_>, mark: MarkId) -> Wrote {
    for fencing in texts(transaction, "SELECT fencing FROM folded WHERE mark = ?1", mark)?.unwrap_or_default()
    {
        remove_fencing(transaction, &fencing)?;
    }
    for id in texts(transaction, "SELECT id FROM decision WHERE mark = ?1", mark)?.unwrap_or_default() {
        decisions::remove(transaction, &id)?;
    }
    let mark = mark.to_string();
    for sql in [
        "DELETE FROM sighting WHERE mark = ?1",
        "DELETE FROM hold WHERE mark = ?1",
        "DELETE FROM delivery WHERE mark = ?1",
        "DELETE FROM published WHERE entry IN ('m.' || ?1, 's.' || ?1, 'r.' || ?1)
           OR (entry >= 'a.' || ?1 || '.' AND entry < 'a.' || ?1 || '/')",
        "DELETE FROM mark WHERE id = ?1",
    ] {
        transaction.prepare_cached(sql)?.execute([&mark])?;
    }
    Ok(())
}

fn remove_fencing(transaction: &Transaction<'_>, fencing: &str) -> rusqlite::Result<()> {
    for sql in [
        "DELETE FROM folded WHERE fencing = ?1",
        "DELETE FROM imported WHERE fencing = ?1",
        "DELETE FROM published WHERE entry IN ('f.' || ?1, 'f.' || ?1 || '.again', 's.' || ?1)",
        "DELETE FROM fencing WHERE id = ?1",
    ] {
        transaction.prepare_cached(sql)?.execute([fencing])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
