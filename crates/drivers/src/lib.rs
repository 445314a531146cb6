//! Drivers: each turns a delivery into one exchange with a recovery controller, and its answer into an outcome.
//!
//! A driver knows nothing of the journal, of retries or of other routes. A new driver is one file, two lines here, and a row in `tests.rs`.

/// What a driver is, and the words for what it does.
pub mod driver;
/// The bodies that several drivers send.
pub mod event;
/// The `exec` driver: any program.
pub mod exec;
/// The `heat` driver.
pub mod heat;
/// The `http` driver: any endpoint.
pub mod http;
/// A thing made of files, made again when they change.
mod kept;
/// The `kubernetes` driver.
pub mod kubernetes;
/// The `masakari` driver.
pub mod masakari;
/// The `mistral` driver.
pub mod mistral;
/// The `nova` driver.
pub mod nova;
/// What the drivers of OpenStack's services share.
pub mod openstack;
/// The other end of a connection.
pub mod peer;
/// How a program is run.
pub mod program;
/// The `senlin` driver.
pub mod senlin;
/// Times as services write them.
mod times;
/// HTTP with an endpoint.
pub mod web;
/// Which of a host's names a controller knows.
mod which;
/// Files in YAML.
mod yaml;

pub use driver::{About, Beside, Check, Driver, Exchange, Failure, Finding, Kind, Message, Outcome, Step};
pub use kept::{Kept, Seen, Unusable};
pub use peer::Peer;
pub use which::{HostNames, Named, WhichName, of_nodes};

/// All drivers.
pub const KINDS: &[Kind] = &[
    http::KIND,
    exec::KIND,
    masakari::KIND,
    mistral::KIND,
    nova::KIND,
    heat::KIND,
    senlin::KIND,
    kubernetes::KIND,
];

#[cfg(test)]
mod tests;
