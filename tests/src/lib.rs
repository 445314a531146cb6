//! Test tools shared by the real-cluster tests, the demo and the benchmarks.
