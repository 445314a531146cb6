//! Faults, each really made with the real programs: for the tests of what `status` says.

mod made;
mod stand;

pub use made::*;
pub use stand::{Stand, check};
