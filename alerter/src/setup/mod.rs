//! What Pacemaker must be told so that fenced hosts are marked and told of: what is missing or wrong in a cluster, and the
//! commands that put it right. Pure but for `read` (with `patterns`), `local`, `proof` and `run`.

mod alert;
mod alerter;
mod check;
mod devices;
mod finding;
mod idle;
mod levels;
mod local;
mod location;
mod model;
mod patterns;
mod plan;
mod print;
mod proof;
mod properties;
mod read;
mod remotes;
mod rivals;
mod run;
mod tool;

pub use check::check;
pub use finding::{Finding, KINDS, Kind, Then};
pub use local::{Here, look};
pub use model::{Cluster, Wanted};
pub use plan::{Step, WRITES, steps};
pub use print::{Command, advice, commands, shell, tidy};
pub use proof::{is_same, lost, prove, with_lost};
pub use read::read;
pub use run::{Ran, run};
pub use tool::Tool;

#[cfg(test)]
mod tests;
