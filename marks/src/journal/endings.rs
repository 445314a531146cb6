//! How a mark ends: every route has it, an operator ends it, or it is too old to be told.

use rusqlite::Transaction;

use super::marks::{ALERTER, note};
use super::row::{self, MarkRow};
use super::{Fault, Journal, JournalError, deliveries};
use crate::delivery::State;
use crate::id::MarkId;
use crate::mark::Settlement;
use crate::time::Timestamp;

impl Journal {
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
            let Some(row) = row::load_open(transaction, mark)? else { return Ok(false) };
            deliveries::dismiss(transaction, mark, now)?;
            settle(transaction, row, Settlement::Dismissed, reason, actor, now)?;
            Ok(true)
        })
    }

    /// Ends an open mark that is too old (design, section 6, horizon): its deliveries are cancelled. Says whether it
    /// did; a mark with an attempt under way is left alone, since its answer is awaited.
    ///
    /// # Errors
    /// As any write.
    pub fn expire(&mut self, mark: MarkId, why: &str, now: Timestamp) -> Result<bool, JournalError> {
        self.write(|transaction| {
            let Some(row) = row::load_open(transaction, mark)? else { return Ok(false) };
            let open = deliveries::load_open(transaction, mark)?;
            if open.iter().any(|delivery| delivery.state == State::InFlight) {
                return Ok(false);
            }
            for delivery in open {
                deliveries::finish(transaction, delivery, State::Cancelled, now)?;
            }
            let detail = format!("{} is expired: {why}", row.node);
            end(transaction, row, (Settlement::Expired, now), ("expired", &detail, ALERTER), now)?;
            Ok(true)
        })
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
    let Some(row) = row::load_open(transaction, mark)?.filter(|_| open == 0) else { return Ok(false) };
    settle(transaction, row, Settlement::Acknowledged, "every route acknowledged", ALERTER, now)?;
    Ok(true)
}

fn settle(
    transaction: &Transaction<'_>,
    row: MarkRow,
    how: Settlement,
    why: &str,
    actor: &str,
    now: Timestamp,
) -> Result<(), Fault> {
    let detail = format!("{} is {}: {why}", row.node, how.as_str());
    end(transaction, row, (how, now), ("settled", &detail, actor), now)
}

/// Ends a mark, with event, sentence and actor for the history.
pub(super) fn end(
    transaction: &Transaction<'_>,
    mut row: MarkRow,
    settled: (Settlement, Timestamp),
    (event, detail, actor): (&str, &str, &str),
    now: Timestamp,
) -> Result<(), Fault> {
    row.settled = Some(settled);
    row::update(transaction, &row)?;
    Ok(note(transaction, &row, now, event, detail, actor)?)
}
