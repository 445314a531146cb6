//! A controller whose journal is of another release than its programs: the package went back over a schema in an outage.

use anyhow::{Context, ensure};
use rusqlite::Connection;
use tests::audit::Excused;
use tests::lab::wait;
use tests::releases::NEXT;

use crate::Scenario;
use crate::cluster::{Cluster, FENCED_WITHIN};

pub(crate) const SCENARIOS: &[Scenario] =
    &[("a_journal_of_the_next_release_stops_one_controller", a_journal_of_the_next_release)];

const STATE: &str = "/var/lib/nova-host-alerter";

/// The alerter's controller goes back over a schema while a mark is open: its alerter says why it does not start, another controller's
/// reports the host under the id of before, and what `docs/upgrade.md` says brings the controller back. It begins again, since what an earlier
/// scenario confirmed by hand would come up once more, as that document says. S1-16, S1-27
fn a_journal_of_the_next_release(cluster: &mut Cluster) -> anyhow::Result<()> {
    let before = cluster.begin_again()?;
    cluster.all_down();
    cluster.crash("compute6")?;
    let mark = cluster.wait_open(&before, "compute6")?;
    let active = cluster.wait_for_alerter()?;
    let journal =
        cluster.lab.directory().join("nodes").join(&active).join("var-lib/nova-host-alerter/marks.db");
    Connection::open(&journal)?.execute_batch(NEXT).context("the journal of the next release")?;
    let pid = cluster.lab.exec(&active, &["cat", &format!("{STATE}/marks.db.lock")])?.success()?;
    let pid = pid.split_whitespace().next().context("an empty lock")?.to_owned();
    cluster.lab.exec(&active, &["kill", "-KILL", &pid])?.success()?;
    cluster.wait_for_alerter_off(&active)?;
    wait::until("Pacemaker to show why", FENCED_WITHIN, || {
        let shown = cluster.run(&["crm_mon", "--one-shot"])?;
        Ok(shown.contains("but this release supports only 1: install the newer release again").then_some(()))
    })?;
    cluster.all_up()?;
    let notified =
        cluster.wait_mark(&before, "compute6", "acknowledged", |mark| mark.state == "acknowledged")?;
    ensure!(notified.id == mark.id, "sent as {}, marked as {}", notified.id, mark.id);
    take_back(cluster, &active)?;
    cluster.crash("compute7")?;
    cluster.wait_mark(&before, "compute7", "acknowledged", |mark| mark.state == "acknowledged")?;
    cluster.audit(before, Excused::default())
}

/// By the commands of `docs/upgrade.md`, and then the alerter may run nowhere else.
fn take_back(cluster: &Cluster, controller: &str) -> anyhow::Result<()> {
    let aside = "set -e; mkdir -p newer-journal; mv marks.db* newer-journal";
    cluster.lab.exec(controller, &["sh", "-c", &format!("cd {STATE}; {aside}")])?.success()?;
    cluster.run(&["crm_resource", "--cleanup", "--resource", "alerter"])?;
    for other in cluster.names().iter().filter(|name| *name != controller) {
        cluster.run(&["crm_resource", "--ban", "--resource", "alerter", "--node", other])?;
    }
    wait::until("the alerter to run where it could not", FENCED_WITHIN, || {
        Ok((cluster.wait_for_alerter()? == controller).then_some(()))
    })?;
    cluster.run(&["crm_resource", "--clear", "--resource", "alerter"]).map(drop)
}
