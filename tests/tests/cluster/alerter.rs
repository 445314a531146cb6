//! The alerter as a resource of the cluster.

use anyhow::{Context, ensure};
use serde_json::Value;
use tests::lab::cib::HOME;

use crate::Scenario;
use crate::cloud::{Cloud, HOST};
use crate::event;

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("a_killed_alerter_is_restarted_and_tells", a_killed_alerter_is_restarted_and_tells),
    ("the_monitor_answers_while_the_endpoint_is_dead", the_monitor_answers_while_the_endpoint_is_dead),
];

/// Killed with an open mark: Pacemaker starts it again, and the mark is told under its old id. S1-16, S1-32
fn a_killed_alerter_is_restarted_and_tells(cloud: &mut Cloud) -> anyhow::Result<()> {
    let before = cloud.begin()?;
    cloud.receiver.down();
    let died = event::now();
    cloud.lab.power_off(HOST)?;
    let mark = cloud.wait_for_mark(&before)?;
    let killed = pid(cloud)?;
    cloud.run(&["kill", "-KILL", &killed])?;
    cloud.lab.wait_for("Pacemaker to see that the alerter is gone", 60, |view| {
        !view.failures("alerter").is_empty()
    })?;
    cloud.host_returns()?;
    ensure!(pid(cloud)? != killed, "the killed alerter still answers");
    ensure!(cloud.mark(&mark.id)?.state == "open", "the mark was settled though nobody listens");
    cloud.receiver.up()?;
    let mark = cloud.wait_acknowledged(&mark.id)?;
    let requests = cloud.requests_since(&before);
    ensure!(requests.len() == 1, "told {} times", requests.len());
    event::check(&requests[0], &mark, died)
}

/// The endpoint is no business of the monitor: dead or not, the resource is well. S1-32, S1-51
fn the_monitor_answers_while_the_endpoint_is_dead(cloud: &mut Cloud) -> anyhow::Result<()> {
    let before = cloud.begin()?;
    cloud.receiver.down();
    cloud.lab.power_off(HOST)?;
    let mark = cloud.wait_for_mark(&before)?;
    cloud.wait_until_mark(&mark.id, "tried", |mark| mark.attempts >= 1)?;
    ensure!(monitor(cloud)? == 0, "the monitor fails while nobody listens");
    let pid = pid(cloud)?;
    cloud.run(&["kill", "-STOP", &pid])?;
    let stopped = monitor(cloud);
    cloud.run(&["kill", "-CONT", &pid])?;
    ensure!(stopped? == 1, "the monitor does not see an alerter that hangs");
    Ok(())
}

/// As the cluster calls it.
fn monitor(cloud: &Cloud) -> anyhow::Result<i32> {
    let agent = "/usr/lib/ocf/resource.d/openstack/nova-host-alerter";
    let environment = ["OCF_ROOT=/usr/lib/ocf", "OCF_RESOURCE_INSTANCE=alerter"];
    let command = [&["env"], &environment[..], &[agent, "monitor"]].concat();
    Ok(cloud.lab.exec(HOME, &command)?.rc)
}

fn pid(cloud: &Cloud) -> anyhow::Result<String> {
    let status: Value = serde_json::from_str(&cloud.run(&["nova-host-alerter", "status", "--json"])?)?;
    let pid = status["daemon"]["pid"].as_u64().context("the alerter does not answer")?;
    Ok(pid.to_string())
}
