//! nova-host-alerter: takes marks from the journal and notifies the recovery controllers until they acknowledge.

/// What all parts of the daemon share: the configuration in force, the journal's thread, what is seen of the cluster.
pub mod base;
/// The command line.
pub mod cli;
/// Pacemaker as it is polled, and what was seen of it.
pub mod cluster;
/// What each command does.
pub mod commands;
/// The configuration: every table, read and checked.
pub mod config;
/// The API, at the control socket and over TCP.
pub mod control;
/// The daemon: start and stop, its loop, and its regular work.
pub mod daemon;
/// Attempts: endpoints, outboxes, the schedule, the verdicts.
pub mod delivery;
/// Whether the process works: the checks, and `/health`.
pub mod health;
/// Records in, marks out.
pub mod intake;
/// Addresses of our own, and plain HTTP with bounds.
pub mod listen;
/// The one way to a mutex.
pub mod lock;
/// The log: syslog and stderr.
pub mod log;
/// A point in time by both clocks.
pub mod moment;
/// One outage in the order of time.
pub mod outage;
/// Which marks may not be sent now, and why: the plan (pure), and what writes it down.
pub mod policy;
/// Probes that ask whether a host is really down.
pub mod probes;
/// What is wrong: one typed list, which `status`, `/health`, the page and metrics render.
pub mod problem;
/// A new configuration in a running daemon.
pub mod reload;
/// Serves answers at the configured addresses.
pub mod serving;
/// Lengths of time as people write them.
pub mod span;
/// The daemon's state, for the parts that show it.
pub mod state;
/// What shows that state: metrics, the page, reports.
pub mod surface;
/// Texts and times as people read them.
pub mod words;
