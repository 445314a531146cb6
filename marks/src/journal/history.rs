//! The append-only history: every change and every operator's decision, with who and why.

use rusqlite::{Transaction, params};
use serde::Serialize;

use super::{Journal, JournalError};
use crate::host::HostName;
use crate::id::MarkId;
use crate::time::Timestamp;

/// A row to write.
#[derive(Clone, Debug)]
pub struct NewHistory<'a> {
    /// When.
    pub at: Timestamp,
    /// A stable word, such as `fenced`, `marked`, `acknowledged`.
    pub event: &'a str,
    /// The mark, where there is one.
    pub mark: Option<MarkId>,
    /// The host, where there is one.
    pub node: Option<&'a HostName>,
    /// The route, where there is one.
    pub route: Option<&'a str>,
    /// One sentence.
    pub detail: &'a str,
    /// Who did it: `fence_mark`, `nova-host-alerter`, or an operator's user name.
    pub actor: &'a str,
}

/// A row as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HistoryRow {
    /// Order of writing.
    pub seq: i64,
    /// When.
    pub at: Timestamp,
    /// A stable word.
    pub event: String,
    /// The mark, where there is one.
    pub mark: Option<String>,
    /// The host, where there is one.
    pub node: Option<String>,
    /// The route, where there is one.
    pub route: Option<String>,
    /// One sentence.
    pub detail: String,
    /// Who did it.
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

pub(super) fn append(transaction: &Transaction<'_>, row: &NewHistory<'_>) -> rusqlite::Result<()> {
    transaction.prepare_cached(
        "INSERT INTO history (at, event, mark, node, route, detail, actor) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?.execute(params![
        row.at.0,
        row.event,
        row.mark.map(|m| m.to_string()),
        row.node.map(HostName::as_str),
        row.route,
        row.detail,
        row.actor
    ])?;
    Ok(())
}

impl Journal {
    /// Writes one row by itself, for what changes nothing else.
    ///
    /// # Errors
    /// As any write.
    pub fn append_history(&mut self, row: &NewHistory<'_>) -> Result<(), JournalError> {
        self.write(|transaction| Ok(append(transaction, row)?))
    }

    /// The newest rows, oldest first.
    ///
    /// # Errors
    /// As any read.
    pub fn history(&self, filter: &HistoryFilter) -> Result<Vec<HistoryRow>, JournalError> {
        let limit = if filter.limit == 0 { -1 } else { i64::from(filter.limit) };
        let read = || {
            let mut query = self.connection.prepare_cached(
                "SELECT seq, at, event, mark, node, route, detail, actor FROM history
                 WHERE (?1 IS NULL OR node = ?1 COLLATE NOCASE) AND (?2 IS NULL OR mark = ?2)
                 ORDER BY seq DESC LIMIT ?3",
            )?;
            let node = filter.node.as_ref().map(HostName::as_str);
            let mark = filter.mark.map(|m| m.to_string());
            let rows = query.query_map(params![node, mark, limit], |row| {
                Ok(HistoryRow {
                    seq: row.get(0)?,
                    at: Timestamp(row.get(1)?),
                    event: row.get(2)?,
                    mark: row.get(3)?,
                    node: row.get(4)?,
                    route: row.get(5)?,
                    detail: row.get(6)?,
                    actor: row.get(7)?,
                })
            })?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        let mut rows = self.sqlite(read())?;
        rows.reverse();
        Ok(rows)
    }
}
