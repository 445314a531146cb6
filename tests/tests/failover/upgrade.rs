//! The cluster is upgraded to another release of Pacemaker, one controller after the other, as Pacemaker supports it. Hosts die before,
//! between and after, some of an older release than the controllers and some of a newer one.

use anyhow::{Context, ensure};
use tests::audit::Excused;

use crate::Scenario;
use crate::cluster::Cluster;
use crate::harm::{all_held, confirm};

/// They change the releases of the cluster's nodes for good: a list of its own, `NHA_SCENARIOS=upgrade`.
pub(crate) const SCENARIOS: &[Scenario] =
    &[("hosts_die_while_the_cluster_is_upgraded", hosts_die_while_the_cluster_is_upgraded)];

const OLDER: &str = "bullseye";
const NEWER: &str = "trixie";

/// The alerter runs on the old release, on the new one, and on the old one again. S1-16, S1-21
fn hosts_die_while_the_cluster_is_upgraded(cluster: &mut Cluster) -> anyhow::Result<()> {
    dies(cluster, "compute1")?;
    for (host, release) in [("compute7", NEWER), ("compute8", OLDER)] {
        replace_host(cluster, host, release)?;
        dies(cluster, host)?;
    }
    upgrade(cluster, "ctl3")?;
    dies(cluster, "compute2")?;
    move_alerter(cluster, "ctl3")?;
    dies(cluster, "compute3")?;
    move_alerter(cluster, "ctl1")?;
    dies(cluster, "compute4")?;
    lives(cluster, "compute9")?;
    upgrade(cluster, "ctl2")?;
    upgrade(cluster, "ctl1")?;
    ensure!(dc_version(cluster)?.starts_with("3."), "the DC is not of the new release");
    dies(cluster, "compute5")?;
    dies(cluster, "compute8")?;
    lives(cluster, "compute10")
}

/// A host dies, and both routes are notified once.
fn dies(cluster: &mut Cluster, host: &str) -> anyhow::Result<()> {
    let before = cluster.begin()?;
    cluster.crash(host)?;
    cluster.audit(before, Excused::default()).with_context(|| format!("{host}; {}", versions(cluster)))
}

/// A host that lives is confirmed by hand: its mark is held.
fn lives(cluster: &mut Cluster, host: &str) -> anyhow::Result<()> {
    let before = cluster.begin()?;
    confirm(cluster, host)?;
    all_held(cluster, before, &[host])
}

fn upgrade(cluster: &mut Cluster, controller: &str) -> anyhow::Result<()> {
    cluster.begin()?;
    cluster.lab.shut_down(&[controller])?;
    cluster.lab.change_release(controller, NEWER)?;
    cluster.lab.power_on(controller)?;
    cluster.hosts_return().with_context(|| format!("{controller} of {NEWER} joins"))
}

/// The host's machine is exchanged for one of another release; the cluster fences the old one first.
fn replace_host(cluster: &mut Cluster, host: &str, release: &str) -> anyhow::Result<()> {
    let before = cluster.begin()?;
    cluster.lab.change_release(host, release)?;
    cluster.crash(host)?;
    cluster.audit(before, Excused::default()).with_context(|| format!("{host} of {release}"))
}

/// A mere preference would not outweigh its stickiness.
pub(crate) fn move_alerter(cluster: &Cluster, to: &str) -> anyhow::Result<()> {
    for other in cluster.names().iter().filter(|name| *name != to) {
        cluster.run(&["crm_resource", "--ban", "--resource", "alerter", "--node", other])?;
    }
    cluster
        .lab
        .wait_for("the alerter to move", 60, |view| view.location("alerter").as_deref() == Some(to))?;
    cluster.wait_for_alerter()?;
    cluster.run(&["crm_resource", "--clear", "--resource", "alerter"]).map(drop)
}

fn dc_version(cluster: &Cluster) -> anyhow::Result<String> {
    cluster.run(&["crm_attribute", "--type", "crm_config", "--name", "dc-version", "--query", "--quiet"])
}

fn versions(cluster: &Cluster) -> String {
    dc_version(cluster).map_or_else(|error| format!("{error:#}"), |version| format!("DC {}", version.trim()))
}
