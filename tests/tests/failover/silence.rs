//! A cluster in which nothing happens: nobody is notified, no problem is listed, and no warning is logged.

use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::Value;
use tests::audit::Excused;
use tests::lab::wait;

use crate::Scenario;
use crate::cluster::Cluster;

/// A list of its own, for each release: `NHA_SCENARIOS=silence`, for `NHA_SILENCE` seconds.
pub(crate) const SCENARIOS: &[Scenario] = &[("a_healthy_cluster_is_silent", a_healthy_cluster_is_silent)];

/// Longer than a host may be away before it is reported (300 s).
const LONG_ENOUGH: u64 = 400;

/// On Pacemaker 3.0 every healthy host was reported as lost after 300 s. The broken variant is a host that really is away.
fn a_healthy_cluster_is_silent(cluster: &mut Cluster) -> anyhow::Result<()> {
    let seconds = std::env::var("NHA_SILENCE").ok().and_then(|text| text.parse().ok()).unwrap_or(LONG_ENOUGH);
    let before = cluster.begin()?;
    cluster.quiet(&before, Duration::from_secs(seconds))?;
    let troubles = troubles(cluster)?;
    ensure!(troubles.is_empty(), "{troubles:#?}");
    cluster.audit(before, Excused::default())?;
    // It is to be connected, and nobody fences it.
    cluster.set_property("stonith-enabled", "false")?;
    cluster.lab.power_off("compute1")?;
    wait::until("the host that is away to be reported", Duration::from_secs(2 * LONG_ENOUGH), || {
        let said = self::troubles(cluster)?;
        Ok(said.iter().any(|trouble| trouble.contains("compute1")).then_some(()))
    })?;
    cluster.lab.power_on("compute1")?;
    cluster.set_property("stonith-enabled", "true")
}

/// What `status` says is wrong.
fn troubles(cluster: &Cluster) -> anyhow::Result<Vec<String>> {
    let status: Value =
        serde_json::from_str(&cluster.on_active(&["nova-host-alerter", "status", "--json"])?)?;
    let all = status["problems"].as_array().context("status has no problems")?;
    Ok(all.iter().map(ToString::to_string).collect())
}
