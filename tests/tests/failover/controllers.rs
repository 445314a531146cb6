//! Controllers that are lost, cut off or frozen at the worst moment.

use anyhow::{Context, ensure};
use marks::register::Register;
use tests::audit::Excused;
use tests::lab::{Fault, wait};

use crate::Scenario;
use crate::cluster::{Before, Cluster, FENCED_WITHIN, Mark, QUIET};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("the_controller_that_marked_is_lost", |cluster| the_controller_that_marked(cluster, Register::Attrd)),
    ("the_dc_is_lost_during_the_fencing", the_dc_is_lost_during_the_fencing),
    ("the_alerters_controller_is_lost_while_nobody_listens", the_alerters_controller_is_lost),
    ("a_lost_controller_is_not_reported", a_lost_controller_is_not_reported),
    ("a_partition_heals", a_partition_heals),
    ("without_quorum_nothing_is_sent", without_quorum_nothing_is_sent),
    ("a_frozen_alerter_wakes_up_behind_another", a_frozen_alerter_wakes_up),
];

/// The controller that ran `fence_mark` is lost right after it returned: its journal is gone, the mark is not. S1-16, S1-27
pub(crate) fn the_controller_that_marked(cluster: &mut Cluster, register: Register) -> anyhow::Result<()> {
    let before = cluster.begin_with(register)?;
    let active = cluster.wait_for_alerter()?;
    let known = successes(cluster, "compute1")?;
    cluster.crash("compute1")?;
    let executor = cluster.wait_marked(&before, "compute1")?;
    cluster.lab.power_off(&executor)?;
    cluster.wait_fenced(&before, &executor)?;
    sent_or_released(cluster, &before, "compute1", known)?;
    // Only an alerter that died between its request and the answer may have left a mark to be sent again.
    let excused = if executor == active { in_flight("compute1") } else { Excused::default() };
    cluster.audit(before, excused)
}

/// Pacemaker may have lost the fencing's end with its executor, and fences the host again, unless that is back before: here
/// one boots in seconds. Then nothing but the register says that it was fenced, and an operator decides.
fn sent_or_released(cluster: &Cluster, before: &Before, host: &str, known: usize) -> anyhow::Result<()> {
    let notified = cluster.wait_mark(before, host, "acknowledged", |mark| mark.state == "acknowledged");
    let Err(why) = notified else { return Ok(()) };
    let held = |mark: &Mark| mark.returned_at.is_some() && mark.holds == ["unproven"];
    let mark = cluster.wait_mark(before, host, "held, its host back", held).context(why)?;
    ensure!(successes(cluster, host)? <= known, "Pacemaker knows of {host}, and its mark is held");
    cluster.on_active(&["nova-host-alerter", "release", &mark.id, "--insist", "--reason", "lost"])?;
    cluster.wait_mark(before, host, "acknowledged", |mark| mark.state == "acknowledged").map(drop)
}

/// How many successful fencings of a host Pacemaker remembers.
fn successes(cluster: &Cluster, host: &str) -> anyhow::Result<usize> {
    let all = cluster.lab.fencings(host)?;
    Ok(all.iter().filter(|fencing| fencing.status == "success").count())
}

/// The DC is lost while `fence_mark` runs: however often the next one has the host fenced, it is one mark. S1-53
fn the_dc_is_lost_during_the_fencing(cluster: &mut Cluster) -> anyhow::Result<()> {
    let before = cluster.begin()?;
    let dc = cluster.lab.view()?.dc().context("there is no DC")?;
    // Where the DC holds the connection too, Pacemaker forgets the host: then nobody is to know that it was fenced.
    let host = connected_elsewhere(cluster, &dc)?;
    cluster.lab.bmc().hold_marks(true);
    cluster.crash(&host)?;
    wait::until("the mark device to be asked", FENCED_WITHIN, || {
        Ok((!cluster.off_calls(&before, &host).is_empty()).then_some(()))
    })?;
    cluster.lab.power_off(&dc)?;
    cluster.lab.bmc().hold_marks(false);
    cluster.wait_fenced(&before, &dc)?;
    cluster.audit(before, Excused::default())
}

/// Nobody listens, and the controller with the open mark is lost right after it has answered an operator's pause: another alerter honours
/// the pause, and sends the mark behind its end, under the same id. S1-16, S1-21
fn the_alerters_controller_is_lost(cluster: &mut Cluster) -> anyhow::Result<()> {
    let before = cluster.begin()?;
    cluster.all_down();
    cluster.crash("compute3")?;
    let mark = cluster.wait_open(&before, "compute3")?;
    let active = cluster.wait_for_alerter()?;
    // Here a controller boots in seconds: it could be the next to run the alerter.
    cluster.lab.bmc().break_for(&active, Fault::NoBoot);
    cluster.on_active(&["nova-host-alerter", "pause", "--reason", "its controller will be lost"])?;
    cluster.lab.power_off(&active)?;
    cluster.wait_for_alerter_off(&active)?;
    // It answers before it has read the register.
    cluster.wait_mark(&before, "compute3", "held", |mark| mark.holds == ["pause"])?;
    let ended = cluster.on_active(&["nova-host-alerter", "resume"])?;
    ensure!(ended.starts_with("1 pause(s)"), "the pause went with its controller: {ended}");
    cluster.all_up()?;
    let notified = cluster.wait_mark(&before, "compute3", "acknowledged", |m| m.state == "acknowledged")?;
    ensure!(notified.id == mark.id, "sent as {}, marked as {}", notified.id, mark.id);
    cluster.audit(before, Excused::default())
}

/// Killing a controller raises the same alerts and leaves the same history as that of a compute host. S1-8
fn a_lost_controller_is_not_reported(cluster: &mut Cluster) -> anyhow::Result<()> {
    let before = cluster.begin()?;
    let active = cluster.wait_for_alerter()?;
    let lost = cluster.other_than(&[&active])?;
    cluster.lab.power_off(&lost)?;
    cluster.wait_fenced(&before, &lost)?;
    cluster.wait_for_controllers()?;
    wait::until("the cluster to know that it was fenced", FENCED_WITHIN, || {
        let known = cluster.lab.fencings(&lost)?.iter().any(|fencing| fencing.status == "success");
        Ok(known.then_some(()))
    })?;
    cluster.quiet(&before, QUIET)?;
    let marks = cluster.marks_since(&before)?;
    ensure!(marks.is_empty(), "a controller is marked: {marks:?}");
    cluster.audit(before, Excused::default())
}

/// The alerter's controller is cut off, and cannot be fenced; the others fence and mark a host; then the partition heals.
/// No entry of either side is lost, and the host is reported once. S1-16, S1-27
fn a_partition_heals(cluster: &mut Cluster) -> anyhow::Result<()> {
    let before = cluster.begin()?;
    let active = cluster.wait_for_alerter()?;
    cluster.lab.bmc().break_for(&active, Fault::Dead);
    let host = connected_elsewhere(cluster, &active)?;
    cluster.lab.partition(&active)?;
    cluster.lab.wait_for("the others to miss it", 60, |view| view.is_lost(&active))?;
    cluster.crash(&host)?;
    let executor = cluster.wait_marked(&before, &host)?;
    ensure!(executor != active, "the controller that was cut off has marked");
    cluster.lab.heal(&active)?;
    cluster.wait_for_controllers()?;
    cluster.lab.bmc().repair();
    cluster.audit(before, Excused::default())
}

/// A host whose connection another controller holds, and keeps: nothing is on the move. Of these the one that was fenced least
/// often: where Pacemaker has forgotten the connection of now, a fencing minutes after another one is still the same outage.
fn connected_elsewhere(cluster: &Cluster, active: &str) -> anyhow::Result<String> {
    cluster.lab.wait_until_ready()?;
    let view = cluster.lab.view()?;
    let elsewhere = cluster.lab.remotes().filter(|host| view.location(host).is_some_and(|at| at != active));
    let mut counted = Vec::new();
    for host in elsewhere {
        counted.push((cluster.lab.fencings(host)?.len(), host.to_owned()));
    }
    let least = counted.into_iter().min_by_key(|(fencings, _)| *fencings);
    least.map(|(_, host)| host).context("one controller holds every connection")
}

/// The alerter runs on alone, with an open mark and somebody who listens: without quorum it sends nothing. S0-21
fn without_quorum_nothing_is_sent(cluster: &mut Cluster) -> anyhow::Result<()> {
    let before = cluster.begin()?;
    cluster.all_down();
    cluster.crash("compute4")?;
    cluster.wait_back(&before, "compute4")?;
    cluster.wait_open(&before, "compute4")?;
    let active = cluster.wait_for_alerter()?;
    // Pacemaker would stop it at once: here it is the alerter's own rule that is shown.
    cluster.set_property("no-quorum-policy", "freeze")?;
    let others: Vec<String> = cluster.names().into_iter().filter(|name| *name != active).collect();
    others.iter().try_for_each(|name| cluster.lab.power_off(name))?;
    wait::until("the alerter to miss the quorum", FENCED_WITHIN, || {
        let said = cluster.lab.exec(&active, &["nova-host-alerter", "status"])?;
        Ok(said.out.contains("quorum").then_some(()))
    })?;
    let running = cluster.lab.processes(&active, &crate::cluster::ALERTER)?;
    ensure!(running.len() == 1, "the alerter does not run: this scenario shows nothing");
    cluster.all_up()?;
    cluster.quiet(&before, QUIET)?;
    others.iter().try_for_each(|name| cluster.lab.power_on(name))?;
    cluster.wait_for_controllers()?;
    cluster.set_property("no-quorum-policy", "stop")?;
    cluster.audit(before, Excused::default())
}

/// A whole controller stands still with one mark settled and one open, and the cluster believes that it was fenced.
/// Another alerter sends the open one; the old one wakes up. What is settled stays settled and is not sent again. What
/// was open in both may have been sent by both, since the woken controller's own cluster still shows it the old state:
/// then in the same bytes. S0-21, S1-40
fn a_frozen_alerter_wakes_up(cluster: &mut Cluster) -> anyhow::Result<()> {
    let (settled, open) = ("compute4", "compute5");
    let before = cluster.begin()?;
    cluster.crash(settled)?;
    let notified =
        cluster.wait_mark(&before, settled, "acknowledged", |mark| mark.state == "acknowledged")?;
    cluster.all_down();
    cluster.crash(open)?;
    cluster.wait_back(&before, open)?;
    cluster.wait_open(&before, open)?;
    let active = cluster.wait_for_alerter()?;
    cluster.lab.bmc().break_for(&active, Fault::Lying);
    cluster.is_undead(&active);
    cluster.lab.freeze(&active)?;
    cluster.wait_for_alerter_off(&active)?;
    cluster.all_up()?;
    cluster.wait_mark(&before, open, "acknowledged", |mark| mark.state == "acknowledged")?;
    cluster.lab.thaw(&active)?;
    stays_sent(cluster, &before, &notified.id)?;
    // Now it is really fenced, and the cluster is what it believes to be.
    cluster.lab.bmc().repair();
    cluster.lab.power_off(&active)?;
    cluster.lab.power_on(&active)?;
    cluster.wait_for_controllers()?;
    cluster.audit(before, Excused::default())
}

/// Hosts that the resumed controller drops are fenced, and are reported, this one too if it is among them; but not this mark.
fn stays_sent(cluster: &Cluster, before: &Before, id: &str) -> anyhow::Result<()> {
    let about = || -> anyhow::Result<usize> {
        Ok(crate::truth::notified(cluster, before)?.iter().filter(|notified| notified.id == id).count())
    };
    let known = about()?;
    let end = std::time::Instant::now() + QUIET;
    wait::until("the time to pass", QUIET * 2, || {
        Ok((about()? != known || std::time::Instant::now() >= end).then_some(()))
    })?;
    ensure!(about()? == known, "{id} was sent again: {:#?}", crate::truth::notified(cluster, before)?);
    Ok(())
}

fn in_flight(host: &str) -> Excused {
    Excused { again: [host.to_owned()].into(), ..Excused::default() }
}
