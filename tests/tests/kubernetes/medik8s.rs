//! `contract = "medik8s"`: the object has the name of the node, and stands beside its template.

use anyhow::ensure;
use serde_json::json;
use tests::kubernetes::{FENCE_AGENTS, Who};

use crate::Scenario;
use crate::cluster::{Cluster, HOST, Sender, ago, expect, later, mark, marked};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("a_node_is_remediated_by_an_object_of_its_name", a_node_is_remediated_by_an_object_of_its_name),
    ("a_node_of_the_control_plane_is_labelled_as_one", a_node_of_the_control_plane_is_labelled_as_one),
    ("medik8s_is_asked_what_became_of_it", medik8s_is_asked_what_became_of_it),
    ("what_medik8s_itself_has_made_stays", what_medik8s_itself_has_made_stays),
];

pub(crate) const KEYS: &str = r#"mode = "remediation"
contract = "medik8s"
template-api-version = "fence-agents-remediation.medik8s.io/v1alpha1"
template-kind = "FenceAgentsRemediationTemplate"
template-name = "far"
template-namespace = "other""#;
const CONTROL_PLANE: &str = "remediation.medik8s.io/isControlPlaneNode";

pub(crate) fn stage(cluster: &mut Cluster, keys: &str) -> anyhow::Result<Sender> {
    cluster.lab.clean()?;
    cluster.lab.node(HOST, ago(60))?;
    let spec = json!({"agent": "fence_ipmilan", "sharedparameters": {"--lanplus": ""}});
    cluster.lab.template(FENCE_AGENTS, "other", "far", &json!({ "spec": spec }))?;
    cluster.sender(Who::Medik8s, &format!("{KEYS}\n{keys}"))
}

/// S4-10, S4-54
fn a_node_is_remediated_by_an_object_of_its_name(cluster: &mut Cluster) -> anyhow::Result<()> {
    let (sender, first) = (stage(cluster, "")?, mark());
    for _ in 0..2 {
        expect(&sender.down(&first), "acknowledged")?;
        let one = cluster.lab.only(FENCE_AGENTS)?;
        let (metadata, annotations) = (&one["metadata"], &one["metadata"]["annotations"]);
        ensure!(metadata["name"] == HOST && metadata["namespace"] == "other", "{metadata}");
        ensure!(
            metadata["labels"]["app.kubernetes.io/part-of"] == "node-healthcheck-controller",
            "{metadata}"
        );
        ensure!(metadata["labels"][CONTROL_PLANE].is_null(), "{metadata}");
        ensure!(annotations["remediation.medik8s.io/node-name"] == HOST, "{annotations}");
        ensure!(annotations["remediation.medik8s.io/template-name"] == "far", "{annotations}");
        ensure!(marked(&one) == Some(first.id.to_string()), "{annotations}");
        ensure!(one["spec"]["sharedparameters"]["--lanplus"] == "", "{}", one["spec"]);
    }
    let second = later(&first);
    expect(&sender.back(&second), "acknowledged")?;
    ensure!(cluster.lab.only(FENCE_AGENTS).is_ok(), "another mark's return has ended it");
    expect(&sender.back(&first), "acknowledged")?;
    ensure!(cluster.lab.list(FENCE_AGENTS.plural)?.is_empty());
    Ok(())
}

/// Under the label of today, and under that of older releases.
fn a_node_of_the_control_plane_is_labelled_as_one(cluster: &mut Cluster) -> anyhow::Result<()> {
    for role in ["control-plane", "master"] {
        let sender = stage(cluster, "")?;
        let label = format!("node-role.kubernetes.io/{role}=");
        cluster.lab.kubectl(&["label", "node", HOST, &label], None)?;
        expect(&sender.down(&mark()), "acknowledged")?;
        let labels = cluster.lab.only(FENCE_AGENTS)?["metadata"]["labels"].clone();
        ensure!(labels[CONTROL_PLANE] == "", "{role}: {labels}");
    }
    Ok(())
}

fn medik8s_is_asked_what_became_of_it(cluster: &mut Cluster) -> anyhow::Result<()> {
    for (status, expected) in [("True", "acknowledged"), ("False", "rejected recovery-failed")] {
        let (sender, mark) = (stage(cluster, "confirm = true")?, mark());
        expect(&sender.down(&mark), "acknowledged")?;
        let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "reason": "RemediationStarted"});
        let both = |status: &str| json!({"conditions": [condition("Processing", "True"), condition("Succeeded", status)]});
        cluster.lab.report(FENCE_AGENTS, "other", HOST, &both("Unknown"))?;
        expect(&sender.confirm(&mark), "wait")?;
        cluster.lab.report(FENCE_AGENTS, "other", HOST, &both(status))?;
        expect(&sender.confirm(&mark), expected)?;
    }
    Ok(())
}

/// Its own health check was faster.
fn what_medik8s_itself_has_made_stays(cluster: &mut Cluster) -> anyhow::Result<()> {
    let sender = stage(cluster, "")?;
    cluster.lab.foreign(FENCE_AGENTS, "other", HOST)?;
    let before = cluster.lab.only(FENCE_AGENTS)?;
    expect(&sender.down(&mark()), "rejected not-ours")?;
    expect(&sender.back(&mark()), "acknowledged")?;
    ensure!(cluster.lab.only(FENCE_AGENTS)? == before);
    Ok(())
}
