//! Deliveries in the journal: what is due, what an attempt came to. Only the transition table decides what may change.

use rusqlite::{OptionalExtension, Params, Transaction, params, params_from_iter};

use super::delivery_row::{self, COLUMNS, load, update};
use super::fencings::Rows;
use super::history::{self, NewHistory};
use super::marks::ALERTER;
use super::{Fault, Journal, JournalError, endings};
use crate::delivery::{Attempt, Delivery, State};
use crate::host::HostName;
use crate::id::MarkId;
use crate::time::Timestamp;

/// A delivery to make: the route and the exact bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDelivery {
    /// The route's name.
    pub route: String,
    /// What every attempt will send.
    pub body: Vec<u8>,
    /// Whether the mark stays open until this route has it.
    pub required: bool,
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
            endings::settle_if_done(transaction, mark, now)
        })
    }

    /// After a start: attempts that a former daemon left under way may have arrived. Says how many there were.
    ///
    /// # Errors
    /// As any write.
    pub fn recover(&mut self, now: Timestamp) -> Result<usize, JournalError> {
        let cut_off = self.deliveries_where("d.state = 'in-flight'", None)?.sound;
        for delivery in &cut_off {
            self.change(delivery.mark, &delivery.route, |delivery, transaction| {
                move_to(delivery, State::Pending)?;
                delivery.ambiguous = delivery.ambiguous.saturating_add(1);
                delivery.next_due = now;
                let detail = "an attempt was cut off, it may have arrived";
                Ok(note(transaction, delivery, now, "interrupted", detail)?)
            })?;
        }
        Ok(cut_off.len())
    }

    /// No delivery waits beyond `latest` any more: what was put off by a clock that was set back since, or by a former
    /// daemon, would wait too long. Says how many did.
    ///
    /// # Errors
    /// As any write.
    pub fn put_off_no_longer_than(&mut self, latest: Timestamp) -> Result<usize, JournalError> {
        let condition = "d.state IN ('pending', 'parked') AND d.next_due > ?1";
        let late = self.deliveries_that(condition, [latest.0])?.sound;
        for delivery in &late {
            self.change(delivery.mark, &delivery.route, |delivery, _| {
                delivery.next_due = delivery.next_due.min(latest);
                Ok(())
            })?;
        }
        Ok(late.len())
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

    /// Makes the parked deliveries of a route due: it was not these marks that it refused. Says how many.
    ///
    /// # Errors
    /// As any write.
    pub fn wake_parked(&mut self, route: &str, now: Timestamp) -> Result<usize, JournalError> {
        let condition = "d.state = 'parked' AND d.route = ?1 AND d.next_due > ?2";
        let late = self.deliveries_that(condition, params![route, now.0])?.sound;
        for delivery in &late {
            self.change(delivery.mark, &delivery.route, |delivery, _| {
                delivery.next_due = now;
                Ok(())
            })?;
        }
        Ok(late.len())
    }

    /// Cancels what is still open on routes that are not required, of marks that are settled and whose host failed before
    /// `before`: it would be no news any more. One that is under way is left alone, since its answer is awaited. Says how
    /// many there were.
    ///
    /// # Errors
    /// As any write.
    pub fn cancel_unrequired(&mut self, before: Timestamp, now: Timestamp) -> Result<usize, JournalError> {
        let condition = "d.required = 0 AND d.state IN ('pending', 'parked', 'held') AND EXISTS (
             SELECT 1 FROM mark m WHERE m.id = d.mark AND m.settlement IS NOT NULL AND m.failure_time < ?1)";
        let old = self.deliveries_that(condition, [before.0])?.sound;
        for delivery in &old {
            self.change(delivery.mark, &delivery.route, |delivery, transaction| {
                move_to(delivery, State::Cancelled)?;
                delivery.ended_at = Some(now);
                let route = &delivery.route;
                let detail = format!(
                    "route {route} is not required and has not taken it in time: see [intake] horizon"
                );
                Ok(note(transaction, delivery, now, "cancelled", &detail)?)
            })?;
        }
        Ok(old.len())
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
        self.deliveries_that(condition, params_from_iter(mark.map(|mark| mark.to_string())))
    }

    /// The deliveries `d` for which a condition of SQL holds.
    pub(super) fn deliveries_that(
        &self,
        condition: &str,
        parameters: impl Params,
    ) -> Result<Rows<Delivery>, JournalError> {
        let sql = format!("SELECT {COLUMNS} FROM delivery d WHERE {condition} ORDER BY d.mark, d.route");
        self.rows(&sql, parameters, |row| delivery_row::decode(row, 0))
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

/// Ends an open delivery by what an alerter on another controller did.
pub(super) fn finish_elsewhere(
    transaction: &Transaction<'_>,
    delivery: &mut Delivery,
    end: State,
    at: Timestamp,
) -> Result<(), Fault> {
    if !delivery.state.may_end_elsewhere(end) {
        let (from, to) = (delivery.state.as_str(), end.as_str());
        return Err(JournalError::Transition { from, to }.into());
    }
    delivery.state = end;
    delivery.ended_at = Some(at);
    Ok(update(transaction, delivery)?)
}

pub(super) fn note(
    transaction: &Transaction<'_>,
    delivery: &Delivery,
    now: Timestamp,
    event: &str,
    detail: &str,
) -> rusqlite::Result<()> {
    note_by(transaction, delivery, now, event, detail, ALERTER)
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

pub(super) fn insert(
    transaction: &Transaction<'_>,
    mark: MarkId,
    new: &[NewDelivery],
    now: Timestamp,
) -> rusqlite::Result<()> {
    for NewDelivery { route, body, required } in new {
        let delivery = Delivery {
            mark,
            route: route.clone(),
            required: *required,
            state: State::Pending,
            body: body.clone(),
            attempts: 0,
            ambiguous: 0,
            next_due: now,
            last: None,
            reference: None,
            ended_at: None,
        };
        delivery_row::insert(transaction, &delivery)?;
    }
    Ok(())
}

/// The deliveries of a mark that are not final, without damaged ones.
pub(super) fn load_open(transaction: &Transaction<'_>, mark: MarkId) -> rusqlite::Result<Vec<Delivery>> {
    let sound = delivery_row::load_all(transaction, mark)?.into_iter().flatten();
    Ok(sound.filter(|delivery| !delivery.state.is_final()).collect())
}

/// Whether a mark has a delivery that is not final, damaged ones too.
pub(super) fn any_open(transaction: &Transaction<'_>, mark: MarkId) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM delivery WHERE mark = ?1 AND state NOT IN ('acknowledged', 'dismissed', 'cancelled'))";
    transaction.query_row(sql, [mark.to_string()], |row| row.get(0))
}

/// Ends every open delivery of a mark by an operator's word.
pub(super) fn dismiss(transaction: &Transaction<'_>, mark: MarkId, now: Timestamp) -> Result<(), Fault> {
    for delivery in load_open(transaction, mark)? {
        finish(transaction, delivery, State::Dismissed, now)?;
    }
    Ok(dismiss_damaged(transaction, mark)?)
}

/// A damaged row has no believable digest to renew; an operator's word ends it all the same.
pub(super) fn dismiss_damaged(transaction: &Transaction<'_>, mark: MarkId) -> rusqlite::Result<()> {
    let sql = "UPDATE delivery SET state = 'dismissed' WHERE mark = ?1 AND state NOT IN ('acknowledged', 'dismissed', 'cancelled')";
    transaction.execute(sql, [mark.to_string()]).map(drop)
}

/// Ends an open delivery by this controller's own word.
pub(super) fn finish(
    transaction: &Transaction<'_>,
    mut delivery: Delivery,
    end: State,
    now: Timestamp,
) -> Result<(), Fault> {
    move_to(&mut delivery, end)?;
    delivery.ended_at = Some(now);
    Ok(update(transaction, &delivery)?)
}
