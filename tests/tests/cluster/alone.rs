//! A mark device that the fencer runs without a power device before it: it must not pass for a fencing.

use anyhow::ensure;
use tests::lab::MarkMode;

use crate::Scenario;
use crate::cloud::{Before, Cloud, HOST};

pub(crate) const SCENARIOS: &[Scenario] =
    &[("without_a_topology_the_mark_device_refuses", without_a_topology_the_mark_device_refuses)];

/// No topology, no power device: the fencer picks the mark device, which refuses; the host lives on and is not reported. S1-3, S1-8
fn without_a_topology_the_mark_device_refuses(cloud: &mut Cloud) -> anyhow::Result<()> {
    let before = cloud.begin()?;
    cloud.set_levels(&[])?;
    cloud.set_device("power", false)?;
    refused(cloud, &before)?;
    without_the_refusal_it_counts_as_fenced(cloud, &before)?;
    in_order_it_is_reported(cloud)
}

fn refused(cloud: &Cloud, before: &Before) -> anyhow::Result<()> {
    let fenced = cloud.fence("--fence")?;
    let calls = cloud.off_calls_since(before);
    ensure!(!calls.is_empty(), "the fencer never asked the mark device: this scenario shows nothing");
    ensure!(calls.iter().all(|(_, rc)| *rc == Some(1)), "{calls:#?}");
    ensure!(!fenced, "the cluster believes that the host was fenced");
    ensure!(cloud.lab.view()?.is_online(HOST), "the host did not live on");
    cloud.nothing_was_sent(before)
}

/// The broken variant: an agent that reports success for everything. The cluster takes the running host for a dead one.
fn without_the_refusal_it_counts_as_fenced(cloud: &Cloud, before: &Before) -> anyhow::Result<()> {
    cloud.lab.bmc().set_mark(MarkMode::StandIn)?;
    ensure!(refused(cloud, before).is_err(), "an agent that never refuses passes this scenario");
    ensure!(cloud.lab.is_on(HOST), "the host lost its power: this variant shows nothing");
    // It is lost once more, and not while its connection is being made: then it would never be fenced.
    cloud.lab.wait_until_ready()?;
    cloud.lab.power_off(HOST)
}

/// The same command, with the documented topology.
fn in_order_it_is_reported(cloud: &mut Cloud) -> anyhow::Result<()> {
    let before = cloud.begin()?;
    ensure!(cloud.fence("--fence")?, "the host was not fenced");
    let mark = cloud.wait_for_mark(&before)?;
    cloud.wait_acknowledged(&mark.id)?;
    Ok(())
}
