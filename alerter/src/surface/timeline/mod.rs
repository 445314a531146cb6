//! Outages on an axis of time, drawn as SVG. Pure: what is drawn and when it is now are arguments.
//!
//! The text keeps its size at every width: lengths along the axis are percentages, all others are pixels. Colours and
//! fonts are in [`CSS`], which the page around the picture loads: a strict content security policy bars them from the
//! picture itself.

mod axis;
mod bars;
mod density;
mod episode;
mod legend;

use std::collections::BTreeMap;

use marks::time::Timestamp;
use maud::{Markup, html};

use crate::words;
use axis::{Axis, TOP};
pub use episode::Episode;
use legend::Shapes;

/// The colours of the picture, for light and dark screens and for paper.
pub const CSS: &str = include_str!("timeline.css");

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
        html! {
            svg.timeline xmlns="http://www.w3.org/2000/svg" width="100%" height=(height) role="img" aria-label=(described) {
                desc { (described) }
                (legend::PATTERNS)
                (axis.draw(bottom))
                @if hosts.is_empty() {
                    text.none x="1%" y=(TOP + ROW / 2 + 4) { "no outage in this time" }
                }
                @for (number, host) in hosts.iter().enumerate() {
                    (bars::row(host, TOP + number * ROW, self.bars, &axis, &shapes))
                }
                @if !rest.is_empty() { (density::strip(&rest, TOP + hosts.len() * ROW, &axis)) }
                (shapes.draw(bottom + 8))
            }
        }
    }
}

/// Each host's outages, the newest last: the host whose outage is open longest first, then those whose newest is the youngest.
fn hosts<'e>(episodes: &'e [Episode], axis: &Axis) -> Vec<Vec<&'e Episode>> {
    let mut by_host: BTreeMap<&str, Vec<&Episode>> = BTreeMap::new();
    let is_seen = |episode: &&Episode| episode.until(axis.to) >= axis.from && episode.failed <= axis.to;
    for episode in episodes.iter().filter(is_seen) {
        by_host.entry(&episode.host).or_default().push(episode);
    }
    let mut hosts: Vec<Vec<&Episode>> = by_host.into_values().collect();
    hosts.iter_mut().for_each(|host| host.sort_by_key(|episode| episode.failed));
    hosts.sort_by_key(|host| {
        let open =
            host.iter().filter(|episode| episode.settled.is_none()).map(|episode| episode.failed).min();
        let newest = host.last().map(|episode| episode.failed);
        (open.is_none(), open, std::cmp::Reverse(newest))
    });
    hosts
}

/// The picture in words, for a screen reader.
fn described(hosts: &[Vec<&Episode>], rest: &[Vec<&Episode>], axis: &Axis) -> String {
    let all = || hosts.iter().chain(rest).flatten();
    let open = all().filter(|episode| episode.settled.is_none()).count();
    let left_out = match rest.len() {
        0 => String::new(),
        more => {
            format!("; {} more {} drawn as columns", more, if more == 1 { "host is" } else { "hosts are" })
        }
    };
    format!(
        "Outages: {}, open: {open}, hosts: {}, from {} to {}{left_out}",
        all().count(),
        hosts.len() + rest.len(),
        words::utc(axis.from),
        words::utc(axis.to),
    )
}

#[cfg(test)]
mod tests;
