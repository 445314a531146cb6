//! The whole cluster is stopped and started while a mark is open: what each register promises.

use anyhow::ensure;
use marks::register::Register;
use tests::audit::Excused;
use tests::lab::wait;

use crate::Scenario;
use crate::cluster::{Before, Cluster, Mark, TOLD_WITHIN};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("the_whole_cluster_is_stopped_with_the_register_in_attrd", |cluster| attrd(cluster, Stop::Orderly)),
    ("the_whole_cluster_loses_its_power_with_the_register_in_attrd", |cluster| {
        attrd(cluster, Stop::PowerCut)
    }),
];

/// How all controllers end.
#[derive(Clone, Copy)]
pub(crate) enum Stop {
    Orderly,
    PowerCut,
}

/// attrd forgets everything when all controllers stop; journals and evidence do not. Where the next active alerter cannot
/// know whether its predecessor told the mark, it holds it, and an operator releases it. S1-16, S1-23
fn attrd(cluster: &mut Cluster, stop: Stop) -> anyhow::Result<()> {
    let before = stopped_with_an_open_mark(cluster, Register::Attrd, stop)?.0;
    cluster.all_up()?;
    let mark = wait::until("the mark to be told or held", TOLD_WITHIN, || {
        let found = cluster.marks_since(&before)?.into_iter().find(|mark| mark.state != "open");
        Ok(found.filter(|mark| mark.state == "acknowledged" || mark.is_held_as("outcome-unknown")))
    })?;
    if mark.state == "held" {
        cluster.on_active(&["nova-host-alerter", "release", &mark.id, "--reason", "nobody was told"])?;
    }
    cluster.audit(before, Excused::default())
}

/// The CIB is on every controller's disk: whoever becomes active tells the mark by itself, under its old id. S1-16, S1-28
pub(crate) fn cib(cluster: &mut Cluster, stop: Stop) -> anyhow::Result<()> {
    let (before, open) = stopped_with_an_open_mark(cluster, Register::Cib, stop)?;
    cluster.all_up()?;
    let told = cluster.wait_mark(&before, "compute8", "acknowledged", |mark| mark.state == "acknowledged")?;
    ensure!(told.id == open.id, "told as {}, marked as {}", told.id, open.id);
    cluster.audit(before, Excused::default())
}

fn stopped_with_an_open_mark(
    cluster: &mut Cluster,
    register: Register,
    stop: Stop,
) -> anyhow::Result<(Before, Mark)> {
    let before = cluster.begin_with(register)?;
    cluster.all_down();
    cluster.crash("compute8")?;
    cluster.wait_back(&before, "compute8")?;
    let mark = cluster.wait_open(&before, "compute8")?;
    let names = cluster.names();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    match stop {
        Stop::Orderly => cluster.lab.shut_down(&names)?,
        Stop::PowerCut => names.iter().try_for_each(|name| cluster.lab.power_off(name))?,
    }
    names.iter().try_for_each(|name| cluster.lab.power_on(name))?;
    cluster.wait_for_controllers()?;
    cluster.wait_for_alerter()?;
    Ok((before, mark))
}
