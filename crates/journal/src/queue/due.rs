//! What is due: the deliveries whose next attempt may begin now, and no others.

use std::sync::{Arc, LazyLock};

use marks::delivery::{Delivery, RETURN};
use marks::id::MarkId;
use marks::mark::MarkRow;
use marks::register::Register;
use marks::returning::Membership;
use marks::terms::Terms;
use marks::time::Timestamp;
use rusqlite::{Connection, Row, named_params, params};

use crate::history::{self, ALERTER, NewHistory};
use crate::queue::delivery_row::{self, ASKED_AGAIN, IS_STEP, WAITING};
use crate::queue::holds::TURN;
use crate::store::digest::{Checked, Damage, Rows, checked, text, with_digest};
use crate::store::stirred::stir;
use crate::{Done, Journal, Writing, Wrote, row};

/// The standings of marks that are held until a proof comes.
pub(crate) const DOUBTS: &str = "'unconfirmed', 'unproven', 'outcome-unknown', 'fenced-again'";

/// Whether a mark is in the register `:register`, or was made at `:since` or earlier; true without a register.
const OPEN_GATE: &str = "(:register IS NULL OR m.made_at <= :since OR EXISTS (SELECT 1 FROM published p
               WHERE p.entry = 'm.' || m.id AND p.register = :register AND p.digest = published_digest(p.entry, p.register)))";

/// Whether this controller's own fencer proves the mark, for a host that failed at `:own_since` or later; true without
/// that parameter. No return is sent then.
const OWN_GATE: &str = "(:own_since IS NULL OR (NOT :notifies_return AND m.standing = 'journal' AND m.failure_time >= :own_since))";

/// Whether the route `:after`, which comes first, has ended with a mark, or the mark was made at `:made_by` or earlier,
/// or later than now. True without such a route, in a chain, which has its own order, or after an operator's release. A
/// damaged row there has not ended.
const AFTER_ANOTHER: &str =
    "(:after IS NULL OR d.step IS NOT NULL OR d.released_at IS NOT NULL OR m.made_at <= :made_by OR m.made_at > :now OR NOT EXISTS (
               SELECT 1 FROM delivery b WHERE b.mark = d.mark AND b.route = :after
               AND b.state NOT IN ('acknowledged', 'dismissed', 'cancelled')))";

/// A refused step of a chain waits for its chain to go on, unless no step comes after it.
const IN_CHAIN: &str = "(d.step IS NULL OR d.state <> 'parked' OR d.exhausted_at IS NOT NULL)";

/// A delivery whose last answer, if any, did not concern this very mark: the endpoint was not reached. These go first,
/// the oldest failure before the others.
const UNTRIED: &str = "d.state = 'pending' AND (d.last_at IS NULL OR d.next_due <= d.last_at)";
/// Any other: its endpoint rejected it, answered badly, or refused it as it refuses all. The one that has been due for
/// longest goes first, so that each has its turn.
const TRIED: &str = "(d.state = 'parked' OR d.next_due > d.last_at)";

/// What is due on route `:route`, of those of `which`. `marks::returning` decides which returns are sent
/// (`:notifies_return`), but none is sent while the route is being notified of the failure. Neither its chain nor the
/// policy holds the delivery, unless this is a step behind an acknowledgement. A held mark does not block a later one,
/// but a waiting one does, since what is due decides who is next and must not depend on it. No earlier mark of its host
/// waits for its turn there, unless this is a step, or that one was rejected after this one was made: it had its turn. No
/// attempt of its host is in flight there, and no return of it: the index has just that, and the held ones.
fn due_sql(columns: &str, index: &str, which: &str, order: &str) -> String {
    format!(
        "SELECT {columns} FROM delivery d INDEXED BY {index} CROSS JOIN mark m ON m.id = d.mark
         WHERE d.route = :route AND d.state IN ('pending', 'parked') AND d.next_due <= :now
           AND (:notifies_return OR (m.standing NOT IN ({DOUBTS}) AND {OPEN_GATE})) AND {OWN_GATE} AND {AFTER_ANOTHER} AND {IN_CHAIN}
           AND {which}
           AND ({IS_STEP} OR NOT EXISTS (SELECT 1 FROM mark n JOIN delivery e ON e.mark = n.id
             WHERE n.node = m.node AND e.route = d.route AND (n.settlement IS NULL OR e.required = 0)
               AND (n.failure_time, n.id) < (m.failure_time, m.id) AND n.standing NOT IN ({DOUBTS})
               AND NOT EXISTS (SELECT 1 FROM hold h WHERE h.mark = n.id AND h.words <> '{TURN}') AND e.state IN ('pending', 'parked')
               AND NOT (e.state = 'parked' AND e.next_due > e.last_at AND (e.last_at >= m.made_at OR m.made_at > :now))))
           AND NOT EXISTS (SELECT 1 FROM mark n CROSS JOIN delivery e INDEXED BY delivery_in_flight ON e.mark = n.id
             WHERE n.node = m.node AND n.id <> m.id AND e.state IN ('in-flight', 'held') AND e.state = 'in-flight'
               AND (e.route IN (d.route, d.route || '{RETURN}') OR (:notifies_return AND d.route = e.route || '{RETURN}')))
         ORDER BY {order} LIMIT :limit"
    )
}

/// What is due, in the order of sending: mark `:mark`, which an operator has asked for; untried ones; and the rest.
static DUE: LazyLock<[String; 3]> = LazyLock::new(|| {
    let columns = format!("{}, {}", row::COLUMNS, delivery_row::COLUMNS);
    let goes = format!("({IS_STEP} OR NOT EXISTS (SELECT 1 FROM hold h WHERE h.mark = d.mark))");
    let due = |index, which, order| due_sql(&columns, index, &format!("{goes} AND {which}"), order);
    [
        due("delivery_waiting", "d.mark = :mark".to_owned(), OLDEST),
        due("delivery_waiting", format!("d.mark IS NOT :mark AND {UNTRIED}"), OLDEST),
        due("delivery_due", format!("d.mark IS NOT :mark AND {TRIED}"), "d.next_due, d.mark"),
    ]
});

const OLDEST: &str = "d.failure_time, d.mark";

/// Whether mark `:mark` is due, whatever the policy says of it, and since when if it was tried.
static DUE_OF: LazyLock<String> = LazyLock::new(|| {
    let since = format!("CASE WHEN NOT ({UNTRIED}) THEN d.next_due END");
    due_sql(&since, "delivery_waiting", "d.mark = :mark", OLDEST)
});

/// A delivery whose next attempt may begin, with its mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueDelivery {
    /// The mark.
    pub mark: MarkRow,
    /// Its delivery to one route.
    pub delivery: Delivery,
}

/// How many more attempts may begin on a route, and on which terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// The route's name.
    pub route: String,
    /// How many.
    pub places: usize,
    /// How many of these for marks that the route has answered before without taking them.
    pub again: usize,
    /// The mark that an operator wants first.
    pub first: Option<MarkId>,
    /// The route's terms.
    pub terms: Terms,
    /// The route's target, in its driver's words.
    pub target: String,
    /// The members of the cluster; `None` if unknown.
    pub membership: Option<Arc<Membership>>,
}

impl Capacity {
    /// Capacity on a route without terms of its own.
    pub fn of(route: &str, places: usize) -> Self {
        Self {
            route: route.to_owned(),
            places,
            again: places,
            first: None,
            terms: Terms::default(),
            target: String::new(),
            membership: None,
        }
    }
}

/// A mark is in the register before it is sent, so that an alerter on another controller knows of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterWait {
    /// The register in which the mark must be.
    pub register: Register,
    /// A mark that was made then or earlier has waited long enough, and is sent all the same.
    pub waited_since: Timestamp,
    /// While the register cannot be read, only marks of hosts that failed since then are sent, as this controller's own
    /// fencer has recorded: no other controller can know of them, or of their end.
    pub own_since: Option<Timestamp>,
}

impl Journal {
    /// Whether anything is due on routes with capacity.
    ///
    /// # Errors
    /// As any read.
    pub(crate) fn is_any_due(
        &self,
        now: Timestamp,
        capacity: &[Capacity],
        wait: Option<RegisterWait>,
    ) -> Done<bool> {
        let any = || {
            for capacity in capacity {
                if !rows(&self.connection, now, (capacity, capacity.places.min(1)), wait)?.is_empty() {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        self.sqlite(any())
    }

    /// The routes on which the query for due deliveries would return a mark, except for the policy's holds; each with
    /// since when the mark is due there, or `None` if it goes before those that were tried.
    ///
    /// # Errors
    /// As any read.
    pub fn due_on<'r>(
        &self,
        mark: MarkId,
        capacity: &'r [Capacity],
        wait: Option<RegisterWait>,
        now: Timestamp,
    ) -> Done<Vec<(&'r str, Option<Timestamp>)>> {
        let mut due = Vec::new();
        for capacity in capacity.iter().filter(|capacity| !capacity.route.contains('.')) {
            let read = |row: &Row<'_>| row.get::<_, Option<i64>>(0);
            let found = rows_of(&self.connection, &DUE_OF, (capacity, 1, Some(mark)), wait, now, read);
            let since = self.sqlite(found)?.into_iter().map(|since| since.map(Timestamp));
            due.extend(since.map(|since| (capacity.route.as_str(), since)));
        }
        Ok(due)
    }

    /// When the next attempt on these routes is due after `now`. A delivery that waits for another route counts as due.
    ///
    /// # Errors
    /// As any read.
    pub fn next_due(&self, now: Timestamp, capacity: &[Capacity]) -> Done<Option<Timestamp>> {
        let read = || {
            let mut next = None;
            for Capacity { route, .. } in capacity {
                next = next.into_iter().chain(self.next_on(now, route)?).min();
            }
            Ok(next)
        };
        self.sqlite(read())
    }

    fn next_on(&self, now: Timestamp, route: &str) -> rusqlite::Result<Option<Timestamp>> {
        let sql = format!(
            "SELECT min(next_due) FROM (
               SELECT min(d.next_due) AS next_due FROM delivery d WHERE d.route = ?2 AND {WAITING} AND d.next_due > ?1
               UNION ALL SELECT d.next_due FROM delivery d WHERE {ASKED_AGAIN} AND d.route = ?2 AND d.next_due > ?1)"
        );
        let mut query = self.connection.prepare_cached(&sql)?;
        query.query_row(params![now.0, route], |row| Ok(row.get::<_, Option<i64>>(0)?.map(Timestamp)))
    }
}

impl Writing<'_> {
    /// The deliveries on one route whose next attempt may begin, in the order of sending: due, sound, and the first open one
    /// of their host on their route. A damaged one is quarantined on the way, and a held one, or one of a doubtful mark, is
    /// skipped: none is sent or blocks another. If marks wait for the register, one that is not there yet is not sent either,
    /// but blocks the later ones of its host. A settled mark is included too, on a route that is not required and has not
    /// taken it yet.
    pub(crate) fn due(self, on: (&Capacity, usize), wait: Option<RegisterWait>) -> Wrote<Rows<DueDelivery>> {
        let (mut sound, mut damaged) = (Vec::new(), Vec::new());
        for (key, row) in rows(&self, self.now, on, wait)? {
            match row {
                Ok(due) => sound.push(due),
                Err(damage) => {
                    self.quarantine((&key.0, &key.1), &damage)?;
                    damaged.push(damage);
                }
            }
        }
        Ok(Rows { sound, damaged })
    }

    /// Quarantines a delivery with a damaged row, or of a mark with one, once, so that it blocks nothing; an operator's end
    /// is final.
    pub(crate) fn quarantine(self, (mark, route): (&str, &str), damage: &Damage) -> Wrote {
        // The digest stays: the row must stay recognisable as damaged.
        let sql = "UPDATE delivery SET state = 'quarantined' WHERE mark = ?1 AND route = ?2
             AND state NOT IN ('quarantined', 'acknowledged', 'dismissed', 'cancelled')";
        if self.prepare_cached(sql)?.execute([mark, route])? == 0 {
            return Ok(());
        }
        stir(&self, mark)?;
        let detail = format!(
            "the digest of {} {} does not fit: it is not sent and not dropped",
            damage.table, damage.key
        );
        let (mark, route) = (MarkId::parse(mark).ok(), Some(route));
        let new = NewHistory { mark, route, ..NewHistory::new(self.now, "quarantined", &detail, ALERTER) };
        history::append(&self, &new)
    }
}

/// The key comes beside the row, since the row may be damaged.
fn rows(
    connection: &Connection,
    now: Timestamp,
    (capacity, limit): (&Capacity, usize),
    wait: Option<RegisterWait>,
) -> rusqlite::Result<Vec<(Key, Checked<DueDelivery>)>> {
    let read = |found: &Row<'_>| Ok(((found.get(row::WIDTH)?, found.get(row::WIDTH + 1)?), both(found)));
    let mut all = Vec::new();
    let most = [usize::from(capacity.first.is_some()), limit, capacity.again];
    for (sql, most) in DUE.iter().zip(most) {
        let left = most.min(limit.saturating_sub(all.len()));
        if left > 0 {
            all.extend(rows_of(connection, sql, (capacity, left, capacity.first), wait, now, read)?);
        }
    }
    Ok(all)
}

fn rows_of<T>(
    connection: &Connection,
    sql: &str,
    (capacity, limit, mark): (&Capacity, usize, Option<MarkId>),
    wait: Option<RegisterWait>,
    now: Timestamp,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    let after = capacity.terms.after.as_ref();
    let given = named_params! {
        ":now": now.0,
        ":limit": i64::try_from(limit).unwrap_or(i64::MAX),
        ":route": capacity.route,
        ":mark": mark.map(|mark| mark.to_string()),
        ":register": wait.map(|wait| wait.register.as_str()),
        ":since": wait.map(|wait| wait.waited_since.0),
        ":own_since": wait.and_then(|wait| wait.own_since).map(|since| since.0),
        ":after": after.map(|after| after.route.as_str()),
        ":made_by": after.map(|after| (now - after.limit).0),
        ":notifies_return": capacity.terms.notifies_return,
    };
    connection.prepare_cached(sql)?.query_map(given, read)?.collect()
}

/// The mark and the route.
type Key = (String, String);

pub(crate) fn both(found: &Row<'_>) -> Checked<DueDelivery> {
    Ok(DueDelivery { mark: row::decode(found)?, delivery: delivery_row::decode(found, row::WIDTH)? })
}

impl Journal {
    /// The routes that were served last, as stored; `None` if the row is damaged.
    ///
    /// # Errors
    /// As any read.
    pub fn served(&self) -> Done<Option<String>> {
        let columns = |routes: &String| vec![text(routes)];
        let read = |row: &Row<'_>| checked(row, ("served", 1), row.get(0).ok(), columns);
        Ok(self.rows("SELECT routes, digest FROM served", [], read)?.sound.pop())
    }

    /// Notes that every open mark has its deliveries for these routes.
    ///
    /// # Errors
    /// As any write.
    pub fn note_served(&mut self, routes: &str) -> Done {
        self.write(|transaction| {
            let sql = "INSERT OR REPLACE INTO served VALUES (1, ?1, ?2)";
            Ok(transaction.execute(sql, with_digest("served", vec![text(routes)])).map(drop)?)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use marks::delivery::State;
    use marks::mark::{Doubt, Proof, Standing};

    use crate::tests::{Home, NOW, acknowledged, again, attempt, marked, marked_as};
    use crate::{Journal, Verdict};

    use super::*;

    impl Journal {
        /// What is due on one route, for tests.
        pub(crate) fn due(
            &mut self,
            now: Timestamp,
            route: &str,
            limit: usize,
            wait: Option<RegisterWait>,
        ) -> Done<Rows<DueDelivery>> {
            self.write_at(now, |writing| writing.due((&Capacity::of(route, limit), limit), wait))
        }
    }

    const LATE: Timestamp = Timestamp(NOW.0 + 100_000);
    const DOUBTS: [Doubt; 4] =
        [Doubt::Unconfirmed, Doubt::Unproven, Doubt::OutcomeUnknown, Doubt::FencedAgain];

    fn due(journal: &mut Journal, wait: Option<RegisterWait>) -> Vec<MarkId> {
        let rows = journal.due(LATE, "recovery", 10, wait).unwrap();
        assert!(rows.damaged.is_empty());
        rows.sound.iter().map(|due| due.mark.id).collect()
    }

    #[test]
    fn a_doubtful_mark_is_never_due_and_stands_in_nobodys_way() {
        for doubt in DOUBTS {
            let (_home, mut journal) = Home::alerter();
            let held = marked_as(&mut journal, "compute1", NOW, Standing::Doubtful(doubt));
            assert_eq!(due(&mut journal, None), [], "{doubt:?}");
            let later = marked(&mut journal, "compute1", NOW + Duration::from_secs(60));
            assert_eq!(due(&mut journal, None), [later], "{doubt:?}");
            assert!(journal.prove(held, Proof::Alert, NOW).unwrap());
            assert_eq!(due(&mut journal, None), [held], "in order, once it is proven");
        }
    }

    /// The broken variant: a row that was changed to seem proven.
    #[test]
    fn a_doubt_that_somebody_took_away_by_hand_is_damage() {
        let (home, mut journal) = Home::alerter();
        marked_as(&mut journal, "compute1", NOW, Standing::Doubtful(Doubt::Unproven));
        home.raw().execute("UPDATE mark SET standing = 'journal'", []).unwrap();
        let rows = journal.due(LATE, "recovery", 10, None).unwrap();
        assert!(rows.sound.is_empty() && rows.damaged.len() == 1);
    }

    #[test]
    fn a_mark_goes_when_the_register_has_it_or_it_has_waited_long_enough() {
        let (home, mut journal, first) = Home::marked();
        let second = marked(&mut journal, "compute1", NOW + Duration::from_secs(60));
        let wait =
            |since| Some(RegisterWait { register: Register::Attrd, waited_since: since, own_since: None });
        let before = NOW - Duration::from_secs(1);
        journal.note_published(Register::Attrd, &[format!("m.{second}")]).unwrap();
        journal.note_published(Register::Cib, &[format!("m.{first}")]).unwrap();
        assert_eq!(due(&mut journal, wait(before)), [], "the first one waits, and the second one behind it");
        assert_eq!(due(&mut journal, wait(NOW)), [first], "it has waited long enough");
        journal.note_published(Register::Attrd, &[format!("m.{first}")]).unwrap();
        assert_eq!(due(&mut journal, wait(before)), [first]);
        journal.begin_attempt(first, "recovery").unwrap();
        journal.finish_attempt(first, "recovery", &acknowledged(), LATE).unwrap();
        assert_eq!(due(&mut journal, wait(before)), [second]);
        home.raw().execute("UPDATE published SET digest = x'00'", []).unwrap();
        assert_eq!(due(&mut journal, wait(before)), [], "a damaged row is no publication");
    }

    fn parked(next_due: Timestamp) -> Verdict {
        let (kind, detail) = ("rejected".to_owned(), "422".to_owned());
        Verdict::Again { state: State::Parked, ambiguous: false, kind, detail, next_due }
    }

    fn begun(journal: &mut Journal, capacity: &Capacity, now: Timestamp) -> Vec<MarkId> {
        let begun = journal.dispatch(&[], std::slice::from_ref(capacity), None, now).unwrap().begun;
        begun.iter().map(|due| due.mark.id).collect()
    }

    /// The broken variant goes by the hosts' failures alone: the oldest is rejected again and again, and blocks all
    /// others.
    #[test]
    fn what_was_not_tried_goes_before_what_was_rejected_and_each_of_these_has_its_turn() {
        let (_home, mut journal) = Home::alerter();
        let second = Duration::from_secs(1);
        let [old, middle, new] = [("bad1", 0), ("bad2", 1), ("good", 2)]
            .map(|(host, at)| marked(&mut journal, host, NOW + second * at));
        attempt(&mut journal, middle, "recovery", &parked(NOW + second));
        attempt(&mut journal, old, "recovery", &parked(NOW + second * 2));
        let order = due(&mut journal, None);
        assert_eq!(order, [new, middle, old], "the one that is due for longest has the next turn");
        let capacity = Capacity { again: 0, ..Capacity::of("recovery", 3) };
        assert_eq!(begun(&mut journal, &capacity, LATE), [new], "no place is for the others");
        let capacity = Capacity { first: Some(old), ..Capacity::of("recovery", 1) };
        assert_eq!(begun(&mut journal, &capacity, LATE), [old], "an operator's word");
        assert_eq!(begun(&mut journal, &capacity, LATE), [middle], "it is under way");
    }

    /// If the endpoint was not reached, that is its own fault: the mark keeps its place.
    #[test]
    fn who_could_not_be_reached_keeps_the_place_of_his_failure() {
        let (_home, mut journal) = Home::alerter();
        let [old, new] = [("compute1", 0), ("compute2", 1)]
            .map(|(host, at)| marked(&mut journal, host, NOW + Duration::from_secs(at)));
        for (wait, order) in [(Duration::ZERO, [old, new]), (Duration::from_secs(1), [new, old])] {
            attempt(&mut journal, old, "recovery", &again(NOW + wait));
            assert_eq!(due(&mut journal, None), order, "{wait:?}");
        }
    }

    /// In order, but not forever: the broken variants send the later one first, or hold it as long as the earlier one is
    /// rejected.
    #[test]
    fn a_later_mark_of_a_host_goes_when_the_rejected_one_before_it_had_its_turn() {
        let (_home, mut journal) = Home::alerter();
        let (capacity, hour) = (Capacity::of("recovery", 4), Duration::from_secs(3600));
        let first = marked(&mut journal, "compute1", NOW);
        attempt(&mut journal, first, "recovery", &parked(NOW + hour));
        assert_eq!(begun(&mut journal, &capacity, LATE), []);
        let later = marked(&mut journal, "compute1", NOW + Duration::from_secs(60));
        let made = journal.mark(later).unwrap().unwrap().made_at;
        let now = made + Duration::from_secs(1);
        assert_eq!(begun(&mut journal, &capacity, now), [first], "at once, and before the later one");
        journal.finish_attempt(first, "recovery", &parked(now + hour), now).unwrap();
        assert_eq!(begun(&mut journal, &capacity, now), [later]);
    }

    #[test]
    fn what_was_served_is_known_until_the_row_is_damaged() {
        let (home, mut journal) = Home::alerter();
        assert_eq!(journal.served().unwrap(), None);
        for routes in ["recovery", "recovery wiki"] {
            journal.note_served(routes).unwrap();
            assert_eq!(journal.served().unwrap().as_deref(), Some(routes));
        }
        home.raw().execute("UPDATE served SET routes = 'recovery wiki other'", []).unwrap();
        assert_eq!(journal.served().unwrap(), None);
    }
}
