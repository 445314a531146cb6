//! How a mark ends: every required route has it, an operator ends it, or it gives way to another alerter's mark.

use std::cell::Cell;

use crate::history::ALERTER;
use crate::queue::{deliveries, delivery_row};
use crate::row;
use crate::store::digest::Checked;
use crate::{Done, Journal, News, Writing, Wrote};
use marks::chain::CHAIN;
use marks::delivery::{Attempt, Delivery, State};
use marks::id::MarkId;
use marks::mark::{MarkRow, Settlement};
use marks::time::Timestamp;

/// The result of dismissing a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftRoute {
    /// The deliveries that have ended, each of another mark.
    pub changed: usize,
    /// The marks of these that waited for no other route, and have ended with it.
    pub ended: usize,
    /// The marks of those that no required route has acknowledged.
    pub unsent: usize,
    /// Further marks with a damaged row there, which `unmark` ends.
    pub damaged: usize,
}

impl Journal {
    /// Ends an open mark for an operator, or the open rest of a settled one. Returns whether there was anything to end.
    ///
    /// # Errors
    /// As any write.
    pub fn dismiss(&mut self, mark: MarkId, reason: &str, actor: &str, now: Timestamp) -> Done<bool> {
        self.write_at(now, |writing| {
            let Some(row) = row::load(&writing, mark)? else { return Ok(false) };
            let is_settled = row.settled.is_some();
            if is_settled && !deliveries::any_open(&writing, mark)? {
                return Ok(false);
            }
            writing.dismiss(mark)?;
            if is_settled {
                let detail = format!("the open deliveries of {} are dismissed: {reason}", row.node);
                writing.note_mark(&row, "dismissed", &detail, actor)?;
            } else {
                writing.settle(row, Settlement::Dismissed, reason, actor)?;
            }
            Ok(true)
        })
    }

    /// Ends the open deliveries of a route for an operator, for example of a removed route; a mark that waits for no
    /// other route ends with it, as dismissed if no required route has acknowledged it. A delivery in flight is left
    /// alone, since its answer is awaited: a chain that went on would have two in flight. A damaged row is left alone
    /// too.
    ///
    /// # Errors
    /// As any write.
    pub fn dismiss_on(&mut self, route: &str, reason: &str, actor: &str, now: Timestamp) -> Done<LeftRoute> {
        let (ended, unsent) = (Cell::new(0), Cell::new(0));
        let detail = format!("route {route} is dismissed: {reason}");
        let condition = format!("d.route = ?3 AND {}", deliveries::NOT_UNDER_WAY);
        let given = [route.to_owned().into()];
        let changed = self.change_each(&condition, &given, now, |delivery, writing| {
            deliveries::move_to(delivery, State::Dismissed)?;
            delivery.ended_at = Some(now);
            delivery_row::update(&writing, delivery)?;
            writing.note_by(delivery, "dismissed", &detail, actor)?;
            let how = writing.settle_without(delivery, (reason, actor))?;
            ended.set(ended.get() + usize::from(how.is_some()));
            unsent.set(unsent.get() + usize::from(how == Some(Settlement::Dismissed)));
            Ok(())
        })?;
        let (ended, unsent, damaged) = (ended.get(), unsent.get(), self.quarantined_on(route)?);
        Ok(LeftRoute { changed, ended, unsent, damaged })
    }

    /// Ends an open mark whose outage is another alerter's mark: its deliveries are cancelled. Returns whether it
    /// did; a mark with an attempt in flight is left alone, since its answer is awaited.
    ///
    /// # Errors
    /// As any write.
    pub fn expire(&mut self, mark: MarkId, why: &str, now: Timestamp) -> Done<bool> {
        self.write_at(now, |writing| {
            let Some(row) = row::load_open(&writing, mark)? else { return Ok(false) };
            let open = deliveries::load_open(&writing, mark)?;
            if open.iter().any(|delivery| delivery.state == State::InFlight) {
                return Ok(false);
            }
            for delivery in open {
                writing.finish(delivery, State::Cancelled)?;
            }
            let detail = format!("{} is expired: {why}", row.node);
            writing.end(row, (Settlement::Expired, now), ("expired", &detail, ALERTER))?;
            Ok(true)
        })
    }
}

impl Writing<'_> {
    /// Ends the mark of an ended delivery once every required route has it. A chain ends with the acknowledgement of any of
    /// its steps.
    pub(crate) fn settle_if_done(self, ended: &Delivery) -> Wrote<bool> {
        self.end_behind(ended)?;
        let others = delivery_row::load_others(&self, ended)?;
        if !is_done(ended, &others) {
            return Ok(false);
        }
        let Some(row) = row::load_open(&self, ended.mark)? else { return Ok(false) };
        let (how, why) = how(ended, &others);
        self.settle(row, how, why, ALERTER)?;
        Ok(true)
    }

    /// After the acknowledgement of a step its chain ends: the others are cancelled. A step in flight is awaited: its own
    /// answer counts.
    fn end_behind(self, acknowledged: &Delivery) -> Wrote {
        if acknowledged.chain.is_none() || acknowledged.state != State::Acknowledged {
            return Ok(());
        }
        let others = delivery_row::load_others(&self, acknowledged)?.into_iter().flatten();
        let can_end = |other: &Delivery| !other.state.is_final() && other.state.may_become(State::Cancelled);
        for mut other in others.filter(|other| other.chain.is_some() && can_end(other)) {
            self.cancel(&mut other, &acknowledged.route)?;
            delivery_row::update(&self, &other)?;
        }
        Ok(())
    }

    /// The same for a step whose attempt was in flight when another one was acknowledged, and failed. The caller writes the
    /// row.
    pub(crate) fn end_if_chain_acknowledged(self, step: &mut Delivery) -> Wrote {
        if step.chain.is_none() || step.state.is_final() {
            return Ok(());
        }
        let is_acknowledged = |other: &Delivery| other.chain.is_some() && other.state == State::Acknowledged;
        let others: Vec<Checked<Delivery>> = delivery_row::load_others(&self, step)?;
        let Some(acknowledged) = others.iter().flatten().find(|other| is_acknowledged(other)) else {
            return Ok(());
        };
        self.cancel(step, &acknowledged.route)?;
        self.settle_if_done(step).map(drop)
    }

    fn cancel(self, step: &mut Delivery, acknowledged: &str) -> Wrote {
        deliveries::move_to(step, State::Cancelled)?;
        step.ended_at = Some(self.now);
        let detail = format!("the chain has ended: route {acknowledged} acknowledged");
        self.note(step, "cancelled", &detail)?;
        step.last = Some(Attempt { at: self.now, kind: CHAIN.to_owned(), detail });
        Ok(())
    }

    /// Ends the mark of a delivery that an operator has ended, if it waits for no other. Returns how.
    fn settle_without(self, ended: &Delivery, (reason, actor): (&str, &str)) -> Wrote<Option<Settlement>> {
        let others = delivery_row::load_others(&self, ended)?;
        if !is_done(ended, &others) {
            return Ok(None);
        }
        let Some(row) = row::load_open(&self, ended.mark)? else { return Ok(None) };
        let took = |delivery: &Delivery| delivery.required && delivery.state == State::Acknowledged;
        let (how, why) = match others.iter().flatten().any(took) {
            true => (Settlement::Acknowledged, "every required route acknowledged it, or was dismissed"),
            false => (Settlement::Dismissed, reason),
        };
        self.settle(row, how, why, actor)?;
        Ok(Some(how))
    }

    fn settle(self, row: MarkRow, how: Settlement, why: &str, actor: &str) -> Wrote {
        let detail = format!("{} is {}: {why}", row.node, how.as_str());
        self.end(row, (how, self.now), ("settled", &detail, actor))
    }

    /// Ends a mark, with event, sentence and actor for the history.
    pub(crate) fn end(
        self,
        mut row: MarkRow,
        settled: (Settlement, Timestamp),
        (event, detail, actor): News<'_>,
    ) -> Wrote {
        row.settled = Some(settled);
        row::update(&self, &row)?;
        self.note_outcome(&row, (event, Some(settled.0.as_str())), detail, actor)
    }
}

/// The settlement of a mark that no required route took is not "acknowledged".
fn how(ended: &Delivery, others: &[Checked<Delivery>]) -> (Settlement, &'static str) {
    let took = |delivery: &Delivery| delivery.required && delivery.state == State::Acknowledged;
    let any = |is: &dyn Fn(&Delivery) -> bool| is(ended) || others.iter().flatten().any(is);
    // A chain counts as one: its other steps' results do not count.
    let is_chain_acknowledged =
        any(&|delivery| delivery.chain.is_some() && delivery.state == State::Acknowledged);
    let cancelled = |delivery: &Delivery| {
        let counts = delivery.required && !(is_chain_acknowledged && delivery.chain.is_some());
        counts && delivery.state == State::Cancelled
    };
    match (any(&took), any(&cancelled)) {
        (false, _) => (Settlement::Cancelled, "its routes' terms ended it"),
        (true, true) => (Settlement::Acknowledged, "every required route acknowledged or cancelled it"),
        (true, false) => (Settlement::Acknowledged, "every required route acknowledged"),
    }
}

/// A damaged row keeps its mark open: it may be that of a required route.
fn is_done(ended: &Delivery, others: &[Checked<Delivery>]) -> bool {
    let is_settled = |row: &Checked<Delivery>| row.as_ref().is_ok_and(|d| !d.required || d.state.is_final());
    let any_required = ended.required || others.iter().flatten().any(|delivery| delivery.required);
    any_required && others.iter().all(is_settled)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::tests::{Home, NOW, acknowledged, again, attempt, events, marked, marked_for_two, states};

    const DAY: Duration = Duration::from_secs(86_400);

    fn settled(journal: &Journal, mark: MarkId) -> Option<Settlement> {
        journal.mark(mark).unwrap().unwrap().settled.map(|(how, _)| how)
    }

    #[test]
    fn an_operator_ends_what_is_open_of_a_mark_before_and_after_it_is_settled() {
        for was_sent in [false, true] {
            let (_home, mut journal) = Home::alerter();
            let mark = marked_for_two(&mut journal, "compute1", NOW);
            if was_sent {
                assert!(attempt(&mut journal, mark, "recovery", &acknowledged()));
            }
            assert_eq!(journal.unfinished_marks().unwrap().sound.len(), 1);
            assert!(journal.dismiss(mark, "enough", "alice", NOW).unwrap());
            assert!(!journal.dismiss(mark, "enough", "alice", NOW).unwrap());
            assert!(journal.unfinished_marks().unwrap().sound.is_empty());
            let (first, end, event) = match was_sent {
                true => (State::Acknowledged, Settlement::Acknowledged, "dismissed"),
                false => (State::Dismissed, Settlement::Dismissed, "settled"),
            };
            assert_eq!(states(&journal, mark), [first, State::Dismissed]);
            assert_eq!(settled(&journal, mark), Some(end));
            assert_eq!(events(&journal, mark).last().unwrap(), event);
        }
    }

    #[test]
    fn what_is_not_required_is_cancelled_when_it_is_old_and_its_mark_is_settled() {
        let (_home, mut journal) = Home::alerter();
        let taken = marked_for_two(&mut journal, "compute1", NOW);
        let open = marked_for_two(&mut journal, "compute2", NOW);
        let sent = marked_for_two(&mut journal, "compute3", NOW);
        for mark in [taken, sent] {
            assert!(attempt(&mut journal, mark, "recovery", &acknowledged()));
        }
        journal.begin_attempt(sent, "wiki").unwrap();
        let late = NOW + DAY + Duration::from_secs(1);
        let mut cancel = |now: Timestamp| journal.cancel_unrequired(now - DAY, now).unwrap();
        assert_eq!((cancel(NOW + DAY), cancel(late), cancel(late)), (0, 1, 0));
        assert_eq!(states(&journal, taken), [State::Acknowledged, State::Cancelled]);
        assert_eq!(states(&journal, open), [State::Pending; 2]);
        assert_eq!(states(&journal, sent), [State::Acknowledged, State::InFlight], "its answer is awaited");
        assert_eq!(events(&journal, taken).last().unwrap(), "cancelled");
        assert_eq!(settled(&journal, taken), Some(Settlement::Acknowledged));
    }

    /// In order on its own route, also behind a settled mark, and without blocking another route.
    #[test]
    fn a_settled_mark_is_sent_before_the_next_one_of_its_host_on_the_same_route_alone() {
        let (_home, mut journal) = Home::alerter();
        let first = marked_for_two(&mut journal, "compute1", NOW);
        let second = marked_for_two(&mut journal, "Compute1", NOW + Duration::from_secs(3600));
        let other = marked(&mut journal, "compute2", NOW);
        assert!(attempt(&mut journal, first, "recovery", &acknowledged()));
        let late = NOW + DAY;
        assert!(!attempt(&mut journal, first, "wiki", &again(late + DAY)));
        let mut due = |route: &str| -> Vec<MarkId> {
            let rows = journal.due(late, route, 10, None).unwrap();
            rows.sound.iter().map(|due| due.mark.id).collect()
        };
        assert_eq!(due("wiki"), [], "the first one waits, and the second one behind it");
        assert_eq!(due("recovery"), [other, second]);
        assert_eq!(journal.put_off_no_longer_than(late).unwrap(), 1);
        attempt(&mut journal, first, "wiki", &acknowledged());
        let next = journal.due(late, "wiki", 10, None).unwrap().sound;
        assert_eq!(next.iter().map(|due| due.mark.id).collect::<Vec<_>>(), [second]);
    }
}
