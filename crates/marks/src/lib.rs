//! The words and the pure rules: what a host, a fencing, an outage and a mark are, and what may become of them. No I/O; no clock but
//! [`time::Timestamp::now`], which nothing in here calls.

/// What became of every fencing and sighting, and by which rule.
pub mod account;
/// The order of a mark's routes, one behind the other.
pub mod chain;
/// One mark on its way to one route, and the closed table of its states.
pub mod delivery;
/// One record that a host was fenced.
pub mod fencing;
/// Names of hosts.
pub mod host;
/// Ids of fencings, marks and operations.
pub mod id;
/// What is told of an outage.
pub mod mark;
/// One outage or two.
pub mod outage;
/// The entries of the register, and how each is written.
pub mod register;
/// When a host is called back on a route that was notified of its failure.
pub mod returning;
/// Which rule ended a record.
pub mod rule;
/// A fencing as a witness other than `fence_mark` tells it.
pub mod sighting;
/// The states of a delivery.
pub mod state;
/// What a route asks of a mark before the mark is sent there.
pub mod terms;
/// Times in milliseconds since 1970.
pub mod time;
