//! A host's row: a bar for each outage, hatched where it was held, with a sign for each route that took it.

use marks::delivery::State;
use marks::time::Timestamp;

use super::axis::Axis;
use super::episode::Episode;
use super::legend::Shapes;
use crate::surface::markup::Markup;
use crate::words;

/// From the top of a row to its bars.
const BAR: usize = 18;
/// How high a bar is.
const HEIGHT: usize = 10;
/// Longer names are cut, and stand whole in the title.
const NAME: usize = 28;
/// More signs on a bar cover each other.
const SIGNS: usize = 8;

pub(super) fn row(
    svg: &mut Markup,
    host: &[&Episode],
    top: usize,
    most: usize,
    axis: &Axis,
    shapes: &Shapes,
) {
    let Some(newest) = host.last() else { return };
    let drawn = host.len().min(most);
    let left_out = host.len() - drawn;
    svg.tag("g", &[("class", &"row")], |row| {
        name(row, &newest.host, left_out, top + 12);
        let standing = standing(newest, axis.to);
        let class = format!("standing {}", newest.state.as_str());
        row.leaf(
            "text",
            &[("class", &class), ("x", &"99%"), ("y", &(top + 12)), ("text-anchor", &"end")],
            standing,
        );
        let track = [top + BAR + HEIGHT; 2];
        row.void(
            "line",
            &[("class", &"track"), ("x1", &"1%"), ("x2", &"99%"), ("y1", &track[0]), ("y2", &track[1])],
        );
        for episode in &host[left_out..] {
            bar(row, episode, top + BAR, axis, shapes);
        }
    });
}

fn name(row: &mut Markup, host: &str, left_out: usize, y: usize) {
    row.tag("text", &[("class", &"host"), ("x", &"1%"), ("y", &y)], |text| {
        text.leaf("title", &[], host);
        text.text(short(host));
        if left_out > 0 {
            text.leaf("tspan", &[("class", &"more")], format_args!(" and {left_out} older"));
        }
    });
}

fn short(host: &str) -> String {
    let cut: String = host.chars().take(NAME).collect();
    if cut.len() == host.len() { cut } else { format!("{cut}…") }
}

/// How the newest one stands, and for how long, or how long it took.
fn standing(episode: &Episode, now: Timestamp) -> String {
    let (state, time) = (episode.state.as_str(), words::length(episode.until(now).since(episode.failed)));
    if episode.settled.is_some() { format!("{state} in {time}") } else { format!("{state} for {time}") }
}

fn bar(row: &mut Markup, episode: &Episode, y: usize, axis: &Axis, shapes: &Shapes) {
    let end = episode.until(axis.to);
    row.tag("g", &[("class", &"outage")], |outage| {
        outage.leaf("title", &[], title(episode, axis.to));
        let class = format!("bar {}", episode.state.as_str());
        stretch(outage, &class, (episode.failed, end), y, axis);
        for (since, until) in &episode.held {
            let until = until.unwrap_or(end).min(end);
            stretch(outage, "hatched", ((*since).max(episode.failed), until), y, axis);
        }
        for (route, at) in episode.told.iter().take(SIGNS) {
            shapes.sign(outage, route, &axis.place(*at), y + HEIGHT + 6);
        }
    });
}

/// The shortest is still seen: its outline is two pixels wide.
fn stretch(outage: &mut Markup, class: &str, (from, to): (Timestamp, Timestamp), y: usize, axis: &Axis) {
    if to < axis.from || from > axis.to || to < from {
        return;
    }
    let (x, width) = (axis.place(from), axis.width(from, to));
    outage.void("rect", &[("class", &class), ("x", &x), ("y", &y), ("width", &width), ("height", &HEIGHT)]);
}

/// The whole story of an outage in a sentence.
fn title(episode: &Episode, now: Timestamp) -> String {
    let after = |at: Timestamp| words::length(at.since(episode.failed));
    let mut out = format!(
        "{}: fenced {}, marked after {}",
        episode.host,
        words::utc(episode.failed),
        after(episode.marked)
    );
    for (since, until) in &episode.held {
        let still = if until.is_some() || episode.settled.is_some() { "" } else { ", still" };
        let end = until.unwrap_or_else(|| episode.until(now));
        out += &format!("; held for {}{still}", words::length(end.since(*since)));
    }
    for (route, at) in episode.told.iter().take(SIGNS) {
        out += &format!("; route {route} acknowledged after {}", after(*at));
    }
    if episode.told.len() > SIGNS {
        out += &format!("; {} more route(s) acknowledged", episode.told.len() - SIGNS);
    }
    match (episode.settled, episode.state) {
        (Some(at), state) => out + &format!("; settled ({}) after {}", state.as_str(), after(at)),
        (None, State::Pending) => out + "; still open",
        (None, state) => out + &format!("; still open ({})", state.as_str()),
    }
}
