//! The row of a mark: its columns, its digest, how it is read and written.

use rusqlite::types::Value;
use rusqlite::{OptionalExtension, Row, Transaction};

use crate::history::{self, NewHistory};
use crate::store::digest::{Checked, checked, raw_text, text, with_digest};
use crate::store::stirred::stir;
use crate::{News, Writing, Wrote};
use marks::fencing::Incarnation;
use marks::host::HostName;
use marks::id::MarkId;
use marks::mark::{MarkRow, Proof, Settlement, Source, Standing};
use marks::time::Timestamp;

pub(crate) const COLUMNS: &str = "m.id, m.node, m.fqdn, m.on_shared_storage, m.failure_time, m.generated_time, m.settlement, m.settled_at, m.source, m.incarnation, m.standing, m.made_by, m.made_at, m.returned_at, m.return_known_at, m.digest";

/// How many columns that are.
pub(crate) const WIDTH: usize = 16;

/// A damaged row is left unchanged, and does not count here: its own reader reports it.
pub(crate) fn load(transaction: &Transaction<'_>, id: MarkId) -> Wrote<Option<MarkRow>> {
    let sql = format!("SELECT {COLUMNS} FROM mark m WHERE m.id = ?1");
    let mut query = transaction.prepare_cached(&sql)?;
    let read = query.query_row([id.to_string()], |row| Ok(decode(row))).optional()?;
    Ok(read.and_then(Result::ok))
}

/// The mark of an id that another row has.
pub(crate) fn find(transaction: &Transaction<'_>, id: &str) -> rusqlite::Result<Option<Checked<MarkRow>>> {
    let sql = format!("SELECT {COLUMNS} FROM mark m WHERE m.id = ?1");
    transaction.prepare_cached(&sql)?.query_row([id], |row| Ok(decode(row))).optional()
}

/// Some marks after a raw id, in the order of their ids.
pub(crate) fn page(
    transaction: &Transaction<'_>,
    after: &[u8],
    limit: usize,
) -> rusqlite::Result<Vec<(Vec<u8>, Checked<MarkRow>)>> {
    let sql =
        format!("SELECT {COLUMNS} FROM mark m WHERE m.id > CAST(?1 AS TEXT) ORDER BY m.id LIMIT {limit}");
    let mut query = transaction.prepare_cached(&sql)?;
    query.query_map([after], |row| Ok((raw_text(row, 0)?, decode(row))))?.collect()
}

/// The mark that the first column names. The id may be damaged: such a row belongs to no mark.
pub(crate) fn mark_of(row: &Row<'_>) -> rusqlite::Result<Option<MarkId>> {
    let text = raw_text(row, 0)?;
    Ok(str::from_utf8(&text).ok().and_then(|text| MarkId::parse(text).ok()))
}

/// A mark that is not settled; a damaged row does not count.
pub(crate) fn load_open(transaction: &Transaction<'_>, id: MarkId) -> Wrote<Option<MarkRow>> {
    Ok(load(transaction, id)?.filter(|row| row.settled.is_none()))
}

/// Writes the columns that may change; host, times and source never do.
pub(crate) fn update(transaction: &Transaction<'_>, row: &MarkRow) -> rusqlite::Result<()> {
    let sql = "UPDATE mark SET fqdn = ?3, on_shared_storage = ?4, settlement = ?7, settled_at = ?8, standing = ?11, returned_at = ?14, return_known_at = ?15, digest = ?16 WHERE id = ?1";
    transaction.prepare_cached(sql)?.execute(with_digest("mark", columns(row)))?;
    stir(transaction, &row.id.to_string())
}

pub(crate) fn insert(transaction: &Transaction<'_>, row: &MarkRow) -> rusqlite::Result<()> {
    let sql =
        "INSERT INTO mark VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)";
    transaction.prepare_cached(sql)?.execute(with_digest("mark", columns(row)))?;
    Ok(())
}

/// All columns but the digest.
fn columns(row: &MarkRow) -> Vec<Value> {
    vec![
        row.id.to_string().into(),
        text(row.node.as_str()),
        row.fqdn.as_ref().map(|name| text(name.as_str())).into(),
        row.on_shared_storage.into(),
        row.failure_time.0.into(),
        row.generated_time.0.into(),
        row.settled.map(|(how, _)| text(how.as_str())).into(),
        row.settled.map(|(_, at)| at.0).into(),
        text(row.source.as_str()),
        row.incarnation.as_ref().map(|life| text(life.as_str())).into(),
        text(row.standing.as_str()),
        text(&row.made_by),
        row.made_at.0.into(),
        row.returned_at.map(|at| at.0).into(),
        row.return_known_at.map(|at| at.0).into(),
    ]
}

/// Reads the columns of [`COLUMNS`], which must come first in the row.
pub(crate) fn decode(row: &Row<'_>) -> Checked<MarkRow> {
    checked(row, ("mark", WIDTH - 1), decode_unchecked(row), columns)
}

fn decode_unchecked(row: &Row<'_>) -> Option<MarkRow> {
    let fqdn: Option<String> = row.get(2).ok()?;
    let fqdn = fqdn.map(|text| HostName::parse(&text)).transpose().ok()?;
    let incarnation: Option<String> = row.get(9).ok()?;
    let returned_at: Option<i64> = row.get(13).ok()?;
    Some(MarkRow {
        id: MarkId::parse(&row.get::<_, String>(0).ok()?).ok()?,
        node: HostName::parse(&row.get::<_, String>(1).ok()?).ok()?,
        fqdn,
        on_shared_storage: row.get(3).ok()?,
        failure_time: Timestamp(row.get(4).ok()?),
        generated_time: Timestamp(row.get(5).ok()?),
        settled: decode_settled(row)?,
        source: Source::parse(&row.get::<_, String>(8).ok()?)?,
        incarnation: incarnation.map(Incarnation::from_journal),
        standing: Standing::parse(&row.get::<_, String>(10).ok()?)?,
        made_by: row.get(11).ok()?,
        made_at: Timestamp(row.get(12).ok()?),
        returned_at: returned_at.map(Timestamp),
        return_known_at: row.get::<_, Option<i64>>(14).ok()?.map(Timestamp),
    })
}

/// The outer `None` is damage, the inner one an open mark.
fn decode_settled(row: &Row<'_>) -> Option<Option<(Settlement, Timestamp)>> {
    let settlement: Option<String> = row.get(6).ok()?;
    let settled_at: Option<i64> = row.get(7).ok()?;
    match (settlement, settled_at) {
        (Some(how), Some(at)) => Some(Some((Settlement::parse(&how)?, Timestamp(at)))),
        (None, None) => Some(None),
        _ => None,
    }
}

impl Writing<'_> {
    /// Ends the doubt of a mark, with event, sentence and actor for the history.
    pub(crate) fn prove(self, mut row: MarkRow, proof: Proof, (event, detail, actor): News<'_>) -> Wrote {
        row.standing = Standing::Proven(proof);
        update(&self, &row)?;
        self.note_mark(&row, event, detail, actor)
    }

    pub(crate) fn note_mark(self, row: &MarkRow, event: &str, detail: &str, actor: &str) -> Wrote {
        self.note_outcome(row, (event, None), detail, actor)
    }

    /// The same with the event's word.
    pub(crate) fn note_outcome(
        self,
        row: &MarkRow,
        (event, outcome): (&str, Option<&str>),
        detail: &str,
        actor: &str,
    ) -> Wrote {
        let (mark, node) = (Some(row.id), Some(&row.node));
        let new = NewHistory { mark, node, outcome, ..NewHistory::new(self.now, event, detail, actor) };
        history::append(&self, &new)
    }
}
