//! Hosts that are back, for routes that say so where they told the failure.

use rusqlite::params;

use super::deliveries::{move_to, note};
use super::due::RETURN;
use super::fencings::Rows;
use super::row::{self, MarkRow};
use super::{Journal, JournalError};
use crate::delivery::State;
use crate::time::Timestamp;

/// A later mark of the host of mark `m`.
const FAILED_AGAIN: &str = "EXISTS (SELECT 1 FROM mark n
     WHERE n.node = m.node AND (n.failure_time, n.id) > (m.failure_time, m.id))";

impl Journal {
    /// Marks that a route took, whose host came back at `since` or later and has not failed again, and of which the route
    /// was not to be told that yet.
    ///
    /// # Errors
    /// As any read.
    pub fn returned_from(&self, route: &str, since: Timestamp) -> Result<Rows<MarkRow>, JournalError> {
        let sql = format!(
            "SELECT {} FROM mark m INDEXED BY mark_returned CROSS JOIN delivery d ON d.mark = m.id AND d.route = ?1
             WHERE m.returned_at IS NOT NULL AND m.returned_at >= ?2 AND d.state = 'acknowledged' AND NOT {FAILED_AGAIN}
               AND NOT EXISTS (SELECT 1 FROM delivery r WHERE r.mark = m.id AND r.route = ?1 || '{RETURN}')
             ORDER BY m.failure_time, m.id",
            row::COLUMNS
        );
        self.rows(&sql, params![route, since.0], row::decode)
    }

    /// Cancels what would tell a route that a host is back which has failed again since. One that is under way is left
    /// alone: the next mark of its host waits for it. Says how many there were.
    ///
    /// # Errors
    /// As any write.
    pub fn cancel_overtaken(&mut self, route: &str, now: Timestamp) -> Result<usize, JournalError> {
        let condition = format!(
            "d.route = ?3 AND d.state IN ('pending', 'parked', 'held')
             AND EXISTS (SELECT 1 FROM mark m WHERE m.id = d.mark AND {FAILED_AGAIN})"
        );
        let route = format!("{route}{RETURN}");
        self.change_each(&condition, &[route.into()], now, |delivery, transaction| {
            move_to(delivery, State::Cancelled)?;
            delivery.ended_at = Some(now);
            let detail = "the host has failed again before the route was told that it is back";
            Ok(note(transaction, delivery, now, "cancelled", detail)?)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::id::MarkId;
    use crate::journal::tests::{Home, NOW, acknowledged, attempt, marked, states};
    use crate::journal::{NewDelivery, Role, Room};
    use crate::terms::Terms;

    const LATER: Timestamp = Timestamp(NOW.0 + 60_000);

    fn back() -> NewDelivery {
        NewDelivery { route: format!("recovery{RETURN}"), body: b"back".to_vec(), required: false }
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
            let expected = if is_under_way { vec![] } else { vec![(second, "recovery".to_owned())] };
            assert_eq!(begun(&mut journal), expected);
            assert_eq!(journal.cancel_overtaken("recovery", LATER).unwrap(), usize::from(!is_under_way));
            let state = if is_under_way { State::InFlight } else { State::Cancelled };
            assert_eq!(states(&journal, first), [State::Acknowledged, state]);
            assert_eq!(journal.cancel_overtaken("recovery", LATER).unwrap(), 0);
            if is_under_way {
                let done = acknowledged();
                journal.finish_attempt(first, &back().route, &done, LATER).unwrap();
                assert_eq!(begun(&mut journal), [(second, "recovery".to_owned())]);
            }
        }
    }
}
