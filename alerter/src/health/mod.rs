//! Whether this process works, by Nova's specification of per-process health checks. The work itself sets the checks in memory;
//! `/health` sums them up. Nothing is probed for an answer, and nothing here makes, sends, holds or settles a mark.

mod answer;
mod check;
mod manager;
mod summary;

pub use answer::{body, router, run, service_id};
pub use check::Check;
pub use manager::{Fault, Health, Pulse, SLOW, STUCK, any};
pub use summary::{Item, Report, Shown, Status, sum_up};
