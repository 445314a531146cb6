//! What Pacemaker must be told so that fenced hosts are marked and told of: what is missing or wrong in a cluster, and the
//! commands that put it right. Pure but for `read` (with `patterns`), `local`, `proof` and `run`.

/// The alert.
mod alert;
/// The alerter's resource.
mod alerter;
/// Everything that is wrong with a cluster.
mod check;
/// The fence devices.
mod devices;
/// What is wrong, each by a stable word.
mod finding;
/// What keeps Pacemaker from fencing.
mod idle;
/// The fencing levels.
mod levels;
/// What is on this controller.
mod local;
/// Where constraints let a resource run.
mod location;
/// The cluster as far as it is looked at.
mod model;
/// Which names the patterns of a CIB match.
mod patterns;
/// Which steps put it right, in their order.
mod plan;
/// The commands of each tool for these.
mod print;
/// The proof that they take nothing from the cluster.
mod proof;
/// The cluster's properties.
mod properties;
/// From a CIB to the model.
mod read;
/// What the register needs on this controller.
mod register;
/// The connections to the compute hosts.
mod remotes;
/// What else recovers hosts.
mod rivals;
/// Runs the commands.
mod run;
/// One change of the configuration.
mod step;
/// Which tool changes the configuration.
mod tool;

pub use check::check;
pub use finding::{Finding, KINDS, Kind, Then};
pub use local::{Here, Key, here};
pub use model::{Cluster, Wanted};
pub use plan::steps;
pub use print::{Command, advice, commands, shell, tidy};
pub use proof::{is_same, lost, prove, with_lost};
pub use read::read;
pub use run::{Ran, run};
pub use step::{Step, WRITES, Write};
pub use tool::Tool;

#[cfg(test)]
mod tests;
