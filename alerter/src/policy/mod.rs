//! Which marks may not be sent now, and why. Pure: no I/O, no clock. Only delivery is held, never marking, ending or returns.

pub mod groups;
pub mod hold;
mod inventory;
mod known;
mod news;
mod orders;
pub mod plan;
mod record;
pub mod state;
pub mod steer;
pub mod steering;
mod tally;
#[cfg(test)]
mod tests;

pub use hold::{Held, Hold, SKIP, doubts, end_of_pause, set};
pub use tally::Storm;
