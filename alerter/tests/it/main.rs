//! The alerter's library on real sockets and real files.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers too")]

// The driver that `docs/drivers/write.md` takes as its example stands here as it would among the others.
use drivers::event;

/// The modules that a driver expects beside it.
mod driver {
    pub(crate) use drivers::{Driver, Exchange, Failure, Kind, Message, Outcome};
}

mod account;
mod advice;
mod api;
mod api_config;
mod certificates;
mod check_config;
mod check_online;
mod clocks;
mod cloud;
mod config;
mod credible;
mod cut_off;
mod damage;
mod decisions;
mod doubt;
mod endpoint;
mod example_driver;
mod exec;
mod exec_config;
mod exec_examples;
mod failover;
mod first_start;
mod folding;
mod forged;
mod gone;
mod groups;
mod health;
mod health_config;
mod heat;
mod heat_config;
mod http_answers;
mod http_bodies;
mod http_bombs;
mod http_credentials;
mod http_faults;
mod http_identity;
mod http_keys;
mod http_pages;
mod http_request;
mod http_signature;
mod http_statuses;
mod http_tls;
mod http_tls_odd;
mod interleavings;
mod kubernetes_config;
mod listen;
mod masakari;
mod masakari_config;
mod masakari_marks;
mod masakari_steps;
mod members;
mod metrics;
mod mistral_config;
mod myself;
mod names_there;
mod naming;
mod nova;
mod nova_config;
mod openstack;
mod openstack_tokens;
mod openstack_versions;
mod operators;
mod page_of_writes;
mod probes;
mod probes_hypervisor;
mod probes_keeper;
mod probes_keys;
mod promise;
mod pruning;
mod register_lost;
mod registry;
mod rejected;
mod reload;
mod route;
mod routes;
mod sealed;
mod senlin;
mod simulator;
mod site;
mod steering;
mod steps;
mod storage;
mod turns;
mod warnings;
mod words;
