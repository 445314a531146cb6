//! Pacemaker's interfaces: its configuration and state, its alerts and history of fencings, and its tools.

/// Runs a part of this program that may hang in the kernel.
pub mod aside;
/// Runs a program with a deadline.
pub mod child;
/// The CIB: one model of Pacemaker's configuration and state.
pub mod cib;
/// The nodes that `corosync.conf` names.
pub mod corosync;
/// Fencings as Pacemaker's alerts and history report them.
pub mod evidence;
/// Reads the CIB from the running cluster, in parts.
pub mod read;
/// Pacemaker's tools, each run with the remaining time.
pub mod tools;
/// XML of Pacemaker and its tools.
pub mod xml;
