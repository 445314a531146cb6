//! Pacemaker's configuration for marking fenced hosts and reporting them: what is missing or wrong in a cluster, and the
//! commands that correct it. Pure except for `read`, `local`, `proof` and `run`.

/// The alert.
mod alert;
/// The alerter's resource.
mod alerter;
/// Everything that is wrong with a cluster.
mod check;
/// The fence devices.
mod devices;
/// Which mark device marks which host.
mod division;
/// The findings, each with a stable word.
mod finding;
/// Orders that stop Pacemaker from fencing.
mod idle;
/// The fencing levels.
mod levels;
/// The files on this controller.
mod local;
/// Where constraints let a resource run.
mod location;
/// The relevant part of the cluster.
mod model;
/// The commands of each tool for these.
mod print;
/// The proof that they take nothing from the cluster.
mod proof;
/// The cluster's properties.
mod properties;
/// From a CIB to the model.
mod read;
/// The register's needs on this controller.
mod register;
/// The connections to the compute hosts.
mod remotes;
/// Other software that recovers hosts.
mod rivals;
/// Runs the commands.
mod run;
/// One change of the configuration.
mod step;
/// Which tool changes the configuration.
mod tool;

pub use check::{check, health};
pub use finding::{Finding, KINDS, Kind, Then};
pub use local::{Here, Key, here};
pub use model::{Cluster, Reaction, Wanted};
pub use print::{Command, commands, shell, tidy};
pub use proof::{is_same, lost, prove, with_lost};
pub use read::read;
pub use run::{Ran, run};
pub use step::{Step, WRITES, Write, steps};
pub use tool::Tool;

#[cfg(test)]
mod cases;
#[cfg(test)]
mod tests;
