//! Scenarios on a real Pacemaker cluster of three controllers and twelve compute hosts, where everything may move and die.
//!
//! One booted cluster serves all of them; each begins by putting everything right, and ends with the same audit. Each
//! also runs alone: `cargo test -p tests --test failover -- NAME`; `NHA_REPEAT=3` runs the lists three times in a row, and
//! `NHA_SCENARIOS="doubt harm"` chooses lists. `NHA_REGISTER=etcd` (or `cib`) has all scenarios that name no register use that one;
//! `NHA_RETURNS=1` has the routes of all scenarios notified of returns too.

mod clocks;
mod cluster;
mod controllers;
mod disks;
mod doubt;
mod harm;
mod health;
mod hosts;
mod managers;
mod prompt;
mod registers;
mod releases;
mod returns;
mod silence;
mod storm;
mod truth;
mod upgrade;
mod whole;

use std::process::ExitCode;

use cluster::Cluster;
use tests::lab;
use tests::trials::{self, Stage};

/// A name, and what it stands for.
type Scenario = trials::Scenario<Cluster>;

/// Every list. In an order in which a fault shows where it is; what wants the register in the CIB stands together.
const LISTS: [(&str, &[Scenario]); 16] = [
    ("hosts", hosts::SCENARIOS),
    ("controllers", controllers::SCENARIOS),
    ("clocks", clocks::SCENARIOS),
    ("disks", disks::SCENARIOS),
    ("managers", managers::SCENARIOS),
    ("doubt", doubt::SCENARIOS),
    ("storm", storm::SCENARIOS),
    ("returns", returns::SCENARIOS),
    ("releases", releases::SCENARIOS),
    ("whole", whole::SCENARIOS),
    ("registers", registers::SCENARIOS),
    ("harm", harm::SCENARIOS),
    ("health", health::SCENARIOS),
    ("silence", silence::SCENARIOS),
    ("upgrade", upgrade::SCENARIOS),
    ("prompt", prompt::SCENARIOS),
];

/// Those that are run where none is named. The others change the cluster for good, or are run on another release.
const USUAL: &str =
    "hosts controllers clocks disks managers doubt storm returns releases whole registers prompt";

const STAGE: Stage<Cluster> =
    Stage { set_up: Cluster::boot, on_failure: Cluster::explain, need: trials::CLUSTER };

fn main() -> ExitCode {
    if let Some(code) = lab::play_another_part() {
        return code;
    }
    let cannot = lab::machine::check().err().map(|error| format!("{error:#}"));
    trials::play(STAGE, &trials::chosen(&LISTS, Some(USUAL)), cannot.as_deref(), Vec::new())
}
