//! Scenarios on a real Pacemaker cluster: a host dies, and the recovery controller is notified.
//!
//! One booted cluster serves all of them; each begins by putting everything right again, so each also runs alone:
//! `cargo test -p tests --test cluster -- NAME`. Where the machine cannot run a cluster they are ignored, with the
//! reason beside the name; with `CI=true` or `NHA_REQUIRE_CLUSTER=1` that is a failure instead. `NHA_SCENARIOS="fencer setup"` chooses lists.

mod alerter;
mod alone;
mod cloud;
mod converged;
mod event;
mod evidence;
mod fencer;
mod mark;
mod outage;
mod register;
mod setup;
mod twice;

use std::process::ExitCode;

use cloud::Cloud;
use tests::lab;
use tests::trials::{self, Stage};

/// A name, and what it stands for.
type Scenario = trials::Scenario<Cloud>;

/// In an order in which a fault shows where it is: first the whole path, then its parts.
const LISTS: [(&str, &[Scenario]); 10] = [
    ("outage", outage::SCENARIOS),
    ("fencer", fencer::SCENARIOS),
    ("mark", mark::SCENARIOS),
    ("alone", alone::SCENARIOS),
    ("alerter", alerter::SCENARIOS),
    ("evidence", evidence::SCENARIOS),
    ("register", register::SCENARIOS),
    ("setup", setup::SCENARIOS),
    ("converged", converged::SCENARIOS),
    ("twice", twice::SCENARIOS),
];

const STAGE: Stage<Cloud> =
    Stage { set_up: Cloud::boot, on_failure: |cloud| cloud.lab.keep_logs(), need: trials::CLUSTER };

fn main() -> ExitCode {
    if let Some(code) = lab::play_another_part() {
        return code;
    }
    let cannot = lab::machine::check().err().map(|error| format!("{error:#}"));
    trials::play(STAGE, &trials::chosen(&LISTS, None), cannot.as_deref(), Vec::new())
}
