//! `mode = "remediation"` as Cluster API has it: an object of a template is the request, and its end is the host's return.

use anyhow::{Context as _, ensure};
use drivers::Outcome;
use marks::mark::Mark;
use serde_json::{Value, json};
use tests::kubernetes::{CLUSTER, Kubernetes, METAL3, Who};
use tests::lab::wait;

use crate::Scenario;
use crate::cluster::{Cluster, HOST, MARK, SOON, Sender, ago, expect, later, mark, marked, word};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("a_host_that_lives_is_not_remediated", a_host_that_lives_is_not_remediated),
    ("a_machine_is_remediated_by_an_object_of_its_name", a_machine_is_remediated_by_an_object_of_its_name),
    ("the_template_is_passed_through", the_template_is_passed_through),
    ("an_object_ends_with_the_return_of_its_host", an_object_ends_with_the_return_of_its_host),
    ("an_object_that_is_being_deleted_is_left_alone", an_object_that_is_being_deleted_is_left_alone),
    ("what_cannot_be_made_waits_for_somebody", what_cannot_be_made_waits_for_somebody),
];

pub(crate) const KEYS: &str = r#"mode = "remediation"
template-api-version = "infrastructure.cluster.x-k8s.io/v1beta1"
template-kind = "Metal3RemediationTemplate"
template-name = "worker""#;
pub(crate) const MACHINE: &str = "worker-1";

/// What the seed shows, and a field that nobody here knows.
fn spec() -> Value {
    json!({"strategy": {"type": "Escalate", "retryLimit": 2, "timeout": "300s", "deleteAfterRetries": 3,
        "powerOnTimeoutSeconds": 600, "powerOffTimeoutSeconds": 600}, "nested": [{"deep": {"null": false}}, 1.5]})
}

/// A Machine and a template in its namespace; and the driver.
pub(crate) fn stage(cluster: &mut Cluster, keys: &str) -> anyhow::Result<Sender> {
    cluster.lab.clean()?;
    cluster.lab.machine("metal", MACHINE, HOST)?;
    cluster.lab.template(METAL3, "metal", "worker", &json!({"spec": spec()}))?;
    cluster.sender(Who::Remediation, &format!("{KEYS}\n{keys}"))
}

/// A host that Kubernetes has heard from since is not recovered, where its Node is known too.
fn a_host_that_lives_is_not_remediated(cluster: &mut Cluster) -> anyhow::Result<()> {
    let (sender, mark) = (stage(cluster, "")?, mark());
    cluster.lab.node(HOST, ago(60))?;
    cluster.lab.lease(HOST, ago(-130))?;
    expect(&sender.down(&mark), "held alive")?;
    let failed = ago(700);
    let before = Mark { failure_time: failed, generated_time: failed, ..mark };
    cluster.lab.kubectl(&["delete", "node", HOST], None)?;
    expect(&sender.down(&before), "held alive").context("its Machine is younger than the failure")?;
    ensure!(count(&cluster.lab)? == 0);
    Ok(())
}

fn set_finalizers(lab: &Kubernetes, finalizers: &Value) -> anyhow::Result<()> {
    let path = format!("/apis/{}/namespaces/metal/{}/{MACHINE}", METAL3.api_version, METAL3.plural);
    lab.patch(&path, &json!({"metadata": {"finalizers": finalizers}}))
}

fn count(lab: &Kubernetes) -> anyhow::Result<usize> {
    Ok(lab.list(METAL3.plural)?.len())
}

/// S4-10, S4-33, S4-35, S4-37: the name and the namespace of the Machine, which owns it; one, however often it is asked for.
fn a_machine_is_remediated_by_an_object_of_its_name(cluster: &mut Cluster) -> anyhow::Result<()> {
    let (sender, mark) = (stage(cluster, "")?, mark());
    let uid = cluster.lab.get_in("metal", "machine", MACHINE)?["metadata"]["uid"].clone();
    let mut made = None;
    for _ in 0..2 {
        expect(&sender.down(&mark), "acknowledged")?;
        let one = cluster.lab.only(METAL3)?;
        let metadata = &one["metadata"];
        ensure!(metadata["name"] == MACHINE && metadata["namespace"] == "metal", "{metadata}");
        ensure!((&one["kind"], &one["apiVersion"]) == (&json!(METAL3.kind), &json!(METAL3.api_version)));
        ensure!(metadata["labels"]["cluster.x-k8s.io/cluster-name"] == CLUSTER, "{metadata}");
        let annotations = &metadata["annotations"];
        ensure!(annotations["cluster.x-k8s.io/cloned-from-name"] == "worker", "{annotations}");
        let kind = "Metal3RemediationTemplate.infrastructure.cluster.x-k8s.io";
        ensure!(annotations["cluster.x-k8s.io/cloned-from-groupkind"] == kind, "{annotations}");
        ensure!(annotations[MARK] == mark.id.to_string(), "{annotations}");
        let owners = metadata["ownerReferences"].as_array().context("no owner")?;
        ensure!(owners.len() == 1 && owners[0]["uid"] == uid && owners[0]["name"] == MACHINE, "{owners:?}");
        ensure!(owners[0]["kind"] == "Machine", "{owners:?}");
        let made = made.get_or_insert_with(|| metadata["uid"].clone());
        ensure!(*made == metadata["uid"], "it was made again: {metadata}");
        ensure!(owners[0]["apiVersion"].as_str().unwrap_or_default().starts_with("cluster.x-k8s.io/"));
    }
    Ok(())
}

/// S4-32, S4-54: the whole `spec.template.spec` as it is, with labels and annotations of `spec.template.metadata`, and nothing of the
/// template's own metadata.
fn the_template_is_passed_through(cluster: &mut Cluster) -> anyhow::Result<()> {
    cluster.lab.clean()?;
    cluster.lab.machine("metal", MACHINE, HOST)?;
    let metadata = json!({"labels": {"team": "metal"}, "annotations": {"runbook": "https://x.example/?a=b"}});
    cluster.lab.template(METAL3, "other", "worker", &json!({"metadata": metadata, "spec": spec()}))?;
    let sender = cluster.sender(Who::Remediation, &format!("{KEYS}\ntemplate-namespace = \"other\""))?;
    expect(&sender.down(&mark()), "acknowledged")?;
    let one = cluster.lab.only(METAL3)?;
    ensure!(one["spec"] == spec(), "{}", one["spec"]);
    let labels = &one["metadata"]["labels"];
    ensure!(labels["team"] == "metal" && labels["of"].is_null(), "{labels}");
    ensure!(one["metadata"]["annotations"]["runbook"] == "https://x.example/?a=b", "{}", one["metadata"]);
    ensure!(one["metadata"]["finalizers"].is_null(), "{}", one["metadata"]);
    Ok(())
}

/// S4-34: nothing more is done until the host is well; then this very object is deleted.
fn an_object_ends_with_the_return_of_its_host(cluster: &mut Cluster) -> anyhow::Result<()> {
    let (sender, mark) = (stage(cluster, "")?, mark());
    expect(&sender.down(&mark), "acknowledged")?;
    let one = cluster.lab.only(METAL3)?;
    expect(&sender.down(&mark), "acknowledged")?;
    ensure!(cluster.lab.only(METAL3)? == one, "something was done before the host was well");
    for _ in 0..2 {
        expect(&sender.back(&mark), "acknowledged")?;
        ensure!(count(&cluster.lab)? == 0, "{:?}", cluster.lab.list(METAL3.plural)?);
    }
    for kind in ["machines", "metal3remediationtemplates"] {
        ensure!(cluster.lab.list(kind)?.len() == 1);
    }
    // With `leave` there is no such step.
    let keeps = stage(cluster, "when-returned = \"leave\"")?;
    ensure!(keeps.driver.about().steps.is_empty(), "{:?}", keeps.driver.about().steps);
    ensure!(!sender.driver.about().steps.is_empty());
    Ok(())
}

fn acknowledged_in_the_end(attempt: impl Fn() -> Outcome) -> anyhow::Result<()> {
    wait::until("an acknowledgement", SOON, || {
        let outcome = attempt();
        ensure!(["acknowledged", "wait", "retry"].contains(&outcome.as_str()), "{outcome:?}");
        Ok((word(&outcome) == "acknowledged").then_some(()))
    })
}

/// S4-41: a controller cleans up behind a finalizer. The return is done; nothing is written again and again; and a new outage waits
/// until the former object is gone.
fn an_object_that_is_being_deleted_is_left_alone(cluster: &mut Cluster) -> anyhow::Result<()> {
    let (sender, first) = (stage(cluster, "")?, mark());
    expect(&sender.down(&first), "acknowledged")?;
    set_finalizers(&cluster.lab, &json!(["metal3.io/cleanup"]))?;
    expect(&sender.back(&first), "acknowledged")?;
    let going = cluster.lab.only(METAL3)?;
    ensure!(going["metadata"]["deletionTimestamp"].is_string(), "{}", going["metadata"]);
    let second = later(&first);
    for _ in 0..3 {
        expect(&sender.back(&first), "acknowledged")?;
        expect(&sender.down(&first), "acknowledged")?;
        expect(&sender.down(&second), "wait ending")?;
    }
    ensure!(cluster.lab.only(METAL3)? == going, "it was written to");
    set_finalizers(&cluster.lab, &Value::Null)?;
    acknowledged_in_the_end(|| sender.down(&second))?;
    let one = cluster.lab.only(METAL3)?;
    ensure!(
        marked(&one) == Some(second.id.to_string()) && one["metadata"]["deletionTimestamp"].is_null(),
        "{one}"
    );
    Ok(())
}

/// A template that makes nothing the server takes, no template, and a kind that is not there: an operator must act, and other
/// routes go on.
fn what_cannot_be_made_waits_for_somebody(cluster: &mut Cluster) -> anyhow::Result<()> {
    cluster.lab.clean()?;
    cluster.lab.machine("metal", MACHINE, HOST)?;
    let sender = cluster.sender(Who::Remediation, KEYS)?;
    let missing = sender.down(&mark());
    ensure!(is_final(&missing), "no template: {missing:?}");
    let too_many = json!({"spec": {"strategy": {"type": "Reboot", "retryLimit": 11}}});
    cluster.lab.template(METAL3, "metal", "worker", &too_many)?;
    let invalid = sender.down(&mark());
    ensure!(invalid.as_str() == "rejected", "{invalid:?}");
    let detail = invalid.failure().map(|why| why.detail.clone()).unwrap_or_default();
    ensure!(detail.contains("retryLimit"), "the server's own words are missing: {detail}");
    let unknown = cluster.sender(Who::Remediation, &KEYS.replace("Metal3", "Metal4"))?.down(&mark());
    ensure!(is_final(&unknown), "no such kind: {unknown:?}");
    ensure!(count(&cluster.lab)? == 0);
    Ok(())
}

fn is_final(outcome: &Outcome) -> bool {
    ["refused", "rejected"].contains(&outcome.as_str())
}
