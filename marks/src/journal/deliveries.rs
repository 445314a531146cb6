//! Deliveries in the journal: what is due, what an attempt came to. Only the transition table decides what may change.

use rusqlite::{OptionalExtension, Row, Transaction, params, params_from_iter};

use super::digest::Digest;
use super::fencings::{Checked, Damage, Rows};
use super::history::{self, NewHistory};
use super::marks::{self, MarkRow};
use super::{Fault, Journal, JournalError};
use crate::delivery::{Attempt, Delivery, State};
use crate::host::HostName;
use crate::id::MarkId;
use crate::time::Timestamp;

const COLUMNS: &str = "d.mark, d.route, d.state, d.body, d.attempts, d.ambiguous, d.next_due, d.last_at, d.last_kind, d.last_detail, d.reference, d.ended_at, d.digest";

/// A delivery to make: the route and the exact bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDelivery {
    /// The route's name.
    pub route: String,
    /// What every attempt will send.
    pub body: Vec<u8>,
}

/// A delivery whose next attempt may begin, with its mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueDelivery {
    /// The mark.
    pub mark: MarkRow,
    /// Its way to one route.
    pub delivery: Delivery,
}

/// What an attempt came to, and what follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The recovery controller took it.
    Acknowledged {
        /// Its reference, where it gave one.
        reference: Option<String>,
        /// One sentence.
        detail: String,
    },
    /// It will be tried again.
    Again {
        /// `Pending` or `Parked`.
        state: State,
        /// Whether the receiver may have got it all the same.
        ambiguous: bool,
        /// The machine word.
        kind: String,
        /// One sentence.
        detail: String,
        /// When.
        next_due: Timestamp,
    },
}

impl Journal {
    /// Deliveries on one route whose next attempt may begin, oldest first: due, sound, and the first open one of their
    /// host on their route. A damaged one is put into quarantine on the way: it neither goes out nor stands in another's way.
    ///
    /// # Errors
    /// As any write.
    pub fn due(
        &mut self,
        now: Timestamp,
        route: &str,
        limit: usize,
    ) -> Result<Rows<DueDelivery>, JournalError> {
        let found = self.sqlite(self.due_rows(now, route, limit))?;
        let (mut sound, mut damaged) = (Vec::new(), Vec::new());
        for (key, row) in found {
            match row {
                Ok(due) => sound.push(due),
                Err(damage) => {
                    self.quarantine(&key, &damage, now)?;
                    damaged.push(damage);
                }
            }
        }
        Ok(Rows { sound, damaged })
    }

    /// When the next attempt on `routes` is due that is not due at `now` already.
    ///
    /// # Errors
    /// As any read.
    pub fn next_due(&self, now: Timestamp, routes: &[String]) -> Result<Option<Timestamp>, JournalError> {
        let sql = "SELECT min(next_due) FROM delivery
                   WHERE state IN ('pending', 'parked') AND next_due > ?1 AND route IN (SELECT value FROM json_each(?2))";
        let read: rusqlite::Result<Option<i64>> =
            self.connection.query_row(sql, params![now.0, json(routes)], |row| row.get(0));
        Ok(self.sqlite(read)?.map(Timestamp))
    }

    /// Writes down that an attempt begins, before a byte of it is sent.
    ///
    /// # Errors
    /// `Transition` if the delivery may not be sent (any more).
    pub fn begin_attempt(&mut self, mark: MarkId, route: &str) -> Result<Delivery, JournalError> {
        self.change(mark, route, |delivery, _| {
            move_to(delivery, State::InFlight)?;
            delivery.attempts = delivery.attempts.saturating_add(1);
            Ok(())
        })
    }

    /// Writes down what an attempt came to. Says whether the whole mark is settled with it.
    ///
    /// # Errors
    /// As any write. After an error the attempt counts as one whose end nobody knows.
    pub fn finish_attempt(
        &mut self,
        mark: MarkId,
        route: &str,
        verdict: &Verdict,
        now: Timestamp,
    ) -> Result<bool, JournalError> {
        self.write(|transaction| {
            let Some(mut delivery) = load(transaction, mark, route)? else { return Ok(false) };
            // An operator may have dismissed it while it was under way: what came back is history only.
            if delivery.state != State::InFlight {
                note(transaction, &delivery, now, "late-answer", verdict.detail())?;
                return Ok(false);
            }
            let news = apply(&mut delivery, verdict, now)?;
            update(transaction, &delivery)?;
            if let Some(event) = news {
                note(transaction, &delivery, now, event, verdict.detail())?;
            }
            marks::settle_if_done(transaction, mark, now)
        })
    }

    /// After a start: attempts that a former daemon left under way may have arrived, and no wait from before is longer
    /// than `latest` (a clock may have been set back). Says how many were under way.
    ///
    /// # Errors
    /// As any write.
    pub fn recover(&mut self, now: Timestamp, latest: Timestamp) -> Result<usize, JournalError> {
        let open = self.deliveries_where("d.state IN ('in-flight', 'pending', 'parked')", None)?;
        let mut unknown = 0;
        for delivery in open.sound {
            let in_flight = delivery.state == State::InFlight;
            if !in_flight && delivery.next_due <= latest {
                continue;
            }
            unknown += usize::from(in_flight);
            self.change(delivery.mark, &delivery.route, |delivery, transaction| {
                delivery.next_due = delivery.next_due.min(latest);
                if delivery.state == State::InFlight {
                    move_to(delivery, State::Pending)?;
                    delivery.ambiguous = delivery.ambiguous.saturating_add(1);
                    delivery.next_due = now;
                    note(
                        transaction,
                        delivery,
                        now,
                        "interrupted",
                        "an attempt was cut off, it may have arrived",
                    )?;
                }
                Ok(())
            })?;
        }
        Ok(unknown)
    }

    /// Makes open deliveries due at once; those of one mark, or all. Says how many.
    ///
    /// # Errors
    /// As any write.
    pub fn retry_now(
        &mut self,
        only: Option<MarkId>,
        actor: &str,
        now: Timestamp,
    ) -> Result<usize, JournalError> {
        let of_one = if only.is_some() { "d.mark = ?1" } else { "true" };
        let condition = format!("d.state IN ('pending', 'parked') AND {of_one}");
        let waiting = self.deliveries_where(&condition, only)?;
        for delivery in &waiting.sound {
            self.change(delivery.mark, &delivery.route, |delivery, transaction| {
                move_to(delivery, State::Pending)?;
                delivery.next_due = now;
                Ok(note_by(
                    transaction,
                    delivery,
                    now,
                    "retry",
                    "an operator asked for an attempt at once",
                    actor,
                )?)
            })?;
        }
        Ok(waiting.sound.len())
    }

    /// The deliveries of one mark.
    ///
    /// # Errors
    /// As any read.
    pub fn deliveries_of(&self, mark: MarkId) -> Result<Rows<Delivery>, JournalError> {
        self.deliveries_where("d.mark = ?1", Some(mark))
    }

    /// Every delivery that is not final.
    ///
    /// # Errors
    /// As any read.
    pub fn open_deliveries(&self) -> Result<Rows<Delivery>, JournalError> {
        self.deliveries_where("d.state NOT IN ('acknowledged', 'dismissed', 'cancelled')", None)
    }

    fn deliveries_where(
        &self,
        condition: &str,
        mark: Option<MarkId>,
    ) -> Result<Rows<Delivery>, JournalError> {
        let sql = format!("SELECT {COLUMNS} FROM delivery d WHERE {condition} ORDER BY d.mark, d.route");
        self.rows(&sql, params_from_iter(mark.map(|mark| mark.to_string())), |row| decode(row, 0))
    }

    /// The key comes beside the row, since the row may not be believed.
    fn due_rows(
        &self,
        now: Timestamp,
        route: &str,
        limit: usize,
    ) -> rusqlite::Result<Vec<(Key, Checked<DueDelivery>)>> {
        let sql = format!(
            "SELECT {}, {COLUMNS} FROM delivery d JOIN mark m ON m.id = d.mark
             WHERE d.state IN ('pending', 'parked') AND d.next_due <= ?1
               AND d.route = ?3 AND NOT EXISTS (
               SELECT 1 FROM mark n JOIN delivery e ON e.mark = n.id
               WHERE n.settlement IS NULL AND n.node = m.node AND e.route = d.route
                 AND (n.failure_time, n.id) < (m.failure_time, m.id)
                 AND e.state IN ('pending', 'parked', 'in-flight', 'held'))
             ORDER BY m.failure_time, m.id LIMIT ?2",
            marks::COLUMNS
        );
        let mut query = self.connection.prepare_cached(&sql)?;
        let rows =
            query.query_map(params![now.0, i64::try_from(limit).unwrap_or(i64::MAX), route], |row| {
                let key = Key { mark: row.get(9)?, route: row.get(10)? };
                Ok((key, both(row)))
            })?;
        rows.collect()
    }

    fn quarantine(&mut self, key: &Key, damage: &Damage, now: Timestamp) -> Result<(), JournalError> {
        self.write(|transaction| {
            // The digest stays as it is: the row must go on looking damaged.
            transaction.execute(
                "UPDATE delivery SET state = 'quarantined' WHERE mark = ?1 AND route = ?2",
                params![key.mark, key.route],
            )?;
            let detail = format!(
                "the digest of {} {} does not fit: it is not sent and not dropped",
                damage.table, damage.key
            );
            let (mark, route) = (MarkId::parse(&key.mark).ok(), Some(key.route.as_str()));
            Ok(history::append(
                transaction,
                &NewHistory {
                    at: now,
                    event: "quarantined",
                    mark,
                    node: None,
                    route,
                    detail: &detail,
                    actor: "nova-host-alerter",
                },
            )?)
        })
    }

    /// Loads one delivery, changes it and writes it back, in one transaction.
    fn change(
        &mut self,
        mark: MarkId,
        route: &str,
        change: impl FnOnce(&mut Delivery, &Transaction<'_>) -> Result<(), Fault>,
    ) -> Result<Delivery, JournalError> {
        let path = self.path().to_owned();
        self.write(|transaction| {
            let missing = || JournalError::Damaged {
                path,
                reason: format!("the delivery of mark {mark} to {route} cannot be read"),
            };
            let mut delivery = load(transaction, mark, route)?.ok_or_else(missing)?;
            change(&mut delivery, transaction)?;
            update(transaction, &delivery)?;
            Ok(delivery)
        })
    }
}

/// A list as one SQL parameter.
fn json(routes: &[String]) -> String {
    serde_json::Value::from(routes).to_string()
}

struct Key {
    mark: String,
    route: String,
}

impl Verdict {
    fn detail(&self) -> &str {
        match self {
            Self::Acknowledged { detail, .. } | Self::Again { detail, .. } => detail,
        }
    }
}

fn move_to(delivery: &mut Delivery, next: State) -> Result<(), JournalError> {
    if !delivery.state.may_become(next) {
        return Err(JournalError::Transition { from: delivery.state.as_str(), to: next.as_str() });
    }
    delivery.state = next;
    Ok(())
}

/// Applies a verdict. Gives the word for the history where something is new: an endpoint that has been dead for a day
/// must not fill the history with the same line.
fn apply(
    delivery: &mut Delivery,
    verdict: &Verdict,
    now: Timestamp,
) -> Result<Option<&'static str>, JournalError> {
    match verdict {
        Verdict::Acknowledged { reference, detail } => {
            move_to(delivery, State::Acknowledged)?;
            delivery.last =
                Some(Attempt { at: now, kind: "acknowledged".to_owned(), detail: detail.clone() });
            delivery.reference = reference.clone();
            delivery.ended_at = Some(now);
            Ok(Some("acknowledged"))
        }
        Verdict::Again { state, ambiguous, kind, detail, next_due } => {
            move_to(delivery, *state)?;
            let news = delivery.last.as_ref().is_none_or(|last| last.kind != *kind);
            delivery.last = Some(Attempt { at: now, kind: kind.clone(), detail: detail.clone() });
            delivery.ambiguous = delivery.ambiguous.saturating_add(u32::from(*ambiguous));
            delivery.next_due = *next_due;
            Ok(news.then_some(if *state == State::Parked { "refused" } else { "not-accepted" }))
        }
    }
}

pub(super) fn insert(
    transaction: &Transaction<'_>,
    mark: MarkId,
    new: &[NewDelivery],
    now: Timestamp,
) -> rusqlite::Result<()> {
    for NewDelivery { route, body } in new {
        let delivery = Delivery {
            mark,
            route: route.clone(),
            state: State::Pending,
            body: body.clone(),
            attempts: 0,
            ambiguous: 0,
            next_due: now,
            last: None,
            reference: None,
            ended_at: None,
        };
        write(
            transaction,
            "INSERT INTO delivery VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
            &delivery,
        )?;
    }
    Ok(())
}

/// Ends every open delivery of a mark by an operator's word.
pub(super) fn dismiss(transaction: &Transaction<'_>, mark: MarkId, now: Timestamp) -> Result<(), Fault> {
    let routes: Vec<String> = {
        let mut query = transaction.prepare("SELECT route FROM delivery WHERE mark = ?1")?;
        let rows = query.query_map([mark.to_string()], |row| row.get(0))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    for route in routes {
        let Some(mut delivery) = load(transaction, mark, &route)? else { continue };
        if !delivery.state.is_final() {
            move_to(&mut delivery, State::Dismissed)?;
            delivery.ended_at = Some(now);
            update(transaction, &delivery)?;
        }
    }
    // A damaged row has no believable digest to renew; the operator's word ends it all the same.
    transaction.execute(
        "UPDATE delivery SET state = 'dismissed' WHERE mark = ?1 AND state NOT IN ('acknowledged', 'dismissed', 'cancelled')",
        [mark.to_string()],
    )?;
    Ok(())
}

fn load(transaction: &Transaction<'_>, mark: MarkId, route: &str) -> rusqlite::Result<Option<Delivery>> {
    let sql = format!("SELECT {COLUMNS} FROM delivery d WHERE d.mark = ?1 AND d.route = ?2");
    let mut query = transaction.prepare_cached(&sql)?;
    let read = query.query_row(params![mark.to_string(), route], |row| Ok(decode(row, 0))).optional()?;
    Ok(read.and_then(Result::ok))
}

fn update(transaction: &Transaction<'_>, delivery: &Delivery) -> rusqlite::Result<()> {
    let sql = "UPDATE delivery SET state = ?3, body = ?4, attempts = ?5, ambiguous = ?6, next_due = ?7, last_at = ?8, last_kind = ?9, last_detail = ?10, reference = ?11, ended_at = ?12, digest = ?13 WHERE mark = ?1 AND route = ?2";
    write(transaction, sql, delivery)
}

fn write(transaction: &Transaction<'_>, sql: &str, d: &Delivery) -> rusqlite::Result<()> {
    let last = d.last.as_ref();
    transaction.prepare_cached(sql)?.execute(params![
        d.mark.to_string(),
        d.route,
        d.state.as_str(),
        d.body,
        d.attempts,
        d.ambiguous,
        d.next_due.0,
        last.map(|l| l.at.0),
        last.map(|l| l.kind.as_str()),
        last.map(|l| l.detail.as_str()),
        d.reference,
        d.ended_at.map(|at| at.0),
        digest(d),
    ])?;
    Ok(())
}

fn note(
    transaction: &Transaction<'_>,
    delivery: &Delivery,
    now: Timestamp,
    event: &str,
    detail: &str,
) -> rusqlite::Result<()> {
    note_by(transaction, delivery, now, event, detail, "nova-host-alerter")
}

fn note_by(
    transaction: &Transaction<'_>,
    delivery: &Delivery,
    now: Timestamp,
    event: &str,
    detail: &str,
    actor: &str,
) -> rusqlite::Result<()> {
    let node: Option<String> = transaction
        .query_row("SELECT node FROM mark WHERE id = ?1", [delivery.mark.to_string()], |row| row.get(0))
        .optional()?;
    let node = node.and_then(|name| HostName::parse(&name).ok());
    let (mark, route) = (Some(delivery.mark), Some(delivery.route.as_str()));
    history::append(
        transaction,
        &NewHistory { at: now, event, mark, node: node.as_ref(), route, detail, actor },
    )
}

fn digest(d: &Delivery) -> Vec<u8> {
    let last = d.last.as_ref();
    Digest::of("delivery")
        .text(&d.mark.to_string())
        .text(&d.route)
        .text(d.state.as_str())
        .blob(&d.body)
        .int(d.attempts.into())
        .int(d.ambiguous.into())
        .int(d.next_due.0)
        .maybe_int(last.map(|l| l.at.0))
        .maybe_text(last.map(|l| l.kind.as_str()))
        .maybe_text(last.map(|l| l.detail.as_str()))
        .maybe_text(d.reference.as_deref())
        .maybe_int(d.ended_at.map(|at| at.0))
        .finish()
}

fn both(row: &Row<'_>) -> Checked<DueDelivery> {
    Ok(DueDelivery { mark: marks::decode(row)?, delivery: decode(row, 9)? })
}

/// Reads the columns of [`COLUMNS`], which begin at column `first`.
fn decode(row: &Row<'_>, first: usize) -> Checked<Delivery> {
    let key = || {
        let text = |at: usize| row.get::<_, String>(first + at).unwrap_or_default();
        let printable = |s: String| s.chars().filter(char::is_ascii_graphic).take(64).collect::<String>();
        format!("{} to {}", printable(text(0)), printable(text(1)))
    };
    let damage = || Damage { table: "delivery", key: key() };
    let delivery = decode_unchecked(row, first).ok_or_else(damage)?;
    let kept: Vec<u8> = row.get(first + 12).map_err(|_| damage())?;
    if kept == digest(&delivery) { Ok(delivery) } else { Err(damage()) }
}

fn decode_unchecked(row: &Row<'_>, first: usize) -> Option<Delivery> {
    let at: Option<i64> = row.get(first + 7).ok()?;
    let kind: Option<String> = row.get(first + 8).ok()?;
    let detail: Option<String> = row.get(first + 9).ok()?;
    let ended: Option<i64> = row.get(first + 11).ok()?;
    let last = match (at, kind, detail) {
        (Some(at), Some(kind), Some(detail)) => Some(Attempt { at: Timestamp(at), kind, detail }),
        (None, None, None) => None,
        _ => return None,
    };
    Some(Delivery {
        mark: MarkId::parse(&row.get::<_, String>(first).ok()?).ok()?,
        route: row.get(first + 1).ok()?,
        state: State::parse(&row.get::<_, String>(first + 2).ok()?)?,
        body: row.get(first + 3).ok()?,
        attempts: row.get(first + 4).ok()?,
        ambiguous: row.get(first + 5).ok()?,
        next_due: Timestamp(row.get(first + 6).ok()?),
        last,
        reference: row.get(first + 10).ok()?,
        ended_at: ended.map(Timestamp),
    })
}
