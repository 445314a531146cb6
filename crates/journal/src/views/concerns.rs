//! What an operator should see: marks that are held, deliveries that are rejected or damaged. The notice channel reads
//! it, so nothing here reads healthy rows.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Params, Row, params};

use crate::intake::marks::HELD;
use crate::queue::deliveries::REJECTED;
use crate::queue::delivery_row::{self, UNDER_WAY, WAITING};
use crate::queue::due::{DueDelivery, both};
use crate::store::rows::Rows;
use crate::views::notified::json;
use crate::{Journal, JournalError, row};
use marks::id::MarkId;
use marks::mark::MarkRow;

/// A delivery that is held and not by its chain, in the words of the index `delivery_kept`.
pub(crate) const KEPT: &str = "d.state = 'held' AND d.last_kind <> 'chain'";
/// A last step, in the words of `delivery_exhausted`.
pub(crate) const EXHAUSTED: &str =
    "d.exhausted_at IS NOT NULL AND d.state NOT IN ('acknowledged', 'dismissed', 'cancelled')";

/// The oldest of many.
#[derive(Clone, Debug)]
pub struct Oldest<T> {
    /// As many as requested.
    pub rows: Rows<T>,
    /// How many there are in all.
    pub in_all: u32,
}

/// A delivery in quarantine, as far as its damaged row is readable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantined {
    /// The raw value of the mark's id.
    pub mark: String,
    /// The raw value of the route's name.
    pub route: String,
    /// The mark, if its own row is sound.
    pub row: Option<MarkRow>,
}

impl Journal {
    /// Open marks that may not be sent, the oldest `limit` of them.
    ///
    /// # Errors
    /// As any read.
    pub fn held_marks(&self, limit: u32) -> Result<Oldest<MarkRow>, JournalError> {
        // As in the index, word by word: SQLite refuses the query if it would have to read every mark.
        let held = format!("FROM mark m INDEXED BY mark_held WHERE {HELD}");
        let sql = format!("SELECT {} {held} ORDER BY m.failure_time, m.id LIMIT ?1", row::COLUMNS);
        let rows = self.rows(&sql, [limit], row::decode)?;
        let in_all = self.count(&format!("SELECT count(*) {held}"), [])?;
        Ok(Oldest { rows, in_all })
    }

    /// Those of these marks that are open and may not be sent, however many older ones there are. An id is the raw value
    /// of its row.
    ///
    /// # Errors
    /// As any read.
    pub fn held_among(&self, marks: &[String]) -> Result<Rows<MarkRow>, JournalError> {
        let among = "m.id IN (SELECT value FROM json_each(?1))";
        let sql = format!("SELECT {} FROM mark m WHERE {HELD} AND {among}", row::COLUMNS);
        self.rows(&sql, [json(marks)], row::decode)
    }

    /// Deliveries that their endpoint has rejected, the oldest `limit` of them. A refusal that concerns all marks does
    /// not count.
    ///
    /// # Errors
    /// As any read.
    pub fn rejected_deliveries(&self, limit: u32) -> Result<Oldest<DueDelivery>, JournalError> {
        // A chain goes on from such a step, or reports that there is no other.
        self.oldest("delivery_parked", &format!("{REJECTED} AND d.step IS NULL"), limit)
    }

    /// Rows of an index that meet one condition in its words.
    fn oldest(&self, index: &str, which: &str, limit: u32) -> Result<Oldest<DueDelivery>, JournalError> {
        let (mark, delivery) = (row::COLUMNS, delivery_row::COLUMNS);
        let sql = format!(
            "SELECT {mark}, {delivery} FROM delivery d INDEXED BY {index} CROSS JOIN mark m ON m.id = d.mark
             WHERE {which} ORDER BY d.mark, d.route LIMIT ?1"
        );
        let rows = self.rows(&sql, [limit], both)?;
        let in_all = format!("SELECT count(*) FROM delivery d INDEXED BY {index} WHERE {which}");
        Ok(Oldest { rows, in_all: self.count(&in_all, [])? })
    }

    /// The hosts that each route rejects at present, also in chains.
    ///
    /// # Errors
    /// As any read.
    pub fn rejected_hosts(&self) -> Result<BTreeMap<String, BTreeSet<String>>, JournalError> {
        let sql = format!(
            "SELECT d.route, m.node FROM delivery d INDEXED BY delivery_parked CROSS JOIN mark m ON m.id = d.mark
             WHERE {REJECTED}"
        );
        let read = || {
            let mut hosts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
            let mut query = self.connection.prepare_cached(&sql)?;
            let mut rows = query.query([])?;
            while let Some(row) = rows.next()? {
                // A damaged name is reported where its row is read as a whole.
                if let (Ok(route), Ok(node)) = (row.get(0), row.get(1)) {
                    hosts.entry(route).or_default().insert(node);
                }
            }
            Ok(hosts)
        };
        self.sqlite(read())
    }

    /// Whether a route has deliveries that wait or are in flight, and were not rejected.
    ///
    /// # Errors
    /// As any read.
    pub fn has_others_than_rejected(&self, route: &str) -> Result<bool, JournalError> {
        let sql = format!(
            "SELECT EXISTS (SELECT 1 FROM delivery d WHERE d.route = ?1 AND {WAITING} AND NOT ({REJECTED}))
               OR EXISTS (SELECT 1 FROM delivery d WHERE d.route = ?1 AND {UNDER_WAY} AND d.state = 'in-flight')"
        );
        self.sqlite(self.connection.query_row(&sql, [route], |row| row.get(0)))
    }

    /// Deliveries that are held, the oldest `limit` of them, without steps whose turn it is not.
    ///
    /// # Errors
    /// As any read.
    pub fn held_deliveries(&self, limit: u32) -> Result<Oldest<DueDelivery>, JournalError> {
        self.oldest("delivery_kept", KEPT, limit)
    }

    /// The last steps of chains without an acknowledged step, after each was refused or its time ended, the oldest
    /// `limit` of them. They are retried forever.
    ///
    /// # Errors
    /// As any read.
    pub fn exhausted_chains(&self, limit: u32) -> Result<Oldest<DueDelivery>, JournalError> {
        self.oldest("delivery_exhausted", EXHAUSTED, limit)
    }

    /// Deliveries in quarantine, `limit` of them.
    ///
    /// # Errors
    /// As any read.
    pub fn quarantined_deliveries(&self, limit: u32) -> Result<Vec<Quarantined>, JournalError> {
        let read = || {
            let sql = "SELECT mark, route FROM delivery INDEXED BY delivery_quarantined
                 WHERE state = 'quarantined' ORDER BY mark, route LIMIT ?1";
            let mut query = self.connection.prepare_cached(sql)?;
            let rows =
                query.query_map([limit], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        let of = |(mark, route): (String, String)| {
            let row = MarkId::parse(&mark).ok().and_then(|id| self.mark(id).ok().flatten());
            Quarantined { mark, route, row }
        };
        Ok(self.sqlite(read())?.into_iter().map(of).collect())
    }

    /// Those of these deliveries that are in quarantine, however many there are. Each is the raw value of the mark's id,
    /// a blank, and the raw value of the route's name.
    ///
    /// # Errors
    /// As any read.
    pub fn quarantined_among(&self, deliveries: &[String]) -> Result<Vec<String>, JournalError> {
        let read = || {
            let sql = "SELECT mark || ' ' || route AS both FROM delivery INDEXED BY delivery_quarantined
                 WHERE state = 'quarantined' AND both IN (SELECT value FROM json_each(?1))";
            let mut query = self.connection.prepare_cached(sql)?;
            let rows = query.query_map([json(deliveries)], |row| row.get(0))?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        self.sqlite(read())
    }

    /// Whether something may still be done for a delivery, sound or damaged.
    ///
    /// # Errors
    /// As any read.
    pub fn is_open(&self, mark: MarkId, route: &str) -> Result<bool, JournalError> {
        let sql = "SELECT EXISTS (SELECT 1 FROM delivery WHERE mark = ?1 AND route = ?2
             AND state NOT IN ('acknowledged', 'dismissed', 'cancelled'))";
        self.sqlite(self.connection.query_row(sql, params![mark.to_string(), route], |row| row.get(0)))
    }

    fn count(&self, sql: &str, parameters: impl Params) -> Result<u32, JournalError> {
        self.sqlite(self.connection.query_row(sql, parameters, |row: &Row<'_>| row.get(0)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::tests::{Home, NOW, attempt, fencing, marked, marked_as};
    use crate::{Role, Taken, Verdict};
    use marks::delivery::State;
    use marks::fencing::Fencing;
    use marks::mark::{Doubt, Proof, Standing};
    use marks::time::Timestamp;

    const MINUTE: Duration = Duration::from_secs(60);

    fn ids(oldest: &Oldest<MarkRow>) -> Vec<MarkId> {
        oldest.rows.sound.iter().map(|mark| mark.id).collect()
    }

    fn parked(next_due: Timestamp) -> Verdict {
        let (kind, detail) = ("rejected".to_owned(), "HTTP 422".to_owned());
        Verdict::Again { state: State::Parked, ambiguous: false, kind, detail, next_due }
    }

    #[test]
    fn what_is_held_is_found_oldest_first_and_no_other_mark() {
        let home = Home::new();
        let mut journal = home.open(Role::Alerter);
        let well = marked(&mut journal, "well", NOW);
        let doubtful = marked_as(&mut journal, "compute1", NOW, Standing::Doubtful(Doubt::Unproven));
        let first = Fencing { asked_at: NOW - MINUTE, ..fencing("compute2") };
        let nameless = MarkRow { fqdn: None, ..samples::mark(&first) };
        journal.append_fencing(&first).unwrap();
        journal.make_mark(&nameless, Taken::Fencing(&first), &[], NOW).unwrap();
        assert_eq!(ids(&journal.held_marks(10).unwrap()), [nameless.id, doubtful]);
        let one = journal.held_marks(1).unwrap();
        assert_eq!((ids(&one), one.in_all), (vec![nameless.id], 2));
        let among = || journal.held_among(&[doubtful.to_string(), well.to_string()]).unwrap();
        assert_eq!(among().sound.iter().map(|mark| mark.id).collect::<Vec<_>>(), [doubtful]);
        home.raw().execute("UPDATE mark SET made_at = 7 WHERE id = ?1", [doubtful.to_string()]).unwrap();
        assert_eq!((among().sound.len(), among().damaged[0].key.as_str()), (0, &*doubtful.to_string()));
        let repair = format!("UPDATE mark SET made_at = {} WHERE id = ?1", NOW.0);
        home.raw().execute(&repair, [doubtful.to_string()]).unwrap();
        assert!(journal.prove(doubtful, Proof::Alert, NOW).unwrap());
        assert!(journal.dismiss(nameless.id, "reported by hand", "alice", NOW).unwrap());
        assert_eq!(journal.held_marks(10).unwrap().in_all, 0);
        assert!(journal.held_among(&[doubtful.to_string()]).unwrap().sound.is_empty());
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
            assert!(journal.count(&sql, []).is_err(), "{index}");
        }
    }

    #[test]
    fn a_delivery_is_rejected_where_its_answer_has_put_it_off_and_refused_where_it_is_due_at_once() {
        let home = Home::new();
        let mut journal = home.open(Role::Alerter);
        let rejected = marked(&mut journal, "compute1", NOW);
        let refused = marked(&mut journal, "compute2", NOW);
        marked(&mut journal, "well", NOW);
        attempt(&mut journal, rejected, "recovery", &parked(NOW + MINUTE));
        attempt(&mut journal, refused, "recovery", &parked(NOW));
        let oldest = journal.rejected_deliveries(10).unwrap();
        assert_eq!(oldest.in_all as usize, oldest.rows.sound.len());
        assert_eq!(oldest.rows.sound.iter().map(|due| due.mark.id).collect::<Vec<_>>(), [rejected]);
        let hosts = BTreeMap::from([("recovery".to_owned(), BTreeSet::from(["compute1".to_owned()]))]);
        assert_eq!(journal.rejected_hosts().unwrap(), hosts);
        assert!(journal.has_others_than_rejected("recovery").unwrap());
        assert!(journal.is_open(rejected, "recovery").unwrap());
        assert!(!journal.is_open(rejected, "other").unwrap());
        journal.dismiss(rejected, "reported by hand", "alice", NOW).unwrap();
        assert!(!journal.is_open(rejected, "recovery").unwrap());
    }

    #[test]
    fn a_damaged_delivery_is_found_until_an_operator_ends_it() {
        let home = Home::new();
        let mut journal = home.open(Role::Alerter);
        let mark = marked(&mut journal, "compute1", NOW);
        assert_eq!(journal.quarantined_deliveries(10).unwrap(), []);
        home.raw().execute("UPDATE delivery SET body = x'00'", []).unwrap();
        assert_eq!(journal.due(NOW, "recovery", 10, None).unwrap().damaged.len(), 1);
        let found = journal.quarantined_deliveries(10).unwrap();
        assert_eq!((found[0].mark.as_str(), found[0].route.as_str()), (&*mark.to_string(), "recovery"));
        assert_eq!(found[0].row.as_ref().map(|row| row.id), Some(mark));
        let (it, other) = (format!("{mark} recovery"), format!("{mark} other"));
        assert_eq!(journal.quarantined_among(&[other, it.clone()]).unwrap(), std::slice::from_ref(&it));
        journal.dismiss(mark, "reported by hand", "alice", NOW).unwrap();
        assert_eq!(journal.quarantined_deliveries(10).unwrap(), []);
        assert!(journal.quarantined_among(&[it]).unwrap().is_empty());
    }
}
