//! The drivers against real services of OpenStack: Keystone and Masakari, Nova, Mistral and Heat.
//!
//! The services are started once and serve all scenarios; each begins by putting everything right again, so each also runs
//! alone: `cargo test -p tests --test openstack -- NAME`. Where they are not installed the scenarios are ignored, with the
//! reason beside the name; with `CI=true` or `NHA_REQUIRE_OPENSTACK=1` that is a failure instead.

mod cloud;
mod cluster;
mod computes;
mod engine;
mod masakari;
mod outage;
mod services;
mod whole;

use std::process::ExitCode;

use cloud::Cloud;
use tests::lab;
use tests::openstack::{Part, packages};
use tests::trials::{self, Stage};

/// A name, and what it stands for.
type Scenario = trials::Scenario<Cloud>;

const ALL: [&[Scenario]; 5] =
    [masakari::SCENARIOS, outage::SCENARIOS, services::SCENARIOS, engine::SCENARIOS, computes::SCENARIOS];

const STAGE: Stage<Cloud> =
    Stage { set_up: Cloud::boot, on_failure: Cloud::explain, need: trials::OPENSTACK };

fn main() -> ExitCode {
    if let Some(code) = lab::play_another_part() {
        return code;
    }
    let cannot = packages::cannot(&[Part::Nova, Part::Mistral, Part::Heat]);
    trials::play(STAGE, &ALL.concat(), cannot.as_deref(), vec![cluster::trial(), whole::trial()])
}
