//! The append-only history: every change and every operator's decision, with actor and reason.

pub(crate) mod words;

use std::collections::BTreeSet;

use marks::host::HostName;
use marks::id::MarkId;
use marks::time::Timestamp;
use rusqlite::types::Value;
use rusqlite::{OptionalExtension, Row, Transaction, params};
use serde::Serialize;

use crate::store::digest::{Checked, Rows, checked, text, with_digest};
use crate::{Done, Journal, Wrote};

/// The actor of everything that happens by itself.
pub(crate) const ALERTER: &str = "nova-host-alerter";

pub(crate) const COLUMNS: &str = "seq, at, event, mark, node, route, outcome, detail, actor, digest";

/// A row to write.
#[derive(Clone, Debug)]
pub struct NewHistory<'a> {
    /// The time.
    pub at: Timestamp,
    /// One of [`super::WORDS`].
    pub event: &'a str,
    /// The mark, if any.
    pub mark: Option<MarkId>,
    /// The host, if any.
    pub node: Option<&'a HostName>,
    /// The route, if any.
    pub route: Option<&'a str>,
    /// What the event leaves open, in a stable word: how a mark ended, or what holds it.
    pub outcome: Option<&'a str>,
    /// One sentence, only for people: nothing is decided by it.
    pub detail: &'a str,
    /// The actor: `fence_mark`, `nova-host-alerter`, or an operator's user name.
    pub actor: &'a str,
}

impl<'a> NewHistory<'a> {
    /// Without mark, host and route.
    pub fn new(at: Timestamp, event: &'a str, detail: &'a str, actor: &'a str) -> Self {
        Self { at, event, mark: None, node: None, route: None, outcome: None, detail, actor }
    }
}

/// A row as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HistoryRow {
    /// Order of writing.
    pub seq: i64,
    /// The time.
    pub at: Timestamp,
    /// A stable word.
    pub event: String,
    /// The mark, if any.
    pub mark: Option<String>,
    /// The host, if any.
    #[serde(rename = "host")]
    pub node: Option<String>,
    /// The route, if any.
    pub route: Option<String>,
    /// What the event leaves open, in a stable word: how a mark ended, or what holds it.
    pub outcome: Option<String>,
    /// One sentence, only for people: nothing is decided by it.
    pub detail: String,
    /// The actor.
    pub actor: String,
}

/// Which rows to read.
#[derive(Clone, Debug, Default)]
pub struct HistoryFilter {
    /// Only this host.
    pub node: Option<HostName>,
    /// Only this mark.
    pub mark: Option<MarkId>,
    /// At most so many, the newest; zero means all.
    pub limit: u32,
}

pub(crate) fn append(transaction: &Transaction<'_>, new: &NewHistory<'_>) -> Wrote {
    debug_assert!(words::is_word(new.event), "docs/history.md does not know {}", new.event);
    let of = [
        new.mark.map(|mark| mark.to_string()),
        new.node.map(|node| node.as_str().to_owned()),
        new.route.map(str::to_owned),
        new.outcome.map(str::to_owned),
    ];
    let row = columns(new.at, new.event, of, [new.detail, new.actor]);
    let sql = "INSERT INTO history (at, event, mark, node, route, outcome, detail, actor, digest)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    transaction.prepare_cached(sql)?.execute(with_digest("history", row))?;
    Ok(())
}

/// Some rows after a number, in the order of writing.
pub(crate) fn page(
    transaction: &Transaction<'_>,
    after: i64,
    limit: usize,
) -> rusqlite::Result<Vec<(i64, Checked<HistoryRow>)>> {
    let sql = format!("SELECT {COLUMNS} FROM history WHERE seq > ?1 ORDER BY seq LIMIT {limit}");
    let mut query = transaction.prepare_cached(&sql)?;
    query.query_map([after], |row| Ok((row.get(0)?, decode(row))))?.collect()
}

/// Without the number: the order of writing is SQLite's own. `of`: mark, node, route and outcome; `words`: detail and actor.
fn columns(at: Timestamp, event: &str, of: [Option<String>; 4], words: [&str; 2]) -> Vec<Value> {
    let (first, last) = ([at.0.into(), text(event)], words.map(text));
    first.into_iter().chain(of.map(Value::from)).chain(last).collect()
}

fn columns_of(row: &HistoryRow) -> Vec<Value> {
    let of = [&row.mark, &row.node, &row.route, &row.outcome].map(Clone::clone);
    columns(row.at, &row.event, of, [&row.detail, &row.actor])
}

pub(crate) fn decode(row: &Row<'_>) -> Checked<HistoryRow> {
    checked(row, ("history", 9), decode_unchecked(row).ok(), columns_of)
}

fn decode_unchecked(row: &Row<'_>) -> rusqlite::Result<HistoryRow> {
    Ok(HistoryRow {
        seq: row.get(0)?,
        at: Timestamp(row.get(1)?),
        event: row.get(2)?,
        mark: row.get(3)?,
        node: row.get(4)?,
        route: row.get(5)?,
        outcome: row.get(6)?,
        detail: row.get(7)?,
        actor: row.get(8)?,
    })
}

impl Journal {
    /// Writes one row by itself, if nothing else is to be written.
    ///
    /// # Errors
    /// As any write.
    pub fn append_history(&mut self, row: &NewHistory<'_>) -> Done {
        self.write(|transaction| append(transaction, row))
    }

    /// Writes rows about the health of hosts, all or none.
    ///
    /// # Errors
    /// As any write.
    pub fn note_health(&mut self, rows: &[NewHistory<'_>]) -> Done {
        self.write(|transaction| rows.iter().try_for_each(|row| append(transaction, row)))
    }

    /// The hosts with a health check that fails, by the newest row about that.
    ///
    /// # Errors
    /// As any read.
    pub fn unhealthy(&self) -> Done<BTreeSet<HostName>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM history WHERE seq IN (SELECT max(seq) FROM history
             WHERE event IN ('healthy', 'unhealthy') GROUP BY node) AND event = 'unhealthy'"
        );
        let rows = self.rows(&sql, [], decode)?.sound.into_iter();
        Ok(rows.filter_map(|row| HostName::parse(&row.node?).ok()).collect())
    }

    /// The number of the newest row; 0 if there is none.
    ///
    /// # Errors
    /// As any read.
    pub fn newest_history(&self) -> Done<i64> {
        let newest = "SELECT coalesce(max(seq), 0) FROM history";
        self.sqlite(self.connection.query_row(newest, [], |row| row.get(0)))
    }

    /// When the newest row was written, by the clock of then; `None` if it is damaged or there is none.
    ///
    /// # Errors
    /// As any read.
    pub fn newest_at(&self) -> Done<Option<Timestamp>> {
        let newest = self.history(&HistoryFilter { limit: 1, ..HistoryFilter::default() })?;
        Ok(newest.sound.first().map(|row| row.at))
    }

    /// When the oldest remaining row was written.
    ///
    /// # Errors
    /// As any read.
    pub fn began_at(&self) -> Done<Option<Timestamp>> {
        let sql = "SELECT at FROM history ORDER BY seq LIMIT 1";
        let read = self.connection.query_row(sql, [], |row| row.get(0)).optional();
        Ok(self.sqlite(read)?.map(Timestamp))
    }

    /// The newest rows, oldest first.
    ///
    /// # Errors
    /// As any read.
    pub fn history(&self, filter: &HistoryFilter) -> Done<Rows<HistoryRow>> {
        let limit = if filter.limit == 0 { -1 } else { i64::from(filter.limit) };
        let node = filter.node.as_ref().map(HostName::as_str);
        let mark = filter.mark.map(|m| m.to_string());
        let sql = format!(
            "SELECT {COLUMNS} FROM history
             WHERE (?1 IS NULL OR node = ?1 COLLATE NOCASE) AND (?2 IS NULL OR mark = ?2)
             ORDER BY seq DESC LIMIT ?3"
        );
        let mut rows = self.rows(&sql, params![node, mark, limit], decode)?;
        rows.sound.reverse();
        Ok(rows)
    }
}

/// Some rows of the history, and where the older ones begin.
#[derive(Debug)]
pub struct Page {
    /// Newest first.
    pub rows: Rows<HistoryRow>,
    /// The next page's start; `None` if there are no older rows.
    pub older: Option<i64>,
}

impl Journal {
    /// The newest `limit` rows before row number `before`, or of all.
    ///
    /// # Errors
    /// As any read.
    pub fn history_before(&self, before: Option<i64>, limit: u32) -> Done<Page> {
        let sql = format!("SELECT {COLUMNS} FROM history WHERE seq < ?1 ORDER BY seq DESC LIMIT ?2");
        let rows = self.rows(&sql, params![before.unwrap_or(i64::MAX), limit], decode)?;
        let is_full = rows.sound.len() + rows.damaged.len() >= limit as usize;
        let sound = rows.sound.iter().map(|row| row.seq);
        let damaged = rows.damaged.iter().filter_map(|damage| damage.key.parse().ok());
        let oldest = sound.chain(damaged).min();
        Ok(Page { older: oldest.filter(|_| is_full), rows })
    }
}

#[cfg(test)]
mod tests {
    use crate::Verdict;
    use crate::tests::{Home, NOW, acknowledged, again, attempt, events, fencing};

    /// S1-7: an answer gets a row if it differs from the one before; the attempts are counted. The broken variant writes
    /// a row for each.
    #[test]
    fn answers_that_are_alike_are_counted_and_not_written_again() {
        let (_home, mut journal, mark) = Home::marked();
        let alike = again(NOW);
        let Verdict::Again { state, ambiguous, detail, next_due, .. } = alike.clone() else {
            panic!("it is one")
        };
        let other = Verdict::Again { state, ambiguous, kind: "http-503".into(), detail, next_due };
        let answers = [&alike, &alike, &alike, &other, &acknowledged()];
        answers.iter().for_each(|verdict| {
            attempt(&mut journal, mark, "recovery", verdict);
        });
        assert_eq!(
            events(&journal, mark),
            ["marked", "not-accepted", "not-accepted", "acknowledged", "settled"]
        );
        assert_eq!(journal.deliveries_of(mark).unwrap().sound[0].attempts as usize, answers.len());
    }

    /// The broken variant asks for rows not newer than the last one, which comes twice.
    #[test]
    fn pages_hold_every_row_once() {
        let (_home, mut journal) = Home::alerter();
        (0..5).for_each(|number| journal.append_fencing(&fencing(&format!("compute{number}"))).unwrap());
        let (mut seen, mut before) = (Vec::new(), None);
        loop {
            let page = journal.history_before(before, 2).unwrap();
            seen.extend(page.rows.sound.iter().map(|row| row.seq));
            before = page.older;
            if before.is_none() {
                break;
            }
        }
        assert_eq!(seen, [5, 4, 3, 2, 1]);
    }
}
