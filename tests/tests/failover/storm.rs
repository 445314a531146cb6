//! Most hosts of a rack die at once, or an operator asks for silence: what is held stays held across a failover, and is sent.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::Value;
use tests::audit::Excused;
use tests::lab::{Fault, wait};

use crate::Scenario;
use crate::cluster::{Before, Cluster, FENCED_WITHIN, Mark, QUIET};
use crate::truth;

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("a_storm_is_held_across_a_failover_until_it_is_released", a_storm_is_held_until_it_is_released),
    ("a_pause_outlives_its_alerter", a_pause_outlives_its_alerter),
];

const RACK1: [&str; 6] = ["compute1", "compute2", "compute3", "compute4", "compute5", "compute6"];
const RACK2: [&str; 6] = ["compute7", "compute8", "compute9", "compute10", "compute11", "compute12"];
/// 40 % of six hosts, rounded down: so many may be down in each rack.
const LIMIT: usize = 2;
const COOLDOWN: Duration = Duration::from_secs(5);

/// A switch dies, and with it all of one rack; in the other rack as many hosts as its limit allows. They are reported at once. Of
/// the first rack no more than the limit are reported, before the others are known; those are held, also by the next alerter
/// when their own is lost with its controller, until an operator releases the rack. Without a
/// limit all are reported: see `twelve_hosts_die_at_once`. S4-11, S4-23, S4-24
fn a_storm_is_held_until_it_is_released(cluster: &mut Cluster) -> anyhow::Result<()> {
    // A confirmation by hand of an earlier scenario would come up on the controller that takes over.
    cluster.begin_again()?;
    let before = cluster.begin_with_groups(&groups())?;
    let active = cluster.wait_for_alerter()?;
    let down = &RACK2[..LIMIT];
    die(cluster, &[&RACK1[..], down].concat())?;
    down.iter().try_for_each(|host| acknowledged(cluster, &before, host))?;
    let held = wait_held(cluster, &before)?;
    shown(cluster)?;

    cluster.lab.bmc().break_for(&active, Fault::NoBoot);
    cluster.lab.power_off(&active)?;
    let next = cluster.wait_for_alerter_off(&active)?;
    let there = wait_held(cluster, &before)?;
    ensure!(held.is_subset(&there), "{active} held {held:?}, {next} holds {there:?}");
    stay_unsent(cluster, &before, &held)?;
    shown(cluster)?;

    let release = ["nova-host-alerter", "release", "--group", "rack1", "--reason", "the switch is dead"];
    cluster.on_active(&release)?;
    RACK1.iter().try_for_each(|host| acknowledged(cluster, &before, host))?;
    cluster.audit(before, Excused::default())
}

/// An operator pauses everything, a host dies, and the alerter moves to another controller: nothing is sent there either,
/// until somebody resumes.
fn a_pause_outlives_its_alerter(cluster: &mut Cluster) -> anyhow::Result<()> {
    let host = RACK1[2];
    let before = cluster.begin()?;
    let active = cluster.wait_for_alerter()?;
    cluster.on_active(&["nova-host-alerter", "pause", "--reason", "the recovery controller is upgraded"])?;
    cluster.crash(host)?;
    let mark = cluster.wait_mark(&before, host, "held by the pause", |mark| mark.is_held_as("pause"))?;
    cluster.quiet(&before, QUIET)?;
    cluster.run(&["crm_resource", "--ban", "--resource", "alerter", "--node", &active])?;
    cluster.wait_for_alerter_off(&active)?;
    cluster.run(&["crm_resource", "--clear", "--resource", "alerter"])?;
    cluster.wait_mark(&before, host, "held there too", |other| {
        other.id == mark.id && other.is_held_as("pause")
    })?;
    cluster.quiet(&before, QUIET)?;
    ensure!(cluster.notified(&before) == 0, "something was sent: {:#?}", truth::notified(cluster, &before)?);
    cluster.on_active(&["nova-host-alerter", "resume", "--reason", "the upgrade is done"])?;
    acknowledged(cluster, &before, host)?;
    cluster.audit(before, Excused::default())
}

fn groups() -> String {
    let seconds = COOLDOWN.as_secs();
    let group = |name: &str, hosts: [&str; 6]| {
        format!("[groups.{name}]\nhosts = {hosts:?}\nmax-unhealthy = \"40%\"\ncooldown = {seconds}\n\n")
    };
    group("rack1", RACK1) + &group("rack2", RACK2)
}

/// They lose their power in the same moment, and nobody gives it back.
fn die(cluster: &Cluster, hosts: &[&str]) -> anyhow::Result<()> {
    hosts.iter().for_each(|host| cluster.lab.bmc().break_for(host, Fault::NoBoot));
    hosts.iter().try_for_each(|host| cluster.lab.power_off(host))
}

fn acknowledged(cluster: &Cluster, before: &Before, host: &str) -> anyhow::Result<()> {
    cluster.wait_mark(before, host, "acknowledged", |mark| mark.state == "acknowledged").map(drop)
}

/// Waits until every host of the first rack is reported or held by the storm, with nothing under way, and gives the marks that
/// were not sent: all but those that were sent before so many were known to be down.
fn wait_held(cluster: &Cluster, before: &Before) -> anyhow::Result<BTreeSet<String>> {
    let mut seen = Vec::new();
    wait::until("the rack to be held", FENCED_WITHIN, || {
        seen = cluster.marks_since(before)?;
        seen.retain(|mark| RACK1.contains(&mark.node.as_str()));
        let is_quiet = |mark: &Mark| mark.deliveries.iter().all(|(_, state, _)| state != "in-flight");
        let is_done =
            |mark: &Mark| mark.state == "acknowledged" || mark.is_held_as("storm") && is_quiet(mark);
        Ok((seen.len() == RACK1.len() && seen.iter().all(is_done)).then_some(()))
    })
    .with_context(|| format!("the marks: {seen:?}"))?;
    let is_not_notified =
        |mark: &&Mark| mark.state == "held" && mark.deliveries.iter().all(|(_, _, attempts)| *attempts == 0);
    let held: BTreeSet<String> = seen.iter().filter(is_not_notified).map(|mark| mark.id.clone()).collect();
    ensure!(held.len() >= RACK1.len() - LIMIT, "more hosts were reported than the limit allows: {seen:?}");
    no_post(cluster, before, &held)?;
    Ok(held)
}

/// That nobody was sent any of these marks.
fn no_post(cluster: &Cluster, before: &Before, marks: &BTreeSet<String>) -> anyhow::Result<()> {
    let mut notified = truth::notified(cluster, before)?;
    notified.retain(|notified| marks.contains(&notified.id));
    ensure!(notified.is_empty(), "sent though they are held: {notified:#?}");
    Ok(())
}

/// That nobody is sent any of these marks for a while.
fn stay_unsent(cluster: &Cluster, before: &Before, marks: &BTreeSet<String>) -> anyhow::Result<()> {
    let end = Instant::now() + QUIET;
    loop {
        no_post(cluster, before, marks)?;
        if Instant::now() >= end {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// What `status` says of both racks: one in a storm, one at its limit.
fn shown(cluster: &Cluster) -> anyhow::Result<()> {
    let (first, second) = (group(cluster, "rack1")?, group(cluster, "rack2")?);
    let number =
        |group: &Value, key: &str| group[key].as_u64().and_then(|number| usize::try_from(number).ok());
    let sizes = |group: &Value| ["size", "unhealthy", "allowed"].map(|key| number(group, key));
    ensure!(sizes(&first) == [Some(6), Some(6), Some(0)], "{first}");
    ensure!(number(&first["held"], "storm") >= Some(RACK1.len() - LIMIT), "{first}");
    ensure!(first["storm_since"].is_string(), "{first}");
    ensure!(sizes(&second) == [Some(6), Some(LIMIT), Some(0)], "{second}");
    ensure!(second["marked"] == 0 && second["storm_since"].is_null(), "{second}");
    Ok(())
}

fn group(cluster: &Cluster, name: &str) -> anyhow::Result<Value> {
    let status = cluster.on_active(&["nova-host-alerter", "status", "--json"])?;
    let status: Value = serde_json::from_str(&status)?;
    let groups = status["daemon"]["groups"].as_array().context("status lists no groups")?;
    groups.iter().find(|group| group["name"] == name).cloned().context("no such group")
}
