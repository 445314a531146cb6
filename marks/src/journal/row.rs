//! The row of a mark: its columns, its digest, how it is read and written.

use rusqlite::{OptionalExtension, Row, Transaction, params};
use serde::{Serialize, Serializer};

use super::digest::Digest;
use super::fencings::{Checked, Damage, printable_key};
use super::{Fault, chains};
use crate::fencing::Incarnation;
use crate::host::HostName;
use crate::id::MarkId;
use crate::mark::{Doubt, Mark, Settlement, Source, Standing};
use crate::register::MarkEntry;
use crate::time::Timestamp;

pub(super) const COLUMNS: &str = "m.id, m.node, m.fqdn, m.on_shared_storage, m.failure_time, m.generated_time, m.settlement, m.settled_at, m.source, m.incarnation, m.standing, m.made_by, m.made_at, m.returned_at, m.digest";

/// How many columns that are.
pub(super) const WIDTH: usize = 15;

/// A mark as the journal keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MarkRow {
    /// The id of its first fencing, or of the sighting that made it.
    pub id: MarkId,
    /// The host's Pacemaker node name.
    pub node: HostName,
    /// The name that is told; none while the mark is held as `no-fqdn`.
    pub fqdn: Option<HostName>,
    /// Whether the host's instances are backed by shared storage.
    pub on_shared_storage: bool,
    /// When the fence agent was asked.
    pub failure_time: Timestamp,
    /// When the first fencing was committed.
    pub generated_time: Timestamp,
    /// How and when it ended.
    pub settled: Option<(Settlement, Timestamp)>,
    /// What it was made of.
    pub source: Source,
    /// The connection that ended with the outage, where it is known.
    pub incarnation: Option<Incarnation>,
    /// Whether it may be believed.
    #[serde(serialize_with = "as_word")]
    pub standing: Standing,
    /// The controller whose alerter made it.
    pub made_by: String,
    /// When.
    pub made_at: Timestamp,
    /// When its host was seen to be back.
    pub returned_at: Option<Timestamp>,
}

fn as_word<S: Serializer>(standing: &Standing, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(standing.as_str())
}

impl MarkRow {
    /// Whether nobody vouches for it yet, and it makes a difference whether somebody does: it may go, or what follows behind its
    /// acknowledgement may.
    pub fn wants_proof(&self) -> bool {
        let is_over = self.settled.is_some_and(|(how, _)| how != Settlement::Acknowledged);
        self.standing.doubt().is_some() && !is_over
    }

    /// An open mark as an entry of the register tells it: so far nobody else vouches for it.
    pub fn of_entry(entry: &MarkEntry) -> Self {
        let mark = &entry.mark;
        Self {
            id: mark.id,
            node: mark.node.clone(),
            fqdn: Some(mark.fqdn.clone()),
            on_shared_storage: mark.on_shared_storage,
            failure_time: mark.failure_time,
            generated_time: mark.generated_time,
            settled: None,
            source: entry.source,
            incarnation: entry.incarnation.clone(),
            standing: Standing::Doubtful(Doubt::Unproven),
            made_by: entry.made_by.clone(),
            made_at: entry.made_at,
            returned_at: None,
        }
    }

    /// What is told, once it is known under which name.
    pub fn told(&self) -> Option<Mark> {
        Some(Mark {
            id: self.id,
            node: self.node.clone(),
            fqdn: self.fqdn.clone()?,
            on_shared_storage: self.on_shared_storage,
            failure_time: self.failure_time,
            generated_time: self.generated_time,
        })
    }

    /// What the register says of it, once it is known under which name it is told.
    pub fn entry(&self) -> Option<MarkEntry> {
        Some(MarkEntry {
            mark: self.told()?,
            source: self.source,
            incarnation: self.incarnation.clone(),
            made_by: self.made_by.clone(),
            made_at: self.made_at,
        })
    }
}

/// A damaged row is left as it is, and is none here: whoever reads it will say so.
pub(super) fn load(transaction: &Transaction<'_>, id: MarkId) -> Result<Option<MarkRow>, Fault> {
    let sql = format!("SELECT {COLUMNS} FROM mark m WHERE m.id = ?1");
    let mut query = transaction.prepare_cached(&sql)?;
    let read = query.query_row([id.to_string()], |row| Ok(decode(row))).optional()?;
    Ok(read.and_then(Result::ok))
}

/// What stands under a mark's id, as it is written in another row.
pub(super) fn find(transaction: &Transaction<'_>, id: &str) -> rusqlite::Result<Option<Checked<MarkRow>>> {
    let sql = format!("SELECT {COLUMNS} FROM mark m WHERE m.id = ?1");
    transaction.prepare_cached(&sql)?.query_row([id], |row| Ok(decode(row))).optional()
}

/// Some marks behind an id as it stands there, in the order of their ids.
pub(super) fn page(
    transaction: &Transaction<'_>,
    after: &[u8],
    limit: usize,
) -> rusqlite::Result<Vec<(Vec<u8>, Checked<MarkRow>)>> {
    let sql =
        format!("SELECT {COLUMNS} FROM mark m WHERE m.id > CAST(?1 AS TEXT) ORDER BY m.id LIMIT {limit}");
    let mut query = transaction.prepare_cached(&sql)?;
    query.query_map([after], |row| Ok((raw_text(row, 0)?, decode(row))))?.collect()
}

/// A mark that is not settled; a damaged row is none.
pub(super) fn load_open(transaction: &Transaction<'_>, id: MarkId) -> Result<Option<MarkRow>, Fault> {
    Ok(load(transaction, id)?.filter(|row| row.settled.is_none()))
}

/// Writes what may change; host, times and source never do.
pub(super) fn update(transaction: &Transaction<'_>, row: &MarkRow) -> rusqlite::Result<()> {
    let sql = "UPDATE mark SET fqdn = ?2, settlement = ?3, settled_at = ?4, standing = ?5, returned_at = ?6, digest = ?7 WHERE id = ?1";
    transaction.prepare_cached(sql)?.execute(params![
        row.id.to_string(),
        row.fqdn.as_ref().map(HostName::as_str),
        row.settled.map(|(how, _)| how.as_str()),
        row.settled.map(|(_, at)| at.0),
        row.standing.as_str(),
        row.returned_at.map(|at| at.0),
        digest(row),
    ])?;
    chains::stir(transaction, &row.id.to_string())
}

pub(super) fn insert(transaction: &Transaction<'_>, row: &MarkRow) -> rusqlite::Result<()> {
    let sql = "INSERT INTO mark VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";
    transaction.prepare_cached(sql)?.execute(params![
        row.id.to_string(),
        row.node.as_str(),
        row.fqdn.as_ref().map(HostName::as_str),
        row.on_shared_storage,
        row.failure_time.0,
        row.generated_time.0,
        row.settled.map(|(how, _)| how.as_str()),
        row.settled.map(|(_, at)| at.0),
        row.source.as_str(),
        row.incarnation.as_ref().map(Incarnation::as_str),
        row.standing.as_str(),
        row.made_by,
        row.made_at.0,
        row.returned_at.map(|at| at.0),
        digest(row),
    ])?;
    Ok(())
}

fn digest(row: &MarkRow) -> Vec<u8> {
    Digest::of("mark")
        .text(&row.id.to_string())
        .text(row.node.as_str())
        .maybe_text(row.fqdn.as_ref().map(HostName::as_str))
        .int(i64::from(row.on_shared_storage))
        .int(row.failure_time.0)
        .int(row.generated_time.0)
        .maybe_text(row.settled.map(|(how, _)| how.as_str()))
        .maybe_int(row.settled.map(|(_, at)| at.0))
        .text(row.source.as_str())
        .maybe_text(row.incarnation.as_ref().map(Incarnation::as_str))
        .text(row.standing.as_str())
        .text(&row.made_by)
        .int(row.made_at.0)
        .maybe_int(row.returned_at.map(|at| at.0))
        .finish()
}

/// A text as it stands there: damage may have made it none.
pub(super) fn raw_text(row: &Row<'_>, column: usize) -> rusqlite::Result<Vec<u8>> {
    Ok(row.get_ref(column)?.as_bytes().unwrap_or_default().to_vec())
}

/// Reads the columns of [`COLUMNS`], which must come first in the row.
pub(super) fn decode(row: &Row<'_>) -> Checked<MarkRow> {
    let damage = || Damage { table: "mark", key: printable_key(row) };
    let mark = decode_unchecked(row).ok_or_else(damage)?;
    let kept: Vec<u8> = row.get(WIDTH - 1).map_err(|_| damage())?;
    if kept == digest(&mark) { Ok(mark) } else { Err(damage()) }
}

fn decode_unchecked(row: &Row<'_>) -> Option<MarkRow> {
    let fqdn: Option<String> = row.get(2).ok()?;
    let fqdn = match fqdn {
        Some(text) => Some(HostName::parse(&text).ok()?),
        None => None,
    };
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
