//! Whether this process is well, by Nova's specification of per-process health checks: what the work itself has met is kept in
//! memory, summed up when somebody asks, and answered at `/health`. Nothing is probed for an answer, and nothing here makes,
//! sends, holds or settles a mark.

mod answer;
mod check;
mod manager;
mod summary;

pub use answer::{body, router, run, service_id};
pub use check::Check;
pub use manager::{Fault, Health, Pulse, any};
pub use summary::{Item, Report, Shown, Status, sum_up};
