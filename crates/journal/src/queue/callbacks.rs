//! A receiver's later report on a mark whose message it had only accepted: it has the mark, or refuses it. And whether a
//! host may be changed from outside now.

use rusqlite::Transaction;

use crate::queue::deliveries;
use crate::queue::delivery_row::{self, update};
use crate::{Done, Journal, Writing, Wrote, row};
use marks::delivery::{Attempt, Delivery, State};
use marks::host::HostName;
use marks::id::MarkId;
use marks::mark::Doubt;
use marks::time::Timestamp;

/// The word of a delivery that its receiver refused after accepting it.
const REFUSED: &str = "refused";

/// A receiver's report: the mark, the route, and the reporter.
#[derive(Clone, Debug)]
pub struct Callback {
    /// The mark.
    pub mark: MarkId,
    /// The route; if `None`, the mark has one delivery that is confirmed like this.
    pub route: Option<String>,
    /// The routes whose receivers confirm.
    pub confirming: Vec<String>,
    /// The reporter, for the history.
    pub actor: String,
}

/// What is reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Says {
    /// The receiver has the mark.
    Has {
        /// The receiver's own name for what it made of it.
        reference: Option<String>,
        /// A reason, if given.
        reason: Option<String>,
    },
    /// It does not take the mark after all.
    Refuses {
        /// Why.
        reason: String,
        /// When it is sent again.
        next_due: Timestamp,
    },
}

/// The result of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// It is recorded for this route.
    Done(String),
    /// This route had acknowledged it before: nothing has changed.
    Already(String),
    /// This route had refused it before with the same reason: nothing has changed.
    RefusedBefore(String),
    /// The delivery is held, and stays so; the refusal is in the history.
    StaysHeld(String),
    /// There is no such mark here.
    NoMark,
    /// The mark has no delivery that is confirmed like this, or none on the named route.
    NoDelivery,
    /// It has several: the route must be named.
    Several(Vec<String>),
    /// It has ended otherwise, or its row is damaged: nothing has changed.
    Over(State),
    /// The mark has no proof, so no receiver can have got it: nothing has changed.
    Doubtful(Doubt),
    /// It was never sent on this route from here, perhaps because its turn has not come: nothing has changed.
    NeverSent(String),
}

impl Journal {
    /// Records a receiver's report on a mark that it had accepted. A confirmation counts at any time after the first
    /// attempt, in any state of the delivery, unless the mark is in doubt: the mark ends with it as with any
    /// acknowledgement. A refusal parks the delivery and never ends it.
    ///
    /// # Errors
    /// As any write.
    pub fn call_back(&mut self, callback: &Callback, says: &Says, now: Timestamp) -> Done<Heard> {
        if self.find_mark(callback.mark)?.is_none() {
            return Ok(Heard::NoMark);
        }
        self.write_at(now, |writing| {
            let route = match route_of(&writing, callback)? {
                Ok(route) => route,
                Err(heard) => return Ok(heard),
            };
            match delivery_row::find(&writing, (&callback.mark.to_string(), &route))? {
                None => Ok(Heard::NoDelivery),
                // Only an operator ends a damaged row.
                Some(Err(_)) => Ok(Heard::Over(State::Quarantined)),
                Some(Ok(delivery)) => writing.hear(delivery, says, &callback.actor),
            }
        })
    }

    /// Whether an attempt of any mark of this host is in flight: its outcome is not known yet.
    ///
    /// # Errors
    /// As any read.
    pub fn is_under_way(&self, node: &HostName) -> Done<bool> {
        let condition = format!(
            "{} AND d.state = 'in-flight' AND EXISTS (SELECT 1 FROM mark m WHERE m.id = d.mark AND m.node = ?1)",
            delivery_row::UNDER_WAY
        );
        Ok(!self.deliveries_that(&condition, [node.as_str()])?.sound.is_empty())
    }
}

/// The meant route, among those that confirm.
fn route_of(transaction: &Transaction<'_>, callback: &Callback) -> rusqlite::Result<Result<String, Heard>> {
    let confirms = |route: &String| callback.confirming.contains(route);
    if let Some(route) = &callback.route {
        return Ok(if confirms(route) { Ok(route.clone()) } else { Err(Heard::NoDelivery) });
    }
    let all = delivery_row::load_all(transaction, callback.mark)?;
    let routes = all.into_iter().flatten().map(|delivery| delivery.route);
    let mut found: Vec<String> = routes.filter(confirms).collect();
    Ok(match found.len() {
        0 => Err(Heard::NoDelivery),
        1 => Ok(found.remove(0)),
        _ => Err(Heard::Several(found)),
    })
}

impl Writing<'_> {
    fn hear(self, delivery: Delivery, says: &Says, actor: &str) -> Wrote<Heard> {
        if !delivery.state.is_final()
            && let Some(unsent) = unsent(&self, &delivery)?
        {
            return Ok(unsent);
        }
        match (delivery.state, says) {
            (State::Acknowledged, Says::Has { .. }) => Ok(Heard::Already(delivery.route)),
            (State::Acknowledged | State::Dismissed | State::Cancelled | State::Quarantined, _) => {
                Ok(Heard::Over(delivery.state))
            }
            (_, Says::Has { reference, reason }) => {
                self.confirm(delivery, (reference.clone(), reason.as_deref()), actor)
            }
            (_, Says::Refuses { reason, next_due }) => self.refuse(delivery, (reason, *next_due), actor),
        }
    }

    /// A delivery in flight ends too: its answer is history.
    fn confirm(
        self,
        mut delivery: Delivery,
        (reference, reason): (Option<String>, Option<&str>),
        actor: &str,
    ) -> Wrote<Heard> {
        let why = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        let detail = format!("the receiver of {} confirmed it{why}", delivery.route);
        delivery.last =
            Some(Attempt { at: self.now, kind: "acknowledged".to_owned(), detail: detail.clone() });
        delivery.reference = reference.or(delivery.reference);
        deliveries::finish_elsewhere(&self, &mut delivery, State::Acknowledged, self.now)?;
        self.note_by(&delivery, "confirmed", &detail, actor)?;
        self.settle_if_done(&delivery)?;
        Ok(Heard::Done(delivery.route))
    }

    /// A repetition is not news. A delivery that is held for another reason stays so, since nothing may be sent.
    fn refuse(
        self,
        mut delivery: Delivery,
        (reason, next_due): (&str, Timestamp),
        actor: &str,
    ) -> Wrote<Heard> {
        let detail =
            format!("the receiver of {} refused it after it had accepted it: {reason}", delivery.route);
        // A chain goes on from a parked step, and never while an attempt is in flight: that one's answer decides.
        let is_awaited = delivery.state == State::InFlight && delivery.chain.is_some();
        if delivery.state == State::Held || is_awaited {
            self.note_by(&delivery, REFUSED, &detail, actor)?;
            return Ok(Heard::StaysHeld(delivery.route));
        }
        let said = delivery.last.as_ref().map(|last| (last.kind.as_str(), last.detail.as_str()));
        let is_repeated = delivery.state == State::Parked && said.is_some_and(|(kind, _)| kind == REFUSED);
        if is_repeated && said == Some((REFUSED, &detail)) {
            return Ok(Heard::RefusedBefore(delivery.route));
        }
        // With a new reason each time it would otherwise never be sent again.
        let next_due = if is_repeated { delivery.next_due.min(next_due) } else { next_due };
        deliveries::move_to(&mut delivery, State::Parked)?;
        delivery.last = Some(Attempt { at: self.now, kind: REFUSED.to_owned(), detail: detail.clone() });
        delivery.next_due = next_due;
        update(&self, &delivery)?;
        self.note_by(&delivery, REFUSED, &detail, actor)?;
        Ok(Heard::Done(delivery.route))
    }
}

/// A report on a mark that was never sent is not accepted: its receiver would otherwise swallow the real failure.
fn unsent(transaction: &Transaction<'_>, delivery: &Delivery) -> Wrote<Option<Heard>> {
    let doubt = row::load(transaction, delivery.mark)?.and_then(|row| row.standing.doubt());
    let never = || (delivery.attempts == 0).then(|| Heard::NeverSent(delivery.route.clone()));
    Ok(doubt.map(Heard::Doubtful).or_else(never))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Verdict;
    use crate::tests::{Home, NOW, again, attempt, events, fencing, states};
    use marks::delivery::ACCEPTED;
    use marks::mark::Settlement;
    use marks::register::Entry;

    const LATER: Timestamp = Timestamp(NOW.0 + 600_000);

    fn accepted() -> Verdict {
        Verdict::Again {
            state: State::Pending,
            ambiguous: false,
            kind: ACCEPTED.into(),
            detail: "it confirms later".into(),
            next_due: LATER,
        }
    }

    fn held() -> Verdict {
        let (kind, detail) = ("stale".into(), "too late".into());
        Verdict::Again { state: State::Held, ambiguous: false, kind, detail, next_due: NOW }
    }

    fn parked() -> Verdict {
        let (kind, detail) = ("rejected".into(), "no".into());
        Verdict::Again { state: State::Parked, ambiguous: false, kind, detail, next_due: LATER }
    }

    fn of(mark: MarkId, route: Option<&str>) -> Callback {
        let confirming = vec!["recovery".to_owned()];
        Callback { mark, route: route.map(str::to_owned), confirming, actor: "portal (192.0.2.7)".into() }
    }

    fn has() -> Says {
        Says::Has { reference: Some("job 7".into()), reason: None }
    }

    fn refuses(reason: &str) -> Says {
        Says::Refuses { reason: reason.into(), next_due: LATER }
    }

    fn heard(journal: &mut Journal, mark: MarkId, says: &Says) -> Heard {
        journal.call_back(&of(mark, None), says, NOW).unwrap()
    }

    fn done() -> Heard {
        Heard::Done("recovery".into())
    }

    #[test]
    fn what_was_accepted_waits_and_is_sent_again_with_the_same_bytes() {
        let (_home, mut journal, mark) = Home::marked();
        let body = journal.deliveries_of(mark).unwrap().sound.remove(0).body;
        attempt(&mut journal, mark, "recovery", &accepted());
        assert!(journal.due(Timestamp(LATER.0 - 1), "recovery", 10, None).unwrap().sound.is_empty());
        let due = journal.due(LATER, "recovery", 10, None).unwrap().sound.remove(0).delivery;
        assert_eq!((due.state, due.body, due.ambiguous), (State::Pending, body, 0));
        assert_eq!(events(&journal, mark), ["marked", "accepted"]);
    }

    /// The broken variant is sent again by an operator before the time is over: then nothing is late.
    #[test]
    fn what_is_accepted_again_and_was_not_confirmed_is_parked() {
        for (late, wanted) in [(600, (State::Parked, "not-confirmed")), (5, (State::Pending, ACCEPTED))] {
            let (_home, mut journal, mark) = Home::marked();
            attempt(&mut journal, mark, "recovery", &accepted());
            journal.retry_now(Some(mark), "again", "alice", NOW).unwrap();
            let now = NOW + Duration::from_secs(late);
            journal.begin_attempt(mark, "recovery").unwrap();
            let next_due = now + Duration::from_secs(600);
            let Verdict::Again { state, ambiguous, kind, detail, .. } = accepted() else { panic!() };
            let verdict = Verdict::Again { state, ambiguous, kind, detail, next_due };
            journal.finish_attempt(mark, "recovery", &verdict, now).unwrap();
            let delivery = journal.deliveries_of(mark).unwrap().sound.remove(0);
            assert_eq!((delivery.state, delivery.last.unwrap().kind.as_str()), wanted, "{late}");
            assert_eq!(heard(&mut journal, mark, &has()), done());
        }
    }

    /// The register gets it as any acknowledgement.
    #[test]
    fn a_confirmation_counts_whatever_state_its_delivery_is_in() {
        for left in [accepted(), again(NOW), held(), parked()] {
            let (_home, mut journal, mark) = Home::marked();
            attempt(&mut journal, mark, "recovery", &left);
            assert_eq!(heard(&mut journal, mark, &has()), done(), "{left:?}");
            assert_eq!(heard(&mut journal, mark, &has()), Heard::Already("recovery".into()));
            assert_eq!(heard(&mut journal, mark, &refuses("no")), Heard::Over(State::Acknowledged));
            let delivery = journal.deliveries_of(mark).unwrap().sound.remove(0);
            assert_eq!((delivery.state, delivery.reference.as_deref()), (State::Acknowledged, Some("job 7")));
            assert_eq!(journal.mark(mark).unwrap().unwrap().settled, Some((Settlement::Acknowledged, NOW)));
            let said = events(&journal, mark);
            assert_eq!(said[said.len() - 2..], ["confirmed", "settled"]);
            let entries = journal.entries(NOW, "ctl1").unwrap();
            assert!(
                entries.iter().any(|entry| matches!(entry, Entry::Acknowledged(taken) if taken.mark == mark))
            );
            assert!(entries.iter().any(|entry| matches!(entry, Entry::Settled(end) if end.mark == mark)));
        }
    }

    #[test]
    fn a_confirmation_while_an_attempt_is_under_way_makes_its_answer_history() {
        for answer in [accepted(), again(NOW)] {
            let (_home, mut journal, mark) = Home::marked();
            journal.begin_attempt(mark, "recovery").unwrap();
            let host = fencing("compute1").node;
            assert!(journal.is_under_way(&host).unwrap());
            assert!(!journal.is_under_way(&fencing("compute2").node).unwrap());
            assert_eq!(heard(&mut journal, mark, &has()), done());
            assert!(!journal.is_under_way(&host).unwrap());
            assert!(!journal.finish_attempt(mark, "recovery", &answer, NOW).unwrap());
            assert_eq!(states(&journal, mark), [State::Acknowledged]);
            assert_eq!(events(&journal, mark).last().unwrap(), "late-answer");
        }
    }

    /// The broken variant is the same mark after its first attempt.
    #[test]
    fn what_was_never_sent_is_neither_confirmed_nor_refused() {
        let (_home, mut journal, mark) = Home::marked();
        for says in [has(), refuses("no")] {
            assert_eq!(heard(&mut journal, mark, &says), Heard::NeverSent("recovery".into()));
        }
        assert_eq!(states(&journal, mark), [State::Pending]);
        assert_eq!(events(&journal, mark), ["marked"]);
        attempt(&mut journal, mark, "recovery", &accepted());
        assert_eq!(heard(&mut journal, mark, &has()), done());
    }
}
