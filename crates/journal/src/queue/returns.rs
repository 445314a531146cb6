//! Returns, for routes that send them and may have been notified of the failure: the input of the rule in
//! `marks::returning`, and its result.

use rusqlite::params;

use crate::queue::deliveries;
use crate::queue::delivery_row::{self, COLUMNS};
use crate::queue::due::{Capacity, DueDelivery};
use crate::store::digest::Rows;
use crate::{Done, Journal, Writing, Wrote, row};
use marks::delivery::{Delivery, RETURN, State, TAKEN};
use marks::id::MarkId;
use marks::mark::MarkRow;
use marks::returning::{self, Membership, OTHER_TARGET, Return, Ruling};
use marks::time::Timestamp;

/// Why a return is cancelled.
pub(crate) const OVERTAKEN: &str = "the host failed again before the route was notified of its return";

/// An ended delivery, or a damaged row that an operator ended.
const OVER: &str = "d.state IN ('acknowledged', 'dismissed', 'cancelled')";

/// Whether the route `route` took a later mark of the host of mark `m`, and took it no earlier: an endpoint keeps what it got last. One
/// alerter's own clock says which of two was later, or that the host is back from the one alone; else both are called back, as where
/// that clock was set and contradicts itself.
fn overtaken(route: &str) -> String {
    let [by_itself, elsewhere] = TAKEN;
    format!(
        "EXISTS (SELECT 1 FROM mark n JOIN delivery e ON e.mark = n.id AND e.route = {route} AND e.state = 'acknowledged'
           AND e.last_kind IN ('{by_itself}', '{elsewhere}')
           WHERE n.node = m.node AND n.id <> m.id
           AND (n.made_by = m.made_by AND (n.made_at, n.id) > (m.made_at, m.id) OR n.returned_at IS NULL AND m.returned_at IS NOT NULL)
           AND (n.return_known_at IS NULL OR n.return_known_at >= coalesce(m.return_known_at, 0))
           AND e.ended_at >= coalesce((SELECT b.ended_at FROM delivery b WHERE b.mark = m.id AND b.route = {route}), e.ended_at))"
    )
}

/// A mark that a route may have been notified of and will not be any more; the delivery is `None` if its row is damaged.
#[derive(Clone, Debug)]
pub struct Over {
    /// The mark.
    pub mark: MarkRow,
    /// Its delivery on the route.
    pub delivery: Option<Delivery>,
}

impl Journal {
    /// Marks that have ended on a route and whose host is known to be back, the later of the two since `since`, or which an
    /// operator ended since then, without a return on the route. `each`: those too of which the route took a later mark.
    ///
    /// # Errors
    /// As any read.
    pub fn over_on(&self, route: &str, since: Timestamp, each: bool) -> Done<Rows<Over>> {
        let none_yet = format!(
            "{OVER} AND NOT EXISTS (SELECT 1 FROM delivery r WHERE r.mark = m.id AND r.route = ?1 || '{RETURN}') AND ({each} OR NOT {})",
            overtaken("?1")
        );
        let columns = format!("{}, {COLUMNS}", row::COLUMNS);
        let back = format!(
            "SELECT {columns} FROM mark m INDEXED BY mark_returned CROSS JOIN delivery d ON d.mark = m.id AND d.route = ?1
             WHERE m.returned_at IS NOT NULL AND (m.return_known_at >= ?2 OR coalesce(d.ended_at, m.settled_at) >= ?2) AND {none_yet}"
        );
        let dismissed = format!(
            "SELECT {columns} FROM mark m INDEXED BY mark_dismissed CROSS JOIN delivery d ON d.mark = m.id AND d.route = ?1
             WHERE m.settlement = 'dismissed' AND m.returned_at IS NULL AND m.settled_at >= ?2 AND {none_yet}"
        );
        let decode = |row: &rusqlite::Row<'_>| {
            Ok(Over { mark: row::decode(row)?, delivery: delivery_row::decode(row, row::WIDTH).ok() })
        };
        let mut all = self.rows(&back, params![route, since.0], decode)?;
        let others = self.rows(&dismissed, params![route, since.0], decode)?;
        all.sound.extend(others.sound);
        all.damaged.extend(others.damaged);
        all.sound.sort_by_key(|over| (over.mark.failure_time, over.mark.id));
        Ok(all)
    }

    /// What an operator has just ended on a route.
    ///
    /// # Errors
    /// As any read.
    pub fn dismissed_on(&self, route: &str, at: Timestamp) -> Done<Rows<Delivery>> {
        self.deliveries_that(
            "d.route = ?1 AND d.state = 'dismissed' AND d.ended_at = ?2",
            params![route, at.0],
        )
    }

    /// Ends the returns of a mark for an operator, and nothing else of it: the rejected, refused and held ones, or with
    /// `all` every open one. Returns how many.
    ///
    /// # Errors
    /// As any write.
    pub fn dismiss_returns(
        &mut self,
        mark: MarkId,
        all: bool,
        (reason, actor): (&str, &str),
        now: Timestamp,
    ) -> Done<usize> {
        let condition = format!(
            "{} AND d.mark = ?3 AND {} AND (?4 OR d.state IN ('parked', 'held'))",
            deliveries::NOT_UNDER_WAY,
            deliveries::IS_RETURN
        );
        let ended = self.change_each(
            &condition,
            &[mark.to_string().into(), all.into()],
            now,
            |delivery, writing| {
                deliveries::move_to(delivery, State::Dismissed)?;
                delivery.ended_at = Some(now);
                let detail =
                    format!("route {} is not notified of the host's return: {reason}", delivery.route);
                writing.note_by(delivery, "dismissed", &detail, actor)
            },
        )?;
        let damaged = format!(
            "UPDATE delivery AS d SET state = 'dismissed' WHERE d.mark = ?1 AND d.state = 'quarantined' AND {}",
            deliveries::IS_RETURN
        );
        let damaged = self.write(|transaction| Ok(transaction.execute(&damaged, [mark.to_string()])?))?;
        Ok(ended + damaged)
    }

    /// Releases returns of a route that were held because it led to another place, if `target` is the right one.
    ///
    /// # Errors
    /// As any write.
    pub fn free_returns(&mut self, route: &str, target: &str, now: Timestamp) -> Done<usize> {
        let held = format!(
            "{} AND d.last_kind = '{OTHER_TARGET}' AND d.route = ?1 || '{RETURN}'",
            deliveries::KEPT_BACK
        );
        let condition = format!("d.route = ?1 AND d.mark IN (SELECT d.mark FROM delivery d WHERE {held})");
        let sent = self.deliveries_that(&condition, [route])?.sound;
        let mut freed = 0;
        for sent in sent.iter().filter(|sent| returning::elsewhere(sent, target).is_empty()) {
            freed += self.free_return(sent, now)?;
        }
        Ok(freed)
    }

    fn free_return(&mut self, sent: &Delivery, now: Timestamp) -> Done<usize> {
        let condition = format!(
            "{} AND d.last_kind = '{OTHER_TARGET}' AND d.mark = ?3 AND d.route = ?4",
            deliveries::KEPT_BACK
        );
        let given = [sent.mark.to_string().into(), format!("{}{RETURN}", sent.route).into()];
        self.change_each(&condition, &given, now, |delivery, writing| {
            deliveries::move_to(delivery, State::Pending)?;
            delivery.next_due = now;
            let detail = "its route leads again to where the host's failure was sent";
            writing.note(delivery, "freed", detail)
        })
    }
}

impl Writing<'_> {
    /// The decision on a return whose turn it is.
    pub(crate) fn ruling(self, due: &DueDelivery, capacity: &Capacity) -> Wrote<Ruling> {
        let base = due.delivery.route.strip_suffix(RETURN).unwrap_or(&due.delivery.route);
        let sent = delivery_row::load(&self, due.mark.id, base)?;
        let sql = format!(
            "SELECT {}, (SELECT max(n.made_at) FROM mark n WHERE n.node = m.node AND n.made_at <= ?3) FROM mark m WHERE m.id = ?1",
            overtaken("?2")
        );
        let mut query = self.prepare_cached(&sql)?;
        let given = params![due.mark.id.to_string(), base, self.now.0];
        let (is_overtaken, newest): (bool, Option<i64>) =
            query.query_row(given, |row| Ok((row.get(0)?, row.get(1)?)))?;
        let is_member = |membership: &Membership| {
            newest.is_none_or(|newest| membership.at.0 > newest)
                && membership.members.contains(&due.mark.node)
        };
        let given = Return {
            sent: sent.as_ref(),
            target: &capacity.target,
            is_member: capacity.membership.as_deref().is_some_and(is_member),
            is_overtaken: is_overtaken && !capacity.terms.ends_each,
            is_released: due.delivery.released_at.is_some(),
        };
        Ok(given.ruling())
    }
}

/// Why a return is held.
pub(crate) fn led_elsewhere(due: &DueDelivery, targets: &[String]) -> String {
    let (node, route, all) = (&due.mark.node, &due.delivery.route, targets.join("; and to "));
    format!(
        "the failure of {node} was sent to {all}, but route {route} leads elsewhere now: undo the effects there by hand, or restore the route"
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::tests::{Home, NOW, acknowledged, again, attempt, marked, states};
    use crate::{NewDelivery, Role, Taken, Verdict};

    use marks::fencing::Fencing;
    use marks::host::HostName;
    use marks::id::MarkId;
    use marks::returning::Failure;
    use marks::terms::Terms;

    const LATER: Timestamp = Timestamp(NOW.0 + 60_000);
    const LIMIT: Duration = Duration::from_secs(60);

    fn back() -> NewDelivery {
        NewDelivery {
            route: format!("recovery{RETURN}"),
            body: b"back".to_vec(),
            required: false,
            link: None,
        }
    }

    /// The returns that a route gets, if no other alerter had a mark.
    fn owed_since(journal: &Journal, route: &str, since: Timestamp) -> Vec<MarkId> {
        let is_owed = |over: &&Over| {
            let failure = Failure {
                delivery: over.delivery.as_ref(),
                settled: over.mark.settled,
                was_elsewhere: false,
                has_returned: over.mark.returned_at.is_some(),
                is_member_for_long: true,
            };
            failure.is_owed(LATER + LIMIT, LIMIT)
        };
        let found = journal.over_on(route, since, false).unwrap();
        found.sound.iter().filter(is_owed).map(|over| over.mark.id).collect()
    }

    fn owed(journal: &Journal) -> Vec<MarkId> {
        owed_since(journal, "recovery", NOW)
    }

    fn add_return(journal: &mut Journal, mark: MarkId) {
        let mark = journal.mark(mark).unwrap().unwrap().to_mark().unwrap();
        journal.add_deliveries(&mark, &[back()], LATER).unwrap();
    }

    /// Capacity on the route and on its returns; these are members, by a poll at this moment.
    fn capacities(members: &[&str], at: Timestamp, target: &str) -> [Capacity; 2] {
        let terms = Terms { notifies_return: true, ..Terms::default() };
        let members = members.iter().map(|name| HostName::parse(name).unwrap()).collect();
        let membership = Some(Arc::new(Membership { at, members }));
        let capacity = |route: &str| Capacity {
            target: target.to_owned(),
            membership: membership.clone(),
            ..Capacity::of(route, 4)
        };
        [capacity("recovery"), Capacity { terms, ..capacity(&back().route) }]
    }

    fn far() -> Timestamp {
        Timestamp::now().max(LATER) + Duration::from_secs(60)
    }

    fn begun_with(journal: &mut Journal, capacities: &[Capacity]) -> Vec<(MarkId, String)> {
        let dispatched = journal.dispatch(&[], capacities, None, far()).unwrap();
        dispatched.begun.into_iter().map(|due| (due.mark.id, due.delivery.route)).collect()
    }

    fn begun(journal: &mut Journal) -> Vec<(MarkId, String)> {
        begun_with(journal, &capacities(&["compute1", "compute2", "compute3"], far(), ""))
    }

    fn unreached() -> Verdict {
        Verdict::Unreached {
            state: State::Pending,
            kind: "connect".into(),
            detail: "refused".into(),
            next_due: NOW,
        }
    }

    fn last(journal: &Journal, mark: MarkId) -> Delivery {
        journal.deliveries_of(mark).unwrap().sound.pop().unwrap()
    }

    /// The broken variants: a host that is not back, a route that was sent nothing, and one that took a later mark.
    #[test]
    fn only_what_the_route_may_have_is_called_back_once_the_host_is_back() {
        let (_home, mut journal) = Home::alerter();
        let [sent, unsent, away] =
            ["compute1", "compute2", "compute3"].map(|host| marked(&mut journal, host, NOW));
        for mark in [sent, away] {
            assert!(attempt(&mut journal, mark, "recovery", &acknowledged()));
        }
        for mark in [sent, unsent] {
            assert!(journal.note_return(mark, LATER, LATER).unwrap());
        }
        assert_eq!(owed(&journal), [sent]);
        assert_eq!(owed_since(&journal, "recovery", LATER + Duration::from_secs(1)), []);
        assert_eq!(owed_since(&journal, "other", NOW), []);
        add_return(&mut journal, sent);
        assert_eq!(owed(&journal), []);
        assert!(journal.note_return(away, LATER, LATER).unwrap());
        assert_eq!(owed(&journal), [away]);
        let again = marked(&mut journal, "compute3", LATER);
        assert_eq!(owed(&journal), [away], "nobody was notified of {again}");
        assert!(attempt(&mut journal, again, "recovery", &acknowledged()));
        assert_eq!(owed(&journal), [], "{again} is the later one");
        let each = journal.over_on("recovery", NOW, true).unwrap().sound;
        assert!(each.iter().any(|over| over.mark.id == away), "an incident of its own is open");
    }

    /// An endpoint that rejected a host's mark gets the later one first, and takes the other one after it. The broken variant returns the
    /// later one alone, and the host stays down by the other.
    #[test]
    fn what_a_route_took_last_is_called_back_too() {
        let (_home, mut journal, first) = Home::marked();
        assert!(journal.note_return(first, NOW, NOW).unwrap());
        let second = marked(&mut journal, "compute1", LATER);
        for (mark, at) in [(second, LATER), (first, LATER + Duration::from_secs(1))] {
            journal.begin_attempt(mark, "recovery").unwrap();
            assert!(journal.finish_attempt(mark, "recovery", &acknowledged(), at).unwrap());
        }
        assert_eq!(owed(&journal), [first]);
    }

    /// A mark of compute1 that an alerter made and the route took then.
    fn sent_by(journal: &mut Journal, (at, by): (Timestamp, &str)) -> MarkId {
        let first = Fencing { seen_by: by.into(), ..samples::fencing("compute1", at) };
        journal.append_fencing(&first).unwrap();
        let (mark, to) = (samples::mark(&first), [crate::tests::to_recovery("compute1")]);
        journal.make_mark(&mark, Taken::Fencing(&first), &to, None, at).unwrap();
        journal.begin_attempt(mark.id, "recovery").unwrap();
        assert!(journal.finish_attempt(mark.id, "recovery", &acknowledged(), at).unwrap());
        mark.id
    }

    /// Two alerters sent a host's two outages. It is back from the first one alone, so that the second is the later; and then from both: by
    /// a clock that is years ahead the first is the later. The broken variant calls that one back alone, and the host stays down.
    #[test]
    fn a_return_is_owed_though_another_clock_dates_the_other_outage_later() {
        for ahead in [Duration::ZERO, Duration::from_secs(10 * 365 * 86_400)] {
            let (_home, mut journal) = Home::alerter();
            let [first, second] =
                [(NOW + ahead, "ctl2"), (LATER, "ctl1")].map(|by| sent_by(&mut journal, by));
            assert!(journal.note_return(first, LATER, LATER).unwrap());
            assert_eq!(owed(&journal).is_empty(), ahead.is_zero());
            assert!(journal.note_return(second, LATER, LATER).unwrap());
            assert_eq!(owed(&journal).len(), 2);
        }
    }

    /// Issue 22, 7: an empty answer, or a refusal, may come from a service that did its work. The broken variant arrived
    /// nowhere.
    #[test]
    fn a_return_is_owed_wherever_an_attempt_may_have_arrived() {
        let refused = Verdict::Again {
            state: State::Parked,
            ambiguous: false,
            kind: "rejected".into(),
            detail: "one of two".into(),
            next_due: NOW,
        };
        for (verdicts, is_owed) in [
            (vec![again(NOW)], true),
            (vec![refused], true),
            (vec![again(NOW), unreached()], true),
            (vec![unreached(), unreached()], false),
            (vec![], false),
        ] {
            let (_home, mut journal, mark) = Home::marked();
            for verdict in &verdicts {
                attempt(&mut journal, mark, "recovery", verdict);
            }
            assert!(journal.note_return(mark, LATER, LATER).unwrap());
            assert_eq!(owed(&journal), [], "it is still sent, or held");
            assert!(journal.dismiss(mark, "it lives", "alice", LATER).unwrap());
            assert_eq!(owed(&journal), Vec::from_iter(is_owed.then_some(mark)), "{verdicts:?}");
        }
    }

    /// An attempt that is in flight when the daemon is killed is on disk before it is sent.
    #[test]
    fn an_attempt_that_was_cut_off_may_have_arrived() {
        let (home, mut journal, mark) = Home::marked();
        assert_eq!(begun_with(&mut journal, &capacities(&[], far(), "cloud1")).len(), 1);
        drop(journal);
        let mut journal = home.open(Role::Alerter);
        journal.recover(NOW).unwrap();
        assert!(last(&journal, mark).arrivals.targets.contains(&"cloud1".to_owned()));
        assert!(journal.dismiss(mark, "it lives", "alice", LATER).unwrap());
        assert!(journal.note_return(mark, LATER, LATER).unwrap());
        assert_eq!(owed(&journal), [mark]);
    }

    /// Issue 22, 7 and 8: whatever is open or ended of a later mark, membership alone decides. The broken variants wait
    /// for the held mark while the host is alive, and are sent once that is ended while the host is dead.
    #[test]
    fn a_return_waits_for_the_host_and_for_no_mark_that_is_held() {
        let (_home, mut journal, first) = Home::marked();
        assert!(attempt(&mut journal, first, "recovery", &acknowledged()));
        assert!(journal.note_return(first, LATER, LATER).unwrap());
        add_return(&mut journal, first);
        let second = marked(&mut journal, "compute1", LATER);
        journal.doubt(second, marks::mark::Doubt::Unproven, LATER).unwrap();
        for (ended, membership) in [(false, Some(far())), (true, Some(far())), (true, None)] {
            if ended {
                journal.dismiss(second, "old", "alice", LATER).unwrap();
            }
            let away = capacities(&["compute2"], far(), "");
            let capacities = away.map(|capacity| Capacity {
                membership: capacity.membership.filter(|_| membership.is_some()),
                ..capacity
            });
            assert_eq!(begun_with(&mut journal, &capacities), [], "{ended} {membership:?}");
        }
        let before = journal.mark(second).unwrap().unwrap().made_at;
        assert_eq!(begun_with(&mut journal, &capacities(&["compute1"], before, "")), [], "the poll is old");
        assert_eq!(begun(&mut journal), [(first, back().route)]);
        let held = marked(&mut journal, "compute2", NOW);
        attempt(&mut journal, held, "recovery", &acknowledged());
        add_return(&mut journal, held);
        let later = marked(&mut journal, "compute2", LATER);
        journal.doubt(later, marks::mark::Doubt::Unproven, LATER).unwrap();
        assert_eq!(begun(&mut journal), [(held, back().route)]);
    }

    /// Issue 22, 7: no end of a mark ends its return; a command of its own does.
    #[test]
    fn the_end_of_a_mark_leaves_its_return_alone() {
        let (_home, mut journal, mark) = Home::marked();
        assert!(attempt(&mut journal, mark, "recovery", &acknowledged()));
        add_return(&mut journal, mark);
        assert!(!journal.dismiss(mark, "enough", "alice", LATER).unwrap(), "nothing else is open");
        assert_eq!(states(&journal, mark), [State::Acknowledged, State::Pending]);
        let mut dismiss = |all| journal.dismiss_returns(mark, all, ("done by hand", "alice"), LATER).unwrap();
        assert_eq!(dismiss(false), 0, "unmark typed twice");
        assert_eq!((dismiss(true), dismiss(true)), (1, 0));
        assert_eq!(states(&journal, mark), [State::Acknowledged, State::Dismissed]);
    }

    /// Issue 22, 10: the broken variant sends the return to the other cloud, to a host of the same name.
    #[test]
    fn a_return_goes_to_where_the_failure_was_sent_or_is_held() {
        for (sent_to, leads_to, goes) in [("one", "one", true), ("one", "two", false)] {
            let (_home, mut journal, mark) = Home::marked();
            assert_eq!(begun_with(&mut journal, &capacities(&[], far(), sent_to)).len(), 1);
            journal.finish_attempt(mark, "recovery", &acknowledged(), LATER).unwrap();
            add_return(&mut journal, mark);
            let begun = begun_with(&mut journal, &capacities(&["compute1"], far(), leads_to));
            assert_eq!(begun.len(), usize::from(goes));
            if goes {
                continue;
            }
            let held = last(&journal, mark);
            let why = held.last.unwrap();
            assert_eq!((held.state, why.kind.as_str()), (State::Held, OTHER_TARGET));
            assert!(why.detail.contains("sent to one"), "{}", why.detail);
            assert_eq!(journal.free_returns("recovery", "two", LATER).unwrap(), 0);
            assert_eq!(journal.free_returns("recovery", "one", LATER).unwrap(), 1);
            assert_eq!(begun_with(&mut journal, &capacities(&["compute1"], far(), "one")).len(), 1);
        }
    }

    /// Issue 22, 10: a refused return stays refused forever, and an operator can see it. The broken variant is any other
    /// delivery that is not required.
    #[test]
    fn a_return_that_is_refused_is_never_cancelled_by_age() {
        let (_home, mut journal, mark) = Home::marked();
        assert!(attempt(&mut journal, mark, "recovery", &acknowledged()));
        add_return(&mut journal, mark);
        journal.begin_attempt(mark, &back().route).unwrap();
        journal.finish_attempt(mark, &back().route, &again(NOW), LATER).unwrap();
        let year = NOW + Duration::from_secs(365 * 86_400);
        assert_eq!(journal.cancel_unrequired(year, year).unwrap(), 0);
        assert!(!journal.expire(mark, "old", year).unwrap());
        assert_eq!(states(&journal, mark), [State::Acknowledged, State::Pending]);
    }

    /// A mark that was acknowledged or ended by an operator long after the return has a return too: a mark may be held
    /// for longer than any limit. The broken variant ended long ago.
    #[test]
    fn the_later_of_acknowledgement_and_return_counts() {
        for (days, is_acknowledged) in [(2, true), (2, false), (10, true), (10, false)] {
            let (_home, mut journal, mark) = Home::marked();
            assert!(journal.note_return(mark, NOW, NOW).unwrap());
            let ended = NOW + Duration::from_secs(days * 86_400);
            let verdict = if is_acknowledged { acknowledged() } else { again(NOW) };
            journal.begin_attempt(mark, "recovery").unwrap();
            journal.finish_attempt(mark, "recovery", &verdict, ended).unwrap();
            assert!(is_acknowledged || journal.dismiss(mark, "it lives", "alice", ended).unwrap());
            let from = |since| journal.over_on("recovery", since, false).unwrap().sound.len();
            let later = ended + Duration::from_secs(1);
            assert_eq!((from(ended), from(later)), (1, 0), "{days} {is_acknowledged}");
        }
    }
}
