//! Counts of everything, for `/health`, `/metrics` and `status`. Counted, not listed: for marks that just wait only
//! indexes are read.
//!
//! Measured (`MARKS=20000 cargo test --release -p marks figures::tests::cost -- --nocapture`), processor time for 20,000
//! open marks: 30 ms if they wait for an endpoint, 75 ms if a storm holds all of them; the rare counts take as much
//! again. So it is asked for on a connection of its own, which blocks no writer, and not at every change. Two indexes
//! have the state of open rows, which costs a writer nothing. An index of ended rows was tried: it made recording an
//! acknowledgement 10% slower, so these rows are read instead, and rarely.

use std::collections::BTreeMap;

use rusqlite::Row;
use rusqlite::types::FromSql;

use crate::intake::marks::HELD;
use crate::queue::delivery_row::{UNDER_WAY, WAITING};
use crate::{Done, Journal};
use marks::delivery::State;
use marks::mark::{Lack, Settlement, Standing};
use marks::time::Timestamp;

/// A delivery that is held and not by its chain, in the words of the index `delivery_kept`.
const KEPT: &str = "d.state = 'held' AND d.last_kind <> 'chain'";
/// A last step, in the words of `delivery_exhausted`.
const EXHAUSTED: &str =
    "d.exhausted_at IS NOT NULL AND d.state NOT IN ('acknowledged', 'dismissed', 'cancelled')";

/// A value for each route.
type ByRoute<T> = BTreeMap<String, T>;

/// The words of holds that last only moments, and that nobody decided.
pub const PASSING: [&str; 3] = ["delay", "returning", "max-in-flight"];

/// A count for each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([u64; State::ALL.len()]);

impl Counts {
    /// How many of one.
    pub fn of(&self, state: State) -> u64 {
        self.0[place(state)]
    }

    /// How many of all.
    pub fn all(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The number for which something may still be done.
    pub fn open(&self) -> u64 {
        State::ALL.into_iter().filter(|state| !state.is_final()).map(|state| self.of(state)).sum()
    }

    /// Adds to one count.
    pub fn add(&mut self, state: State, count: u64) {
        self.0[place(state)] += count;
    }
}

fn place(state: State) -> usize {
    State::ALL.into_iter().position(|one| one == state).expect("every state is among all of them")
}

/// Marks that one word holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldCount {
    /// How many.
    pub marks: u64,
    /// Since when the first of them is held.
    pub since: Timestamp,
}

/// The journal's counts at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// The time; `None` if nothing was counted yet.
    pub at: Option<Timestamp>,
    /// Marks, each counted once: [`State::of_mark`].
    pub marks: Counts,
    /// When the host of the oldest open mark failed.
    pub oldest_open: Option<Timestamp>,
    /// The same for marks that are held by a doubt, for moments, or not at all: they should have been sent.
    pub oldest_waiting: Option<Timestamp>,
    /// Deliveries by their routes' names; also of routes that are not configured any more.
    pub deliveries: BTreeMap<String, Counts>,
    /// The held ones of each route that wait for another step of their mark's chain: no operator needs to see them.
    pub in_chain: BTreeMap<String, u64>,
    /// Open marks by the words that hold them; a mark with several holds counts for each.
    pub holds: BTreeMap<String, HeldCount>,
    /// Last steps of chains without an acknowledged step.
    pub exhausted: u64,
    /// Open marks that lack nothing, but are without an open delivery on a configured route.
    pub without_route: u64,
    /// The size of the journal with its log, in bytes.
    pub bytes: u64,
    /// The bytes in use, without its log.
    pub used: u64,
}

impl Figures {
    /// The open counts from here, and the rest from there.
    fn with_ends_of(mut self, known: &Self) -> Self {
        for state in State::ALL.into_iter().filter(|state| state.is_final()) {
            self.marks.add(state, known.marks.of(state));
            for (route, counts) in &known.deliveries {
                self.deliveries.entry(route.clone()).or_default().add(state, counts.of(state));
            }
        }
        self.without_route = known.without_route;
        self
    }

    /// Deliveries of one route.
    pub fn of_route(&self, route: &str) -> Counts {
        self.deliveries.get(route).copied().unwrap_or_default()
    }
}

impl Journal {
    /// Counts everything. `routes` are the configured ones. The slowest counts, of ended rows and of marks without a
    /// route, are taken from `known` if there is a recent count.
    ///
    /// # Errors
    /// As any read.
    pub fn figures(&self, routes: &[String], known: Option<&Figures>, now: Timestamp) -> Done<Figures> {
        // Later writes belong to the next count.
        self.sqlite(self.connection.execute_batch("BEGIN"))?;
        let open = self.count_open(now);
        self.sqlite(self.connection.execute_batch("COMMIT"))?;
        match known {
            Some(known) => Ok(open?.with_ends_of(known)),
            // It takes long, and during a transaction the log of the journal cannot restart.
            None => self.count_rest(open?, routes),
        }
    }

    fn count_open(&self, now: Timestamp) -> Done<Figures> {
        let (deliveries, in_chain) = self.count_deliveries()?;
        let (open, oldest_open) = self.count_of_open()?;
        let exhausted =
            format!("SELECT count(*) FROM delivery d INDEXED BY delivery_exhausted WHERE {EXHAUSTED}");
        Ok(Figures {
            at: Some(now),
            marks: self.count_marks(open)?,
            oldest_open,
            oldest_waiting: self.oldest_waiting(oldest_open)?,
            deliveries,
            in_chain,
            holds: self.count_holds()?,
            exhausted: self.one(&exhausted)?,
            without_route: 0,
            bytes: self.size(),
            used: self.used()?,
        })
    }

    /// Without any decision, that is the oldest one.
    fn oldest_waiting(&self, oldest_open: Option<Timestamp>) -> Done<Option<Timestamp>> {
        let others = PASSING
            .iter()
            .fold("h.words".to_owned(), |words, word| format!("replace({words}, '{word}', '')"));
        let is_decided = format!("trim({others}) <> ''");
        if self.one(&format!("SELECT EXISTS (SELECT 1 FROM hold h WHERE {is_decided})"))? == 0 {
            return Ok(oldest_open);
        }
        let sql = format!(
            "SELECT min(m.failure_time) FROM mark m INDEXED BY mark_open WHERE m.settlement IS NULL
             AND NOT EXISTS (SELECT 1 FROM hold h WHERE h.mark = m.id AND {is_decided})"
        );
        let found = self.list(&sql, [], |row| row.get::<_, Option<i64>>(0))?;
        Ok(found.first().copied().flatten().map(Timestamp))
    }

    /// Reads rows, and counts them as they come: a GROUP BY would have all of them in memory.
    fn count_rest(&self, mut figures: Figures, routes: &[String]) -> Done<Figures> {
        let ended = "state IN ('acknowledged', 'dismissed', 'cancelled')";
        self.each_word(&format!("SELECT route, state FROM delivery WHERE {ended}"), |route, word| {
            if let Some(state) = State::parse(word) {
                match figures.deliveries.get_mut(route) {
                    Some(counts) => counts.add(state, 1),
                    None => figures.deliveries.entry(route.to_owned()).or_default().add(state, 1),
                }
            }
        })?;
        self.each_word("SELECT '', settlement FROM mark WHERE settlement IS NOT NULL", |_, word| {
            // An unknown word belongs to a damaged row, which does not end any other.
            if let Some(how) = Settlement::parse(word) {
                figures.marks.add(State::at_the_end(how, true), 1);
            }
        })?;
        figures.without_route = self.count_without_route(routes)?;
        Ok(figures)
    }

    fn each_word(&self, sql: &str, mut visit: impl FnMut(&str, &str)) -> Done {
        let mut read = || {
            let mut query = self.connection.prepare_cached(sql)?;
            let mut rows = query.query([])?;
            while let Some(row) = rows.next()? {
                if let (Ok(one), Ok(other)) = (row.get_ref(0)?.as_str(), row.get_ref(1)?.as_str()) {
                    visit(one, other);
                }
            }
            Ok(())
        };
        self.sqlite(read())
    }

    fn count_of_open(&self) -> Done<(u64, Option<Timestamp>)> {
        let sql =
            "SELECT count(*), min(failure_time) FROM mark INDEXED BY mark_open WHERE settlement IS NULL";
        let read = |row: &Row<'_>| Ok((count(row, 0)?, row.get::<_, Option<i64>>(1)?.map(Timestamp)));
        self.sqlite(self.connection.prepare_cached(sql).and_then(|mut query| query.query_row([], read)))
    }

    /// Passes on each node with open marks, and how many it has, without having all names in memory.
    ///
    /// # Errors
    /// As any read.
    pub fn nodes_with_open_marks(&self, mut take: impl FnMut(&str, u64)) -> Done {
        let sql =
            "SELECT node, count(*) FROM mark INDEXED BY mark_open WHERE settlement IS NULL GROUP BY node";
        let nodes = self.list(sql, [], |row| Ok((text(row)?, count(row, 1)?)))?;
        nodes.into_iter().for_each(|(node, count)| take(&node, count));
        Ok(())
    }

    /// Of the open marks only those are read that do not just wait.
    fn count_marks(&self, open: u64) -> Done<Counts> {
        let ranks = State::NOTABLE;
        let sql = format!(
            "WITH notable (mark, rank) AS (
               SELECT d.mark, 0 FROM delivery d INDEXED BY delivery_quarantined WHERE d.state = 'quarantined'
               UNION ALL SELECT h.mark, 1 FROM hold h
               UNION ALL SELECT m.id, 1 FROM mark m INDEXED BY mark_held WHERE {HELD}
               UNION ALL SELECT d.mark, 1 FROM delivery d INDEXED BY delivery_kept WHERE {KEPT}
               UNION ALL SELECT d.mark, 2 FROM delivery d INDEXED BY delivery_parked WHERE d.state = 'parked'
               UNION ALL SELECT d.mark, 3 FROM delivery d INDEXED BY delivery_in_flight
                 WHERE {UNDER_WAY} AND d.state = 'in-flight')
             SELECT n.rank, count(*) FROM (SELECT mark, min(rank) AS rank FROM notable GROUP BY mark) n
             WHERE EXISTS (SELECT 1 FROM mark m WHERE m.id = n.mark AND m.settlement IS NULL) GROUP BY n.rank"
        );
        let mut counts = Counts::default();
        for (rank, count) in self.list(&sql, [], |row| Ok((count(row, 0)?, count(row, 1)?)))? {
            let state = usize::try_from(rank).ok().and_then(|rank| ranks.get(rank).copied());
            counts.add(state.expect("the query has no other ranks"), count);
        }
        counts.add(State::Pending, open.saturating_sub(counts.open()));
        Ok(counts)
    }

    fn count_deliveries(&self) -> Done<(ByRoute<Counts>, ByRoute<u64>)> {
        let mut all: BTreeMap<String, Counts> = BTreeMap::new();
        for (index, condition) in [
            ("delivery_waiting", WAITING),
            ("delivery_in_flight", UNDER_WAY),
            ("delivery_quarantined", "d.state = 'quarantined'"),
        ] {
            let sql = format!(
                "SELECT d.route, d.state, count(*) FROM delivery d INDEXED BY {index} WHERE {condition} GROUP BY d.route, d.state"
            );
            let rows = self.list(&sql, [], |row| Ok((text(row)?, row.get(1)?, count(row, 2)?)))?;
            for (route, word, count) in rows {
                let word: String = word;
                if let Some(state) = State::parse(&word) {
                    all.entry(route).or_default().add(state, count);
                }
            }
        }
        let kept = self.by_route("delivery_kept", KEPT)?;
        let in_chain = all.iter().map(|(route, counts)| {
            let kept = kept.get(route).copied().unwrap_or_default();
            (route.clone(), counts.of(State::Held).saturating_sub(kept))
        });
        let in_chain = in_chain.filter(|(_, count)| *count > 0).collect();
        Ok((all, in_chain))
    }

    fn by_route(&self, index: &str, condition: &str) -> Done<BTreeMap<String, u64>> {
        let sql = format!(
            "SELECT d.route, count(*) FROM delivery d INDEXED BY {index} WHERE {condition} GROUP BY d.route"
        );
        Ok(self.list(&sql, [], |row| Ok((text(row)?, count(row, 1)?)))?.into_iter().collect())
    }

    fn count_holds(&self) -> Done<BTreeMap<String, HeldCount>> {
        let sql = "SELECT h.words, count(*), min(h.since) FROM hold h
             WHERE EXISTS (SELECT 1 FROM mark m WHERE m.id = h.mark AND m.settlement IS NULL) GROUP BY h.words";
        let mut holds: BTreeMap<String, HeldCount> = BTreeMap::new();
        let mut add = |word: &str, found: HeldCount| {
            let held = holds.entry(word.to_owned()).or_insert(HeldCount { marks: 0, ..found });
            held.marks += found.marks;
            held.since = held.since.min(found.since);
        };
        for (words, found) in self.list(sql, [], |row| Ok((text(row)?, held(row, 1)?)))? {
            words.split_whitespace().for_each(|word| add(word, found));
        }
        let sql = format!(
            "SELECT m.standing, m.fqdn IS NULL, m.on_shared_storage IS NULL, count(*), min(m.made_at) FROM mark m INDEXED BY mark_held WHERE {HELD} GROUP BY 1, 2, 3"
        );
        let rows = self.list(&sql, [], |row| Ok((text(row)?, [row.get(1)?, row.get(2)?], held(row, 3)?)))?;
        for (standing, lacks, found) in rows {
            let standing: String = standing;
            let doubtful = Standing::parse(&standing).filter(|standing| standing.doubt().is_some());
            let doubt = doubtful.map(Standing::as_str);
            let lacks = Lack::ALL.into_iter().zip(lacks).filter(|(_, is_lacking)| *is_lacking);
            for word in doubt.into_iter().chain(lacks.map(|(lack, _)| lack.as_str())) {
                add(word, found);
            }
        }
        Ok(holds)
    }

    /// Open marks that lack nothing, but are without an open delivery on one of these routes: one read of the table for each open
    /// mark.
    fn count_without_route(&self, routes: &[String]) -> Done<u64> {
        let sql = "SELECT count(*) FROM mark m INDEXED BY mark_open WHERE m.settlement IS NULL AND m.fqdn IS NOT NULL AND m.on_shared_storage IS NOT NULL
             AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.mark = m.id
               AND d.state NOT IN ('acknowledged', 'dismissed', 'cancelled')
               AND d.route IN (SELECT value FROM json_each(?1)))";
        let routes = serde_json::Value::from(routes).to_string();
        let counted = self.list(sql, [routes], |row| count(row, 0))?;
        Ok(counted.first().copied().unwrap_or_default())
    }

    fn one(&self, sql: &str) -> Done<u64> {
        Ok(self.list(sql, [], |row| count(row, 0))?.first().copied().unwrap_or_default())
    }
}

/// The first column; a damaged value is not text, and counts under no name.
fn text(row: &Row<'_>) -> rusqlite::Result<String> {
    Ok(row.get_ref(0).ok().and_then(|value| String::column_result(value).ok()).unwrap_or_default())
}

fn count(row: &Row<'_>, at: usize) -> rusqlite::Result<u64> {
    Ok(u64::try_from(row.get::<_, i64>(at)?).unwrap_or_default())
}

fn held(row: &Row<'_>, at: usize) -> rusqlite::Result<HeldCount> {
    Ok(HeldCount { marks: count(row, at)?, since: Timestamp(row.get(at + 1)?) })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::tests::{
        Home, NOW, acknowledged, again, attempt, fencing, marked, marked_as, marked_for_two, to_recovery,
    };
    use crate::{HeldMark, NewDelivery, Role, Taken, Verdict};
    use marks::delivery::Delivery;
    use marks::id::MarkId;
    use marks::mark::Doubt;

    const MINUTE: Duration = Duration::from_secs(60);

    fn routes() -> Vec<String> {
        ["recovery", "wiki"].map(str::to_owned).to_vec()
    }

    fn figures(journal: &Journal) -> Figures {
        journal.figures(&routes(), None, NOW).unwrap()
    }

    fn by_node(journal: &Journal) -> u64 {
        let mut sum = 0;
        journal.nodes_with_open_marks(|_, count| sum += count).unwrap();
        sum
    }

    fn verdict(state: State) -> Verdict {
        let (kind, detail) = ("no".to_owned(), "it says so".to_owned());
        Verdict::Again { state, ambiguous: false, kind, detail, next_due: NOW + MINUTE }
    }

    fn hold(journal: &mut Journal, mark: MarkId, words: &[&str]) {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        let held =
            HeldMark { mark, words, until: None, why: "why".into(), cause: Default::default(), since: NOW };
        journal.hold(&[held], &[], NOW).unwrap();
    }

    /// The rows, one by one.
    fn by_row(journal: &Journal) -> (Counts, BTreeMap<String, Counts>) {
        let (mut marks, mut all) = (Counts::default(), BTreeMap::<String, Counts>::new());
        for row in journal.recent_marks(1000).unwrap().sound {
            let rows = journal.deliveries_of(row.id).unwrap();
            let mut deliveries: Vec<Delivery> = rows.sound;
            // A damaged row is quarantined, and counts only as that.
            if let (Some(_), Some(first)) = (rows.damaged.first(), deliveries.first().cloned()) {
                deliveries.push(Delivery { state: State::Quarantined, route: "wiki".into(), ..first });
            }
            let is_held = row.standing.doubt().is_some()
                || row.lacks().next().is_some()
                || journal.hold_of(row.id).unwrap().is_some();
            marks.add(State::of_mark(row.settled.map(|(how, _)| how), is_held, &deliveries), 1);
            for delivery in deliveries {
                all.entry(delivery.route).or_default().add(delivery.state, 1);
            }
        }
        (marks, all)
    }

    /// A mark in each state, and some in two.
    fn story(home: &Home) -> Journal {
        let mut journal = home.open(Role::Alerter);
        let [pending, flying, parked, acknowledged_one, dismissed, held, kept] =
            ["c1", "c2", "c3", "c4", "c5", "c6", "c7"].map(|host| marked_for_two(&mut journal, host, NOW));
        journal.begin_attempt(flying, "recovery").unwrap();
        attempt(&mut journal, flying, "wiki", &verdict(State::Parked));
        attempt(&mut journal, parked, "recovery", &verdict(State::Parked));
        attempt(&mut journal, acknowledged_one, "recovery", &acknowledged());
        journal.dismiss(dismissed, "by hand", "alice", NOW).unwrap();
        hold(&mut journal, held, &["storm", "pause"]);
        attempt(&mut journal, kept, "wiki", &verdict(State::Held));
        journal.begin_attempt(kept, "recovery").unwrap();
        let late = marked(&mut journal, "c8", NOW - MINUTE);
        journal.expire(late, "too old", NOW).unwrap();
        marked_as(&mut journal, "c9", NOW + MINUTE, Standing::Doubtful(Doubt::Unproven));
        let damaged = marked_for_two(&mut journal, "c10", NOW);
        let sql = "UPDATE delivery SET body = x'00' WHERE mark = ?1 AND route = 'wiki'";
        home.raw().execute(sql, [damaged.to_string()]).unwrap();
        journal.due(NOW + MINUTE, "wiki", 100, None).unwrap();
        attempt(&mut journal, pending, "recovery", &again(NOW + MINUTE));
        let alone = marked_for_two(&mut journal, "c12", NOW);
        journal.begin_attempt(alone, "recovery").unwrap();
        journal
    }

    /// The broken variant counts a mark for each of its deliveries' states: `c2` would be in flight too, and so would
    /// `c7`.
    #[test]
    fn every_mark_and_delivery_is_counted_once_as_its_rows_say() {
        let home = Home::new();
        let journal = story(&home);
        let (marks, deliveries) = by_row(&journal);
        let counted = figures(&journal);
        assert_eq!((counted.marks, &counted.deliveries), (marks, &deliveries));
        let wanted = [
            (State::Pending, 1),
            (State::InFlight, 1),
            (State::Acknowledged, 1),
            (State::Held, 3),
            (State::Parked, 2),
            (State::Quarantined, 1),
            (State::Dismissed, 1),
            (State::Cancelled, 1),
        ];
        assert_eq!(wanted.map(|(state, _)| (state, marks.of(state))), wanted);
        assert_eq!((marks.open(), by_node(&journal)), (8, 8));
        assert_eq!(counted.oldest_open, Some(NOW));
        assert_eq!(counted.bytes, journal.size());
        let parked = |route: &str| counted.of_route(route).of(State::Parked);
        assert_eq!((parked("recovery"), parked("wiki"), parked("nobody")), (1, 1, 0));
    }

    /// The broken variant takes the oldest open one: a mark in maintenance for hours would make a young one seem late.
    #[test]
    fn the_oldest_that_waits_is_held_by_no_decision() {
        let (_home, mut journal) = Home::alerter();
        let old = marked(&mut journal, "c1", NOW - MINUTE * 9);
        let oldest = |journal: &Journal| {
            let counted = figures(journal);
            assert_eq!(counted.oldest_open, Some(NOW - MINUTE * 9));
            counted.oldest_waiting
        };
        assert_eq!(oldest(&journal), Some(NOW - MINUTE * 9));
        hold(&mut journal, old, &["maintenance", "delay"]);
        assert_eq!(oldest(&journal), None);
        marked_as(&mut journal, "c2", NOW, Standing::Doubtful(Doubt::Unproven));
        assert_eq!(oldest(&journal), Some(NOW), "a doubt is no decision");
        hold(&mut journal, old, &["delay", "max-in-flight"]);
        assert_eq!(oldest(&journal), Some(NOW - MINUTE * 9), "it passes by itself");
    }

    /// The broken variant asks for one route only: a mark that waits for the other one alone would count as unsent.
    #[test]
    fn marks_that_no_route_can_send_are_found() {
        let (_home, mut journal) = Home::alerter();
        let sent = marked_for_two(&mut journal, "c1", NOW);
        attempt(&mut journal, sent, "wiki", &acknowledged());
        marked(&mut journal, "c2", NOW);
        let first = fencing("c3");
        journal.append_fencing(&first).unwrap();
        journal.make_mark(&samples::mark(&first), Taken::Fencing(&first), &[], None, NOW).unwrap();
        let unsent = |routes: &[&str]| {
            let routes: Vec<String> = routes.iter().map(|&route| route.to_owned()).collect();
            journal.figures(&routes, None, NOW).unwrap().without_route
        };
        assert_eq!((unsent(&["recovery", "wiki"]), unsent(&["wiki"]), unsent(&[])), (1, 3, 3));
        let known = journal.figures(&[], None, NOW).unwrap();
        let later = journal.figures(&routes(), Some(&known), NOW).unwrap();
        assert_eq!(later, known, "it was counted a moment ago");
    }

    #[test]
    fn a_step_that_waits_for_its_turn_is_distinguished() {
        let (_home, mut journal) = Home::alerter();
        let first = fencing("c1");
        journal.append_fencing(&first).unwrap();
        let link = |step| Some(marks::chain::Link { step, timeout: MINUTE });
        let steps = [
            NewDelivery { link: link(1), ..to_recovery("c1") },
            NewDelivery { route: "wiki".into(), link: link(2), ..to_recovery("c1") },
        ];
        journal.make_mark(&samples::mark(&first), Taken::Fencing(&first), &steps, None, NOW).unwrap();
        let counted = figures(&journal);
        assert_eq!(counted.in_chain, [("wiki".to_owned(), 1)].into());
        assert_eq!(counted.of_route("wiki").of(State::Held), 1);
        assert_eq!(counted.marks.of(State::Pending), 1, "nobody holds the mark");
        assert_eq!(by_row(&journal).0, counted.marks);
    }
}
