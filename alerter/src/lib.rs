//! nova-host-alerter: takes marks from the journal and tells the recovery controllers until they acknowledge.

pub mod config;
pub mod drivers;
