//! Outages on an axis of time, drawn as SVG. Pure: what is drawn and when it is now are arguments.
//!
//! The text keeps its size at every width: lengths along the axis are percentages, all others are pixels. Colours and
//! fonts are in [`CSS`], which whoever shows the picture has to load: a strict content security policy bars them from the
//! picture itself.

mod axis;
mod bars;
mod density;
mod legend;

use std::collections::BTreeMap;

use marks::delivery::{Delivery, State, is_step};
use marks::mark::MarkRow;
use marks::time::Timestamp;

use crate::markup::Markup;
use crate::words;
use axis::Axis;
use legend::Shapes;

/// The colours of the picture, for light and dark screens and for paper.
pub const CSS: &str = include_str!("timeline.css");

/// One outage of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Episode {
    /// The host.
    pub host: String,
    /// When it was fenced.
    pub failed: Timestamp,
    /// When its mark was made.
    pub marked: Timestamp,
    /// The routes that took it, and when.
    pub told: Vec<(String, Timestamp)>,
    /// From when to when it was held; without an end it is held still.
    pub held: Vec<(Timestamp, Option<Timestamp>)>,
    /// When it ended; an open one has no end yet.
    pub settled: Option<Timestamp>,
    /// How it stands, or how it ended.
    pub state: State,
}

impl Episode {
    /// A mark with its deliveries. A hold without an end is one that it has now.
    pub fn of(mark: &MarkRow, deliveries: &[Delivery], held: Vec<(Timestamp, Option<Timestamp>)>) -> Self {
        let is_told =
            |delivery: &&Delivery| delivery.state == State::Acknowledged && !is_step(&delivery.route);
        let took = deliveries.iter().filter(is_told);
        let is_held = held.iter().any(|(_, until)| until.is_none());
        Self {
            host: mark.node.to_string(),
            failed: mark.failure_time,
            marked: mark.made_at,
            told: took.filter_map(|delivery| Some((delivery.route.clone(), delivery.ended_at?))).collect(),
            held,
            settled: mark.settled.map(|(_, at)| at),
            state: State::of_mark(mark.settled.map(|(how, _)| how), is_held, deliveries),
        }
    }

    fn until(&self, now: Timestamp) -> Timestamp {
        self.settled.unwrap_or(now)
    }
}

/// How much is drawn; the rest is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// Hosts with a row of their own.
    pub rows: usize,
    /// Outages in a row.
    pub bars: usize,
}

impl Default for Timeline {
    fn default() -> Self {
        Self { rows: 20, bars: 24 }
    }
}

/// Above the first row: the axis.
const TOP: usize = 22;
/// A row: the host's name, beneath it its bars, and beneath these the routes' signs.
const ROW: usize = 42;

impl Timeline {
    /// The outages between two points in time, drawn with the usual bounds. What is open goes on until `to`.
    pub fn of(episodes: &[Episode], from: Timestamp, to: Timestamp) -> Markup {
        Self::default().draw(episodes, from, to)
    }

    /// The same with these bounds.
    pub fn draw(self, episodes: &[Episode], from: Timestamp, to: Timestamp) -> Markup {
        let axis = Axis::new(from, to);
        let mut hosts = hosts(episodes, &axis);
        let rest = hosts.split_off(hosts.len().min(self.rows));
        let shapes = Shapes::of(hosts.iter().flatten().copied());
        let bottom = TOP + hosts.len().max(1) * ROW + if rest.is_empty() { 0 } else { density::HEIGHT };
        let height = bottom + 8 + shapes.height();
        let described = described(&hosts, &rest, &axis);
        let mut out = Markup::default();
        let root: [(&str, &dyn std::fmt::Display); 6] = [
            ("class", &"timeline"),
            ("xmlns", &"http://www.w3.org/2000/svg"),
            ("width", &"100%"),
            ("height", &height),
            ("role", &"img"),
            ("aria-label", &described),
        ];
        out.tag("svg", &root, |svg| {
            svg.leaf("desc", &[], &described);
            legend::patterns(svg);
            axis.draw(svg, bottom);
            if hosts.is_empty() {
                let middle = TOP + ROW / 2 + 4;
                svg.leaf(
                    "text",
                    &[("class", &"none"), ("x", &"1%"), ("y", &middle)],
                    "no outage in this time",
                );
            }
            for (number, host) in hosts.iter().enumerate() {
                bars::row(svg, host, TOP + number * ROW, self.bars, &axis, &shapes);
            }
            if !rest.is_empty() {
                density::strip(svg, &rest, TOP + hosts.len() * ROW, &axis);
            }
            shapes.draw(svg, bottom + 8);
        });
        out
    }
}

/// Each host's outages, the newest last: hosts with an open one first, then those whose newest is the youngest.
fn hosts<'e>(episodes: &'e [Episode], axis: &Axis) -> Vec<Vec<&'e Episode>> {
    let mut by_host: BTreeMap<&str, Vec<&Episode>> = BTreeMap::new();
    let is_seen = |episode: &&Episode| episode.until(axis.to) >= axis.from && episode.failed <= axis.to;
    for episode in episodes.iter().filter(is_seen) {
        by_host.entry(&episode.host).or_default().push(episode);
    }
    let mut hosts: Vec<Vec<&Episode>> = by_host.into_values().collect();
    hosts.iter_mut().for_each(|host| host.sort_by_key(|episode| episode.failed));
    hosts.sort_by_key(|host| {
        let is_open = host.iter().any(|episode| episode.settled.is_none());
        let newest = host.last().map_or(0, |episode| episode.failed.0);
        (!is_open, std::cmp::Reverse(newest))
    });
    hosts
}

/// What a reader who cannot see it is told.
fn described(hosts: &[Vec<&Episode>], rest: &[Vec<&Episode>], axis: &Axis) -> String {
    let all = || hosts.iter().chain(rest).flatten();
    let open = all().filter(|episode| episode.settled.is_none()).count();
    let left_out = match rest.len() {
        0 => String::new(),
        more => format!("; {more} more host(s) are drawn as columns of how many were fenced"),
    };
    format!(
        "{} outage(s) of {} host(s) from {} to {}, {open} of them open{left_out}",
        all().count(),
        hosts.len() + rest.len(),
        words::utc(axis.from),
        words::utc(axis.to),
    )
}

#[cfg(test)]
mod tests;
