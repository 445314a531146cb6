//! The open outages and recently ended ones, each with its deliveries: for the page. Bounded.

use std::collections::{BTreeMap, BTreeSet};

use marks::delivery::Delivery;
use marks::mark::MarkRow;
use marks::time::Timestamp;
use rusqlite::params;

use crate::intake::marks::HELD;
use crate::queue::deliveries::REJECTED;
use crate::queue::delivery_row::{UNDER_WAY, WAITING};
use crate::store::digest::Rows;
use crate::{Damage, Done, HeldMark, Journal, row};

/// A mark with its deliveries.
#[derive(Clone, Debug)]
pub struct Recent {
    /// The mark.
    pub mark: MarkRow,
    /// Its deliveries.
    pub deliveries: Vec<Delivery>,
    /// Its damaged deliveries.
    pub damaged: Vec<Damage>,
    /// What the policy holds it for.
    pub held: Option<HeldMark>,
}

impl Journal {
    /// The oldest open marks, and the newest of those that were settled at `since` or later: limited for both. Marks with
    /// a damaged row are listed separately.
    ///
    /// # Errors
    /// As any read.
    pub fn recent(&self, since: Timestamp, most: u32) -> Done<Rows<Recent>> {
        let columns = row::COLUMNS;
        let open = format!(
            "SELECT {columns} FROM mark m WHERE m.settlement IS NULL ORDER BY m.failure_time, m.id LIMIT ?1"
        );
        let ended = format!(
            "SELECT {columns} FROM mark m WHERE m.settlement IS NOT NULL AND m.settled_at >= ?1
             ORDER BY m.settled_at DESC, m.id LIMIT ?2"
        );
        let open: Rows<MarkRow> = self.rows(&open, params![most], row::decode)?;
        let ended: Rows<MarkRow> = self.rows(&ended, params![since.0, most], row::decode)?;
        let marks = open.sound.into_iter().chain(ended.sound);
        let sound = marks.map(|mark| self.with_deliveries(mark)).collect::<Result<_, _>>()?;
        Ok(Rows { sound, damaged: open.damaged.into_iter().chain(ended.damaged).collect() })
    }

    /// All that belongs to a mark.
    ///
    /// # Errors
    /// As any read.
    pub fn with_deliveries(&self, mark: MarkRow) -> Done<Recent> {
        let Rows { sound: deliveries, damaged } = self.deliveries_of(mark.id)?;
        let held = if mark.settled.is_none() { self.hold_of(mark.id)? } else { None };
        Ok(Recent { mark, deliveries, damaged, held })
    }
}

impl Journal {
    /// Open marks that may not be sent, the oldest `limit` of them.
    ///
    /// # Errors
    /// As any read.
    pub fn held_marks(&self, limit: u32) -> Done<Rows<MarkRow>> {
        // As in the index, word by word: SQLite refuses the query if it would have to read every mark.
        let sql = format!(
            "SELECT {} FROM mark m INDEXED BY mark_held WHERE {HELD} ORDER BY m.failure_time, m.id LIMIT ?1",
            row::COLUMNS
        );
        self.rows(&sql, [limit], row::decode)
    }

    /// The hosts that each route rejects at present, also in chains.
    ///
    /// # Errors
    /// As any read.
    pub fn rejected_hosts(&self) -> Done<BTreeMap<String, BTreeSet<String>>> {
        let sql = format!(
            "SELECT d.route, m.node FROM delivery d INDEXED BY delivery_parked CROSS JOIN mark m ON m.id = d.mark
             WHERE {REJECTED}"
        );
        // A damaged name is reported where its row is read as a whole.
        let pairs = self.list(&sql, [], |row| Ok(row.get(0).ok().zip(row.get(1).ok())))?;
        let mut hosts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (route, node) in pairs.into_iter().flatten() {
            hosts.entry(route).or_default().insert(node);
        }
        Ok(hosts)
    }

    /// Whether a route has deliveries that wait or are in flight, and were not rejected.
    ///
    /// # Errors
    /// As any read.
    pub fn has_others_than_rejected(&self, route: &str) -> Done<bool> {
        let sql = format!(
            "SELECT EXISTS (SELECT 1 FROM delivery d WHERE d.route = ?1 AND {WAITING} AND NOT ({REJECTED}))
               OR EXISTS (SELECT 1 FROM delivery d WHERE d.route = ?1 AND {UNDER_WAY} AND d.state = 'in-flight')"
        );
        self.sqlite(self.connection.query_row(&sql, [route], |row| row.get(0)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use marks::delivery::State;
    use marks::fencing::Fencing;
    use marks::id::MarkId;
    use marks::mark::{Doubt, Proof, Standing};
    use marks::time::Timestamp;

    use crate::tests::{Home, NOW, acknowledged, attempt, fencing, marked, marked_as};
    use crate::{Role, Taken, Verdict};

    use super::*;

    #[test]
    fn what_is_open_comes_first_and_what_ended_long_ago_not_at_all() {
        let (_home, mut journal, sent) = Home::marked();
        let open = marked(&mut journal, "compute2", NOW);
        assert!(attempt(&mut journal, sent, "recovery", &acknowledged()));
        let found = |since, most| -> Vec<_> {
            journal.recent(since, most).unwrap().sound.into_iter().map(|recent| recent.mark.id).collect()
        };
        assert_eq!(found(NOW, 9), [open, sent]);
        assert_eq!(found(NOW + Duration::from_secs(86_400), 9), [open]);
        assert!(found(NOW, 0).is_empty());
        assert_eq!(journal.recent(NOW, 9).unwrap().sound[1].deliveries[0].route, "recovery");
    }

    const MINUTE: Duration = Duration::from_secs(60);

    fn ids(journal: &Journal, limit: u32) -> Vec<MarkId> {
        journal.held_marks(limit).unwrap().sound.iter().map(|mark| mark.id).collect()
    }

    fn parked(next_due: Timestamp) -> Verdict {
        let (kind, detail) = ("rejected".to_owned(), "HTTP 422".to_owned());
        Verdict::Again { state: State::Parked, ambiguous: false, kind, detail, next_due }
    }

    #[test]
    fn what_is_held_is_found_oldest_first_and_no_other_mark() {
        let (_home, mut journal) = Home::alerter();
        marked(&mut journal, "well", NOW);
        let doubtful = marked_as(&mut journal, "compute1", NOW, Standing::Doubtful(Doubt::Unproven));
        let first = Fencing { asked_at: NOW - MINUTE, ..fencing("compute2") };
        let nameless = MarkRow { fqdn: None, ..samples::mark(&first) };
        journal.append_fencing(&first).unwrap();
        journal.make_mark(&nameless, Taken::Fencing(&first), &[], None, NOW).unwrap();
        assert_eq!(ids(&journal, 10), [nameless.id, doubtful]);
        assert_eq!(ids(&journal, 1), [nameless.id]);
        assert!(journal.prove(doubtful, Proof::Alert, NOW).unwrap());
        assert!(journal.dismiss(nameless.id, "reported by hand", "alice", NOW).unwrap());
        assert_eq!(ids(&journal, 10), []);
    }

    /// A hundred thousand open marks may wait for an endpoint, and none of them is read for this: the index has no
    /// others.
    #[test]
    fn a_question_about_other_marks_is_refused() {
        let home = Home::new();
        let journal = home.open(Role::Alerter);
        for (table, index, condition) in [
            ("mark", "mark_held", "settlement IS NULL"),
            ("delivery", "delivery_parked", "state = 'pending'"),
            ("delivery", "delivery_quarantined", "state = 'pending'"),
            ("delivery", "delivery_kept", "state = 'held'"),
            ("delivery", "delivery_exhausted", "state = 'parked'"),
        ] {
            let sql = format!("SELECT count(*) FROM {table} INDEXED BY {index} WHERE {condition}");
            assert!(journal.connection.prepare(&sql).is_err(), "{index}");
        }
    }

    #[test]
    fn a_delivery_is_rejected_where_its_answer_has_put_it_off_and_refused_where_it_is_due_at_once() {
        let (_home, mut journal, rejected) = Home::marked();
        let refused = marked(&mut journal, "compute2", NOW);
        marked(&mut journal, "well", NOW);
        attempt(&mut journal, rejected, "recovery", &parked(NOW + MINUTE));
        attempt(&mut journal, refused, "recovery", &parked(NOW));
        let hosts = BTreeMap::from([("recovery".to_owned(), BTreeSet::from(["compute1".to_owned()]))]);
        assert_eq!(journal.rejected_hosts().unwrap(), hosts);
        assert!(journal.has_others_than_rejected("recovery").unwrap());
        journal.dismiss(rejected, "reported by hand", "alice", NOW).unwrap();
        assert!(journal.rejected_hosts().unwrap().is_empty());
    }
}
