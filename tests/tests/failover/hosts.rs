//! Compute hosts that die, and die again, in ways that tempt an alerter to lose, to double or to swap their marks.

use anyhow::ensure;
use tests::audit::Excused;
use tests::lab::{Fault, wait};

use crate::Scenario;
use crate::cluster::{Cluster, FENCED_WITHIN, QUIET};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("twelve_hosts_die_at_once", twelve_hosts_die_at_once),
    ("a_host_dies_again_while_one_route_is_down", a_host_dies_again_while_one_route_is_down),
    ("a_level_without_the_mark_device_is_reported_by_evidence", a_level_without_the_mark_device),
    ("a_dead_power_device_before_a_level_of_marks_notifies_nobody", a_dead_power_device),
];

/// All compute hosts lose their power in the same moment: twelve marks, each sent once. S1-2, S1-13, S1-14
fn twelve_hosts_die_at_once(cluster: &mut Cluster) -> anyhow::Result<()> {
    let before = cluster.begin()?;
    cluster.lab.remotes().try_for_each(|host| cluster.lab.power_off(host))?;
    for host in cluster.lab.remotes() {
        cluster.wait_fenced(&before, host)?;
    }
    cluster.audit(before, Excused::default())
}

/// It dies, returns and dies again within seconds; one route has taken the first mark, the other one is down: each gets
/// both, in order. S1-2, S1-16, S1-53
fn a_host_dies_again_while_one_route_is_down(cluster: &mut Cluster) -> anyhow::Result<()> {
    let before = cluster.begin()?;
    cluster.receivers[1].down();
    for count in 1..=2 {
        cluster.crash("compute3")?;
        wait::until("the open route to be notified", FENCED_WITHIN, || {
            Ok((cluster.notified(&before) == count).then_some(()))
        })?;
        cluster.wait_back(&before, "compute3")?;
    }
    cluster.all_up()?;
    cluster.audit(before, Excused::default())
}

/// A topology that names no mark device: what Pacemaker itself says of the fencing makes the mark. S1-13
fn a_level_without_the_mark_device(cluster: &mut Cluster) -> anyhow::Result<()> {
    let before = cluster.begin()?;
    cluster.set_levels(&["power"])?;
    cluster.crash("compute4")?;
    cluster.wait_fenced(&before, "compute4")?;
    cluster.wait_marks(&before, "compute4", 1)?;
    let calls = cluster.off_calls(&before, "compute4");
    ensure!(calls.is_empty(), "the mark device was asked: {calls:?}");
    cluster.audit(before, Excused::default())
}

/// Power fails in the first level, mark stands alone in the second: it refuses, and nobody is notified until the power device
/// works again and the host is really fenced. S1-3, S1-24
fn a_dead_power_device(cluster: &mut Cluster) -> anyhow::Result<()> {
    let before = cluster.begin()?;
    cluster.set_levels(&["power", "mark"])?;
    cluster.lab.bmc().break_for("compute5", Fault::Dead);
    cluster.crash("compute5")?;
    wait::until("the mark device to refuse", FENCED_WITHIN, || {
        let refused = cluster.off_calls(&before, "compute5").iter().any(|(_, rc)| *rc == Some(1));
        Ok(refused.then_some(()))
    })?;
    cluster.quiet(&before, QUIET)?;
    let marks = cluster.marks_since(&before)?;
    ensure!(marks.is_empty(), "a host that nobody could fence is marked: {marks:?}");
    cluster.lab.bmc().repair();
    // The cluster has given up by now; any change makes it try again.
    cluster.set_property("lab-nudge", "1")?;
    cluster.wait_fenced(&before, "compute5")?;
    let calls = cluster.off_calls(&before, "compute5");
    ensure!(calls.iter().all(|(_, rc)| *rc == Some(1)), "the mark device did not refuse: {calls:?}");
    cluster.audit(before, Excused::default())
}
