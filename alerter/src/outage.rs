//! One outage in the order of time: who fenced the host, what held its mark, each attempt, who decided what,
//! its return. `show` has these rows. Attempts that follow each other are one row for
//! each route, however many there were. Pure.

use std::time::Duration;

use journal::HistoryRow;
use marks::delivery::{Delivery, State};
use marks::fencing::Fencing;
use marks::mark::MarkRow;
use marks::sighting::{Sighting, Witness};
use marks::time::Timestamp;
use serde::Serialize;

use crate::words::{short as span, utc as time};

/// The words of the history for an attempt that brought no acknowledgement.
const ATTEMPTS: [&str; 4] = ["not-accepted", "refused", "asked", "late-answer"];
/// What an attempt was answered, where that changed: more of it does not make it clearer.
const ANSWERS: usize = 3;

/// One row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Moment {
    /// When.
    pub at: Timestamp,
    /// Seconds since the host failed; below zero before that.
    pub after: i64,
    /// The word of the history, or `fenced`, `seen` or `tried`.
    pub event: String,
    /// The route, where there is one.
    pub route: Option<String>,
    /// One sentence for people.
    pub what: String,
    /// Who; empty where that says nothing.
    pub by: String,
}

/// Everything that speaks of an outage.
#[derive(Clone, Copy, Debug)]
pub struct Outage<'a> {
    /// Its mark.
    pub mark: &'a MarkRow,
    /// Its fencings.
    pub fencings: &'a [Fencing],
    /// Its sightings.
    pub sightings: &'a [Sighting],
    /// Its history, in the order of writing.
    pub history: &'a [HistoryRow],
    /// Its deliveries.
    pub deliveries: &'a [Delivery],
}

impl Outage<'_> {
    /// All of it, in the order of time.
    pub fn timeline(&self) -> Vec<Moment> {
        let mut all: Vec<Moment> = Vec::new();
        all.extend(self.fencings.iter().map(|fencing| {
            let what = format!("noted on {}", fencing.seen_by);
            let by = fencing.origin.as_str().to_owned();
            Moment { by, ..moment(fencing.asked_at, "fenced", None, what) }
        }));
        let seen = |sighting: &Sighting| moment(sighting.at, "seen", None, of_sighting(sighting));
        all.extend(self.sightings.iter().map(seen));
        all.extend(grouped(self.history, self.deliveries));
        // What was written in one go stays in the order of writing.
        all.sort_by_key(|one| one.at);
        let failed = self.mark.failure_time;
        for one in &mut all {
            one.after = (one.at.0 - failed.0).div_euclid(1000);
        }
        all
    }
}

impl Moment {
    /// The time since the failure, for people: `+3m`, `-12s`.
    pub fn since_failure(&self) -> String {
        let sign = if self.after < 0 { '-' } else { '+' };
        format!("{sign}{}", span(Duration::from_secs(self.after.unsigned_abs())))
    }

    /// The route and what happened, for people.
    pub fn sentence(&self) -> String {
        let route = self.route.as_ref().map(|route| format!("{route}: ")).unwrap_or_default();
        route + &self.what
    }
}

/// What a witness saw.
pub fn of_sighting(sighting: &Sighting) -> String {
    let witness = match sighting.witness {
        Witness::Alert(operation) => format!("Pacemaker's alert (operation {operation})"),
        Witness::History => "Pacemaker's fencing history".to_owned(),
        Witness::NodeFenced => "node_fenced in the CIB".to_owned(),
    };
    if sighting.by_human { witness + ", confirmed by hand" } else { witness }
}

fn moment(at: Timestamp, event: &str, route: Option<&str>, what: String) -> Moment {
    let (event, route) = (event.to_owned(), route.map(str::to_owned));
    Moment { at, after: 0, event, route, what, by: String::new() }
}

/// The history, with every uninterrupted series of attempts as one line for each route.
fn grouped(history: &[HistoryRow], deliveries: &[Delivery]) -> Vec<Moment> {
    let is_attempt = |row: &HistoryRow| row.route.is_some() && ATTEMPTS.contains(&row.event.as_str());
    let blocks = history.chunk_by(|one, other| is_attempt(one) && is_attempt(other));
    let mut lines = Vec::new();
    let mut done = 0;
    for block in blocks {
        let (before, after) = (&history[..done], &history[done + block.len()..]);
        done += block.len();
        match block.first().is_some_and(is_attempt) {
            true => lines.extend(series(block, before, after, deliveries)),
            false => lines.extend(block.iter().map(line)),
        }
    }
    lines
}

fn line(row: &HistoryRow) -> Moment {
    let one = moment(row.at, &row.event, row.route.as_deref(), row.detail.clone());
    Moment { by: row.actor.clone(), ..one }
}

/// A line for each route of the block, in the order of their first attempts.
fn series(
    block: &[HistoryRow],
    before: &[HistoryRow],
    after: &[HistoryRow],
    deliveries: &[Delivery],
) -> Vec<Moment> {
    let mut routes: Vec<&str> = Vec::new();
    for route in block.iter().filter_map(|row| row.route.as_deref()) {
        if !routes.contains(&route) {
            routes.push(route);
        }
    }
    let of = |route: &str| {
        let is_its = |row: &&HistoryRow| row.route.as_deref() == Some(route);
        let rows: Vec<&HistoryRow> = block.iter().filter(is_its).collect();
        let has = |rows: &[HistoryRow]| {
            rows.iter().any(|row| is_its(&row) && ATTEMPTS.contains(&row.event.as_str()))
        };
        let delivery = deliveries.iter().find(|delivery| delivery.route == route);
        one(route, &rows, delivery.filter(|_| !has(after)), !has(before))
    };
    routes.into_iter().filter_map(of).collect()
}

/// One route's attempts in a row. `delivery` says how far they went, where they are its last ones; whether they are also its
/// first ones, it says how many there were. The history has only those that were answered in another way than the one before.
fn one(route: &str, rows: &[&HistoryRow], delivery: Option<&Delivery>, is_all: bool) -> Option<Moment> {
    let (first, last) = (rows.first()?, rows.last()?);
    let is_over =
        delivery.is_some_and(|delivery| matches!(delivery.state, State::Acknowledged | State::InFlight));
    let count =
        delivery.filter(|_| is_all).map(|delivery| delivery.attempts.saturating_sub(u32::from(is_over)));
    let until = delivery.and_then(|delivery| match delivery.state {
        State::Acknowledged => delivery.ended_at,
        _ => delivery.last.as_ref().map(|last| last.at),
    });
    let until = until.unwrap_or(last.at).max(last.at);
    let answers = answers(rows);
    let text = match count {
        Some(0 | 1) | None if until == first.at => answers,
        Some(count @ 2..) => {
            format!("tried {count} times from {} to {}: {answers}", time(first.at), time(until))
        }
        _ => format!("tried from {} to {}: {answers}", time(first.at), time(until)),
    };
    let one = moment(first.at, &first.event, Some(route), text);
    let event = if rows.len() == 1 { one.event.clone() } else { "tried".to_owned() };
    Some(Moment { event, ..one })
}

/// What was answered, each once, the newest ones.
fn answers(rows: &[&HistoryRow]) -> String {
    let mut newest: Vec<&str> = Vec::new();
    for row in rows.iter().rev() {
        if !newest.contains(&row.detail.as_str()) {
            newest.push(&row.detail);
        }
    }
    let others = newest.len().saturating_sub(ANSWERS);
    newest.truncate(ANSWERS);
    newest.reverse();
    let more = if others > 0 { format!("; and {others} other answer(s) before") } else { String::new() };
    newest.join("; then ") + &more
}

#[cfg(test)]
mod tests {
    use marks::delivery::Attempt;

    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    fn at(second: u64) -> Timestamp {
        NOW + Duration::from_secs(second)
    }

    fn row(second: u64, event: &str, route: Option<&str>, detail: &str) -> HistoryRow {
        HistoryRow {
            seq: 0,
            at: at(second),
            event: event.into(),
            mark: None,
            node: None,
            route: route.map(str::to_owned),
            outcome: None,
            detail: detail.into(),
            actor: "alice".into(),
        }
    }

    fn delivery(route: &str, state: State, attempts: u32, last: u64) -> Delivery {
        let ended_at = (state == State::Acknowledged).then(|| at(last));
        let last = Some(Attempt { at: at(last), kind: "refused".into(), detail: "refused".into() });
        let new = samples::delivery(&samples::mark_of("compute1", NOW), route);
        Delivery { state, attempts, last, ended_at, ..new }
    }

    fn texts(history: &[HistoryRow], deliveries: &[Delivery]) -> Vec<String> {
        grouped(history, deliveries)
            .into_iter()
            .map(|line| format!("{} {}", line.event, line.sentence()))
            .collect()
    }

    /// The history has one row for 212 attempts that were all answered alike.
    #[test]
    fn like_attempts_are_one_line_with_their_number_and_their_time() {
        let history = [row(0, "marked", None, "marked"), row(1, "not-accepted", Some("a"), "refused")];
        let open = [delivery("a", State::Pending, 212, 3600)];
        let wanted =
            "not-accepted a: tried 212 times from 2027-01-15 08:00:01Z to 2027-01-15 09:00:00Z: refused";
        assert_eq!(texts(&history, &open), ["marked marked", wanted]);
        let once = [delivery("a", State::Pending, 1, 1)];
        assert_eq!(texts(&history, &once)[1], "not-accepted a: refused");
    }
}
