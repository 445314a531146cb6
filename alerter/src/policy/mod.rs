//! Which marks may not go now, and why. Pure: no I/O, no clock. What is held is delivery, and never marking, ending, returns
//! or notices.

pub mod hold;
pub mod plan;
pub mod rules;
pub mod state;
mod storm;
mod tally;
#[cfg(test)]
mod tests;
pub mod why;

pub use hold::{Held, Hold, SKIP, doubts};
pub use storm::Storm;
