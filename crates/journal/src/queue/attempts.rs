//! Attempts in the journal: each is written before a byte of it is sent, and again when it has ended. Many go into one
//! transaction, because the disk's flush is the cost of a transaction.

use crate::history::ALERTER;
use crate::queue::deliveries::move_to;
use crate::queue::delivery_row::{UNDER_WAY, update};
use crate::queue::due::{Capacity, DueDelivery, RegisterWait};
use crate::queue::returns;
use crate::store::digest::Damage;
use crate::{Done, Journal, JournalError, Writing, Wrote};
use marks::delivery::{ACCEPTED, Attempt, Delivery, NOT_CONFIRMED, State};
use marks::id::MarkId;
use marks::returning::{self, OTHER_TARGET};
use marks::terms::Ruling;
use marks::time::Timestamp;

/// Terms that hold many marks are written in several transactions: `fence_mark` waits for each.
const KEPT: usize = 256;

/// The result of an attempt, and what follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The recovery controller took it.
    Acknowledged {
        /// Its reference, if it gave one.
        reference: Option<String>,
        /// One sentence.
        detail: String,
    },
    /// It will be tried again.
    Again {
        /// `Pending`, `Parked` or `Held`.
        state: State,
        /// Whether the receiver may have got it all the same.
        ambiguous: bool,
        /// The machine word.
        kind: String,
        /// One sentence.
        detail: String,
        /// When it is due again.
        next_due: Timestamp,
    },
    /// It surely arrived nowhere, and will be tried again.
    Unreached {
        /// `Pending` or `Parked`.
        state: State,
        /// The machine word.
        kind: String,
        /// One sentence.
        detail: String,
        /// When it is due again.
        next_due: Timestamp,
    },
}

/// An attempt that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The mark.
    pub mark: MarkId,
    /// The route's name.
    pub route: String,
    /// The result.
    pub verdict: Verdict,
    /// When it ended.
    pub at: Timestamp,
}

impl Ended {
    /// Where the clock was set back since it ended, it ended now, and its wait begins now.
    fn as_of(&self, now: Timestamp) -> Self {
        let mut ended = Self { at: self.at.min(now), ..self.clone() };
        if let Verdict::Again { next_due, .. } | Verdict::Unreached { next_due, .. } = &mut ended.verdict {
            *next_due = *next_due - self.at.since(now);
        }
        ended
    }
}

/// The effect of an answer that was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// When the host failed, if the answer counts. It does not if its delivery had ended otherwise before, or is damaged:
    /// then it is in the history alone.
    pub failed: Option<Timestamp>,
}

/// The attempts that have begun, each of which must be sent or taken back, and rows that were found damaged since the
/// last dispatch.
#[derive(Clone, Debug, Default)]
pub struct Dispatched {
    /// In the order of the given routes, the oldest first.
    pub begun: Vec<DueDelivery>,
    /// The number of deliveries held or cancelled by the routes' terms; if any, there may be more.
    pub kept: Vec<DueDelivery>,
    /// Each is quarantined now.
    pub damaged: Vec<Damage>,
    /// One for each answer, in order.
    pub recorded: Vec<Recorded>,
}

impl Dispatched {
    /// The result of another dispatch.
    pub fn add(&mut self, other: Self) {
        self.begun.extend(other.begun);
        self.kept.extend(other.kept);
        self.damaged.extend(other.damaged);
        self.recorded.extend(other.recorded);
    }
}

impl Journal {
    /// Records the results of attempts, and begins others: on each route as many due ones as it has capacity for. All in
    /// one transaction, or nothing: between the check and the beginning no operator can end a mark.
    ///
    /// # Errors
    /// As any write. After an error nothing may be sent.
    pub fn dispatch(
        &mut self,
        ended: &[Ended],
        capacity: &[Capacity],
        wait: Option<RegisterWait>,
        now: Timestamp,
    ) -> Done<Dispatched> {
        self.ask_again(now)?;
        // Without anything to write, it waits for no lock.
        let mut dispatched = Dispatched::default();
        if !ended.is_empty() || self.is_any_due(now, capacity, wait)? {
            dispatched = self.write_at(now, |writing| {
                let mut dispatch = Dispatch { writing, wait, dispatched: Dispatched::default() };
                ended.iter().try_for_each(|ended| dispatch.finish(ended))?;
                capacity.iter().try_for_each(|capacity| dispatch.begin_due(capacity))?;
                Ok(dispatch.dispatched)
            })?;
        }
        dispatched.damaged.append(&mut self.met);
        Ok(dispatched)
    }

    /// Takes back attempts of which nothing was sent.
    ///
    /// # Errors
    /// As any write. After an error their outcome counts as unknown.
    pub fn take_back(&mut self, keys: &[(MarkId, &str)], now: Timestamp) -> Done {
        self.change_all(keys, now, |delivery, writing| {
            // An operator, or an alerter elsewhere, may have ended it.
            if delivery.state == State::InFlight {
                move_to(delivery, State::Pending)?;
                delivery.attempts = delivery.attempts.saturating_sub(1);
                delivery.arrivals.take_back();
                writing.end_if_chain_acknowledged(delivery)?;
            }
            Ok(())
        })
    }

    /// After a start: attempts that the previous daemon left in flight may have arrived. Returns how many.
    ///
    /// # Errors
    /// As any write.
    pub fn recover(&mut self, now: Timestamp) -> Done<usize> {
        let condition = format!("d.state = 'in-flight' AND {UNDER_WAY}");
        self.change_each(&condition, &[], now, |delivery, writing| {
            move_to(delivery, State::Pending)?;
            delivery.ambiguous = delivery.ambiguous.saturating_add(1);
            delivery.next_due = now;
            let detail = "an attempt was cut off, it may have arrived";
            writing.note(delivery, "interrupted", detail)?;
            writing.end_if_chain_acknowledged(delivery)
        })
    }

    /// Loads deliveries, changes each and writes it back, in one transaction. A damaged one is quarantined.
    fn change_all(
        &mut self,
        keys: &[(MarkId, &str)],
        now: Timestamp,
        change: impl Fn(&mut Delivery, Writing<'_>) -> Wrote,
    ) -> Done {
        if keys.is_empty() {
            return Ok(());
        }
        let path = self.path().to_owned();
        let damaged = self.write_at(now, |writing| {
            let mut damaged = Vec::new();
            for (mark, route) in keys {
                let missing = || JournalError::Damaged {
                    path: path.clone(),
                    reason: format!("the delivery of mark {mark} to {route} does not exist any more"),
                };
                match writing.load_or_quarantine((&mark.to_string(), route))?.ok_or_else(missing)? {
                    Ok(mut delivery) => {
                        change(&mut delivery, writing)?;
                        update(&writing, &delivery)?;
                    }
                    Err(damage) => damaged.push(damage),
                }
            }
            Ok(damaged)
        })?;
        self.met.extend(damaged);
        Ok(())
    }
}

/// A dispatch in progress.
struct Dispatch<'t> {
    writing: Writing<'t>,
    wait: Option<RegisterWait>,
    dispatched: Dispatched,
}

impl Dispatch<'_> {
    fn finish(&mut self, ended: &Ended) -> Wrote {
        let ended = ended.as_of(self.writing.now);
        let failed = self.writing.at(ended.at).record(&ended, &mut self.dispatched.damaged)?;
        self.dispatched.recorded.push(Recorded { failed });
        Ok(())
    }

    /// A damaged delivery, or one that the route's terms hold, takes no place: others are searched for then.
    fn begin_due(&mut self, capacity: &Capacity) -> Wrote {
        if capacity.terms.notifies_return {
            return if capacity.places > 0 { self.begin_returns(capacity) } else { Ok(()) };
        }
        let mut capacity = capacity.clone();
        while capacity.places > 0 && self.dispatched.kept.len() < KEPT {
            let found = self.writing.due((&capacity, capacity.places), self.wait)?;
            let (count, before) = (found.sound.len() + found.damaged.len(), self.dispatched.begun.len());
            self.dispatched.damaged.extend(found.damaged);
            for due in found.sound {
                // The query does not see attempts that begin with it: one of a host at a time.
                if !self.is_beside(&due) {
                    self.begin_or_keep(due, &capacity)?;
                }
            }
            let begun = self.dispatched.begun.len() - before;
            capacity.places = if begun == count { 0 } else { capacity.places - begun };
            // Which of these were tried before matters less than that these are never too many.
            capacity.again = capacity.again.saturating_sub(begun);
        }
        Ok(())
    }

    /// Whether another mark of its host has begun on its route.
    fn is_beside(&self, due: &DueDelivery) -> bool {
        let is_same = |begun: &DueDelivery| {
            begun.delivery.route == due.delivery.route && begun.mark.node == due.mark.node
        };
        self.dispatched.begun.iter().any(is_same)
    }

    fn begin_or_keep(&mut self, due: DueDelivery, capacity: &Capacity) -> Wrote {
        match capacity.terms.ruling(&due.mark, &due.delivery, self.writing.now) {
            Ruling::Go => self.begin(due, &capacity.target),
            Ruling::Hold(kind, detail) => self.keep(due, State::Held, kind, detail),
            Ruling::Cancel(kind, detail) => self.keep(due, State::Cancelled, kind, detail),
        }
    }

    /// Holds or cancels what may not be sent, with the word and the reason.
    fn keep(&mut self, mut due: DueDelivery, state: State, kind: &str, detail: String) -> Wrote {
        let (delivery, now) = (&mut due.delivery, self.writing.now);
        move_to(delivery, state)?;
        delivery.ended_at = state.is_final().then_some(now);
        self.writing.note(delivery, state.as_str(), &detail)?;
        delivery.last = Some(Attempt { at: now, kind: kind.to_owned(), detail });
        update(&self.writing, delivery)?;
        if state.is_final() {
            self.writing.settle_if_done(delivery)?;
        }
        self.dispatched.kept.push(due);
        Ok(())
    }

    /// The target is on disk before a byte of the attempt is sent.
    fn begin(&mut self, mut due: DueDelivery, target: &str) -> Wrote {
        begin(&mut due.delivery, target)?;
        update(&self.writing, &due.delivery)?;
        self.dispatched.begun.push(due);
        Ok(())
    }

    /// The same on a route for returns: the routes' terms do not decide there, and waiting returns do not block other
    /// hosts.
    fn begin_returns(&mut self, capacity: &Capacity) -> Wrote {
        let all = Capacity { again: usize::MAX, ..capacity.clone() };
        let found = self.writing.due((&all, usize::MAX), self.wait)?;
        self.dispatched.damaged.extend(found.damaged);
        let mut places = capacity.places;
        for due in found.sound {
            if places == 0 {
                break;
            }
            match self.writing.ruling(&due, capacity)? {
                returning::Ruling::Go if !self.is_beside(&due) => {
                    self.begin(due, &capacity.target)?;
                    places -= 1;
                }
                returning::Ruling::Go | returning::Ruling::Wait => {}
                returning::Ruling::Hold(targets) => {
                    let detail = returns::led_elsewhere(&due, &targets);
                    self.keep(due, State::Held, OTHER_TARGET, detail)?;
                }
                returning::Ruling::Overtaken => {
                    self.keep(due, State::Cancelled, "overtaken", returns::OVERTAKEN.to_owned())?;
                }
            }
        }
        Ok(())
    }
}

fn begin(delivery: &mut Delivery, target: &str) -> Wrote {
    move_to(delivery, State::InFlight)?;
    delivery.attempts = delivery.attempts.saturating_add(1);
    delivery.arrivals.begin(target);
    Ok(())
}

impl Writing<'_> {
    /// Returns when the host failed. `None` if the answer is history only: the delivery was ended meanwhile, or its row is
    /// damaged and what was sent is unknown.
    fn record(self, ended: &Ended, damaged: &mut Vec<Damage>) -> Wrote<Option<Timestamp>> {
        let Ended { mark, route, verdict, .. } = ended;
        let mut delivery = match self.load_or_quarantine((&mark.to_string(), route))? {
            Some(Ok(delivery)) => delivery,
            Some(Err(damage)) => {
                self.note_on((*mark, route), "late-answer", verdict.detail(), ALERTER)?;
                damaged.push(damage);
                return Ok(None);
            }
            None => return Ok(None),
        };
        // An operator may have dismissed it in flight: then the answer is history only.
        if delivery.state != State::InFlight {
            self.note(&delivery, "late-answer", verdict.detail())?;
            return Ok(None);
        }
        let news = apply(&mut delivery, verdict, self.now)?;
        if let Some(event) = news {
            self.note(&delivery, event, verdict.detail())?;
        }
        self.end_if_chain_acknowledged(&mut delivery)?;
        update(&self, &delivery)?;
        if delivery.state.is_final() {
            self.settle_if_done(&delivery)?;
        }
        Ok(Some(delivery.failure_time))
    }
}

impl Verdict {
    fn detail(&self) -> &str {
        match self {
            Self::Acknowledged { detail, .. }
            | Self::Again { detail, .. }
            | Self::Unreached { detail, .. } => detail,
        }
    }
}

/// Applies a verdict. Returns the history's word if something is new: an endpoint that is down for a day must not fill
/// the history with the same line.
fn apply(delivery: &mut Delivery, verdict: &Verdict, now: Timestamp) -> Done<Option<&'static str>> {
    match verdict {
        Verdict::Acknowledged { reference, detail, .. } => {
            move_to(delivery, State::Acknowledged)?;
            delivery.last =
                Some(Attempt { at: now, kind: "acknowledged".to_owned(), detail: detail.clone() });
            delivery.reference = reference.clone();
            delivery.ended_at = Some(now);
            Ok(Some("acknowledged"))
        }
        Verdict::Unreached { state, kind, detail, next_due } => {
            delivery.arrivals.take_back();
            let (state, kind, detail, next_due) = (*state, kind.clone(), detail.clone(), *next_due);
            apply(delivery, &Verdict::Again { state, ambiguous: false, kind, detail, next_due }, now)
        }
        Verdict::Again { ambiguous, detail, next_due, .. } => {
            let (state, kind) = seen(delivery, verdict, now);
            move_to(delivery, state)?;
            let news = delivery.last.as_ref().is_none_or(|last| last.kind != kind);
            let before = if kind == NOT_CONFIRMED { ", after it had not confirmed it in time" } else { "" };
            delivery.last =
                Some(Attempt { at: now, kind: kind.to_owned(), detail: format!("{detail}{before}") });
            delivery.ambiguous = delivery.ambiguous.saturating_add(u32::from(*ambiguous));
            delivery.next_due = *next_due;
            Ok(news.then_some(match state {
                _ if kind == NOT_CONFIRMED => NOT_CONFIRMED,
                State::Parked => "refused",
                State::Held => "held",
                _ if kind == ACCEPTED => ACCEPTED,
                _ if delivery.is_return() => "asked",
                _ => "not-accepted",
            }))
        }
    }
}

/// The state and the word of an attempt that is repeated. If a receiver accepts a mark again that it did not confirm in
/// time, the delivery is parked like a refused one, and so blocks no other mark. This does not apply if an operator had
/// it sent again before that time was over.
fn seen<'v>(delivery: &Delivery, verdict: &'v Verdict, now: Timestamp) -> (State, &'v str) {
    let Verdict::Again { state, kind, next_due, .. } = verdict else {
        return (State::Acknowledged, "acknowledged");
    };
    let is_over = |last: &Attempt| match last.kind.as_str() {
        ACCEPTED => now.since(last.at) >= next_due.since(now),
        other => other == NOT_CONFIRMED,
    };
    match kind == ACCEPTED && delivery.last.as_ref().is_some_and(is_over) {
        true => (State::Parked, NOT_CONFIRMED),
        false => (*state, kind),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Role;
    use crate::tests::{Home, NOW, acknowledged, attempt, events, marked, states};
    use marks::mark::Settlement;
    use marks::terms::{IfReturned, Terms};

    fn three(journal: &mut Journal) -> [MarkId; 3] {
        ["compute1", "compute2", "compute3"].map(|host| marked(journal, host, NOW))
    }

    fn capacity(places: usize) -> [Capacity; 1] {
        [Capacity::of("recovery", places)]
    }

    /// One attempt of one mark, for tests.
    impl Journal {
        pub(crate) fn begin_attempt(&mut self, mark: MarkId, route: &str) -> Done {
            self.change_all(&[(mark, route)], NOW, |delivery, _| begin(delivery, ""))
        }

        pub(crate) fn finish_attempt(
            &mut self,
            mark: MarkId,
            route: &str,
            verdict: &Verdict,
            now: Timestamp,
        ) -> Done<bool> {
            let ended = Ended { mark, route: route.to_owned(), verdict: verdict.clone(), at: now };
            let is_settled =
                |journal: &Self| journal.mark(mark).map(|row| row.is_some_and(|row| row.settled.is_some()));
            let before = is_settled(self)?;
            self.write_at(ended.at, |writing| writing.record(&ended, &mut Vec::new()))?;
            Ok(!before && is_settled(self)?)
        }
    }

    /// S1-32: the next host is sent in its place. The broken variant: a route without terms gets the host that is back.
    #[test]
    fn what_a_route_s_terms_keep_back_takes_nobodys_place() {
        for (_, if_returned) in IfReturned::WORDS {
            let (_home, mut journal) = Home::alerter();
            let [back, other, _] = three(&mut journal);
            assert!(journal.note_return(back, NOW, NOW).unwrap());
            let terms = Terms { if_returned, ..Terms::default() };
            let capacity = Capacity { terms, ..Capacity::of("recovery", 1) };
            let late = NOW + Duration::from_secs(1);
            let mut all = Vec::new();
            for _ in 0..3 {
                let dispatched = journal.dispatch(&[], std::slice::from_ref(&capacity), None, late).unwrap();
                all.extend(dispatched.begun.iter().map(|due| due.mark.id));
            }
            assert_eq!(all.contains(&back), if_returned == IfReturned::Deliver);
            assert!(all.contains(&other));
            let settled = journal.mark(back).unwrap().unwrap().settled.map(|(how, _)| how);
            let (state, end, last) = match if_returned {
                IfReturned::Deliver => (State::InFlight, None, "marked"),
                IfReturned::Hold => (State::Held, None, "held"),
                IfReturned::Cancel => (State::Cancelled, Some(Settlement::Cancelled), "settled"),
            };
            assert_eq!((states(&journal, back), settled), (vec![state], end));
            assert!(events(&journal, back).iter().any(|event| event == last));
            let released = journal.release_held(back, false, ("it is off", "alice"), late).unwrap();
            assert_eq!(released, usize::from(state == State::Held));
            if released == 1 {
                let dispatched = journal.dispatch(&[], std::slice::from_ref(&capacity), None, late).unwrap();
                assert_eq!(dispatched.begun[0].mark.id, back, "an operator released it");
            }
        }
    }

    /// A host that came back and failed again has a new mark, which is sent whatever the end of the old one is. The
    /// broken variant: the old one still waits for its turn.
    #[test]
    fn what_is_held_stands_in_no_later_marks_way() {
        for if_returned in [IfReturned::Hold, IfReturned::Deliver] {
            let (_home, mut journal, first) = Home::marked();
            assert!(journal.note_return(first, NOW, NOW).unwrap());
            let second = marked(&mut journal, "compute1", NOW + Duration::from_secs(60));
            let terms = Terms { if_returned, ..Terms::default() };
            let capacity = Capacity { terms, ..Capacity::of("recovery", 1) };
            let late = NOW + Duration::from_secs(61);
            let begun = journal.dispatch(&[], std::slice::from_ref(&capacity), None, late).unwrap().begun;
            let expected = if if_returned == IfReturned::Hold { second } else { first };
            assert_eq!(begun[0].mark.id, expected);
            if expected == first {
                continue;
            }
            assert_eq!(journal.release_held(first, false, ("it is off", "alice"), late).unwrap(), 1);
            let mut next =
                || journal.dispatch(&[], std::slice::from_ref(&capacity), None, late).unwrap().begun.len();
            assert_eq!(next(), 0, "one of a host at a time");
            journal.finish_attempt(second, "recovery", &acknowledged(), late).unwrap();
            let begun = journal.dispatch(&[], std::slice::from_ref(&capacity), None, late).unwrap().begun;
            assert_eq!(begun.len(), 1);
        }
    }

    const LATE: Timestamp = Timestamp(NOW.0 + 60_000);

    /// Two marks of one host. The first one's row is damaged while it is before the second one.
    fn damaged_first(home: &Home, is_under_way: bool, change: &str) -> (Journal, [MarkId; 2]) {
        let mut journal = home.open(Role::Alerter);
        let marks = [NOW, NOW + Duration::from_secs(1)].map(|at| marked(&mut journal, "compute1", at));
        if is_under_way {
            journal.begin_attempt(marks[0], "recovery").unwrap();
        }
        let damage = format!("UPDATE delivery SET {change} WHERE mark = '{}'", marks[0]);
        home.raw().execute(&damage, []).unwrap();
        (journal, marks)
    }

    /// What begins at the next turn, and how many damaged rows it reports.
    fn next(journal: &mut Journal, ended: &[Ended]) -> (Vec<MarkId>, usize) {
        let dispatched = journal.dispatch(ended, &capacity(2), None, LATE).unwrap();
        (dispatched.begun.iter().map(|due| due.mark.id).collect(), dispatched.damaged.len())
    }

    /// The broken variant: the answer is dropped, and the row stays in flight forever.
    #[test]
    fn a_row_that_was_damaged_under_way_stands_in_nobodys_way_once_its_answer_has_come() {
        let home = Home::new();
        let (mut journal, [first, second]) = damaged_first(&home, true, "attempts = 7");
        assert_eq!(next(&mut journal, &[]), (vec![], 0), "its answer is awaited");
        let ended = Ended { mark: first, route: "recovery".into(), verdict: acknowledged(), at: LATE };
        assert_eq!(next(&mut journal, &[ended]), (vec![second], 1));
        assert_eq!(events(&journal, first), ["marked", "quarantined", "late-answer"]);
        assert_eq!(journal.mark(first).unwrap().unwrap().settled, None);
    }

    /// The broken variant: a start ignores it, and no answer will ever come.
    #[test]
    fn a_row_that_was_damaged_under_way_stands_in_nobodys_way_after_a_start() {
        let home = Home::new();
        let (_, [_, second]) = damaged_first(&home, true, "attempts = 7");
        let mut journal = home.open(Role::Alerter);
        assert_eq!(journal.recover(NOW).unwrap(), 0);
        assert_eq!(next(&mut journal, &[]), (vec![second], 1));
        assert_eq!(next(&mut journal, &[]), (vec![], 0), "that is reported once");
    }

    /// The broken variant: an unanswered attempt counts as ambiguous after a crash.
    #[test]
    fn what_was_never_sent_is_no_attempt() {
        let (_home, mut journal) = Home::alerter();
        let [unsent, sent, _] = three(&mut journal);
        for mark in [unsent, sent] {
            journal.begin_attempt(mark, "recovery").unwrap();
        }
        journal.take_back(&[(unsent, "recovery")], NOW).unwrap();
        assert_eq!(journal.recover(NOW).unwrap(), 1);
        let counts = |mark| {
            let delivery = journal.deliveries_of(mark).unwrap().sound.remove(0);
            (delivery.state, delivery.attempts, delivery.ambiguous)
        };
        assert_eq!(counts(unsent), (State::Pending, 0, 0));
        assert_eq!(counts(sent), (State::Pending, 1, 1));
    }

    #[test]
    fn what_an_operator_ended_meanwhile_is_not_taken_back() {
        let (_home, mut journal) = Home::alerter();
        let [mark, ..] = three(&mut journal);
        journal.begin_attempt(mark, "recovery").unwrap();
        assert!(journal.dismiss(mark, "enough", "alice", NOW).unwrap());
        journal.take_back(&[(mark, "recovery")], NOW).unwrap();
        assert_eq!(states(&journal, mark), [State::Dismissed]);
    }

    /// The broken variants ask again at once, never, or what is held for another reason.
    #[test]
    fn what_is_held_with_a_time_is_asked_again_then() {
        let (_home, mut journal) = Home::alerter();
        let [again, never] = ["compute1", "compute2"].map(|node| marked(&mut journal, node, NOW));
        let later = NOW + Duration::from_secs(60);
        let held = |next_due| {
            let (kind, detail) = ("excluded".to_owned(), "an operator said so".to_owned());
            Verdict::Unreached { state: State::Held, kind, detail, next_due }
        };
        attempt(&mut journal, again, "recovery", &held(later));
        attempt(&mut journal, never, "recovery", &held(NOW));
        let on = [Capacity::of("recovery", 9)];
        assert_eq!(journal.next_due(NOW, &on).unwrap(), Some(later));
        let begun = |journal: &mut Journal, now| -> Vec<MarkId> {
            let dispatched = journal.dispatch(&[], &on, None, now).unwrap();
            dispatched.begun.iter().map(|due| due.mark.id).collect()
        };
        assert!(begun(&mut journal, NOW + Duration::from_secs(59)).is_empty());
        assert_eq!(states(&journal, again), [State::Held]);
        assert_eq!(begun(&mut journal, later), [again]);
        attempt_ended(&mut journal, again, &held(later + Duration::from_secs(60)), later);
        assert_eq!(states(&journal, again), [State::Held]);
        assert_eq!(journal.retry_now(None, "", "alice", later).unwrap(), 1, "and not the other");
        assert_eq!(begun(&mut journal, later), [again]);
        attempt_ended(&mut journal, again, &held(later + Duration::from_secs(60)), later);
        assert_eq!(journal.release_held(again, false, ("it is off", "alice"), later).unwrap(), 1);
        let released = journal.dispatch(&[], &on, None, later).unwrap().begun;
        assert_eq!(released[0].delivery.released_at, Some(later));
        assert_eq!(released[0].delivery.ambiguous, 0);
    }

    /// The clock is set back while an answer waits to be recorded. The broken variant waits until it has caught up.
    #[test]
    fn an_answer_from_before_the_clock_was_set_back_waits_from_now() {
        let (_home, mut journal) = Home::alerter();
        let mark = marked(&mut journal, "compute1", NOW);
        let (on, wait) = ([Capacity::of("recovery", 9)], Duration::from_secs(5));
        journal.dispatch(&[], &on, None, NOW).unwrap();
        let before = NOW + Duration::from_secs(864_000);
        let (state, kind, detail) = (State::Pending, "503".to_owned(), "it is busy".to_owned());
        let verdict = Verdict::Again { state, ambiguous: false, kind, detail, next_due: before + wait };
        let ended = Ended { mark, route: "recovery".into(), verdict, at: before };
        journal.dispatch(&[ended], &[], None, NOW).unwrap();
        assert_eq!(journal.next_due(NOW, &on).unwrap(), Some(NOW + wait));
    }

    fn attempt_ended(journal: &mut Journal, mark: MarkId, verdict: &Verdict, at: Timestamp) {
        let ended = Ended { mark, route: "recovery".into(), verdict: verdict.clone(), at };
        journal.dispatch(&[ended], &[], None, at).unwrap();
    }
}
