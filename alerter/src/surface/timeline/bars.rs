//! A host's row: a bar for each outage, hatched where it was held, with a sign for each route that acknowledged it.

use marks::delivery::State;
use marks::time::Timestamp;
use maud::{Markup, html};

use super::axis::Axis;
use super::episode::Episode;
use super::legend::Shapes;
use crate::words;

/// From the top of a row to its bars.
const BAR: usize = 18;
/// How high a bar is.
const HEIGHT: usize = 10;
/// Longer names are cut, and stand whole in the title.
const NAME: usize = 28;
/// More signs on a bar cover each other.
const SIGNS: usize = 8;

pub(super) fn row(host: &[&Episode], top: usize, most: usize, axis: &Axis, shapes: &Shapes) -> Markup {
    let left_out = host.len().saturating_sub(most);
    let foot = top + BAR + HEIGHT;
    html! {
        @if let Some(newest) = host.last() {
            g.row {
                (name(&newest.host, left_out, top + 12))
                text class={ "standing " (newest.state.as_str()) } x="99%" y=(top + 12) text-anchor="end" {
                    (standing(newest, axis.to))
                }
                line.track x1="1%" x2="99%" y1=(foot) y2=(foot) {}
                @for episode in &host[left_out..] { (bar(episode, top + BAR, axis, shapes)) }
            }
        }
    }
}

fn name(host: &str, left_out: usize, y: usize) -> Markup {
    html! {
        text.host x="1%" y=(y) {
            title { (host) }
            (short(host))
            @if left_out > 0 { tspan.more { " and " (left_out) " older" } }
        }
    }
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

fn bar(episode: &Episode, y: usize, axis: &Axis, shapes: &Shapes) -> Markup {
    let end = episode.until(axis.to);
    html! {
        g.outage {
            title { (title(episode, axis.to)) }
            (stretch(&format!("bar {}", episode.state.as_str()), (episode.failed, end), y, axis))
            @for (since, until) in &episode.held {
                (stretch("hatched", ((*since).max(episode.failed), until.unwrap_or(end).min(end)), y, axis))
            }
            @for (route, at) in episode.acknowledged.iter().take(SIGNS) {
                (shapes.sign(route, &axis.place(*at), y + HEIGHT + 6))
            }
        }
    }
}

/// The shortest is still seen: its outline is two pixels wide.
fn stretch(class: &str, (from, to): (Timestamp, Timestamp), y: usize, axis: &Axis) -> Markup {
    let is_seen = to >= axis.from && from <= axis.to && to >= from;
    html! {
        @if is_seen {
            rect class=(class) x=(axis.place(from)) y=(y) width=(axis.width(from, to)) height=(HEIGHT) {}
        }
    }
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
    for (route, at) in episode.acknowledged.iter().take(SIGNS) {
        out += &format!("; route {route} acknowledged after {}", after(*at));
    }
    if episode.acknowledged.len() > SIGNS {
        out += &format!("; {} more routes acknowledged", episode.acknowledged.len() - SIGNS);
    }
    match (episode.settled, episode.state) {
        (Some(at), state) => out + &format!("; settled ({}) after {}", state.as_str(), after(at)),
        (None, State::Pending) => out + "; still open",
        (None, state) => out + &format!("; still open ({})", state.as_str()),
    }
}
