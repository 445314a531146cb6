//! The whole cluster is stopped and started while a mark is open: what each register promises.

use anyhow::ensure;
use marks::register::Register;
use tests::audit::Excused;

use crate::Scenario;
use crate::cluster::{Before, Cluster, Mark};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("the_whole_cluster_is_stopped_with_the_register_in_attrd", |cluster| attrd(cluster, Stop::Orderly)),
    ("the_whole_cluster_loses_its_power_with_the_register_in_attrd", |cluster| {
        attrd(cluster, Stop::PowerCut)
    }),
];

const HOST: &str = "compute8";

/// How all controllers end.
#[derive(Clone, Copy)]
pub(crate) enum Stop {
    Orderly,
    PowerCut,
}

/// attrd forgets everything when all controllers stop; journals and evidence do not. Where the next active alerter cannot
/// know whether its predecessor told a mark, it holds it, and an operator releases the one that nobody was told; what was
/// told before the stop is not told again by itself. S1-16, S1-23
fn attrd(cluster: &mut Cluster, stop: Stop) -> anyhow::Result<()> {
    let before = stopped_with_an_open_mark(cluster, Register::Attrd, stop)?.0;
    cluster.all_up()?;
    let mark = cluster.wait_mark(&before, HOST, "told or held", |mark| {
        mark.state == "acknowledged" || mark.is_held_as("outcome-unknown")
    })?;
    if mark.state == "held" {
        cluster.on_active(&["nova-host-alerter", "release", &mark.id, "--reason", "nobody was told"])?;
    }
    cluster.wait_mark(&before, HOST, "acknowledged", |mark| mark.state == "acknowledged")?;
    let marks = cluster.marks_since(&before)?;
    let earlier = marks.into_iter().filter(|mark| mark.is_held_as("outcome-unknown") && mark.node != HOST);
    let untold = earlier.map(|mark| (mark.node, "held".to_owned())).collect();
    cluster.audit(before, Excused { untold, ..Excused::default() })
}

/// The CIB is on every controller's disk: whoever becomes active tells the mark by itself, under its old id. S1-16, S1-28
pub(crate) fn cib(cluster: &mut Cluster, stop: Stop) -> anyhow::Result<()> {
    let (before, open) = stopped_with_an_open_mark(cluster, Register::Cib, stop)?;
    cluster.all_up()?;
    let told = cluster.wait_mark(&before, HOST, "acknowledged", |mark| mark.state == "acknowledged")?;
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
    cluster.crash(HOST)?;
    cluster.wait_back(&before, HOST)?;
    let mark = cluster.wait_open(&before, HOST)?;
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
