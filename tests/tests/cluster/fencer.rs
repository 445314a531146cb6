//! What Pacemaker's fencer asks of `fence_mark`, and how often.

use std::collections::BTreeSet;

use anyhow::{Context, ensure};
use pacemaker::cib::Cib;
use tests::lab::Event;

use crate::Scenario;
use crate::cloud::{Before, Cloud, HOST};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("the_fencer_calls_power_mark_power", the_fencer_calls_power_mark_power),
    ("two_fencings_in_one_outage_are_one_mark", two_fencings_in_one_outage_are_one_mark),
];

/// The reboot of a dead host is off(power), off(mark), on(power); the mark device is given the three keys and nothing
/// else. S1-3, S1-22, S1-24, S1-53
fn the_fencer_calls_power_mark_power(cloud: &mut Cloud) -> anyhow::Result<()> {
    let before = cloud.begin()?;
    cloud.lab.power_off(HOST)?;
    cloud.wait_for_mark(&before)?;
    cloud.host_returns()?;
    let asks_on = asks_on(cloud)?;
    let mut events = cloud.events_since(&before);
    events.retain(|event| !asks_on || !matches!(event, Event::Called(call) if call.action() == "on"));
    let [off, called, returned, on] = events.as_slice() else { anyhow::bail!("{events:#?}") };
    ensure!(*off == power("off") && *on == power("on"), "{events:#?}");
    let Event::Called(call) = called else { anyhow::bail!("{events:#?}") };
    ensure!(matches!(returned, Event::Returned { rc: 0, .. }), "{events:#?}");
    ensure!(call.arguments.is_empty(), "{call:#?}");
    let keys: BTreeSet<&str> = call.input.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    // Pacemaker says `port` where the agent knows that older name too, else `plug`.
    let plug = if keys.contains("port") { "port" } else { "plug" };
    ensure!(keys == BTreeSet::from(["action", "nodename", plug]), "{call:#?}");
    ensure!(["nodename", plug].map(|key| call.given(key)) == [Some(HOST); 2], "{call:#?}");
    let service = call.environment.get("PCMK_service").context("no PCMK_service")?;
    ensure!(service == "pacemaker-fenced", "{call:#?}");
    if asks_on { Ok(()) } else { never_on_or_reboot(cloud) }
}

/// 2.0 asks for `on` too, and goes on when it hears that the agent has no such action.
fn asks_on(cloud: &Cloud) -> anyhow::Result<bool> {
    let query = cloud.lab.exec(cloud.lab.spokesman(), &["cibadmin", "--query"])?.success()?;
    Ok(Cib::parse(&query)?.release().is_some_and(|release| release < [2, 1, 0]))
}

fn power(action: &str) -> Event {
    Event::Power { action: action.to_owned(), target: HOST.to_owned(), worked: true }
}

/// In all that the cluster has done so far.
fn never_on_or_reboot(cloud: &Cloud) -> anyhow::Result<()> {
    for event in cloud.lab.bmc().record() {
        if let Event::Called(call) = event {
            ensure!(!matches!(call.action(), "on" | "reboot"), "{call:#?}");
        }
    }
    Ok(())
}

/// Fenced again before it is back: the same mark, sent once. Fenced after it was back: another one. S1-40, S1-53
fn two_fencings_in_one_outage_are_one_mark(cloud: &mut Cloud) -> anyhow::Result<()> {
    let before = cloud.begin()?;
    cloud.receiver.down();
    for _ in 0..2 {
        ensure!(cloud.fence("--fence")?, "the host was not fenced");
    }
    let mark = cloud.wait_for_mark(&before)?;
    counted(cloud, &before, &mark.id, 2)?;
    cloud.receiver.up()?;
    cloud.wait_acknowledged(&mark.id)?;
    ensure!(cloud.fence("--fence")?, "the host was not fenced");
    counted(cloud, &before, &mark.id, 3)?;
    cloud.host_returns()?;
    ensure!(cloud.fence("--fence")?, "the host was not fenced");
    let other = cloud.wait_for_mark_beside(&before, &mark.id)?;
    cloud.wait_acknowledged(&other.id)?;
    let sent = cloud.requests_since(&before).len();
    ensure!(sent == 2, "two outages were sent {sent} times");
    ensure!(cloud.the_cluster_alone_has_fenced(&before).is_err(), "an operator's passes for the cluster's");
    Ok(())
}

/// Waits until every successful `off` counts; the cluster may have asked more often than the operator.
fn counted(cloud: &Cloud, before: &Before, id: &str, at_least: u64) -> anyhow::Result<()> {
    let offs = || cloud.off_calls_since(before).iter().filter(|(_, rc)| *rc == Some(0)).count() as u64;
    cloud
        .wait_until_mark(id, "counted", |mark| mark.fence_count == offs() && mark.fence_count >= at_least)?;
    let marks = cloud.marks_since(before)?;
    ensure!(marks.len() == 1, "one outage, {} marks: {marks:?}", marks.len());
    Ok(())
}
