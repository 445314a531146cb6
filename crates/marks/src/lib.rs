//! The words and the pure rules: hosts, fencings, outages, marks and their states. No I/O; no clock but
//! [`time::Timestamp::now`], which nothing in here calls.

/// The end of every fencing and sighting, and by which rule.
pub mod account;
/// The order of a mark's routes in a chain.
pub mod chain;
/// One mark on its way to one route, and the closed table of its states.
pub mod delivery;
/// What a program says, without what only a terminal reads.
pub mod escapes;
/// One record that a host was fenced.
pub mod fencing;
/// Names of hosts.
pub mod host;
/// Ids of fencings, marks and operations.
pub mod id;
/// What is sent of an outage.
pub mod mark;
/// One outage or two.
pub mod outage;
/// What a receiver that forgets is sent again.
/// The entries of the register, and their form.
pub mod register;
/// When a return is sent on a route that was notified of the failure.
pub mod returning;
/// Which rule ended a record.
pub mod rule;
/// A fencing as a witness other than `fence_mark` reports it.
pub mod sighting;
/// The states of a delivery.
pub mod state;
/// A route's conditions for a mark.
pub mod terms;
/// Times in milliseconds since 1970.
pub mod time;
