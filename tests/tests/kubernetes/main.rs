//! The `kubernetes` driver against a real API server, with exactly the rights that are shipped (`packaging/kubernetes`).
//!
//! The server is started once and serves all scenarios; each begins with an empty cluster, so each also runs alone:
//! `cargo test -p tests --test kubernetes -- NAME`. Where it is not built the scenarios are ignored, with the reason beside the name;
//! with `CI=true` or `NHA_REQUIRE_KUBERNETES=1` that is a failure instead.

mod annotate;
mod cluster;
mod condition;
mod gates;
mod itself;
mod login;
mod online;
mod outage;
mod remediation;
mod taint;
mod unwritable;

use std::process::ExitCode;

use cluster::Cluster;
use tests::kubernetes::packages;
use tests::lab;
use tests::trials::{self, Stage};

/// A name, and what it stands for.
type Scenario = trials::Scenario<Cluster>;

const ALL: [&[Scenario]; 9] = [
    itself::SCENARIOS,
    taint::SCENARIOS,
    condition::SCENARIOS,
    annotate::SCENARIOS,
    remediation::SCENARIOS,
    gates::SCENARIOS,
    login::SCENARIOS,
    online::SCENARIOS,
    unwritable::SCENARIOS,
];

const STAGE: Stage<Cluster> =
    Stage { set_up: Cluster::boot, on_failure: Cluster::explain, need: trials::KUBERNETES };

fn main() -> ExitCode {
    if let Some(code) = lab::play_another_part() {
        return code;
    }
    trials::play(STAGE, &ALL.concat(), packages::cannot().as_deref(), vec![outage::trial()])
}
