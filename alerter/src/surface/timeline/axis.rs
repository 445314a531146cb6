//! The axis: where a point in time stands, and the lines that are named.

use marks::time::Timestamp;
use maud::{Markup, html};

use crate::words;

/// Above the first row: the axis.
pub(super) const TOP: usize = 22;

/// What is kept free at either end, in percent: marks at the very end are drawn whole.
const MARGIN: f64 = 1.0;
/// The distances that lines may have, in milliseconds: from a minute to a year.
const STEPS: [i64; 15] = [
    60_000,
    300_000,
    600_000,
    1_800_000,
    3_600_000,
    7_200_000,
    21_600_000,
    43_200_000,
    DAY,
    2 * DAY,
    5 * DAY,
    10 * DAY,
    30 * DAY,
    90 * DAY,
    365 * DAY,
];
const DAY: i64 = 86_400_000;
/// More lines than this have no room for their names on a phone.
const LINES: i64 = 7;

/// From when to when.
pub(super) struct Axis {
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
}

impl Axis {
    pub(super) fn new(from: Timestamp, to: Timestamp) -> Self {
        let least = Timestamp(from.0.saturating_add(1000));
        Self { from, to: to.max(least) }
    }

    /// Percent from the left edge; what lies outside stands at the nearer end.
    pub(super) fn x(&self, at: Timestamp) -> f64 {
        let (passed, whole) = (at.0.saturating_sub(self.from.0), self.to.0.saturating_sub(self.from.0));
        // Exact enough for a picture.
        let share = (passed as f64 / whole.max(1) as f64).clamp(0.0, 1.0);
        MARGIN + share * (100.0 - 2.0 * MARGIN)
    }

    /// The same as an attribute.
    pub(super) fn place(&self, at: Timestamp) -> String {
        percent(self.x(at))
    }

    /// The length between two points; never none, which would not be drawn.
    pub(super) fn width(&self, from: Timestamp, to: Timestamp) -> String {
        percent((self.x(to) - self.x(from)).max(0.01))
    }

    fn step(&self) -> i64 {
        let span = self.to.0.saturating_sub(self.from.0);
        STEPS.into_iter().find(|step| span / step <= LINES).unwrap_or(STEPS[STEPS.len() - 1])
    }

    fn lines(&self) -> impl Iterator<Item = Timestamp> {
        let step = self.step();
        let first = self.from.0.div_euclid(step).saturating_add(1).saturating_mul(step);
        let last = self.to.0;
        let next = move |at: &i64| at.checked_add(step);
        // Bounded whatever the times are.
        std::iter::successors(Some(first), next).take_while(move |at| *at <= last).take(400).map(Timestamp)
    }

    pub(super) fn draw(&self, bottom: usize) -> Markup {
        html! { g.axis { @for at in self.lines() { (self.line(at, bottom)) } } }
    }

    fn line(&self, at: Timestamp, bottom: usize) -> Markup {
        let x = self.place(at);
        let is_midnight = at.0.rem_euclid(DAY) == 0;
        let format = if self.step() >= DAY || is_midnight { "%m-%d" } else { "%H:%M" };
        let anchor = if self.x(at) > 90.0 { "end" } else { "middle" };
        html! {
            line x1=(x) x2=(x) y1=(TOP - 6) y2=(bottom) {}
            text x=(x) y="11" text-anchor=(anchor) { (words::written(at, format)) }
        }
    }
}

pub(super) fn percent(number: f64) -> String {
    format!("{number:.3}%")
}
