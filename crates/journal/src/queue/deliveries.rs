//! Deliveries in the journal: made, put off, woken, ended, read. Only the transition table decides what may change.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use rusqlite::types::Value;
use rusqlite::{OptionalExtension, Params, Row, Transaction, params, params_from_iter};

use crate::history::{self, ALERTER, NewHistory};
use crate::queue::delivery_row::{self, ASKED_AGAIN, COLUMNS, IS_STEP, UNDER_WAY, WAITING, update};
use crate::row::{self, mark_of};
use crate::store::digest::{Checked, Damage, Rows, raw_text};
use crate::{Done, Fault, Journal, JournalError, Writing, Wrote};
use marks::chain::{CHAIN, Link, Step};
use marks::delivery::{ACCEPTED, Arrivals, Attempt, Delivery, State};
use marks::host::HostName;
use marks::id::MarkId;
use marks::returning::OTHER_TARGET;
use marks::terms::STALE;
use marks::time::Timestamp;

/// A delivery to make: the route and the exact bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDelivery {
    /// The route's name.
    pub route: String,
    /// What every attempt will send.
    pub body: Vec<u8>,
    /// Whether the mark stays open until this route has it. A chain is required as a whole if one of its steps is.
    pub required: bool,
    /// Its place in the mark's chain. All steps of a chain are made at once, each on a route of its own.
    pub link: Option<Link>,
}

/// A route's last answer to a delivery that is still open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// The route's name.
    pub route: String,
    /// When the oldest of the known failures ended.
    pub since: Timestamp,
    /// The newest of them.
    pub last: Attempt,
    /// Whether a mark stays open until this route has it.
    pub required: bool,
}

/// The states that are final.
const FINAL: &str = "'acknowledged', 'dismissed', 'cancelled'";
/// A delivery `d` that is not final, in the words of the index `delivery_tried`.
pub(crate) const OPEN: &str = "d.state NOT IN ('acknowledged', 'dismissed', 'cancelled')";
/// One of these without an attempt in flight, in the words of that index too.
pub(crate) const NOT_UNDER_WAY: &str =
    "d.state NOT IN ('acknowledged', 'dismissed', 'cancelled') AND d.state <> 'in-flight'";
/// One that is held, in the words of that index.
pub(crate) const KEPT_BACK: &str = "d.state IN ('in-flight', 'held') AND d.state = 'held'";
/// One that is held because it is another step's turn in its mark's chain.
const WAITS_IN_CHAIN: &str =
    "d.state IN ('in-flight', 'held') AND d.state = 'held' AND d.last_kind = 'chain'";
/// One that reports a return: no end of its mark ends it.
pub(crate) const IS_RETURN: &str = "d.route LIKE '%.return'";
/// One whose endpoint has rejected this very mark ([`Delivery::is_rejected`]).
pub(crate) const REJECTED: &str = "d.state = 'parked' AND d.next_due > d.last_at";
/// The longest wait of a rejected mark for its next attempt.
pub const SLOWEST: Duration = Duration::from_secs(3600);
/// The longest time for a confirmation (`ack-timeout`).
const CONFIRMATION: Duration = Duration::from_secs(86_400);
/// How many deliveries are changed in one transaction.
const PAGE: usize = 256;

impl Journal {
    /// No delivery waits beyond `latest` any more: a wait from a clock that was set back since, or from a previous
    /// daemon, could be too long. A rejected one may wait up to [`SLOWEST`] longer, and one that awaits a confirmation up
    /// to a day. Returns how many were changed.
    ///
    /// # Errors
    /// As any write.
    pub fn put_off_no_longer_than(&mut self, latest: Timestamp) -> Done<usize> {
        let (confirmed, rejected, now) = (latest + CONFIRMATION, latest + SLOWEST, Timestamp::now());
        let condition = format!(
            "{WAITING} AND d.next_due > ?3 AND (d.last_kind IS NOT '{ACCEPTED}' OR d.next_due > ?4)
             AND (d.state <> 'parked' OR d.next_due > ?5)"
        );
        let given = [latest, confirmed, rejected].map(|at| at.0.into());
        self.change_each(&condition, &given, now, |delivery, _| {
            let is_accepted = delivery.last.as_ref().is_some_and(|last| last.kind == ACCEPTED);
            let latest = match delivery.state {
                State::Parked => rejected,
                _ if is_accepted => confirmed,
                _ => latest,
            };
            delivery.next_due = delivery.next_due.min(latest);
            Ok(())
        })
    }

    /// Makes open deliveries due at once; those of one mark, or all. The reason may be empty. Returns how many.
    ///
    /// # Errors
    /// As any write.
    pub fn retry_now(
        &mut self,
        only: Option<MarkId>,
        reason: &str,
        actor: &str,
        now: Timestamp,
    ) -> Done<usize> {
        let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        let detail = format!("an operator asked for an attempt at once{why}");
        if only.is_none() {
            // One row, however many wait.
            let detail = format!("an operator asked for an attempt of every open delivery at once{why}");
            self.append_history(&NewHistory::new(now, "retry", &detail, actor))?;
        }
        let mark = only.map(|mark| mark.to_string()).into();
        let mut changed = 0;
        for part in [WAITING, ASKED_AGAIN] {
            let condition = format!("{part} AND (?3 IS NULL OR d.mark = ?3)");
            changed +=
                self.change_each(&condition, std::slice::from_ref(&mark), now, |delivery, writing| {
                    move_to(delivery, State::Pending)?;
                    delivery.next_due = delivery.next_due.min(now);
                    match only {
                        Some(_) => writing.note_by(delivery, "retry", &detail, actor),
                        None => Ok(()),
                    }
                })?;
        }
        Ok(changed)
    }

    /// Makes those deliveries due that are held and whose time has come to be asked again. Returns how many.
    pub(crate) fn ask_again(&mut self, now: Timestamp) -> Done<usize> {
        let condition = format!("{ASKED_AGAIN} AND d.next_due <= ?3");
        self.change_each(&condition, &[now.0.into()], now, |delivery, _| {
            move_to(delivery, State::Pending).map_err(Fault::from)
        })
    }

    /// Releases the deliveries of a mark that a route's terms or its controller's answer holds, whatever the terms say of
    /// what is known now: the operator decides on that, but not on later events. A step whose turn it is not stays. With
    /// `elsewhere` its returns go to where their routes lead now: that may be another host of the same name, and the
    /// operator must have checked it. Returns how many.
    ///
    /// # Errors
    /// As any write.
    pub fn release_held(
        &mut self,
        mark: MarkId,
        elsewhere: bool,
        (reason, actor): (&str, &str),
        now: Timestamp,
    ) -> Done<usize> {
        let condition = format!(
            "d.state = 'held' AND d.last_kind <> 'chain' AND (?4 OR d.last_kind <> '{OTHER_TARGET}') AND d.mark = ?3"
        );
        let given = [mark.to_string().into(), elsewhere.into()];
        self.change_each(&condition, &given, now, |delivery, writing| {
            move_to(delivery, State::Pending)?;
            // After a return that is known, whatever was done to the clock since.
            let back = row::load(&writing, delivery.mark)?.and_then(|row| row.return_known_at);
            (delivery.released_at, delivery.next_due) = (back.max(Some(now)), now);
            let detail = format!("it was held on route {} and is released: {reason}", delivery.route);
            writing.note_by(delivery, "released", &detail, actor)
        })
    }

    /// The same for what an operator released at `at` on another controller: it covers a return that was seen before. A return is released
    /// where its route leads, by the controller that sends it. Returns how many.
    ///
    /// # Errors
    /// As any write.
    pub(crate) fn released_elsewhere(&mut self, mark: MarkId, at: Timestamp, now: Timestamp) -> Done<usize> {
        let condition = format!(
            "d.state IN ('pending', 'held') AND d.last_kind IS NOT 'chain' AND d.released_at IS NULL AND NOT {IS_RETURN} AND d.mark = ?3"
        );
        self.change_each(&condition, &[mark.to_string().into()], now, |delivery, writing| {
            let row = row::load(&writing, delivery.mark)?;
            let back = row.filter(|row| row.returned_at.is_some_and(|back| back <= at));
            delivery.released_at = back.and_then(|row| row.return_known_at).max(Some(at));
            if delivery.state == State::Held {
                move_to(delivery, State::Pending)?;
                delivery.next_due = now;
            }
            Ok(())
        })
    }

    /// Releases deliveries on a route that were held as stale and are not, since their hosts failed at `since` or later:
    /// the clock was wrong. Returns how many.
    ///
    /// # Errors
    /// As any write.
    pub fn free_stale(&mut self, route: &str, since: Timestamp, now: Timestamp) -> Done<usize> {
        let condition =
            format!("{KEPT_BACK} AND d.last_kind = '{STALE}' AND d.route = ?3 AND d.failure_time >= ?4");
        let given = [route.to_owned().into(), since.0.into()];
        self.change_each(&condition, &given, now, |delivery, writing| {
            move_to(delivery, State::Pending)?;
            delivery.next_due = now;
            let detail = "it is not stale by the corrected clock";
            writing.note(delivery, "freed", detail)
        })
    }

    /// Makes the parked deliveries of a route due: the route did not refuse these marks alone. Returns how many.
    ///
    /// # Errors
    /// As any write.
    pub fn wake_parked(&mut self, route: &str, now: Timestamp) -> Done<usize> {
        let condition = "d.state = 'parked' AND d.route = ?3 AND d.next_due > ?4";
        self.change_each(condition, &[route.to_owned().into(), now.0.into()], now, |delivery, _| {
            delivery.next_due = now;
            Ok(())
        })
    }

    /// Cancels what is still open on routes that are not required, for settled marks whose host failed before `before`:
    /// it is no news any more. A delivery in flight is left alone, since its answer is awaited; so are the steps behind
    /// an acknowledgement, which may begin long after the failure. Returns how many.
    ///
    /// # Errors
    /// As any write.
    pub fn cancel_unrequired(&mut self, before: Timestamp, now: Timestamp) -> Done<usize> {
        let mut cancelled = 0;
        // First those that wait in a chain: otherwise they would be sent in place of the cancelled ones.
        for part in [WAITS_IN_CHAIN, WAITING] {
            let condition = format!(
                "{part} AND d.failure_time < ?3 AND d.required = 0 AND NOT {IS_STEP}
                 AND EXISTS (SELECT 1 FROM mark m WHERE m.id = d.mark AND m.settlement IS NOT NULL)"
            );
            cancelled += self.change_each(&condition, &[before.0.into()], now, |delivery, writing| {
                move_to(delivery, State::Cancelled)?;
                delivery.ended_at = Some(now);
                let route = &delivery.route;
                let detail = format!(
                    "route {route} is not required and has not accepted it in time: see [intake] horizon"
                );
                writing.note(delivery, "cancelled", &detail)
            })?;
        }
        Ok(cancelled)
    }

    /// How many open deliveries each route has, without those that wait in their chain; routes without any are left out.
    ///
    /// # Errors
    /// As any read.
    pub fn waiting(&self) -> Done<BTreeMap<String, usize>> {
        self.waiting_where("", &[])
    }

    /// For each route that `is_asked`: how many open marks wait for it, or have a return there, without those that wait
    /// in their chain. Of the other routes only an index is read.
    ///
    /// # Errors
    /// As any read.
    pub fn waiting_required(&self, is_asked: impl Fn(&str) -> bool) -> Done<BTreeMap<String, usize>> {
        let mut waiting = BTreeMap::new();
        for route in self.waiting()?.into_keys().filter(|route| is_asked(route)) {
            let only = format!(
                "AND d.route = ?1 AND ({IS_RETURN} OR d.required = 1
             AND EXISTS (SELECT 1 FROM mark m WHERE m.id = d.mark AND m.settlement IS NULL))"
            );
            waiting.extend(self.waiting_where(&only, &[&route])?);
        }
        Ok(waiting)
    }

    fn waiting_where(&self, only: &str, given: &[&str]) -> Done<BTreeMap<String, usize>> {
        let mut waiting = BTreeMap::new();
        let under_way = format!("{UNDER_WAY} AND NOT (d.state = 'held' AND d.last_kind IS 'chain')");
        for part in [WAITING, &under_way, "d.state = 'quarantined'"] {
            let sql =
                format!("SELECT d.route, count(*) FROM delivery d WHERE {part} {only} GROUP BY d.route");
            // A damaged name costs only its own row, which is reported where it is read as a whole.
            let read = |row: &Row<'_>| Ok(row.get(0).ok().zip(Some(count(row, 1)?)));
            for (route, count) in self.list(&sql, params_from_iter(given), read)?.into_iter().flatten() {
                *waiting.entry(route).or_default() += count;
            }
        }
        Ok(waiting)
    }

    /// The marks with a delivery on a route that is neither final nor in flight.
    ///
    /// # Errors
    /// As any read.
    pub fn marks_waiting_for(&self, route: &str) -> Done<Vec<MarkId>> {
        let rows = self.deliveries_that(&format!("d.route = ?1 AND {NOT_UNDER_WAY}"), [route])?;
        Ok(rows.sound.into_iter().map(|delivery| delivery.mark).collect())
    }

    /// How many deliveries of a route are in flight.
    ///
    /// # Errors
    /// As any read.
    pub fn under_way_on(&self, route: &str) -> Done<usize> {
        let sql = format!(
            "SELECT count(*) FROM delivery d WHERE {UNDER_WAY} AND d.state = 'in-flight' AND d.route = ?1"
        );
        self.sqlite(self.connection.query_row(&sql, [route], |row| count(row, 0)))
    }

    /// Whether there is any delivery of a route, also ended ones.
    ///
    /// # Errors
    /// As any read.
    pub fn has_deliveries_on(&self, route: &str) -> Done<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM delivery WHERE route = ?1)";
        self.sqlite(self.connection.query_row(sql, [route], |row| row.get(0)))
    }

    /// How many deliveries of a route are quarantined.
    ///
    /// # Errors
    /// As any read.
    pub(crate) fn quarantined_on(&self, route: &str) -> Done<usize> {
        let sql = "SELECT count(*) FROM delivery d WHERE d.state = 'quarantined' AND d.route = ?1";
        self.sqlite(self.connection.query_row(sql, [route], |row| count(row, 0)))
    }

    /// The marks with an attempt in flight; only an index is read.
    ///
    /// # Errors
    /// As any read.
    pub fn marks_in_flight(&self) -> Done<HashSet<MarkId>> {
        let sql = format!(
            "SELECT DISTINCT d.mark FROM delivery d INDEXED BY delivery_in_flight WHERE {UNDER_WAY} AND d.state = 'in-flight'"
        );
        Ok(self.list(&sql, [], mark_of)?.into_iter().flatten().collect())
    }

    /// The routes' last answers to open deliveries, and since when: a previous daemon left them. A held or rejected
    /// delivery says nothing of its route, and an accepted one nothing bad.
    ///
    /// # Errors
    /// As any read.
    pub fn tried(&self) -> Done<Vec<Tried>> {
        // SQLite takes the other columns from the row with the greatest value.
        let sql = format!(
            "SELECT d.route, max(d.last_at), d.last_kind, d.last_detail, sum(d.required) > 0,
               (SELECT min(e.last_at) FROM delivery e
                WHERE e.route = d.route AND e.last_at IS NOT NULL AND e.state NOT IN ({FINAL}) AND e.state <> 'held'
                  AND e.last_kind <> '{ACCEPTED}' AND NOT (e.state = 'parked' AND e.next_due > e.last_at))
             FROM delivery d WHERE d.last_at IS NOT NULL AND {OPEN} AND d.state <> 'held' AND d.last_kind <> '{ACCEPTED}'
               AND NOT ({REJECTED})
             GROUP BY d.route"
        );
        // A damaged text does not count, and must not prevent a start.
        let all = self.list(&sql, [], |row| Ok(decode_tried(row).ok()))?;
        Ok(all.into_iter().flatten().collect())
    }

    /// The deliveries of one mark.
    ///
    /// # Errors
    /// As any read.
    pub fn deliveries_of(&self, mark: MarkId) -> Done<Rows<Delivery>> {
        self.deliveries_where("d.mark = ?1", Some(mark))
    }

    /// Every delivery that is not final.
    ///
    /// # Errors
    /// As any read.
    pub fn open_deliveries(&self) -> Done<Rows<Delivery>> {
        self.deliveries_where(OPEN, None)
    }

    fn deliveries_where(&self, condition: &str, mark: Option<MarkId>) -> Done<Rows<Delivery>> {
        self.deliveries_that(condition, params_from_iter(mark.map(|mark| mark.to_string())))
    }

    /// The deliveries `d` that meet a condition in SQL.
    pub(crate) fn deliveries_that(&self, condition: &str, parameters: impl Params) -> Done<Rows<Delivery>> {
        let sql = format!("SELECT {COLUMNS} FROM delivery d WHERE {condition} ORDER BY d.mark, d.route");
        self.rows(&sql, parameters, |row| delivery_row::decode(row, 0))
    }

    /// Changes every delivery `d` that meets a condition in SQL, a page in each transaction: there may be very many. A
    /// damaged row is quarantined: otherwise it might never be due, and would block the later ones of its host. The
    /// condition's parameters begin with `?3`. Returns how many rows were sound.
    pub(crate) fn change_each(
        &mut self,
        condition: &str,
        parameters: &[Value],
        now: Timestamp,
        change: impl Fn(&mut Delivery, Writing<'_>) -> Wrote,
    ) -> Done<usize> {
        let sql = format!(
            "SELECT d.mark, d.route FROM delivery d
             WHERE {condition} AND (d.mark, d.route) > (CAST(?1 AS TEXT), CAST(?2 AS TEXT))
             ORDER BY d.mark, d.route LIMIT {PAGE}"
        );
        let (mut changed, mut last) = (0, (Vec::new(), Vec::new()));
        loop {
            let start = [last.0.into(), last.1.into()];
            let given = params_from_iter(start.into_iter().chain(parameters.iter().cloned()));
            let keys = self.list(&sql, given, |row| Ok((raw_text(row, 0)?, raw_text(row, 1)?)))?;
            // Without anything to change, it waits for no lock.
            let Some(end) = keys.last() else { return Ok(changed) };
            last = end.clone();
            let (sound, damaged) = self.write_at(now, |writing| writing.change_page(&keys, &change))?;
            changed += sound;
            self.met.extend(damaged);
        }
    }
}

fn count(row: &Row<'_>, at: usize) -> rusqlite::Result<usize> {
    Ok(usize::try_from(row.get::<_, i64>(at)?).unwrap_or(usize::MAX))
}

fn decode_tried(row: &Row<'_>) -> rusqlite::Result<Tried> {
    let last = Attempt { at: Timestamp(row.get(1)?), kind: row.get(2)?, detail: row.get(3)? };
    let (route, required) = (row.get(0)?, row.get(4)?);
    Ok(Tried { route, since: Timestamp(row.get(5)?), last, required })
}

/// A mark's id and a route's name as raw values: damage may have made them no text.
type Key = (Vec<u8>, Vec<u8>);

impl Writing<'_> {
    /// Returns how many rows were sound, and the damaged ones.
    fn change_page(
        self,
        keys: &[Key],
        change: impl Fn(&mut Delivery, Writing<'_>) -> Wrote,
    ) -> Wrote<(usize, Vec<Damage>)> {
        let (mut changed, mut damaged) = (0, Vec::new());
        for (mark, route) in keys {
            // Such a row belongs to no mark or route, and blocks none.
            let (Ok(mark), Ok(route)) = (str::from_utf8(mark), str::from_utf8(route)) else { continue };
            match self.load_or_quarantine((mark, route))? {
                Some(Ok(mut delivery)) => {
                    change(&mut delivery, self)?;
                    update(&self, &delivery)?;
                    changed += 1;
                }
                Some(Err(damage)) => damaged.push(damage),
                None => {}
            }
        }
        Ok((changed, damaged))
    }

    /// The delivery of a key. A damaged row blocks nothing from then on.
    pub(crate) fn load_or_quarantine(self, key: (&str, &str)) -> Wrote<Option<Checked<Delivery>>> {
        let found = delivery_row::find(&self, key)?;
        if let Some(Err(damage)) = &found {
            self.quarantine(key, damage)?;
        }
        Ok(found)
    }

    pub(crate) fn note(self, delivery: &Delivery, event: &str, detail: &str) -> Wrote {
        self.note_by(delivery, event, detail, ALERTER)
    }

    pub(crate) fn note_by(self, delivery: &Delivery, event: &str, detail: &str, actor: &str) -> Wrote {
        self.note_on((delivery.mark, &delivery.route), event, detail, actor)
    }

    /// The same where the row itself is damaged.
    pub(crate) fn note_on(
        self,
        (mark, route): (MarkId, &str),
        event: &str,
        detail: &str,
        actor: &str,
    ) -> Wrote {
        let node: Option<String> = self
            .prepare_cached("SELECT node FROM mark WHERE id = ?1")?
            .query_row([mark.to_string()], |row| row.get(0))
            .optional()?;
        let node = node.and_then(|name| HostName::parse(&name).ok());
        let (mark, node, route) = (Some(mark), node.as_ref(), Some(route));
        history::append(
            &self,
            &NewHistory { mark, node, route, ..NewHistory::new(self.now, event, detail, actor) },
        )
    }

    /// A mark that has deliveries keeps its chain, or stays without one, whatever is configured now.
    pub(crate) fn add(self, (mark, failure_time): (MarkId, Timestamp), new: &[NewDelivery]) -> Wrote {
        let takes_chain = new.iter().any(|new| new.link.is_some()) && !has_any(&self, mark)?;
        self.add_all((mark, failure_time), new, takes_chain.then(Behind::default))
    }

    /// The same for a mark whose present deliveries may notify no route any more: it gets a chain all the same. The new steps
    /// come after the present ones, and after an attempt in flight; if one of them is acknowledged, no other is sent.
    pub(crate) fn add_missing(self, (mark, failure_time): (MarkId, Timestamp), new: &[NewDelivery]) -> Wrote {
        let behind = Behind::steps_of(&self, mark)?;
        self.add_all((mark, failure_time), new, behind)
    }

    /// `behind` is `None` if no chain is to be made.
    fn add_all(
        self,
        (mark, failure_time): (MarkId, Timestamp),
        new: &[NewDelivery],
        behind: Option<Behind>,
    ) -> Wrote {
        let links = || new.iter().filter(|new| new.link.is_some());
        let is_chain_required = links().any(|new| new.required);
        let is_open = behind.is_some_and(|behind| behind.is_open);
        let first = links().filter_map(|new| new.link).map(|link| link.step).min().filter(|_| !is_open);
        for NewDelivery { route, body, required, link } in new {
            if link.is_some() && behind.is_none() {
                continue;
            }
            let waits = link.is_some_and(|link| Some(link.step) != first);
            let link = link.zip(behind).map(|(link, behind)| behind.link(link));
            let detail = || format!("route {route} is notified when its turn in the chain comes");
            let delivery = Delivery {
                mark,
                failure_time,
                route: route.clone(),
                required: if link.is_some() { is_chain_required } else { *required },
                chain: link.map(Step::new),
                state: if waits { State::Held } else { State::Pending },
                body: body.clone(),
                attempts: 0,
                ambiguous: 0,
                arrivals: Arrivals::default(),
                released_at: None,
                next_due: self.now,
                last: waits.then(|| Attempt { at: self.now, kind: CHAIN.to_owned(), detail: detail() }),
                reference: None,
                ended_at: None,
            };
            delivery_row::insert(&self, &delivery)?;
            self.wake_rejected((mark, route))?;
        }
        Ok(())
    }

    /// A later mark of a host goes behind the earlier ones: those that the route has rejected are due now, or the later one
    /// would wait as long as they do.
    fn wake_rejected(self, (later, route): (MarkId, &str)) -> Wrote {
        let sql = format!(
            "SELECT n.id FROM mark m CROSS JOIN mark n ON n.node = m.node AND n.id <> m.id
             CROSS JOIN delivery d ON d.mark = n.id AND d.route = ?2
             WHERE m.id = ?1 AND {REJECTED} AND d.next_due > ?3"
        );
        let mut query = self.prepare_cached(&sql)?;
        let rows =
            query.query_map(params![later.to_string(), route, self.now.0], |row| row.get::<_, String>(0))?;
        for earlier in rows.collect::<rusqlite::Result<Vec<_>>>()? {
            if let Some(Ok(mut delivery)) = self.load_or_quarantine((&earlier, route))? {
                delivery.next_due = self.now;
                update(&self, &delivery)?;
            }
        }
        Ok(())
    }

    /// Ends every open delivery of a mark for an operator.
    pub(crate) fn dismiss(self, mark: MarkId) -> Wrote {
        for delivery in load_open(&self, mark)? {
            self.finish(delivery, State::Dismissed)?;
        }
        Ok(dismiss_damaged(&self, mark)?)
    }

    /// Ends an open delivery on this controller.
    pub(crate) fn finish(self, mut delivery: Delivery, end: State) -> Wrote {
        move_to(&mut delivery, end)?;
        delivery.ended_at = Some(self.now);
        Ok(update(&self, &delivery)?)
    }
}

pub(crate) fn move_to(delivery: &mut Delivery, next: State) -> Done {
    if !delivery.state.may_become(next) {
        return Err(JournalError::Transition { from: delivery.state.as_str(), to: next.as_str() });
    }
    delivery.state = next;
    Ok(())
}

/// Ends an open delivery as an alerter on another controller did.
pub(crate) fn finish_elsewhere(
    transaction: &Transaction<'_>,
    delivery: &mut Delivery,
    end: State,
    at: Timestamp,
) -> Wrote {
    if !delivery.state.may_end_elsewhere(end) {
        let (from, to) = (delivery.state.as_str(), end.as_str());
        return Err(JournalError::Transition { from, to }.into());
    }
    delivery.state = end;
    delivery.ended_at = Some(at);
    Ok(update(transaction, delivery)?)
}

/// The chain that a mark has already.
#[derive(Clone, Copy, Debug, Default)]
struct Behind {
    /// The last step's number.
    last: u32,
    /// Whether a step of it is still open.
    is_open: bool,
}

impl Behind {
    /// `None` if the chain has ended.
    fn steps_of(transaction: &Transaction<'_>, mark: MarkId) -> rusqlite::Result<Option<Self>> {
        let all = delivery_row::load_all(transaction, mark)?;
        let steps = || all.iter().flatten().filter_map(|delivery| Some((delivery.chain?, delivery.state)));
        if steps().any(|(_, state)| state == State::Acknowledged) {
            return Ok(None);
        }
        let last = steps().map(|(step, _)| step.link.step).max().unwrap_or(0);
        Ok(Some(Self { last, is_open: steps().any(|(_, state)| !state.is_final()) }))
    }

    fn link(self, link: Link) -> Link {
        Link { step: link.step.saturating_add(self.last), ..link }
    }
}

/// Whether a mark has any delivery, except those behind an acknowledgement.
fn has_any(transaction: &Transaction<'_>, mark: MarkId) -> rusqlite::Result<bool> {
    let sql = format!("SELECT EXISTS (SELECT 1 FROM delivery d WHERE d.mark = ?1 AND NOT {IS_STEP})");
    transaction.prepare_cached(&sql)?.query_row([mark.to_string()], |row| row.get(0))
}

/// The open deliveries of a mark, without damaged ones and without returns, which no end of the mark ends.
pub(crate) fn load_open(transaction: &Transaction<'_>, mark: MarkId) -> rusqlite::Result<Vec<Delivery>> {
    let sound = delivery_row::load_all(transaction, mark)?.into_iter().flatten();
    Ok(sound.filter(|delivery| !delivery.state.is_final() && !delivery.is_return()).collect())
}

/// Whether a mark has an open delivery that is no return, also damaged ones.
pub(crate) fn any_open(transaction: &Transaction<'_>, mark: MarkId) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM delivery WHERE mark = ?1 AND state NOT IN ('acknowledged', 'dismissed', 'cancelled') AND route NOT LIKE '%.return')";
    transaction.query_row(sql, [mark.to_string()], |row| row.get(0))
}

/// A damaged row's digest cannot be renewed; an operator can end it all the same.
pub(crate) fn dismiss_damaged(transaction: &Transaction<'_>, mark: MarkId) -> rusqlite::Result<()> {
    let sql = "UPDATE delivery SET state = 'dismissed' WHERE mark = ?1 AND state NOT IN ('acknowledged', 'dismissed', 'cancelled') AND route NOT LIKE '%.return'";
    transaction.execute(sql, [mark.to_string()]).map(drop)
}
