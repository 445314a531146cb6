//! `fence_mark` and `alert_mark`: they write that Pacemaker fenced a host, so that nova-host-alerter can report it.

pub mod alert;
pub mod call;
pub mod check;
pub mod cluster;
pub mod failure;
pub mod getopt;
pub mod given;
pub mod guard;
pub mod keep;
pub mod metadata;
pub mod off;
mod pages;
pub mod paths;
mod publish;
pub mod report;
pub mod run;
pub mod settings;
pub mod stdin;
pub mod store;
pub mod table;
mod watch;
