//! Test tools shared by the real-cluster tests, the demo and the benchmarks.

pub mod installed;
pub mod trials;
