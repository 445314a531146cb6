//! Marks in the journal: made by the intake, ended by an acknowledgement, an operator or a rule.

use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params, params_from_iter};
use serde::Serialize;

use super::deliveries::{self, NewDelivery};
use super::digest::Digest;
use super::fencings::{Checked, Damage, Rows, printable_key};
use super::history::{self, NewHistory};
use super::{Fault, Journal, JournalError};
use crate::fencing::{Fencing, Incarnation};
use crate::host::HostName;
use crate::id::{FencingId, MarkId};
use crate::mark::{Mark, Settlement};
use crate::time::Timestamp;

pub(super) const COLUMNS: &str = "m.id, m.node, m.fqdn, m.on_shared_storage, m.failure_time, m.generated_time, m.settlement, m.settled_at, m.digest";

/// A mark as the journal keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MarkRow {
    /// The id of its first fencing.
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
}

impl MarkRow {
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
}

/// A mark with the name under which it is told and its way to every route.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The mark.
    pub mark: Mark,
    /// One for each route.
    pub deliveries: Vec<NewDelivery>,
}

impl Journal {
    /// Makes a mark of a fencing, with its deliveries. Without a name (`fqdn`) it has none and is held as `no-fqdn`.
    ///
    /// # Errors
    /// As any write.
    pub fn make_mark(
        &mut self,
        first: &Fencing,
        row: &MarkRow,
        deliveries: &[NewDelivery],
        now: Timestamp,
    ) -> Result<(), JournalError> {
        self.write(|transaction| {
            insert(transaction, row)?;
            deliveries::insert(transaction, row.id, deliveries, now)?;
            fold(transaction, first.id, Some(row.id))?;
            let detail = match &row.fqdn {
                Some(fqdn) => format!("{} is marked and will be told as {fqdn}", row.node),
                None => format!("{} is marked and held (no-fqdn): give it a name in [hosts]", row.node),
            };
            Ok(note(transaction, row, now, "marked", &detail, "nova-host-alerter")?)
        })
    }

    /// Adds a further fencing of the same outage to its mark.
    ///
    /// # Errors
    /// As any write.
    pub fn add_to_mark(
        &mut self,
        fencing: &Fencing,
        mark: MarkId,
        now: Timestamp,
    ) -> Result<(), JournalError> {
        self.write(|transaction| {
            fold(transaction, fencing.id, Some(mark))?;
            let detail = format!("{} was fenced again in the same outage", fencing.node);
            Ok(history::append(
                transaction,
                &NewHistory {
                    at: now,
                    event: "fenced-again",
                    mark: Some(mark),
                    node: Some(&fencing.node),
                    route: None,
                    detail: &detail,
                    actor: "nova-host-alerter",
                },
            )?)
        })
    }

    /// Sets a fencing aside that no rule of `[hosts] match` covers.
    ///
    /// # Errors
    /// As any write.
    pub fn set_aside(&mut self, fencing: &Fencing, reason: &str, now: Timestamp) -> Result<(), JournalError> {
        self.write(|transaction| {
            fold(transaction, fencing.id, None)?;
            Ok(history::append(
                transaction,
                &NewHistory {
                    at: now,
                    event: "set-aside",
                    mark: None,
                    node: Some(&fencing.node),
                    route: None,
                    detail: reason,
                    actor: "nova-host-alerter",
                },
            )?)
        })
    }

    /// Gives a mark that was held as `no-fqdn` its name and its deliveries.
    ///
    /// # Errors
    /// As any write.
    pub fn name_mark(&mut self, resolved: &Resolved, now: Timestamp) -> Result<(), JournalError> {
        let mark = &resolved.mark;
        self.write(|transaction| {
            let Some(mut row) = load(transaction, mark.id)? else { return Ok(()) };
            row.fqdn = Some(mark.fqdn.clone());
            update(transaction, &row)?;
            deliveries::insert(transaction, mark.id, &resolved.deliveries, now)?;
            let detail = format!("{} will be told as {}", mark.node, mark.fqdn);
            Ok(note(transaction, &row, now, "named", &detail, "nova-host-alerter")?)
        })
    }

    /// Adds deliveries to open marks that lack one for a route: the route was configured after the mark was made.
    ///
    /// # Errors
    /// As any write.
    pub fn add_deliveries(
        &mut self,
        mark: MarkId,
        missing: &[NewDelivery],
        now: Timestamp,
    ) -> Result<(), JournalError> {
        self.write(|transaction| Ok(deliveries::insert(transaction, mark, missing, now)?))
    }

    /// Ends an open mark by an operator's word. Says whether there was one to end.
    ///
    /// # Errors
    /// As any write.
    pub fn dismiss(
        &mut self,
        mark: MarkId,
        reason: &str,
        actor: &str,
        now: Timestamp,
    ) -> Result<bool, JournalError> {
        self.write(|transaction| {
            let Some(row) = load(transaction, mark)?.filter(|row| row.settled.is_none()) else {
                return Ok(false);
            };
            deliveries::dismiss(transaction, mark, now)?;
            settle(transaction, row, Settlement::Dismissed, reason, actor, now)?;
            Ok(true)
        })
    }

    /// One mark.
    ///
    /// # Errors
    /// `Damaged` if its row cannot be believed.
    pub fn mark(&self, id: MarkId) -> Result<Option<MarkRow>, JournalError> {
        let sql = format!("SELECT {COLUMNS} FROM mark m WHERE m.id = ?1");
        let read = self.connection.query_row(&sql, [id.to_string()], |row| Ok(decode(row))).optional();
        match self.sqlite(read)? {
            Some(Err(damage)) => Err(self.damaged(&damage)),
            Some(Ok(row)) => Ok(Some(row)),
            None => Ok(None),
        }
    }

    /// The mark that took a fencing in; none if it was set aside or not looked at yet.
    ///
    /// # Errors
    /// As any read.
    pub fn mark_of(&self, fencing: FencingId) -> Result<Option<MarkId>, JournalError> {
        let sql = "SELECT mark FROM folded WHERE fencing = ?1 AND digest = fold_digest(fencing, mark)";
        let read = self
            .connection
            .query_row(sql, [fencing.to_string()], |row| row.get::<_, Option<String>>(0))
            .optional();
        Ok(self.sqlite(read)?.flatten().and_then(|id| MarkId::parse(&id).ok()))
    }

    /// Marks that are not settled, oldest first.
    ///
    /// # Errors
    /// As any read.
    pub fn open_marks(&self) -> Result<Rows<MarkRow>, JournalError> {
        self.marks_where("m.settlement IS NULL", None)
    }

    /// The newest marks, settled ones too, oldest first.
    ///
    /// # Errors
    /// As any read.
    pub fn recent_marks(&self, limit: u32) -> Result<Rows<MarkRow>, JournalError> {
        let condition = format!("m.id IN (SELECT id FROM mark ORDER BY id DESC LIMIT {limit})");
        self.marks_where(&condition, None)
    }

    /// All marks of one host, oldest first.
    ///
    /// # Errors
    /// As any read.
    pub fn marks_of(&self, node: &HostName) -> Result<Rows<MarkRow>, JournalError> {
        self.marks_where("m.node = ?1", Some(node))
    }

    /// How many fencings a mark has taken in.
    ///
    /// # Errors
    /// As any read.
    pub fn fence_count(&self, mark: MarkId) -> Result<u32, JournalError> {
        let sql = "SELECT count(*) FROM folded WHERE mark = ?1 AND digest = fold_digest(fencing, mark)";
        self.sqlite(self.connection.query_row(sql, [mark.to_string()], |row| row.get(0)))
    }

    fn marks_where(&self, condition: &str, node: Option<&HostName>) -> Result<Rows<MarkRow>, JournalError> {
        let sql = format!("SELECT {COLUMNS} FROM mark m WHERE {condition} ORDER BY m.failure_time, m.id");
        self.rows(&sql, params_from_iter(node.map(HostName::as_str)), decode)
    }

    pub(super) fn damaged(&self, damage: &Damage) -> JournalError {
        let reason = format!("the digest of {} {} does not fit", damage.table, damage.key);
        JournalError::Damaged { path: self.place.file.clone(), reason }
    }
}

/// Ends a mark whose deliveries are all final.
pub(super) fn settle_if_done(
    transaction: &Transaction<'_>,
    mark: MarkId,
    now: Timestamp,
) -> Result<bool, Fault> {
    let open: i64 = transaction.query_row(
        "SELECT count(*) FROM delivery WHERE mark = ?1 AND state NOT IN ('acknowledged', 'dismissed', 'cancelled')",
        [mark.to_string()],
        |row| row.get(0),
    )?;
    let Some(row) = load(transaction, mark)?.filter(|row| open == 0 && row.settled.is_none()) else {
        return Ok(false);
    };
    settle(transaction, row, Settlement::Acknowledged, "every route acknowledged", "nova-host-alerter", now)?;
    Ok(true)
}

fn settle(
    transaction: &Transaction<'_>,
    mut row: MarkRow,
    how: Settlement,
    why: &str,
    actor: &str,
    now: Timestamp,
) -> Result<(), Fault> {
    row.settled = Some((how, now));
    update(transaction, &row)?;
    Ok(note(transaction, &row, now, "settled", &format!("{} is {}: {why}", row.node, how.as_str()), actor)?)
}

fn note(
    transaction: &Transaction<'_>,
    row: &MarkRow,
    now: Timestamp,
    event: &str,
    detail: &str,
    actor: &str,
) -> rusqlite::Result<()> {
    let (mark, node) = (Some(row.id), Some(&row.node));
    history::append(transaction, &NewHistory { at: now, event, mark, node, route: None, detail, actor })
}

fn load(transaction: &Transaction<'_>, id: MarkId) -> Result<Option<MarkRow>, Fault> {
    let sql = format!("SELECT {COLUMNS} FROM mark m WHERE m.id = ?1");
    let read = transaction.query_row(&sql, [id.to_string()], |row| Ok(decode(row))).optional()?;
    // A damaged row is left as it is: whoever reads it will say so.
    Ok(read.and_then(Result::ok))
}

fn fold(transaction: &Transaction<'_>, fencing: FencingId, mark: Option<MarkId>) -> rusqlite::Result<()> {
    let (fencing, mark) = (fencing.to_string(), mark.map(|m| m.to_string()));
    let digest = fold_digest(&fencing, mark.as_deref());
    transaction
        .prepare_cached("INSERT OR REPLACE INTO folded (fencing, mark, digest) VALUES (?1, ?2, ?3)")?
        .execute(params![fencing, mark, digest])?;
    Ok(())
}

/// Lets SQL pass over a fold whose digest does not fit: its fencing is then folded again.
pub(super) fn add_fold_digest(connection: &Connection) -> rusqlite::Result<()> {
    let flags =
        FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_DIRECTONLY;
    connection.create_scalar_function("fold_digest", 2, flags, |call| {
        let (fencing, mark) = (call.get::<String>(0)?, call.get::<Option<String>>(1)?);
        Ok(fold_digest(&fencing, mark.as_deref()))
    })
}

fn fold_digest(fencing: &str, mark: Option<&str>) -> Vec<u8> {
    Digest::of("folded").text(fencing).maybe_text(mark).finish()
}

fn insert(transaction: &Transaction<'_>, row: &MarkRow) -> rusqlite::Result<()> {
    write(transaction, "INSERT INTO mark VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)", row)
}

fn update(transaction: &Transaction<'_>, row: &MarkRow) -> rusqlite::Result<()> {
    let sql = "UPDATE mark SET node = ?2, fqdn = ?3, on_shared_storage = ?4, failure_time = ?5, generated_time = ?6, settlement = ?7, settled_at = ?8, digest = ?9 WHERE id = ?1";
    write(transaction, sql, row)
}

fn write(transaction: &Transaction<'_>, sql: &str, row: &MarkRow) -> rusqlite::Result<()> {
    transaction.prepare_cached(sql)?.execute(params![
        row.id.to_string(),
        row.node.as_str(),
        row.fqdn.as_ref().map(HostName::as_str),
        row.on_shared_storage,
        row.failure_time.0,
        row.generated_time.0,
        row.settled.map(|(how, _)| how.as_str()),
        row.settled.map(|(_, at)| at.0),
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
        .finish()
}

/// Reads the nine columns of [`COLUMNS`], which must come first in the row.
pub(super) fn decode(row: &Row<'_>) -> Checked<MarkRow> {
    let damage = || Damage { table: "mark", key: printable_key(row) };
    let mark = decode_unchecked(row).ok_or_else(damage)?;
    let kept: Vec<u8> = row.get(8).map_err(|_| damage())?;
    if kept == digest(&mark) { Ok(mark) } else { Err(damage()) }
}

fn decode_unchecked(row: &Row<'_>) -> Option<MarkRow> {
    let fqdn: Option<String> = row.get(2).ok()?;
    let fqdn = match fqdn {
        Some(text) => Some(HostName::parse(&text).ok()?),
        None => None,
    };
    let settlement: Option<String> = row.get(6).ok()?;
    let settled_at: Option<i64> = row.get(7).ok()?;
    let settled = match (settlement, settled_at) {
        (Some(how), Some(at)) => Some((Settlement::parse(&how)?, Timestamp(at))),
        (None, None) => None,
        _ => return None,
    };
    Some(MarkRow {
        id: MarkId::parse(&row.get::<_, String>(0).ok()?).ok()?,
        node: HostName::parse(&row.get::<_, String>(1).ok()?).ok()?,
        fqdn,
        on_shared_storage: row.get(3).ok()?,
        failure_time: Timestamp(row.get(4).ok()?),
        generated_time: Timestamp(row.get(5).ok()?),
        settled,
    })
}

/// A mark's newest fencing, for the decision whether the next one belongs to the same outage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    /// The mark.
    pub mark: MarkId,
    /// When its newest fencing was asked for.
    pub newest: Timestamp,
    /// The incarnations of its fencings, as far as they are known.
    pub incarnations: Vec<Incarnation>,
}

impl Journal {
    /// The outages of one host, oldest first.
    ///
    /// # Errors
    /// As any read; damaged fencings are left out.
    pub fn outages_of(&self, node: &HostName) -> Result<Vec<Outage>, JournalError> {
        let marks = self.marks_of(node)?.sound;
        marks.into_iter().map(|mark| self.outage(&mark)).collect()
    }

    fn outage(&self, mark: &MarkRow) -> Result<Outage, JournalError> {
        let fencings = self.fencings_of(mark.id)?.sound;
        let newest = fencings.iter().map(|f| f.asked_at).max().unwrap_or(mark.failure_time);
        Ok(Outage {
            mark: mark.id,
            newest,
            incarnations: fencings.into_iter().filter_map(|f| f.incarnation).collect(),
        })
    }
}
