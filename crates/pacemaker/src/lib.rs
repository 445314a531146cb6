//! What Pacemaker says and keeps: its configuration and state, its alerts and history of fencings, the register in it, its tools.

/// Runs a program with a deadline.
pub mod child;
/// The CIB: one model of Pacemaker's configuration and state.
pub mod cib;
/// The nodes that `corosync.conf` names.
pub mod corosync;
/// Fencings as Pacemaker's alerts and history tell them.
pub mod evidence;
/// The register: entries of ours in Pacemaker's replicated state.
pub mod register;
/// XML of Pacemaker and its tools.
pub mod xml;
