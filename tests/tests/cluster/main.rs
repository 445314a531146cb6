//! Scenarios on a real Pacemaker cluster: a host dies, and the recovery controller gets to know.
//!
//! One booted cluster serves all of them; each begins by putting everything right again, so each also runs alone:
//! `cargo test -p tests --test cluster -- NAME`. Where the machine cannot run a cluster they are ignored, with the
//! reason beside the name; with `CI=true` or `NHA_REQUIRE_CLUSTER=1` that is a failure instead.

mod alerter;
mod alone;
mod cloud;
mod event;
mod evidence;
mod fencer;
mod itself;
mod mark;
mod outage;
mod register;

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use cloud::Cloud;
use libtest_mimic::{Arguments, Failed, Trial};
use tests::lab;

/// A name, and what it stands for.
type Scenario = (&'static str, fn(&mut Cloud) -> anyhow::Result<()>);

/// In an order in which a fault shows where it is: first the whole path, then its parts, last what is taken apart.
const ALL: [&[Scenario]; 8] = [
    outage::SCENARIOS,
    fencer::SCENARIOS,
    mark::SCENARIOS,
    alone::SCENARIOS,
    alerter::SCENARIOS,
    evidence::SCENARIOS,
    register::SCENARIOS,
    itself::SCENARIOS,
];

fn main() -> ExitCode {
    if let Some(code) = lab::play_another_part().or_else(itself::play_the_owner) {
        return code;
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let cloud = Arc::new(Mutex::new(None));
    let possible = lab::machine::check();
    let trials = ALL.concat().into_iter().map(|(name, scenario)| match &possible {
        Ok(()) => trial(name, scenario, &cloud),
        Err(reason) => cannot(name, &format!("{reason:#}")),
    });
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    // The cluster ends before the process does.
    drop(cloud.lock().unwrap_or_else(PoisonError::into_inner).take());
    conclusion.exit_code()
}

/// The cluster is booted for the first scenario that runs.
fn trial(
    name: &str,
    scenario: fn(&mut Cloud) -> anyhow::Result<()>,
    cloud: &Arc<Mutex<Option<Cloud>>>,
) -> Trial {
    let cloud = Arc::clone(cloud);
    Trial::test(name, move || {
        let mut cloud = cloud.lock().unwrap_or_else(PoisonError::into_inner);
        if cloud.is_none() {
            *cloud = Some(Cloud::boot().map_err(|error| Failed::from(format!("{error:#}")))?);
        }
        let Some(cloud) = cloud.as_mut() else { return Err(Failed::without_message()) };
        scenario(cloud).map_err(|error| Failed::from(format!("{error:#}\n{}", cloud.lab.keep_logs())))
    })
}

fn cannot(name: &str, reason: &str) -> Trial {
    let required = ["CI", "NHA_REQUIRE_CLUSTER"].map(|key| std::env::var(key).unwrap_or_default());
    if required.iter().any(|value| value == "true" || value == "1") {
        let reason = reason.to_owned();
        return Trial::test(name, move || Err(format!("a cluster is required, but: {reason}").into()));
    }
    Trial::test(name, || Ok(())).with_kind(reason).with_ignored_flag(true)
}
