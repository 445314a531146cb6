//! Hosts without a row of their own: how many of them were fenced, and when.

use maud::{Markup, html};

use super::axis::{Axis, percent};
use super::episode::Episode;
use crate::words;

/// What the strip takes of the picture.
pub(super) const HEIGHT: usize = 58;
/// The highest column.
const COLUMN: usize = 30;
const COLUMNS: usize = 48;

pub(super) fn strip(rest: &[Vec<&Episode>], top: usize, axis: &Axis) -> Markup {
    let columns = columns(rest, axis);
    let most = columns.iter().map(|column| column.fenced).max().unwrap_or(0);
    let outages: usize = rest.iter().map(Vec::len).sum();
    let open = rest.iter().flatten().filter(|episode| episode.settled.is_none()).count();
    let stretch = words::length(axis.to.since(axis.from) / COLUMNS as u32);
    let foot = top + 20 + COLUMN;
    html! {
        g.density {
            text.host x="1%" y=(top + 12) { (rest.len()) " more hosts, " (outages) " outages, " (open) " open" }
            text.standing x="99%" y=(top + 12) text-anchor="end" { "at most " (most) " in " (stretch) }
            @for (number, column) in columns.iter().enumerate().filter(|(_, column)| column.fenced > 0) {
                (column.draw(number, most, foot))
            }
            line.track x1="1%" x2="99%" y1=(foot) y2=(foot) {}
        }
    }
}

#[derive(Clone, Copy, Default)]
struct Column {
    fenced: usize,
    open: usize,
}

fn columns(rest: &[Vec<&Episode>], axis: &Axis) -> [Column; COLUMNS] {
    let mut columns = [Column::default(); COLUMNS];
    for episode in rest.iter().flatten() {
        let share = (axis.x(episode.failed) - 1.0) / 98.0;
        // Between zero and one, so that nothing is cut off.
        let column = &mut columns[((share * COLUMNS as f64) as usize).min(COLUMNS - 1)];
        column.fenced += 1;
        column.open += usize::from(episode.settled.is_none());
    }
    columns
}

impl Column {
    fn draw(self, number: usize, most: usize, foot: usize) -> Markup {
        let high = |count: usize| (COLUMN * count).div_ceil(most);
        let x = percent(1.0 + 98.0 * number as f64 / COLUMNS as f64);
        let width = percent(90.0 / COLUMNS as f64);
        html! {
            g {
                title { (self.fenced) " fenced, " (self.open) " of them open" }
                @for (class, count) in [("column", self.fenced), ("column open", self.open)] {
                    @if count > 0 {
                        rect class=(class) x=(x) y=(foot - high(count)) width=(width) height=(high(count)) {}
                    }
                }
            }
        }
    }
}
