//! A mark's story line by line, in the order of time: who fenced it, what held it, each attempt, who decided what. Attempts
//! that follow each other are one line for each route, however many there were. Pure.

use journal::HistoryRow;
use marks::delivery::State;
use marks::time::Timestamp;

use super::delivery::DeliveryReport;
use super::report::Story;
use super::terminal::clean;
use crate::words::{short as span, utc as time};

/// The words of the history for an attempt that brought no acknowledgement.
const ATTEMPTS: [&str; 4] = ["not-accepted", "refused", "asked", "late-answer"];
/// What an attempt was answered, where that changed: more of it does not make it clearer.
const ANSWERS: usize = 3;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    at: Timestamp,
    event: String,
    text: String,
    by: String,
}

/// All lines, with the time since the host failed.
pub(super) fn lines(story: &Story) -> String {
    let failed = story.report.mark.failure_time;
    let all = summary(story);
    let width = all.iter().map(|line| line.event.chars().count()).max().unwrap_or(0);
    let after = |at: Timestamp| match at < failed {
        true => format!("-{}", span(failed.since(at))),
        false => format!("+{}", span(at.since(failed))),
    };
    let shown = |line: &Line| {
        let Line { at, event, text, by } = line;
        let by = if by.is_empty() { String::new() } else { format!(" ({by})") };
        format!("  {}  {:>5}  {event:width$}  {}{by}\n", time(*at), after(*at), clean(text))
    };
    all.iter().map(shown).collect()
}

fn summary(story: &Story) -> Vec<Line> {
    let mut all: Vec<Line> = Vec::new();
    all.extend(story.fencings.iter().map(|fencing| Line {
        at: fencing.asked_at,
        event: "fenced".to_owned(),
        text: format!("noted on {}", fencing.seen_by),
        by: fencing.origin.as_str().to_owned(),
    }));
    all.extend(story.seen.iter().map(|(at, who)| Line {
        at: *at,
        event: "seen".to_owned(),
        text: who.clone(),
        by: String::new(),
    }));
    all.extend(grouped(&story.history, &story.report.deliveries));
    // What was written in one go stays in the order of writing.
    all.sort_by_key(|line| line.at);
    all
}

/// The history, with every uninterrupted series of attempts as one line for each route.
fn grouped(history: &[HistoryRow], deliveries: &[DeliveryReport]) -> Vec<Line> {
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

fn line(row: &HistoryRow) -> Line {
    let route = row.route.as_ref().map(|route| format!("{route}: ")).unwrap_or_default();
    Line { at: row.at, event: row.event.clone(), text: route + &row.detail, by: row.actor.clone() }
}

/// A line for each route of the block, in the order of their first attempts.
fn series(
    block: &[HistoryRow],
    before: &[HistoryRow],
    after: &[HistoryRow],
    deliveries: &[DeliveryReport],
) -> Vec<Line> {
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
fn one(route: &str, rows: &[&HistoryRow], delivery: Option<&DeliveryReport>, is_all: bool) -> Option<Line> {
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
        Some(0 | 1) | None if until == first.at => format!("{route}: {answers}"),
        Some(count @ 2..) => {
            format!("{route}: tried {count} times from {} to {}: {answers}", time(first.at), time(until))
        }
        _ => format!("{route}: tried from {} to {}: {answers}", time(first.at), time(until)),
    };
    let event = if rows.len() == 1 { first.event.clone() } else { "tried".to_owned() };
    Some(Line { at: first.at, event, text, by: String::new() })
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
    use std::time::Duration;

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

    fn delivery(route: &str, state: State, attempts: u32, last: u64) -> DeliveryReport {
        DeliveryReport {
            route: route.into(),
            required: true,
            state,
            attempts,
            ambiguous: 0,
            next_due: None,
            last: Some(Attempt { at: at(last), kind: "connect".into(), detail: "refused".into() }),
            reference: None,
            ended_at: (state == State::Acknowledged).then(|| at(last)),
            chain: None,
            body: String::new(),
        }
    }

    fn texts(history: &[HistoryRow], deliveries: &[DeliveryReport]) -> Vec<String> {
        grouped(history, deliveries).into_iter().map(|line| format!("{} {}", line.event, line.text)).collect()
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

    /// Five hundred that were answered in turns this way and that way. The broken variant shows a line for each.
    #[test]
    fn changing_answers_of_two_routes_are_a_line_for_each_route() {
        let of = |number: u64| {
            let route = if number.is_multiple_of(2) { "a" } else { "b" };
            row(number, "not-accepted", Some(route), if number % 4 < 2 { "refused" } else { "busy" })
        };
        let mut history: Vec<HistoryRow> = (0..500).map(of).collect();
        history.push(row(600, "acknowledged", Some("a"), "taken"));
        let both = [delivery("a", State::Acknowledged, 251, 600), delivery("b", State::Pending, 250, 700)];
        let wanted = [
            "tried a: tried 250 times from 2027-01-15 08:00:00Z to 2027-01-15 08:10:00Z: refused; then busy",
            "tried b: tried 250 times from 2027-01-15 08:00:01Z to 2027-01-15 08:11:40Z: refused; then busy",
            "acknowledged a: taken",
        ];
        assert_eq!(texts(&history, &both), wanted);
    }

    /// What an operator did between them is seen at its place, and nobody knows how many came before it.
    #[test]
    fn an_operators_word_parts_the_attempts() {
        let history = [
            row(0, "not-accepted", Some("a"), "refused"),
            row(10, "retry", Some("a"), "an operator asked"),
            row(11, "not-accepted", Some("a"), "busy"),
        ];
        let open = [delivery("a", State::Pending, 30, 60)];
        let wanted = [
            "not-accepted a: refused",
            "retry a: an operator asked",
            "not-accepted a: tried from 2027-01-15 08:00:11Z to 2027-01-15 08:01:00Z: busy",
        ];
        assert_eq!(texts(&history, &open), wanted);
    }

    #[test]
    fn of_many_answers_the_newest_are_said() {
        let rows: Vec<HistoryRow> =
            (0..5).map(|n| row(n, "asked", Some("a"), &format!("answer {n}"))).collect();
        let rows: Vec<&HistoryRow> = rows.iter().collect();
        assert_eq!(answers(&rows), "answer 2; then answer 3; then answer 4; and 2 other answer(s) before");
    }
}
