//! The simulator: from a seed it plays hours of a cloud to an alerter, with clocks that are moved by hand, and an audit checks every
//! step. It is what an alerter must do: it knows the one that it drives through [`Alerter`] alone.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers too")]

/// What must be so at every step.
mod audit;
/// The cluster's own document.
pub mod cib;
/// An alerter, as everybody sees it.
mod product;
/// Plays a story.
mod run;
/// What an alerter meets while it works.
mod scene;
/// What happens, from a seed.
mod story;
/// Everything that is not the alerter.
mod world;

pub use audit::Tally;
pub use product::{Alerter, Answer, Command, Delivery, Disk, Fake, Fenced, Mark, Scope, Status};
pub use run::{Played, play};
pub use scene::Scene;
pub use story::{Cut, Forgery, Scale, Story};
pub use world::{Clock, Tells, World, Written};
