//! A cluster of release 0.1.0 is upgraded, one controller after the other, while hosts die: `tests/former.sh` builds its programs from
//! this repository's own history.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use tests::audit::Excused;
use tests::programs;

use crate::Scenario;
use crate::cluster::{Before, Cluster};
use crate::upgrade::move_alerter;
use crate::whole::{self, Stop};

pub(crate) const SCENARIOS: &[Scenario] =
    &[("both_releases_in_one_cluster_report_every_host_once", both_releases_in_one_cluster)];

const RELEASE: &str = "0.1.0";
/// Where a node has the programs of that release, and what they are put over.
const PLACE: &str = "/run/lab/bin/former";
const OVER: [(&str, &str); 2] =
    [("nova-host-alerter", "/usr/sbin/nova-host-alerter"), ("fence_mark", "/run/lab/bin/fence_mark.real")];

/// The alerter runs on 0.1.0, on a controller that was upgraded, on 0.1.0 again, and on this release for good; marks are open while it
/// moves, and hosts die under each. Every host is notified once to each route, under one id. S4-50
fn both_releases_in_one_cluster(cluster: &mut Cluster) -> anyhow::Result<()> {
    let before = cluster.begin_again_with_former()?;
    cluster.stop_alerter()?;
    // attrd forgets what this release has written.
    whole::restart(cluster, Stop::Orderly)?;
    cluster.put_journals_aside()?;
    provide(cluster)?;
    cluster.names().iter().try_for_each(|name| go_back(cluster, name))?;
    cluster.set_alerter_role("Started")?;
    let first = cluster.wait_for_alerter()?;
    ensure!(release_on(cluster, &first)?.contains(RELEASE), "{first} has {}", release_on(cluster, &first)?);
    notified(cluster, &before, "compute1")?;
    let second = cluster.other_than(&[&first])?;
    upgrade(cluster, &second)?;
    moves_with_an_open_mark(cluster, &before, "compute2", &second)?;
    ensure!(!release_on(cluster, &second)?.contains(RELEASE), "{second} was not upgraded");
    notified(cluster, &before, "compute3")?;
    moves_with_an_open_mark(cluster, &before, "compute4", &first)?;
    notified(cluster, &before, "compute5")?;
    let third = cluster.other_than(&[&first, &second])?;
    upgrade(cluster, &third)?;
    moves_with_an_open_mark(cluster, &before, "compute6", &third)?;
    upgrade(cluster, &first)?;
    notified(cluster, &before, "compute7")?;
    cluster.audit(before, Excused::default())
}

/// A host dies and is notified.
fn notified(cluster: &mut Cluster, before: &Before, host: &str) -> anyhow::Result<()> {
    cluster.crash(host)?;
    cluster.wait_mark(before, host, "acknowledged", |mark| mark.state == "acknowledged")?;
    cluster.wait_back(before, host)
}

/// Nobody takes the mark of a host before the alerter has moved.
fn moves_with_an_open_mark(
    cluster: &mut Cluster,
    before: &Before,
    host: &str,
    to: &str,
) -> anyhow::Result<()> {
    cluster.all_down();
    cluster.crash(host)?;
    cluster.wait_back(before, host)?;
    let open = cluster.wait_open(before, host)?;
    move_alerter(cluster, to)?;
    cluster.all_up()?;
    let notified = cluster
        .wait_mark(before, host, "acknowledged", |mark| mark.state == "acknowledged")
        .with_context(|| format!("the alerter moved to {to}"))?;
    ensure!(notified.id == open.id, "{host} is sent as {}, and was marked as {}", notified.id, open.id);
    Ok(())
}

/// Puts the programs where the nodes find them.
fn provide(cluster: &Cluster) -> anyhow::Result<()> {
    let place = cluster.lab.directory().join("shared/bin/former");
    fs::create_dir_all(&place)?;
    for (program, _) in OVER {
        let built = built()?.join(program);
        let copied = fs::copy(&built, place.join(program));
        copied.with_context(|| format!("{} is missing: run tests/former.sh", built.display()))?;
    }
    Ok(())
}

fn built() -> anyhow::Result<PathBuf> {
    let program = programs::built("nova-host-alerter")?;
    let target = program.ancestors().nth(2).context("no target directory")?;
    Ok(target.join("former"))
}

fn go_back(cluster: &Cluster, controller: &str) -> anyhow::Result<()> {
    OVER.iter().try_for_each(|(program, over)| {
        let bind = ["mount", "--bind", &format!("{PLACE}/{program}"), over];
        cluster.lab.exec(controller, &bind)?.success().map(drop)
    })
}

/// A package is exchanged under a daemon that runs: it goes on with what it has.
fn upgrade(cluster: &Cluster, controller: &str) -> anyhow::Result<()> {
    OVER.iter().try_for_each(|(_, over)| {
        cluster.lab.exec(controller, &["umount", "--lazy", over])?.success().map(drop)
    })
}

fn release_on(cluster: &Cluster, controller: &str) -> anyhow::Result<String> {
    cluster.lab.exec(controller, &["nova-host-alerter", "--version"])?.success()
}
