//! Power without mark and mark without power: neither may stand for the other.

use std::time::Duration;

use anyhow::ensure;
use tests::lab::{Event, MarkMode, wait};

use crate::Scenario;
use crate::cloud::{Before, Cloud, FENCED_WITHIN, HOST};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("a_dead_power_device_makes_no_mark", a_dead_power_device_makes_no_mark),
    ("a_failing_mark_does_not_stop_the_fencing", a_failing_mark_does_not_stop_the_fencing),
    ("a_mark_device_that_is_nowhere_does_not_stop_the_fencing", a_mark_device_that_is_nowhere),
];

/// The host is dead, but nobody can prove it: no mark, and nobody is notified, until the power device works again. S1-3,
/// S4-19
fn a_dead_power_device_makes_no_mark(cloud: &mut Cloud) -> anyhow::Result<()> {
    let before = cloud.begin()?;
    cloud.lab.bmc().set_dead(true);
    cloud.lab.power_off(HOST)?;
    wait::until("two fencings to fail", Duration::from_secs(FENCED_WITHIN), || {
        let failed =
            cloud.fencings_since(&before)?.iter().filter(|fencing| fencing.status == "failed").count();
        Ok((failed >= 2).then_some(()))
    })?;
    let calls = cloud.off_calls_since(&before);
    ensure!(calls.is_empty(), "the mark device was asked: {calls:#?}");
    cloud.nothing_was_sent(&before)?;
    cloud.lab.bmc().work_from_next_off();
    let mark = cloud.wait_for_mark(&before)?;
    cloud.wait_acknowledged(&mark.id)?;
    let sent = cloud.requests_since(&before).len();
    ensure!(sent == 1, "sent {sent} times");
    Ok(())
}

/// The mark fails: the second level fences the host all the same, once more by its power alone. S1-51
fn a_failing_mark_does_not_stop_the_fencing(cloud: &mut Cloud) -> anyhow::Result<()> {
    let before = cloud.begin()?;
    cloud.lab.bmc().set_mark(MarkMode::Failing)?;
    cloud.lab.power_off(HOST)?;
    wait_fenced(cloud, &before)?;
    cloud.host_returns()?;
    let events = cloud.events_since(&before);
    let power = events.iter().filter_map(|event| match event {
        Event::Power { action, worked: true, .. } => Some(action.as_str()),
        _ => None,
    });
    ensure!(power.eq(["off", "reboot"]), "{events:#?}");
    let calls = cloud.off_calls_since(&before);
    ensure!(calls.len() == 1 && calls[0].1 == Some(1), "{calls:#?}");
    cloud.nothing_was_sent(&before)?;
    cloud.a_real_outage_is_reported()
}

/// No controller can run the mark device, as while its only controller is down: the second level fences the host, which
/// is not reported. S1-51
fn a_mark_device_that_is_nowhere(cloud: &mut Cloud) -> anyhow::Result<()> {
    let before = cloud.begin()?;
    cloud.set_device("mark", false)?;
    cloud.lab.power_off(HOST)?;
    wait_fenced(cloud, &before)?;
    cloud.host_returns()?;
    let calls = cloud.off_calls_since(&before);
    ensure!(calls.is_empty(), "the mark device was asked: {calls:#?}");
    cloud.nothing_was_sent(&before)?;
    cloud.a_real_outage_is_reported()
}

fn wait_fenced(cloud: &Cloud, before: &Before) -> anyhow::Result<()> {
    wait::until("the host to be fenced", Duration::from_secs(FENCED_WITHIN), || {
        let fencings = cloud.fencings_since(before)?;
        Ok(fencings.iter().any(|fencing| fencing.status == "success").then_some(()))
    })
}
