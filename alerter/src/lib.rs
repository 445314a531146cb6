//! nova-host-alerter: takes marks from the journal and tells the recovery controllers until they acknowledge.

pub mod cli;
pub mod cluster;
pub mod commands;
pub mod config;
pub mod control;
pub mod daemon;
pub mod delivery;
pub mod drivers;
pub mod engine;
pub mod intake;
pub mod listen;
pub mod log;
pub mod lookout;
pub mod metrics;
pub mod moment;
pub mod notice;
pub mod online;
pub mod openstack;
pub mod policy;
pub mod probes;
pub mod shared;
pub mod span;
pub mod steer;
pub mod store;
pub mod supervisor;
pub mod watch;
