//! `mode = "condition"`: a node says that its host was fenced, and who watches for that acts.

use anyhow::ensure;
use serde_json::Value;
use tests::kubernetes::{Kubernetes, Who};

use crate::Scenario;
use crate::cluster::{Cluster, HOST, ago, expect, mark};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("a_condition_is_set_and_set_back", a_condition_is_set_and_set_back),
    ("other_conditions_stay", other_conditions_stay),
];

const KEYS: &str = r#"mode = "condition""#;

/// The only condition of this type.
fn condition(lab: &Kubernetes) -> anyhow::Result<Value> {
    let node = lab.get("node", HOST)?;
    let all = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let mut ours: Vec<Value> = all.into_iter().filter(|one| one["type"] == "HostFenced").collect();
    ensure!(ours.len() < 2, "{ours:?}");
    Ok(ours.pop().unwrap_or_default())
}

/// S4-10: the signal of a condition. Nobody else sets it back: it would outlive the outage.
fn a_condition_is_set_and_set_back(cluster: &mut Cluster) -> anyhow::Result<()> {
    cluster.lab.clean()?;
    cluster.lab.node(HOST, ago(60))?;
    let (sender, mark) = (cluster.sender(Who::Condition, KEYS)?, mark());
    for _ in 0..2 {
        expect(&sender.down(&mark), "acknowledged")?;
        let seen = condition(&cluster.lab)?;
        ensure!(seen["status"] == "True" && seen["reason"] == "PacemakerFenced", "{seen}");
        let message = seen["message"].as_str().unwrap_or_default();
        ensure!(message.contains(&mark.id.to_string()), "{seen}");
        ensure!(seen["lastTransitionTime"].is_string() && seen["lastHeartbeatTime"].is_string(), "{seen}");
    }
    for _ in 0..2 {
        expect(&sender.back(&mark), "acknowledged")?;
        let seen = condition(&cluster.lab)?;
        ensure!(seen["status"] == "False" && seen["reason"] == "HostReturned", "{seen}");
    }
    Ok(())
}

/// The kubelet's own stay as they are. The broken variant writes the list as a whole.
fn other_conditions_stay(cluster: &mut Cluster) -> anyhow::Result<()> {
    cluster.lab.clean()?;
    cluster.lab.node(HOST, ago(60))?;
    let kubelets = |lab: &Kubernetes| {
        let node = lab.get("node", HOST)?;
        let all = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
        Ok::<_, anyhow::Error>(all.into_iter().find(|one| one["type"] == "Ready"))
    };
    let before = kubelets(&cluster.lab)?;
    ensure!(before.is_some());
    let (sender, mark) = (cluster.sender(Who::Condition, KEYS)?, mark());
    expect(&sender.down(&mark), "acknowledged")?;
    ensure!(kubelets(&cluster.lab)? == before);
    expect(&sender.back(&mark), "acknowledged")?;
    ensure!(kubelets(&cluster.lab)? == before);
    Ok(())
}
