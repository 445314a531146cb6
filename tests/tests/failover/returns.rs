//! Routes that are notified of returns: behind the failure, once the host is back, over everything that may come between.

use anyhow::{Context as _, ensure};
use tests::audit::Excused;
use tests::lab::{Fault, wait};

use crate::Scenario;
use crate::cluster::{Before, Cluster, NOTIFIED_WITHIN};
use crate::truth;

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("every_receiver_is_notified_of_a_return", every_receiver_is_notified_of_a_return),
    ("a_host_returns_during_a_dead_endpoint", a_host_returns_during_a_dead_endpoint),
    ("a_return_outlives_its_controller", a_return_outlives_its_controller),
];

/// Fenced, back, fenced again, back: two outages, two ids, in this order, each with its return, on every route. S1-40, S1-53, S4-34
fn every_receiver_is_notified_of_a_return(cluster: &mut Cluster) -> anyhow::Result<()> {
    let before = cluster.begin_with_returns()?;
    for count in 1..=2 {
        cluster.crash("compute1")?;
        cluster.wait_back(&before, "compute1")?;
        wait_returns(cluster, &before, "compute1", count)?;
    }
    let marks = cluster.wait_marks(&before, "compute1", 2)?;
    ensure!(marks[0].id != marks[1].id, "{marks:?}");
    cluster.audit(before, Excused::default())
}

/// Its machines died all the same: a mark outlives the return of its host, and is sent when somebody listens. The failure first, then the
/// return: the audit finds any other order. The broken variant sends the return when the host is back. S1-16, S1-54
fn a_host_returns_during_a_dead_endpoint(cluster: &mut Cluster) -> anyhow::Result<()> {
    let before = cluster.begin_with_returns()?;
    cluster.all_down();
    cluster.crash("compute2")?;
    cluster.wait_back(&before, "compute2")?;
    cluster.wait_open(&before, "compute2")?;
    cluster.all_up()?;
    wait_returns(cluster, &before, "compute2", 1)?;
    cluster.audit(before, Excused::default())
}

/// The receivers have the failure and go away; the host is back; the controller with the open return is lost. Another alerter
/// sends the return, with the same bytes.
fn a_return_outlives_its_controller(cluster: &mut Cluster) -> anyhow::Result<()> {
    let before = cluster.begin_with_returns()?;
    cluster.lab.bmc().break_for("compute3", Fault::NoBoot);
    cluster.crash("compute3")?;
    cluster.wait_mark(&before, "compute3", "acknowledged", |mark| mark.state == "acknowledged")?;
    cluster.all_down();
    cluster.lab.bmc().repair();
    cluster.lab.power_on("compute3")?;
    cluster.wait_back(&before, "compute3")?;
    cluster.wait_mark(&before, "compute3", "on its way back", |mark| {
        !mark.returns.is_empty() && mark.returns.iter().all(|(_, _, attempts)| *attempts > 0)
    })?;
    let active = cluster.wait_for_alerter()?;
    // Here a controller boots in seconds: it could be the next to run the alerter.
    cluster.lab.bmc().break_for(&active, Fault::NoBoot);
    cluster.lab.power_off(&active)?;
    cluster.wait_for_alerter_off(&active)?;
    cluster.all_up()?;
    wait_returns(cluster, &before, "compute3", 1)?;
    cluster.audit(before, Excused::default())
}

/// Waits until each receiver has so many returns of the host.
fn wait_returns(cluster: &Cluster, before: &Before, host: &str, count: usize) -> anyhow::Result<()> {
    let marks = cluster.wait_marks(before, host, count)?;
    let ids: Vec<&str> = marks.iter().map(|mark| mark.id.as_str()).collect();
    let has_all = |receiver: &tests::receiver::Receiver| {
        let received = receiver.received();
        ids.iter().all(|id| received.iter().any(|request| truth::is_return_of(request, id)))
    };
    wait::until(&format!("{count} returns of {host} everywhere"), NOTIFIED_WITHIN, || {
        Ok(cluster.receivers.iter().all(has_all).then_some(()))
    })
    .with_context(|| format!("{:?}", cluster.marks()))?;
    ensure!(ids.len() == count, "{ids:?}");
    Ok(())
}
