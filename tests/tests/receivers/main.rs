//! What operators' own systems make of the bodies that the `http` driver sends: a real Alertmanager.
//!
//! It is started once, on loopback, and ends with the list. Each scenario has a host of its own and also runs alone:
//! `cargo test -p tests --test receivers -- NAME`. Where it is not installed each scenario fails.

mod alerts;
mod journal;

use std::process::ExitCode;

use tests::alertmanager::Alertmanager;
use tests::trials::{self, Stage};

/// A name, and what it stands for.
type Scenario = trials::Scenario<Alertmanager>;

const STAGE: Stage<Alertmanager> =
    Stage { set_up: Alertmanager::begin, on_failure: Alertmanager::explain, need: trials::RECEIVERS };

fn main() -> ExitCode {
    trials::play(STAGE, alerts::SCENARIOS, None, Vec::new())
}
