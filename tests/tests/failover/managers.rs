//! Pacemaker's own daemons die or hang while marks stand in them.

use std::time::Duration;

use anyhow::ensure;
use marks::id::FencingId;
use marks::register::{Key, Register};
use nix::sys::signal::Signal;
use tests::audit::Excused;
use tests::lab::wait;

use crate::Scenario;
use crate::cluster::{Cluster, FENCED_WITHIN};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("the_attribute_managers_are_killed", the_attribute_managers_are_killed),
    ("the_cib_manager_hangs_for_a_while", the_cib_manager_hangs_for_a_while),
];

/// Every attribute manager is killed, one after the other, while a mark is open: the register comes back from the peers,
/// and the alerter publishes the rest again. S1-27
fn the_attribute_managers_are_killed(cluster: &mut Cluster) -> anyhow::Result<()> {
    let before = cluster.begin_with(Register::Attrd)?;
    cluster.all_down();
    cluster.crash("compute6")?;
    let mark = cluster.wait_open(&before, "compute6")?;
    for controller in cluster.names() {
        kill_attrd(cluster, &controller)?;
        stands(cluster, &controller, &mark.id)?;
    }
    cluster.all_up()?;
    cluster.audit(before, Excused::default())
}

fn kill_attrd(cluster: &Cluster, controller: &str) -> anyhow::Result<()> {
    let attrd = ["pacemaker-attrd"];
    let killed = cluster.lab.processes(controller, &attrd)?;
    ensure!(cluster.lab.signal(controller, &attrd, Signal::SIGKILL)? == 1, "{controller} runs no attrd");
    wait::until("another attribute manager", FENCED_WITHIN, || {
        let now = cluster.lab.processes(controller, &attrd)?;
        Ok((!now.is_empty() && now != killed).then_some(()))
    })
}

/// The mark's fencing stands in the register as this controller sees it.
fn stands(cluster: &Cluster, controller: &str, id: &str) -> anyhow::Result<()> {
    let key = Key::Fencing(FencingId::parse(id)?);
    wait::until(&format!("{key} to be seen on {controller}"), FENCED_WITHIN, || {
        let entries = cluster.lab.register(controller, Register::Attrd)?;
        Ok(entries.sound.contains_key(&key).then_some(()))
    })
}

/// The CIB manager beside the alerter stands still for eight seconds while a host dies: the mark waits, and is sent. S1-26
fn the_cib_manager_hangs_for_a_while(cluster: &mut Cluster) -> anyhow::Result<()> {
    let before = cluster.begin()?;
    let active = cluster.wait_for_alerter()?;
    let based = ["pacemaker-based"];
    ensure!(cluster.lab.signal(&active, &based, Signal::SIGSTOP)? >= 1, "{active} runs no CIB manager");
    cluster.crash("compute7")?;
    // A fixed time: the manager must stand still for so long.
    std::thread::sleep(Duration::from_secs(8));
    // Pacemaker may have killed it by now because it hung.
    cluster.lab.signal(&active, &based, Signal::SIGCONT)?;
    cluster.wait_fenced(&before, "compute7")?;
    // Pacemaker may also fence a controller whose daemon hung: its alerter may have had the mark in flight.
    let excused = Excused { again: ["compute7".to_owned()].into(), ..Excused::default() };
    cluster.audit(before, excused)
}
