//! `mode = "condition"`: a node says that its host was fenced, and who watches for that acts.

use anyhow::ensure;
use serde_json::{Value, json};
use tests::kubernetes::{Kubernetes, Who, second};

use crate::Scenario;
use crate::cluster::{Cluster, HOST, ago, expect, later, mark};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("a_condition_is_set_and_set_back", a_condition_is_set_and_set_back),
    ("other_conditions_stay", other_conditions_stay),
    ("the_condition_of_somebody_else_stays", the_condition_of_somebody_else_stays),
    ("a_return_of_an_earlier_mark_changes_no_condition", a_return_of_an_earlier_mark_changes_no_condition),
    ("a_condition_needs_a_node", a_condition_needs_a_node),
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

/// One of another writer, under the same name, is not set back: the message is not this mark's.
fn the_condition_of_somebody_else_stays(cluster: &mut Cluster) -> anyhow::Result<()> {
    cluster.lab.clean()?;
    cluster.lab.node(HOST, ago(60))?;
    let (sender, mark) = (cluster.sender(Who::Condition, KEYS)?, mark());
    let at = second(ago(10));
    let foreign = json!({"type": "HostFenced", "status": "True", "reason": "ByHand", "message": "somebody was here",
        "lastHeartbeatTime": at, "lastTransitionTime": at});
    let path = format!("/api/v1/nodes/{HOST}/status");
    cluster.lab.patch(&path, &json!({"status": {"conditions": [foreign]}}))?;
    expect(&sender.down(&mark), "acknowledged")?;
    ensure!(condition(&cluster.lab)? == foreign, "{}", condition(&cluster.lab)?);
    expect(&sender.back(&mark), "acknowledged")?;
    ensure!(condition(&cluster.lab)? == foreign, "{}", condition(&cluster.lab)?);
    Ok(())
}

/// The host has failed again.
fn a_return_of_an_earlier_mark_changes_no_condition(cluster: &mut Cluster) -> anyhow::Result<()> {
    cluster.lab.clean()?;
    cluster.lab.node(HOST, ago(60))?;
    let (sender, first) = (cluster.sender(Who::Condition, KEYS)?, mark());
    let second = later(&first);
    expect(&sender.down(&first), "acknowledged")?;
    expect(&sender.down(&second), "acknowledged")?;
    expect(&sender.back(&first), "acknowledged")?;
    expect(&sender.down(&first), "acknowledged")?;
    let seen = condition(&cluster.lab)?;
    ensure!(
        seen["status"] == "True"
            && seen["message"].as_str().unwrap_or_default().contains(&second.id.to_string()),
        "{seen}"
    );
    Ok(())
}

fn a_condition_needs_a_node(cluster: &mut Cluster) -> anyhow::Result<()> {
    cluster.lab.clean()?;
    let (sender, mark) = (cluster.sender(Who::Condition, KEYS)?, mark());
    expect(&sender.down(&mark), "rejected unknown-node")?;
    expect(&sender.back(&mark), "acknowledged")?;
    ensure!(cluster.lab.list("nodes")?.is_empty(), "a node was made");
    Ok(())
}
