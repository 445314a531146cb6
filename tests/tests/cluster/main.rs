//! Scenarios on a real Pacemaker cluster: a host dies, and the recovery controller gets to know.
//!
//! One booted cluster serves all of them; each begins by putting everything right again, so each also runs alone:
//! `cargo test -p tests --test cluster -- NAME`. Where the machine cannot run a cluster they are ignored, with the
//! reason beside the name; with `CI=true` or `NHA_REQUIRE_CLUSTER=1` that is a failure instead.

mod alerter;
mod alone;
mod cloud;
mod event;
mod fencer;
mod itself;
mod mark;
mod outage;

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use cloud::Cloud;
use libtest_mimic::{Arguments, Failed, Trial};
use tests::lab;

type Scenario = fn(&mut Cloud) -> anyhow::Result<()>;

/// In an order in which a fault shows where it is: first the whole path, then its parts, last what is taken apart.
const SCENARIOS: [(&str, Scenario); 13] = [
    ("a_killed_host_is_told_once_though_the_endpoint_is_dead", outage::endpoint_dead_for_ten_seconds),
    ("a_refused_attempt_is_repeated_byte_for_byte", outage::refused_attempt_is_repeated),
    ("a_frozen_host_and_a_cut_off_host_are_told", outage::frozen_and_cut_off),
    ("the_fencer_calls_power_mark_power", fencer::power_mark_power),
    ("two_fencings_in_one_outage_are_one_mark", fencer::fenced_twice_in_one_outage),
    ("a_dead_power_device_makes_no_mark", mark::dead_power_device),
    ("a_failing_mark_does_not_stop_the_fencing", mark::failing_mark),
    ("without_a_topology_the_mark_device_refuses", alone::without_a_topology),
    ("alone_in_its_level_the_mark_device_refuses", alone::alone_in_a_level),
    ("a_killed_alerter_is_restarted_and_tells", alerter::killed_and_restarted),
    ("the_monitor_answers_while_the_endpoint_is_dead", alerter::monitor_with_a_dead_endpoint),
    ("a_lab_beside_another_leaves_nothing", itself::leaves_nothing),
    ("a_lab_ends_with_its_killed_owner", itself::ends_with_its_owner),
];

fn main() -> ExitCode {
    if let Some(code) = lab::play_another_part().or_else(itself::play_the_owner) {
        return code;
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let cloud = Arc::new(Mutex::new(None));
    let trials = match lab::machine::check() {
        Ok(()) => SCENARIOS.map(|(name, scenario)| trial(name, scenario, &cloud)),
        Err(reason) => SCENARIOS.map(|(name, _)| cannot(name, &format!("{reason:#}"))),
    };
    let conclusion = libtest_mimic::run(&arguments, trials.into());
    // The cluster ends before the process does.
    drop(cloud.lock().unwrap_or_else(PoisonError::into_inner).take());
    conclusion.exit_code()
}

/// The cluster is booted for the first scenario that runs.
fn trial(name: &str, scenario: Scenario, cloud: &Arc<Mutex<Option<Cloud>>>) -> Trial {
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
