//! `fence_mark`: writes down that Pacemaker fenced a host, so that nova-host-alerter can tell it.

pub mod action;
pub mod getopt;
pub mod given;
pub mod metadata;
pub mod stdin;
pub mod table;
