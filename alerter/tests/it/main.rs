//! The alerter's library on real sockets and real files.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers too")]

mod certificates;
mod check_config;
mod config;
mod damage;
mod doubt;
mod drivers;
mod endpoint;
mod example_driver;
mod exec;
mod exec_config;
mod exec_examples;
mod failover;
mod folding;
mod forged;
mod http_answers;
mod http_bombs;
mod http_credentials;
mod http_faults;
mod http_identity;
mod http_keys;
mod http_request;
mod http_signature;
mod http_socket;
mod http_statuses;
mod http_tls;
mod interleavings;
mod myself;
mod naming;
mod notice;
mod notice_config;
mod register;
mod route;
mod routes;
mod site;
mod warnings;
