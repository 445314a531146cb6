//! What `check-config --online` asks before anything fails: whether the rights are there, and every host.

use anyhow::ensure;
use drivers::Finding;
use marks::host::HostName;
use serde_json::json;
use tests::kubernetes::{METAL3, Who};

use crate::Scenario;
use crate::cluster::{Cluster, HOST, ago};
use crate::remediation;

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("each_host_without_a_node_is_named", each_host_without_a_node_is_named),
    ("each_missing_right_is_named", each_missing_right_is_named),
    ("a_check_writes_nothing", a_check_writes_nothing),
];

/// Hosts and words of what was found.
fn found(findings: &[Finding]) -> Vec<(Option<&str>, &str)> {
    findings.iter().map(|one| (one.host.as_ref().map(HostName::as_str), one.why.kind)).collect()
}

fn each_host_without_a_node_is_named(cluster: &mut Cluster) -> anyhow::Result<()> {
    for (who, mode) in [(Who::Taint, "taint"), (Who::Condition, "condition")] {
        cluster.lab.clean()?;
        cluster.lab.node(HOST, ago(60))?;
        let sender = cluster.sender(who, &format!("mode = \"{mode}\""))?;
        let findings = sender.check(&["compute1", "compute2", "compute3"])?;
        let expected = [(Some("compute2"), "unknown-node"), (Some("compute3"), "unknown-node")];
        ensure!(found(&findings) == expected, "{mode}: {findings:?}");
        ensure!(sender.check(&["compute1"])?.is_empty(), "{mode}");
    }
    Ok(())
}

/// One that may read and not write would find out at the failure alone.
fn each_missing_right_is_named(cluster: &mut Cluster) -> anyhow::Result<()> {
    cluster.lab.clean()?;
    cluster.lab.node(HOST, ago(60))?;
    // It may read nodes, and write their status.
    let findings = cluster.sender(Who::Condition, r#"mode = "taint""#)?.check(&["compute1"])?;
    let forbidden: Vec<_> = findings.iter().filter(|one| one.why.kind == "forbidden").collect();
    ensure!(forbidden.len() == 1 && forbidden[0].host.is_none(), "{findings:?}");
    ensure!(forbidden[0].why.detail.contains("patch"), "{findings:?}");
    ensure!(!forbidden[0].why.detail.contains("get"), "a right that is there: {findings:?}");
    let findings = cluster.sender(Who::Nothing, remediation::KEYS)?.check(&["compute1"])?;
    let said: String = findings.iter().map(|one| one.why.detail.as_str()).collect();
    for what in ["machines", "metal3remediations", "create", "delete"] {
        ensure!(said.contains(what), "{what}: {findings:?}");
    }
    Ok(())
}

fn a_check_writes_nothing(cluster: &mut Cluster) -> anyhow::Result<()> {
    cluster.lab.clean()?;
    cluster.lab.node(HOST, ago(60))?;
    cluster.lab.machine("metal", "worker-1", HOST)?;
    cluster.lab.template(METAL3, "metal", "worker", &json!({"spec": {}}))?;
    let kinds = ["nodes", "machines", METAL3.plural].join(",");
    let before = cluster.lab.list(&kinds)?;
    for (who, keys) in [(Who::Taint, r#"mode = "taint""#), (Who::Remediation, remediation::KEYS)] {
        let sender = cluster.sender(who, keys)?;
        ensure!(sender.check(&["compute1"])?.is_empty(), "{who:?}");
        crate::cluster::expect(&sender.test(), "acknowledged")?;
    }
    ensure!(cluster.lab.list(&kinds)? == before);
    Ok(())
}
