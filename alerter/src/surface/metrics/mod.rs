//! `/metrics`, for Prometheus. Answered from memory: neither the journal nor an endpoint is read.

pub mod catalogue;
pub mod counting;
mod exposition;
mod samples;
mod server;
mod sight;

pub use exposition::write;
pub use server::{router, run};
