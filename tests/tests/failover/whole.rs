//! The whole cluster is stopped and started while a mark is open: what each register promises.

use anyhow::ensure;
use marks::register::Register;
use tests::audit::Excused;
use tests::lab::{Fault, wait};

use crate::Scenario;
use crate::cluster::{Before, Cluster, Mark, NOTIFIED_WITHIN, QUIET};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("the_whole_cluster_is_stopped_with_the_register_in_attrd", |cluster| attrd(cluster, Stop::Orderly)),
    ("the_whole_cluster_loses_its_power_with_the_register_in_attrd", |cluster| {
        attrd(cluster, Stop::PowerCut)
    }),
    ("an_open_mark_of_an_old_journal_is_held", an_open_mark_of_an_old_journal_is_held),
];

const HOST: &str = "compute8";

/// How all controllers end.
#[derive(Clone, Copy)]
pub(crate) enum Stop {
    Orderly,
    PowerCut,
}

/// attrd forgets everything when all controllers stop; journals and evidence do not. Where the next active alerter cannot
/// know whether its predecessor sent a mark, it holds it, and an operator releases the one that was not sent; what was
/// sent before the stop is not sent again by itself. S1-16, S1-23
fn attrd(cluster: &mut Cluster, stop: Stop) -> anyhow::Result<()> {
    let before = cluster.begin_again_with(Register::Attrd)?;
    stopped_with_an_open_mark(cluster, &before, stop)?;
    cluster.all_up()?;
    let mark = cluster.wait_mark(&before, HOST, "acknowledged or held", |mark| {
        mark.state == "acknowledged" || mark.is_held_as("outcome-unknown")
    })?;
    if mark.state == "held" {
        cluster.on_active(&[
            "nova-host-alerter",
            "release",
            &mark.id,
            "--insist",
            "--reason",
            "nobody was notified",
        ])?;
    }
    cluster.wait_mark(&before, HOST, "acknowledged", |mark| mark.state == "acknowledged")?;
    let marks = cluster.marks_since(&before)?;
    let earlier = marks.into_iter().filter(|mark| mark.is_held_as("outcome-unknown") && mark.node != HOST);
    let not_notified = earlier.map(|mark| (mark.node, "held".to_owned())).collect();
    cluster.audit(before, Excused { not_notified, ..Excused::default() })
}

/// The CIB is on every controller's disk: the next active alerter sends the mark by itself, under its old id. S1-16, S1-28
pub(crate) fn cib(cluster: &mut Cluster, stop: Stop) -> anyhow::Result<()> {
    let before = cluster.begin_with(Register::Cib)?;
    let open = stopped_with_an_open_mark(cluster, &before, stop)?;
    cluster.all_up()?;
    let notified = cluster.wait_mark(&before, HOST, "acknowledged", |mark| mark.state == "acknowledged")?;
    ensure!(notified.id == open.id, "sent as {}, marked as {}", notified.id, open.id);
    cluster.audit(before, Excused::default())
}

fn stopped_with_an_open_mark(cluster: &mut Cluster, before: &Before, stop: Stop) -> anyhow::Result<Mark> {
    let mark = open_mark_of_a_host_that_is_back(cluster, before)?;
    restart(cluster, stop)?;
    cluster.wait_for_alerter()?;
    Ok(mark)
}

fn open_mark_of_a_host_that_is_back(cluster: &mut Cluster, before: &Before) -> anyhow::Result<Mark> {
    cluster.all_down();
    cluster.crash(HOST)?;
    cluster.wait_back(before, HOST)?;
    cluster.wait_open(before, HOST)?;
    // What no alerter has seen is forgotten with the cluster: a host that is lost as it boots would still be in this outage.
    cluster.wait_mark(before, HOST, "back", |mark| mark.returned_at.is_some())
}

/// Ends all controllers, and boots them.
pub(crate) fn restart(cluster: &Cluster, stop: Stop) -> anyhow::Result<()> {
    let names = cluster.names();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    match stop {
        Stop::Orderly => cluster.lab.shut_down(&names)?,
        Stop::PowerCut => names.iter().try_for_each(|name| cluster.lab.power_off(name))?,
    }
    names.iter().try_for_each(|name| cluster.lab.power_on(name))?;
    cluster.wait_for_controllers()
}

/// An alerter is lost with an open mark, and another one sends it. Then all controllers stop, which forgets the register,
/// and the first one is the next to be active: its journal has the mark open still, and the host is back. It was sent:
/// held, not sent again. S1-16, S1-21
fn an_open_mark_of_an_old_journal_is_held(cluster: &mut Cluster) -> anyhow::Result<()> {
    let before = cluster.begin_again_with(Register::Attrd)?;
    let mark = open_mark_of_a_host_that_is_back(cluster, &before)?;
    let first = cluster.wait_for_alerter()?;
    cluster.lab.bmc().break_for(&first, Fault::NoBoot);
    cluster.lab.power_off(&first)?;
    cluster.wait_for_alerter_off(&first)?;
    cluster.all_up()?;
    cluster.wait_mark(&before, HOST, "acknowledged", |mark| mark.state == "acknowledged")?;
    cluster.wait_fenced(&before, &first)?;
    cluster.lab.bmc().repair();
    cluster.lab.power_on(&first)?;
    cluster.wait_for_controllers()?;
    cluster.audit_now(&before, &Excused::default())?;
    cluster.stop_alerter()?;
    for other in cluster.names().iter().filter(|name| **name != first) {
        cluster.run(&["crm_resource", "--ban", "--resource", "alerter", "--node", other])?;
    }
    let notified = cluster.notified(&before);
    restart(cluster, Stop::Orderly)?;
    cluster.set_alerter_role("Started")?;
    ensure!(cluster.wait_for_alerter()? == first, "the alerter is not where its old journal is");
    wait::until("the mark to be held", NOTIFIED_WITHIN, || {
        let found = cluster.marks()?.into_iter().find(|listed| listed.id == mark.id);
        Ok(found.is_some_and(|listed| listed.is_held_as("outcome-unknown")).then_some(()))
    })?;
    cluster.quiet(&before, QUIET)?;
    let sent = crate::truth::notified(cluster, &before)?;
    ensure!(cluster.notified(&before) == notified, "something was sent: {sent:#?}");
    Ok(())
}
