//! Test tools shared by the real-cluster tests, the demo and the benchmarks.

pub mod lab;
pub mod receiver;
