//! Marks in the journal: made by the intake, named, proven, read.

use std::cell::Cell;

use rusqlite::{OptionalExtension, Params, Row, params_from_iter};

use crate::history::ALERTER;
use crate::intake::{folds, sightings};
use crate::queue::deliveries::{self, NewDelivery};
use crate::row::{self, COLUMNS};
use crate::store::digest::{Damage, Rows, raw_text};
use crate::{Done, Journal, JournalError};
use marks::delivery::State;
use marks::fencing::Fencing;
use marks::host::HostName;
use marks::id::MarkId;
use marks::mark::{Doubt, Lack, Mark, MarkRow, Proof, Standing};
use marks::register::Returned;
use marks::rule::Rule;
use marks::sighting::Sighting;
use marks::time::Timestamp;

/// A mark `m` that may not be sent, in the words of the index `mark_held`.
pub(crate) const HELD: &str = "m.settlement IS NULL AND (m.fqdn IS NULL OR m.on_shared_storage IS NULL OR m.standing IN ('unconfirmed', 'unproven', 'outcome-unknown', 'fenced-again'))";
/// How many marks are in memory at once when all open ones are read.
pub const PAGE: usize = 256;

/// The origin of a mark.
#[derive(Clone, Copy, Debug)]
pub enum Taken<'a> {
    /// A fencing, which is folded into it.
    Fencing(&'a Fencing),
    /// A sighting, which is kept with it.
    Sighting(&'a Sighting),
    /// An entry of the register, which another controller's alerter wrote.
    Register,
}

/// A position among the open marks when they are read in pages; the default is before the first one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position(Vec<u8>);

/// A mark with the name that is sent, and a delivery for each route.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The mark.
    pub mark: Mark,
    /// One for each route.
    pub deliveries: Vec<NewDelivery>,
}

impl Journal {
    /// Makes a mark, with its deliveries. One that lacks something has none, and is held. `lost` is when the cluster was
    /// seen to have lost the host.
    ///
    /// # Errors
    /// As any write; also if there is a mark with this id already.
    pub fn make_mark(
        &mut self,
        row: &MarkRow,
        of: Taken<'_>,
        deliveries: &[NewDelivery],
        lost: Option<Timestamp>,
        now: Timestamp,
    ) -> Done {
        self.write_at(now, |writing| {
            row::insert(&writing, row)?;
            if let Some(at) = lost {
                let detail = format!("the cluster lost {}, as this controller saw it", row.node);
                writing.at(at).note_mark(row, "lost", &detail, ALERTER)?;
            }
            writing.add((row.id, row.failure_time), deliveries)?;
            match of {
                Taken::Fencing(first) => folds::fold(&writing, first.id, (Some(row.id), Rule::Made))?,
                Taken::Sighting(first) => sightings::insert(&writing, first, (Some(row.id), Rule::Made))?,
                Taken::Register => {}
            }
            let event = ("marked", held_as(row));
            writing.note_outcome(row, event, &marked(row, of), ALERTER)
        })
    }

    /// Gives a mark that was held for what it lacked what is known now, with its deliveries if it lacks nothing any more.
    ///
    /// # Errors
    /// As any write.
    pub fn complete_mark(&mut self, known: &MarkRow, deliveries: &[NewDelivery], now: Timestamp) -> Done {
        self.write_at(now, |writing| {
            let Some(mut row) = row::load(&writing, known.id)? else { return Ok(()) };
            row.fqdn.clone_from(&known.fqdn);
            row.on_shared_storage = known.on_shared_storage;
            row::update(&writing, &row)?;
            let Some(mark) = row.to_mark() else { return Ok(()) };
            writing.add((mark.id, mark.failure_time), deliveries)?;
            let storage = if mark.on_shared_storage { "shared" } else { "not shared" };
            let detail = format!("{} will be sent as {}, its storage is {storage}", mark.node, mark.fqdn);
            writing.note_mark(&row, "named", &detail, ALERTER)
        })
    }

    /// Adds deliveries to open marks that have none for a route: the route was configured after the mark was made.
    ///
    /// # Errors
    /// As any write.
    pub fn add_deliveries(&mut self, mark: &Mark, missing: &[NewDelivery], now: Timestamp) -> Done {
        let key = (mark.id, mark.failure_time);
        self.write_at(now, |writing| writing.add(key, missing))
    }

    /// The same for many marks at once, in one transaction; without marks nothing is written. The caller has checked that
    /// their present deliveries notify no route: they get a chain too.
    ///
    /// # Errors
    /// As any write.
    pub fn add_deliveries_to_all(&mut self, missing: &[Resolved], now: Timestamp) -> Done {
        if missing.is_empty() {
            return Ok(());
        }
        self.write_at(now, |writing| {
            for Resolved { mark, deliveries } in missing {
                writing.add_missing((mark.id, mark.failure_time), deliveries)?;
            }
            Ok(())
        })
    }

    /// Ends the doubt of a mark that is open, or that another alerter sent: it has a proof now, and what follows an
    /// acknowledgement may be sent. Returns whether there was a doubt.
    ///
    /// # Errors
    /// As any write.
    pub fn prove(&mut self, mark: MarkId, proof: Proof, now: Timestamp) -> Done<bool> {
        self.write_at(now, |writing| {
            let doubtful = row::load(&writing, mark)?.filter(MarkRow::wants_proof);
            let Some(row) = doubtful else { return Ok(false) };
            let word = Standing::Proven(proof).as_str();
            let detail = format!("{} is not held as {} any more: {word}", row.node, row.standing.as_str());
            writing.prove(row, proof, ("proven", &detail, ALERTER))?;
            Ok(true)
        })
    }

    /// Holds an open mark that had a proof: later events are unknown here. Returns whether it did; a mark with an attempt
    /// in flight is left alone, since its answer is awaited.
    ///
    /// # Errors
    /// As any write.
    pub fn doubt(&mut self, mark: MarkId, doubt: Doubt, now: Timestamp) -> Done<bool> {
        self.write_at(now, |writing| {
            let open = deliveries::load_open(&writing, mark)?;
            let idle = open.iter().all(|delivery| delivery.state != State::InFlight);
            let row = row::load_open(&writing, mark)?.filter(|row| row.standing.doubt().is_none());
            let Some(mut row) = row.filter(|_| idle) else { return Ok(false) };
            row.standing = Standing::Doubtful(doubt);
            row::update(&writing, &row)?;
            let detail =
                format!("{} is held ({}) until evidence or `release`", row.node, row.standing.as_str());
            let event = ("doubted", held_as(&row));
            writing.note_outcome(&row, event, &detail, ALERTER)?;
            Ok(true)
        })
    }

    /// Notes, once, that the host of a mark was seen here to be back. Returns whether that is new.
    ///
    /// # Errors
    /// As any write.
    pub fn note_return(&mut self, mark: MarkId, at: Timestamp, now: Timestamp) -> Done<bool> {
        self.note_back(mark, (at, now), now)
    }

    /// The same for what another alerter has seen: it was known by its clock, where that does not lie ahead.
    ///
    /// # Errors
    /// As any write.
    pub fn returned_elsewhere(&mut self, back: &Returned, now: Timestamp) -> Done<bool> {
        self.note_back(back.mark, (back.at, back.at.min(now)), now)
    }

    fn note_back(&mut self, mark: MarkId, (at, known): (Timestamp, Timestamp), now: Timestamp) -> Done<bool> {
        self.write_at(now, |writing| {
            let Some(mut row) = row::load(&writing, mark)?.filter(|row| row.returned_at.is_none()) else {
                return Ok(false);
            };
            let released = "SELECT max(released_at) FROM delivery WHERE mark = ?1";
            let released: Option<i64> = writing.query_row(released, [mark.to_string()], |row| row.get(0))?;
            let known = released.map_or(known, |released| known.max(Timestamp(released.saturating_add(1))));
            (row.returned_at, row.return_known_at) = (Some(at), Some(known));
            row::update(&writing, &row)?;
            let detail = format!("{} is back since {}", row.node, at.rfc3339());
            writing.note_mark(&row, "returned", &detail, ALERTER)?;
            Ok(true)
        })
    }

    /// One mark.
    ///
    /// # Errors
    /// `Damaged` if its row is damaged.
    pub fn mark(&self, id: MarkId) -> Done<Option<MarkRow>> {
        self.find_mark(id)?.transpose().map_err(|damage| self.damaged(&damage))
    }

    /// The mark of an id, for callers that continue if its row is damaged.
    ///
    /// # Errors
    /// As any read.
    pub fn find_mark(&self, id: MarkId) -> Done<Option<Result<MarkRow, Damage>>> {
        let sql = format!("SELECT {COLUMNS} FROM mark m WHERE m.id = ?1");
        let read = self.connection.query_row(&sql, [id.to_string()], |row| Ok(row::decode(row)));
        self.sqlite(read.optional())
    }

    /// Marks that are not settled, oldest first.
    ///
    /// # Errors
    /// As any read.
    pub fn open_marks(&self) -> Done<Rows<MarkRow>> {
        self.marks_where("m.settlement IS NULL", None)
    }

    /// Whether any mark is not settled.
    ///
    /// # Errors
    /// As any read.
    pub fn has_open_marks(&self) -> Done<bool> {
        let any = "SELECT EXISTS (SELECT 1 FROM mark WHERE settlement IS NULL)";
        self.sqlite(self.connection.query_row(any, [], |row| row.get(0)))
    }

    /// Calls `visit` for every mark that is not settled, in any order, without having all of them in memory. Returns the
    /// damaged ones.
    ///
    /// # Errors
    /// As any read, and errors of `visit`.
    pub fn each_open_mark(&mut self, mut visit: impl FnMut(&mut Self, MarkRow) -> Done) -> Done<Vec<Damage>> {
        let (mut damaged, mut last) = (Vec::new(), Position::default());
        while let Some((page, end)) = self.open_marks_behind(&last)? {
            last = end;
            damaged.extend(page.damaged);
            for row in page.sound {
                visit(self, row)?;
            }
        }
        Ok(damaged)
    }

    /// The next marks that are not settled, in any order, and where they end; `None` if there are no more.
    ///
    /// # Errors
    /// As any read.
    pub fn open_marks_behind(&self, last: &Position) -> Done<Option<(Rows<MarkRow>, Position)>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM mark m WHERE m.settlement IS NULL AND m.id > CAST(?1 AS TEXT) ORDER BY m.id LIMIT {PAGE}"
        );
        // The raw value: the readable form of a damaged id may sort earlier, and the pages would never end.
        let end = Cell::new(None);
        let decode = |row: &Row<'_>| {
            end.set(raw_text(row, 0).ok());
            row::decode(row)
        };
        let page = self.rows(&sql, [&last.0], decode)?;
        Ok(end.take().map(|end| (page, Position(end))))
    }

    /// Open marks that lack something.
    ///
    /// # Errors
    /// As any read.
    pub fn lacking_marks(&self) -> Done<Rows<MarkRow>> {
        self.marks_where(&format!("{HELD} AND (m.fqdn IS NULL OR m.on_shared_storage IS NULL)"), None)
    }

    /// Open marks without any delivery, also those that lack something.
    ///
    /// # Errors
    /// As any read.
    pub fn unserved_marks(&self) -> Done<Rows<MarkRow>> {
        let condition = "m.settlement IS NULL AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.mark = m.id)";
        self.marks_where(condition, None)
    }

    /// Marks that are not settled, and settled ones with open deliveries, oldest first.
    ///
    /// # Errors
    /// As any read.
    pub fn unfinished_marks(&self) -> Done<Rows<MarkRow>> {
        let open =
            "SELECT d.mark FROM delivery d WHERE d.state NOT IN ('acknowledged', 'dismissed', 'cancelled')";
        self.marks_where(&format!("m.settlement IS NULL OR m.id IN ({open})"), None)
    }

    /// The newest marks, settled ones too, oldest first.
    ///
    /// # Errors
    /// As any read.
    pub fn recent_marks(&self, limit: u32) -> Done<Rows<MarkRow>> {
        let condition = format!("m.id IN (SELECT id FROM mark ORDER BY id DESC LIMIT {limit})");
        self.marks_where(&condition, None)
    }

    /// All marks of one host, oldest first.
    ///
    /// # Errors
    /// As any read.
    pub fn marks_of(&self, node: &HostName) -> Done<Rows<MarkRow>> {
        self.marks_where("m.node = ?1", Some(node))
    }

    fn marks_where(&self, condition: &str, node: Option<&HostName>) -> Done<Rows<MarkRow>> {
        self.marks_that(condition, params_from_iter(node.map(HostName::as_str)))
    }

    /// The marks `m` that meet a condition in SQL, oldest first.
    pub(crate) fn marks_that(&self, condition: &str, parameters: impl Params) -> Done<Rows<MarkRow>> {
        let sql = format!("SELECT {COLUMNS} FROM mark m WHERE {condition} ORDER BY m.failure_time, m.id");
        self.rows(&sql, parameters, row::decode)
    }

    pub(crate) fn damaged(&self, damage: &Damage) -> JournalError {
        let reason = format!("the digest of {} {} does not fit", damage.table, damage.key);
        JournalError::Damaged { path: self.place.file.clone(), reason }
    }
}

/// What is unknown about a mark, so that it is held.
fn held_as(row: &MarkRow) -> Option<&'static str> {
    let doubtful = row.standing.doubt().map(|_| row.standing.as_str());
    row.lacks().next().map(Lack::as_str).or(doubtful)
}

/// A mark's origin, and what happens next.
fn marked(row: &MarkRow, of: Taken<'_>) -> String {
    let source = match of {
        Taken::Fencing(first) => format!("its fencing was seen by {}{}", first.seen_by, first.because()),
        Taken::Sighting(first) => sightings::says(first),
        Taken::Register => format!("the register has it from {}", row.made_by),
    };
    let node = &row.node;
    match (row.lacks().next(), &row.fqdn, row.standing.doubt()) {
        (None, Some(fqdn), None) => format!("{node} is marked and will be sent as {fqdn}: {source}"),
        (None, _, _) => {
            let hold = row.standing.as_str();
            format!("{node} is marked and held ({hold}) until evidence or `release`: {source}")
        }
        (Some(lack), _, _) => {
            format!("{node} is marked and held ({}): set {}; {source}", lack.as_str(), lack.setting())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::tests::{Home, NOW, attempt, events, fencing, marked};
    use crate::{HistoryFilter, Role, Verdict};
    use marks::delivery::State;
    use marks::fencing::Incarnation;
    use marks::mark::{Settlement, Source};
    use marks::outage::Outage;

    /// A flipped bit can make a text invalid. The broken variant: the pages never end, or the first query fails, at every
    /// start.
    #[test]
    fn a_key_that_is_no_text_any_more_ends_nothing() {
        let (home, mut journal) = Home::alerter();
        marked(&mut journal, "compute1", NOW);
        let other = marked(&mut journal, "compute2", NOW);
        journal.begin_attempt(other, "recovery").unwrap();
        home.raw()
            .execute_batch(
                "PRAGMA foreign_keys = OFF;
                 UPDATE mark SET id = CAST(x'ff' AS TEXT) WHERE node = 'compute1';
                 UPDATE delivery SET mark = CAST(x'ff' AS TEXT), last_at = 1, last_detail = '',
                   last_kind = CAST(x'ff' AS TEXT), next_due = 1 << 60 WHERE state = 'pending'",
            )
            .unwrap();
        let mut seen = Vec::new();
        let visit = |_: &mut Journal, row: MarkRow| {
            seen.push(row.id);
            Ok(())
        };
        assert_eq!(journal.each_open_mark(visit).unwrap().len(), 1);
        assert_eq!(seen, [other]);
        assert_eq!(journal.put_off_no_longer_than(NOW).unwrap(), 0);
        assert_eq!(journal.recover(NOW).unwrap(), 1);
        assert_eq!(journal.tried().unwrap(), []);
    }

    #[test]
    fn a_second_mark_of_the_same_id_is_refused_and_changes_nothing() {
        let (_home, mut journal, mark) = Home::marked();
        let row = journal.mark(mark).unwrap().unwrap();
        let other = MarkRow { source: Source::Alert, ..row.clone() };
        journal.make_mark(&other, Taken::Register, &[], None, NOW).unwrap_err();
        assert_eq!(journal.mark(mark).unwrap(), Some(row));
        assert_eq!(events(&journal, mark), ["marked"]);
    }

    #[test]
    fn a_mark_is_doubted_while_it_waits_and_not_while_its_answer_is_awaited() {
        let (_home, mut journal) = Home::alerter();
        let doubt = |journal: &mut Journal, mark| journal.doubt(mark, Doubt::OutcomeUnknown, NOW).unwrap();
        let waiting = marked(&mut journal, "compute1", NOW);
        assert!(doubt(&mut journal, waiting));
        assert!(!doubt(&mut journal, waiting), "it is held already");
        assert!(journal.due(NOW, "recovery", 10, None).unwrap().sound.is_empty());
        assert_eq!(events(&journal, waiting), ["marked", "doubted"]);
        let sent = marked(&mut journal, "compute2", NOW);
        journal.begin_attempt(sent, "recovery").unwrap();
        assert!(!doubt(&mut journal, sent));
        journal.dismiss(sent, "no", "alice", NOW).unwrap();
        assert!(!doubt(&mut journal, sent), "it has ended");
    }

    /// The clock is set back between the two. The broken variant compares their times: what an operator released stays held, or goes
    /// although its host came back since.
    #[test]
    fn a_release_and_a_return_are_in_the_order_in_which_they_came() {
        for is_released_first in [true, false] {
            let (_home, mut journal, mark) = Home::marked();
            let held = Verdict::Again {
                state: State::Held,
                ambiguous: false,
                kind: "returned".into(),
                detail: String::new(),
                next_due: NOW,
            };
            attempt(&mut journal, mark, "recovery", &held);
            let release = |journal: &mut Journal, at| {
                assert_eq!(journal.release_held(mark, false, ("it is off", "alice"), at).unwrap(), 1);
            };
            let before = NOW - Duration::from_secs(86_400);
            if is_released_first {
                release(&mut journal, NOW);
                assert!(journal.note_return(mark, NOW, before).unwrap());
            } else {
                assert!(journal.note_return(mark, NOW, NOW).unwrap());
                release(&mut journal, before);
            }
            let known = journal.mark(mark).unwrap().unwrap().return_known_at;
            let released = journal.deliveries_of(mark).unwrap().sound[0].released_at;
            assert_eq!(known > released, is_released_first, "{known:?} {released:?}");
        }
    }

    #[test]
    fn an_outage_knows_its_times_its_connections_and_the_return() {
        let (home, mut journal) = Home::alerter();
        let connection = |call| Incarnation::new("ctl1", call, 7);
        let first = Fencing { incarnation: Some(connection(4)), ..fencing("compute1") };
        let later = NOW + Duration::from_secs(60);
        let again = Fencing { asked_at: later, incarnation: Some(connection(5)), ..fencing("compute1") };
        journal.append_fencing(&first).unwrap();
        journal.append_fencing(&again).unwrap();
        let row = samples::mark(&first);
        journal.make_mark(&row, Taken::Fencing(&first), &[], None, NOW).unwrap();
        journal.add_to_mark(&again, (row.id, Rule::SameConnection), NOW).unwrap();
        let back = later + Duration::from_secs(1);
        assert!(journal.note_return(row.id, back, back).unwrap());
        assert!(!journal.note_return(row.id, later, back).unwrap(), "it is noted once");
        let outage = Outage {
            mark: row.id,
            first: NOW,
            newest: later,
            incarnations: vec![connection(4), connection(5)],
            fenced_at: None,
            returned_at: Some(back),
            settled: None,
            made_at: row.made_at,
            is_proven: true,
        };
        assert_eq!(home.open(Role::Reader).outages_of(&first.node).unwrap(), std::slice::from_ref(&outage));
        assert_eq!(events(&journal, row.id), ["marked", "fenced-again", "returned"]);
        journal.dismiss(row.id, "no", "alice", NOW).unwrap();
        let settled = Some((Settlement::Dismissed, NOW));
        assert_eq!(journal.outages_of(&first.node).unwrap(), [Outage { settled, ..outage }]);
    }

    #[test]
    fn a_fencing_that_is_passed_over_makes_no_mark_and_is_not_read_again() {
        let (_home, mut journal) = Home::alerter();
        let old = fencing("compute1");
        journal.append_fencing(&old).unwrap();
        journal.pass_over(&old, "compute1 was fenced long ago and was probably notified", NOW).unwrap();
        assert!(journal.unfolded_fencings().unwrap().sound.is_empty());
        assert_eq!(journal.mark_of(old.id).unwrap(), None);
        let last = journal.history(&HistoryFilter::default()).unwrap().sound.pop().unwrap();
        assert_eq!(last.event, "past");
    }
}
