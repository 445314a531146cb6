//! Whether this process works, by Nova's specification of per-process health checks. The work itself sets the checks in memory;
//! `/health` sums them up. Nothing is probed for an answer, and nothing here makes, sends, holds or settles a mark.

mod answer;
mod manager;

pub use answer::{Item, Report, Shown, Status, body, router, run, service_id, sum_up};
pub use manager::{Check, Fault, Health, Pulse, any};
