//! Test tools shared by the real-cluster tests, the demo and the benchmarks.

pub mod apart;
pub mod audit;
pub mod backlog;
pub mod based;
pub mod browser;
pub mod clock;
pub mod etcd;
pub mod faults;
pub mod installed;
pub mod kubernetes;
pub mod lab;
pub mod mutants;
pub mod openstack;
pub mod outcome;
pub mod process;
pub mod programs;
pub mod receiver;
pub mod releases;
pub mod sink;
pub mod trials;
