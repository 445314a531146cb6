//! Hosts that are back, for routes that say so where they told the failure.

use std::time::Duration;

use rusqlite::params;

use super::deliveries::{KEPT_BACK, WAITING, move_to, note};
use super::due::{LATER, RETURN};
use super::fencings::Rows;
use super::row::{self, MarkRow};
use super::{Journal, JournalError};
use crate::delivery::{State, TAKEN};
use crate::time::Timestamp;

/// What is older is not called back any more: so long does the register know what was done.
const KEPT: Duration = Duration::from_secs(7 * 86_400);

/// Whether the route `?1` has a later mark of the host of mark `m`: that one's return is told then.
fn overtaken(route: &str) -> String {
    format!(
        "EXISTS (SELECT 1 FROM mark n JOIN delivery e ON e.mark = n.id AND e.route = {route} AND e.state = 'acknowledged'
           WHERE {LATER})"
    )
}

impl Journal {
    /// Marks that a route took, whose host came back, the later of the two at `since` or later, and has not failed again,
    /// and of which the route was not to be told that yet.
    ///
    /// # Errors
    /// As any read.
    pub fn returned_from(&self, route: &str, since: Timestamp) -> Result<Rows<MarkRow>, JournalError> {
        let [by_itself, elsewhere] = TAKEN;
        let sql = format!(
            "SELECT {} FROM mark m INDEXED BY mark_returned CROSS JOIN delivery d ON d.mark = m.id AND d.route = ?1
             WHERE m.returned_at IS NOT NULL AND m.returned_at >= ?3 AND (m.returned_at >= ?2 OR d.ended_at >= ?2)
               AND d.state = 'acknowledged' AND d.last_kind IN ('{by_itself}', '{elsewhere}')
               AND NOT EXISTS (SELECT 1 FROM mark n WHERE {LATER} AND n.settlement IS NULL) AND NOT {}
               AND NOT EXISTS (SELECT 1 FROM delivery r WHERE r.mark = m.id AND r.route = ?1 || '{RETURN}')
             ORDER BY m.failure_time, m.id",
            row::COLUMNS,
            overtaken("?1")
        );
        self.rows(&sql, params![route, since.0, (since - KEPT).0], row::decode)
    }

    /// Cancels what would tell a route that a host is back of which it has a later mark. One that is under way is left
    /// alone: the next mark of its host waits for it. Says how many there were.
    ///
    /// # Errors
    /// As any write.
    pub fn cancel_overtaken(&mut self, route: &str, now: Timestamp) -> Result<usize, JournalError> {
        let step = format!("{route}{RETURN}");
        let overtaken = overtaken("?4");
        let mut cancelled = 0;
        for part in [WAITING, KEPT_BACK] {
            let condition = format!(
                "{part} AND d.route = ?3 AND EXISTS (SELECT 1 FROM mark m WHERE m.id = d.mark AND {overtaken})"
            );
            let given = [step.clone().into(), route.to_owned().into()];
            cancelled += self.change_each(&condition, &given, now, |delivery, transaction| {
                move_to(delivery, State::Cancelled)?;
                delivery.ended_at = Some(now);
                let detail = "the host has failed again before the route was told that it is back";
                Ok(note(transaction, delivery, now, "cancelled", detail)?)
            })?;
        }
        Ok(cancelled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::MarkId;
    use crate::journal::tests::{Home, NOW, acknowledged, attempt, marked, states};
    use crate::journal::{NewDelivery, Role, Room};
    use crate::terms::Terms;

    const LATER: Timestamp = Timestamp(NOW.0 + 60_000);

    fn back() -> NewDelivery {
        NewDelivery {
            route: format!("recovery{RETURN}"),
            body: b"back".to_vec(),
            required: false,
            link: None,
        }
    }

    fn returned(journal: &Journal) -> Vec<MarkId> {
        let found = journal.returned_from("recovery", NOW).unwrap();
        found.sound.iter().map(|mark| mark.id).collect()
    }

    fn add_return(journal: &mut Journal, mark: MarkId) {
        let mark = journal.mark(mark).unwrap().unwrap().told().unwrap();
        journal.add_deliveries(&mark, &[back()], LATER).unwrap();
    }

    fn rooms() -> [Room; 2] {
        let terms = Terms { tells_return: true, ..Terms::default() };
        [Room::of("recovery", 4), Room { terms, ..Room::of(&back().route, 4) }]
    }

    fn begun(journal: &mut Journal) -> Vec<(MarkId, String)> {
        let turned = journal.turn(&[], &rooms(), None, LATER + Duration::from_secs(60)).unwrap();
        turned.begun.into_iter().map(|due| (due.mark.id, due.delivery.route)).collect()
    }

    /// The broken variants: a host that is not back, a route that did not take its mark, and one that has failed again.
    #[test]
    fn only_what_the_route_took_is_called_back_once_the_host_is_back() {
        let home = Home::new();
        let mut journal = home.open(Role::Alerter);
        let [told, untold, away] =
            ["compute1", "compute2", "compute3"].map(|host| marked(&mut journal, host, NOW));
        for mark in [told, away] {
            assert!(attempt(&mut journal, mark, "recovery", &acknowledged()));
        }
        for mark in [told, untold] {
            assert!(journal.note_return(mark, LATER, LATER).unwrap());
        }
        assert_eq!(returned(&journal), [told]);
        assert!(journal.returned_from("recovery", LATER + Duration::from_secs(1)).unwrap().sound.is_empty());
        assert!(journal.returned_from("other", NOW).unwrap().sound.is_empty());
        add_return(&mut journal, told);
        assert_eq!(returned(&journal), []);
        let again = marked(&mut journal, "compute3", LATER);
        assert!(journal.note_return(away, LATER, LATER).unwrap());
        assert_eq!(returned(&journal), [], "{again} is the later one");
    }

    #[test]
    fn a_host_that_fails_again_is_not_called_back_and_its_new_mark_waits_for_what_is_under_way() {
        for is_under_way in [false, true] {
            let home = Home::new();
            let mut journal = home.open(Role::Alerter);
            let first = marked(&mut journal, "compute1", NOW);
            assert!(attempt(&mut journal, first, "recovery", &acknowledged()));
            assert!(journal.note_return(first, LATER, LATER).unwrap());
            add_return(&mut journal, first);
            if is_under_way {
                assert_eq!(begun(&mut journal), [(first, back().route)]);
            }
            let second = marked(&mut journal, "compute1", LATER);
            if is_under_way {
                assert_eq!(begun(&mut journal), []);
                journal.finish_attempt(first, &back().route, &acknowledged(), LATER).unwrap();
            }
            assert_eq!(begun(&mut journal), [(second, "recovery".to_owned())]);
            assert_eq!(journal.cancel_overtaken("recovery", LATER).unwrap(), 0, "nobody knows yet");
            journal.finish_attempt(second, "recovery", &acknowledged(), LATER).unwrap();
            assert_eq!(journal.cancel_overtaken("recovery", LATER).unwrap(), usize::from(!is_under_way));
            let state = if is_under_way { State::Acknowledged } else { State::Cancelled };
            assert_eq!(states(&journal, first), [State::Acknowledged, state]);
        }
    }

    /// A later mark that the route never had leaves the host as the route was told of it first: it is called back all the
    /// same. The broken variant is the mark above, which the route took.
    #[test]
    fn a_later_mark_that_was_never_told_overtakes_nothing() {
        let home = Home::new();
        let mut journal = home.open(Role::Alerter);
        let first = marked(&mut journal, "compute1", NOW);
        assert!(attempt(&mut journal, first, "recovery", &acknowledged()));
        assert!(journal.note_return(first, LATER, LATER).unwrap());
        let second = marked(&mut journal, "compute1", LATER);
        assert_eq!(returned(&journal), [], "the host may be down");
        assert!(journal.dismiss(second, "it lives", "alice", LATER).unwrap());
        assert_eq!(returned(&journal), [first]);
        add_return(&mut journal, first);
        assert_eq!(begun(&mut journal), [(first, back().route)]);
    }

    /// What was told long after the return is called back too; the broken variant was told long ago.
    #[test]
    fn the_later_of_telling_and_return_counts() {
        let home = Home::new();
        let mut journal = home.open(Role::Alerter);
        let mark = marked(&mut journal, "compute1", NOW);
        assert!(journal.note_return(mark, NOW, NOW).unwrap());
        let told = NOW + Duration::from_secs(2 * 86_400);
        journal.begin_attempt(mark, "recovery").unwrap();
        journal.finish_attempt(mark, "recovery", &acknowledged(), told).unwrap();
        let from = |since| journal.returned_from("recovery", since).unwrap().sound.len();
        assert_eq!((from(told), from(told + Duration::from_secs(1))), (1, 0));
    }
}
