//! Scenarios on a real Pacemaker cluster of three controllers and twelve compute hosts, where everything may move and die.
//!
//! One booted cluster serves all of them; each begins by putting everything right, and ends with the same audit. Each
//! also runs alone: `cargo test -p tests --test failover -- NAME`; `NHA_REPEAT=3` runs the list three times in a row.

mod cluster;
mod controllers;
mod doubt;
mod figures;
mod harm;
mod hosts;
mod managers;
mod record;
mod registers;
mod releases;
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

/// In an order in which a fault shows where it is; what wants the register in the CIB stands together at the end.
const ALL: [&[Scenario]; 9] = [
    hosts::SCENARIOS,
    controllers::SCENARIOS,
    managers::SCENARIOS,
    doubt::SCENARIOS,
    storm::SCENARIOS,
    releases::SCENARIOS,
    whole::SCENARIOS,
    registers::SCENARIOS,
    harm::SCENARIOS,
];

/// Those that would make a false mark if what Pacemaker says were read wrongly: `NHA_SCENARIOS=false-marks`.
const FALSE_MARKS: [&[Scenario]; 2] = [doubt::SCENARIOS, harm::SCENARIOS];

const STAGE: Stage<Cluster> =
    Stage { set_up: Cluster::boot, on_failure: Cluster::explain, need: trials::CLUSTER };

fn main() -> ExitCode {
    if let Some(code) = lab::play_another_part() {
        return code;
    }
    let cannot = lab::machine::check().err().map(|error| format!("{error:#}"));
    let wants_figures = std::env::var_os("NHA_FIGURES").is_some_and(|value| value == "1");
    let scenarios = match std::env::var("NHA_SCENARIOS").as_deref() {
        _ if wants_figures => figures::SCENARIOS.to_vec(),
        Ok("false-marks") => FALSE_MARKS.concat(),
        Ok("record") => record::SCENARIOS.to_vec(),
        Ok("silence") => silence::SCENARIOS.to_vec(),
        Ok("upgrade") => upgrade::SCENARIOS.to_vec(),
        _ => ALL.concat(),
    };
    trials::play(STAGE, &scenarios, cannot.as_deref(), Vec::new())
}
