//! Everything of this crate that is not the real cluster, in one binary.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod addresses;
mod api;
mod bench;
mod book;
mod budgets;
mod chains;
mod clock;
mod compute_health;
mod confinement;
mod decisions;
mod default_config;
mod degraded;
mod etcd;
mod examples;
mod exec_killed;
mod faults;
mod frozen;
mod health;
mod hostile;
mod house;
mod killed;
mod left_out;
mod logs;
mod manual;
mod metrics;
mod mutants;
mod ocf;
mod odd_words;
mod operator;
mod packages;
mod papers;
mod path;
mod program;
mod scale;
mod schema;
mod setup;
mod silent;
mod startable;
mod supervised;
mod upgrade;
mod writers;

use std::process::ExitCode;

use tests::trials;

fn main() -> ExitCode {
    trials::run([
        addresses::group(),
        api::group(),
        bench::group(),
        book::group(),
        budgets::group(),
        chains::group(),
        clock::group(),
        compute_health::group(),
        compute_health::another_kernel(),
        confinement::group(),
        decisions::group(),
        default_config::group(),
        etcd::group(),
        examples::group(),
        exec_killed::group(),
        faults::group(),
        faults::apart(),
        frozen::group(),
        health::group(),
        hostile::group(),
        house::group(),
        killed::group(),
        left_out::group(),
        logs::group(),
        manual::group(),
        manual::shown(),
        metrics::group(),
        metrics::shipped(),
        mutants::group(),
        degraded::group(),
        ocf::group(),
        odd_words::group(),
        operator::group(),
        packages::group(),
        papers::group(),
        path::group(),
        program::example(),
        program::group(),
        scale::group(),
        schema::group(),
        setup::group(),
        silent::group(),
        startable::group(),
        supervised::group(),
        supervised::verified(),
        upgrade::group(),
        writers::group(),
    ])
}
