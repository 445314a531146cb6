//! What the picture's signs mean: a pattern for each state, and a shape for each route.

use std::collections::BTreeSet;

use marks::delivery::State;
use maud::{Markup, PreEscaped, html};

use super::episode::Episode;

/// The shapes of routes, around their middle. Where there are more routes, they come again.
const SHAPES: [&str; 6] = [
    "M0 -5L5 0L0 5L-5 0Z",
    "M0 -5L5 4L-5 4Z",
    "M-4 -4H4V4H-4Z",
    "M0 5L5 -4L-5 -4Z",
    "M-5 -2H-2V-5H2V-2H5V2H2V5H-2V2H-5Z",
    "M-5 -5L0 -2L5 -5L2 0L5 5L0 2L-5 5L-2 0Z",
];
/// More routes are counted.
const NAMED: usize = 8;
const LINE: usize = 18;

/// What is drawn, and as what.
pub(super) struct Shapes {
    routes: Vec<String>,
    states: Vec<State>,
    held: bool,
}

impl Shapes {
    pub(super) fn of<'e>(drawn: impl Iterator<Item = &'e Episode> + Clone) -> Self {
        let routes: BTreeSet<&str> = drawn
            .clone()
            .flat_map(|episode| episode.acknowledged.iter().map(|(route, _)| route.as_str()))
            .collect();
        let is_there = |state: &State| drawn.clone().any(|episode| episode.state == *state);
        Self {
            routes: routes.into_iter().map(str::to_owned).collect(),
            states: State::ALL.into_iter().filter(is_there).collect(),
            held: drawn.clone().any(|episode| !episode.held.is_empty()),
        }
    }

    fn shape(&self, route: &str) -> &'static str {
        let number = self.routes.iter().position(|known| known == route).unwrap_or(0);
        SHAPES[number % SHAPES.len()]
    }

    /// A route's sign at a place of the axis.
    pub(super) fn sign(&self, route: &str, x: &str, y: usize) -> Markup {
        html! { svg x=(x) y=(y) overflow="visible" { path.sign d=(self.shape(route)) {} } }
    }

    fn named(&self) -> usize {
        self.routes.len().min(NAMED)
    }

    pub(super) fn height(&self) -> usize {
        let routes = self.named() + usize::from(self.routes.len() > NAMED);
        let states = self.states.len() + usize::from(self.is_held_apart());
        routes.max(states) * LINE
    }

    /// Whether stretches were held of what is not held now.
    fn is_held_apart(&self) -> bool {
        self.held && !self.states.contains(&State::Held)
    }

    pub(super) fn draw(&self, top: usize) -> Markup {
        let states = self.states.iter().map(|state| (format!("bar {}", state.as_str()), state.as_str()));
        let swatches = states.chain(self.is_held_apart().then(|| ("hatched".to_owned(), "held")));
        html! {
            g.legend {
                @for (number, (class, word)) in swatches.enumerate() {
                    svg x="1%" y=(top + number * LINE) overflow="visible" {
                        rect class=(class) x="0" y="3" width="22" height="10" {}
                        text x="30" y="12" { (word) }
                    }
                }
                @for (number, route) in self.routes.iter().take(NAMED).enumerate() {
                    svg x="51%" y=(top + number * LINE + 8) overflow="visible" {
                        path.sign d=(self.shape(route)) {}
                        text x="14" y="4" { (route) " acknowledged" }
                    }
                }
                @if let Some(more @ 1..) = self.routes.len().checked_sub(NAMED) {
                    text x="51%" y=(top + NAMED * LINE + 12) { "and " (more) " more routes" }
                }
            }
        }
    }
}

/// The patterns are distinct without their colours too.
pub(super) const PATTERNS: PreEscaped<&str> = PreEscaped(
    r#"<defs><pattern id="tl-held" class="held" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="ground" width="6" height="6"/><rect class="figure" width="2.5" height="6"/></pattern><pattern id="tl-open" class="open" width="6" height="6" patternUnits="userSpaceOnUse"><rect class="ground" width="6" height="6"/><rect class="figure" x="1" y="1" width="2.5" height="2.5"/></pattern><pattern id="tl-parked" class="parked" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="ground" width="7" height="7"/><rect class="figure" width="2" height="7"/><rect class="figure" width="7" height="2"/></pattern></defs>"#,
);
