//! Hosts by routes: who was notified, who was not, and what holds a mark.

use std::collections::BTreeSet;

use marks::delivery::{Delivery, State};
use marks::time::Timestamp;
use maud::{Markup, html};

use super::picture::{Picture, Row};
use crate::policy::Hold;
use crate::words::{near, utc, without_uid};

/// More open marks than this are counted.
const OPEN: usize = 300;
/// More settled marks than this are counted.
const ENDED: usize = 100;
/// Routes with a column of their own; the others share one.
const COLUMNS: usize = 6;

/// The table; `all` open marks are counted.
pub(super) fn draw(picture: &Picture, all: usize) -> Markup {
    let rows = || picture.open.iter().take(OPEN).chain(picture.ended.iter().take(ENDED));
    if rows().next().is_none() {
        return html! { section id="hosts" { h2 { "Hosts" } p { "No host is marked, and none was within a day." } } };
    }
    let columns = Columns::of(picture, rows());
    html! {
        section id="hosts" {
            h2 id="hosts-title" { "Hosts" }
            p.faint { (counts(picture)) " Times are UTC." }
            div.wide tabindex="0" role="region" aria-labelledby="hosts-title" data-key="table" {
                table id="marks" {
                    thead { tr {
                        @let names = ["Host"].into_iter().chain(columns.names()).chain(["State", "Fenced"]);
                        @for name in names { th scope="col" { (name) } }
                    } }
                    tbody { @for row in rows() { (draw_row(row, &columns, picture.now)) } }
                }
            }
            (left_out("open", all.saturating_sub(picture.damaged.len()), OPEN))
            (left_out("settled within a day", picture.ended.len(), ENDED))
        }
    }
}

/// How many there are of each state, as far as there are any.
fn counts(picture: &Picture) -> String {
    let marks = &picture.figures.journal.marks;
    let open = State::ALL.into_iter().filter(|state| !state.is_final() && marks.of(*state) > 0);
    let open: Vec<String> = open.map(|state| format!("{} {}", marks.of(state), state.as_str())).collect();
    let open =
        if open.is_empty() { "No mark is open".to_owned() } else { format!("Open: {}", open.join(", ")) };
    format!("{open}. Settled within a day: {}.", picture.ended.len())
}

fn left_out(what: &str, all: usize, shown: usize) -> Markup {
    html! {
        @if let Some(more @ 1..) = all.checked_sub(shown) {
            p { (more) " more " (what) ": " code { "nova-host-alerter list --all" } }
        }
    }
}

/// The routes that the rows are about, in the order of the configuration.
struct Columns {
    own: Vec<String>,
    /// Whether there are more.
    others: bool,
}

impl Columns {
    fn of<'r>(picture: &Picture, rows: impl Iterator<Item = &'r Row>) -> Self {
        let routes = rows.flat_map(|row| &row.recent.deliveries).map(|delivery| base(&delivery.route));
        let mut used: BTreeSet<&str> = routes.collect();
        let configured = picture.daemon.iter().flat_map(|daemon| &daemon.routes);
        let mut own: Vec<String> =
            configured.map(|route| route.name.clone()).filter(|name| used.remove(name.as_str())).collect();
        own.extend(used.into_iter().map(str::to_owned));
        let others = own.len() > COLUMNS;
        own.truncate(COLUMNS);
        Self { own, others }
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.own.iter().map(String::as_str).chain(self.others.then_some("Other routes"))
    }
}

/// A step's route is that of the delivery that it follows.
fn base(route: &str) -> &str {
    route.split('.').next().unwrap_or(route)
}

fn draw_row(row: &Row, columns: &Columns, now: Timestamp) -> Markup {
    let (mark, state) = (&row.recent.mark, row.state.as_str());
    let at = mark.failure_time;
    html! {
        tr class=(state) data-mark=(mark.id) data-state=(state) data-hold=[word_of_hold(row)] {
            th scope="row" title=(mark.id) { (mark.node) }
            @for name in &columns.own { td { (cells(row, |one| base(&one.route) == name, base, now)) } }
            @if columns.others {
                @let is_other = |one: &Delivery| !columns.own.iter().any(|name| base(&one.route) == name);
                td { (cells(row, is_other, |_| "", now)) }
            }
            td.state { b aria-hidden="true" { (sign(row.state)) } " " (state) }
            td.fenced title=(utc(at)) { (clock(at, now)) }
        }
    }
}

/// The deliveries of one column; `column` is what it says of a route already.
fn cells(row: &Row, is_in: impl Fn(&Delivery) -> bool, column: fn(&str) -> &str, now: Timestamp) -> Markup {
    html! {
        @for one in row.recent.deliveries.iter().filter(|one| is_in(one)) {
            @let name = one.route[column(&one.route).len()..].trim_start_matches('.');
            (cell(one, row, name, now))
        }
    }
}

/// What holds a mark: the policy, or a route's terms.
fn word_of_hold(row: &Row) -> Option<&str> {
    let is_held = |one: &&Delivery| one.state == State::Held && !one.waits_in_chain();
    let by_terms = || row.recent.deliveries.iter().find(is_held).and_then(|one| one.last.as_ref());
    let is_open = row.recent.mark.settled.is_none();
    row.hold.map(Hold::as_str).or_else(|| by_terms().filter(|_| is_open).map(|last| last.kind.as_str()))
}

/// A state without its colour.
fn sign(state: State) -> &'static str {
    match state {
        State::Acknowledged => "✓",
        State::Pending => "…",
        State::InFlight => "→",
        State::Held => "‖",
        State::Parked => "✗",
        State::Quarantined => "⚠",
        State::Dismissed | State::Cancelled => "–",
    }
}

/// One delivery: its sign, its state for a screen reader, and what is worth knowing. `name`: where the column does not say it.
fn cell(one: &Delivery, row: &Row, name: &str, now: Timestamp) -> Markup {
    let held = row.hold.filter(|_| one.state == State::Pending);
    let failed = one.last.as_ref().filter(|_| one.state == State::Pending && held.is_none());
    let sign = match (held, failed) {
        (Some(_), _) => sign(State::Held),
        (None, Some(_)) => sign(State::Parked),
        (None, None) => sign(one.state),
    };
    html! {
        span.way.(one.state.as_str()) data-delivery=(one.route) data-state=(one.state.as_str()) {
            @if !name.is_empty() { (name) " " }
            b aria-hidden="true" { (sign) } i { (one.state.as_str()) } " " (standing(one, row, now))
            @if one.attempts > 1 && !one.state.is_final() { " ×" span data-figure="attempts" { (one.attempts) } }
        }
    }
}

fn standing(one: &Delivery, row: &Row, now: Timestamp) -> String {
    let answer = one.last.as_ref().map(|last| status(&last.detail).unwrap_or(&last.kind));
    let answer = answer.unwrap_or("waits").to_owned();
    match (one.state, row.hold) {
        (State::Acknowledged, _) => one.ended_at.map_or(String::new(), |at| clock(at, now)),
        (State::Pending, Some(hold)) => held(hold, row, now),
        (State::Held, _) if one.waits_in_chain() => "another step's turn".to_owned(),
        (State::Parked, _) if one.is_rejected() => format!("{answer}, again {}", clock(one.next_due, now)),
        (State::InFlight, _) => "sending".to_owned(),
        (State::Dismissed | State::Cancelled | State::Quarantined, _) => one.state.as_str().to_owned(),
        _ => answer,
    }
}

/// Who holds it, and until when.
fn held(hold: Hold, row: &Row, now: Timestamp) -> String {
    let who = row.holder.as_deref().map_or(hold.as_str(), without_uid);
    let until = row.recent.held.as_ref().filter(|_| !hold.is_doubt()).and_then(|held| held.until);
    match (until, hold) {
        (Some(at), _) => format!("{who} until {}", clock(at, now)),
        (None, Hold::Pause) => format!("{who} until resume"),
        (None, _) => who.to_owned(),
    }
}

/// The HTTP status in a sentence such as "the endpoint answered 422 Unprocessable Entity".
fn status(detail: &str) -> Option<&str> {
    let (_, behind) = detail.split_once("answered ")?;
    let status = behind.split(|c: char| !c.is_ascii_digit()).next()?;
    (status.len() == 3).then_some(status)
}

/// The time of a day; of another day than today with its date.
fn clock(at: Timestamp, now: Timestamp) -> String {
    near(at, now, "%H:%M", "%m-%d %H:%M")
}

#[cfg(test)]
mod tests {
    use journal::Recent;
    use marks::delivery::Attempt;

    use super::super::view::tests::{NOW, picture};
    use super::*;
    use crate::surface::markup::sent;

    fn delivery(mark: &Row, route: &str, state: State, last: Option<&str>) -> Delivery {
        let last = last.map(|detail| Attempt { at: NOW, kind: "rejected".into(), detail: detail.into() });
        let (next_due, ended_at) =
            (NOW + std::time::Duration::from_secs(60), state.is_final().then_some(NOW));
        let new = samples::delivery(&mark.recent.mark, route);
        Delivery { state, attempts: 3, next_due, last, ended_at, ..new }
    }

    fn row(host: &str, deliveries: &[(&str, State, Option<&str>)]) -> Row {
        let mark = samples::mark_of(host, NOW);
        let recent = Recent { mark, deliveries: Vec::new(), damaged: Vec::new(), held: None };
        let mut row = Row { recent, state: State::Pending, hold: None, holder: None };
        row.recent.deliveries =
            deliveries.iter().map(|(route, state, last)| delivery(&row, route, *state, *last)).collect();
        row
    }

    /// The broken variants list every mark, or say nothing of what they leave out.
    #[test]
    fn the_table_is_bounded_and_says_what_is_left_out() {
        let routes: Vec<String> = (0..COLUMNS + 3).map(|number| format!("route{number}")).collect();
        let deliveries: Vec<_> = routes.iter().map(|route| (route.as_str(), State::Pending, None)).collect();
        let rows = |count| (0..count).map(|number| row(&format!("compute{number}"), &deliveries)).collect();
        let picture = Picture { open: rows(2000), ended: rows(150), ..picture() };
        let text = sent(draw(&picture, 10_000));
        assert_eq!(text.matches("data-mark=").count(), OPEN + ENDED);
        assert_eq!(text.matches("scope=\"col\"").count(), 1 + COLUMNS + 1 + 2);
        assert!(text.contains("9700 more open") && text.contains("50 more settled within a day"), "{text}");
        assert!(text.contains("<th scope=\"col\">Other routes") && text.contains(">route8 <b"), "{text}");
    }
}
