//! What became of the outages of some days: counted, and as a page.

mod downtime;
mod history;
mod numbers;
pub mod percentile;
pub mod read;
mod render;
mod spans;

pub use numbers::{Numbers, episodes};
pub use render::page;

#[cfg(test)]
mod tests;
