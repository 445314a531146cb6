//! `mode = "remediation"` stands in the place of a health check: what an operator has said to that one keeps a host back.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use tests::installed::source;
use tests::kubernetes::{Kubernetes, METAL3, Who};
use tests::lab::wait;
use tests::programs::Site;

use crate::Scenario;
use crate::cluster::{Cluster, HOST, NODE, SOON, ago, expect, mark, table};
use crate::remediation::{self, KEYS, MACHINE};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("what_an_operator_has_excluded_is_kept_back", what_an_operator_has_excluded_is_kept_back),
    ("what_cannot_be_read_is_not_remediated", what_cannot_be_read_is_not_remediated),
    ("a_mark_is_held_until_an_operator_releases_it", a_mark_is_held_until_an_operator_releases_it),
];

const EXCLUDE: &str = "remediation.medik8s.io/exclude-from-remediation";
const SKIP: &str = "cluster.x-k8s.io/skip-remediation";
const PAUSED: &str = "cluster.x-k8s.io/paused";

/// Makes one gate, for a host whose Node and Machine are there.
type Shut = fn(&Kubernetes) -> anyhow::Result<()>;

fn kubectl(lab: &Kubernetes, words: &[&str]) -> anyhow::Result<()> {
    lab.kubectl(words, None).map(drop)
}

fn label(lab: &Kubernetes, value: &str) -> anyhow::Result<()> {
    kubectl(lab, &["label", "--overwrite", "node", HOST, &format!("{EXCLUDE}={value}")])
}

fn annotate(lab: &Kubernetes, annotation: &str) -> anyhow::Result<()> {
    kubectl(lab, &["annotate", "machine", MACHINE, "--namespace=metal", &format!("{annotation}=")])
}

const GATES: [(Shut, &str); 7] = [
    (|lab| label(lab, "true"), "held excluded"),
    (|lab| label(lab, ""), "held unknown-gate"),
    (|lab| kubectl(lab, &["taint", "node", HOST, "medik8s.io/drain=:NoSchedule"]), "held maintenance"),
    (|lab| annotate(lab, SKIP), "held excluded"),
    (|lab| annotate(lab, PAUSED), "held paused"),
    (|lab| lab.cluster("metal", &json!({}), &json!({"paused": true})), "held paused"),
    (|lab| lab.cluster("metal", &json!({PAUSED: ""}), &json!({})), "held paused"),
];

/// The broken variant makes the object: it did within a second. A release goes before every gate.
fn what_an_operator_has_excluded_is_kept_back(cluster: &mut Cluster) -> anyhow::Result<()> {
    for (shut, expected) in GATES {
        let sender = remediation::stage(cluster, "")?;
        cluster.lab.node(HOST, ago(60))?;
        shut(&cluster.lab)?;
        let mark = mark();
        expect(&sender.down(&mark), expected)?;
        ensure!(cluster.lab.list(METAL3.plural)?.is_empty(), "{expected}: it was made");
        expect(&sender.released(&mark), "acknowledged").context(expected)?;
        cluster.lab.only(METAL3)?;
    }
    let sender = remediation::stage(cluster, "")?;
    cluster.lab.node(HOST, ago(60))?;
    label(&cluster.lab, "false")?;
    cluster.lab.cluster("metal", &json!({}), &json!({"paused": false}))?;
    expect(&sender.down(&mark()), "acknowledged").context("nobody keeps it back")
}

/// Nothing is guessed of an object that the account may not read.
fn what_cannot_be_read_is_not_remediated(cluster: &mut Cluster) -> anyhow::Result<()> {
    let sender = remediation::stage(cluster, "")?;
    let role = "nova-host-alerter-remediation-cluster-api";
    let rules = cluster.lab.get("clusterrole", role)?["rules"].as_array().cloned().unwrap_or_default();
    let others: Vec<Value> = rules.into_iter().filter(|rule| rule["resources"][0] != "clusters").collect();
    let path = format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{role}");
    cluster.lab.patch(&path, &json!({ "rules": others }))?;
    let refused = wait::until("the right to be gone", SOON, || {
        let outcome = sender.down(&mark());
        ensure!(outcome.as_str() != "acknowledged", "it was made");
        Ok((outcome.as_str() == "refused").then_some(outcome))
    });
    let findings = sender.check(&["compute1"])?;
    let shipped = source("packaging/kubernetes/remediation-cluster-api.yaml");
    kubectl(&cluster.lab, &["apply", "--filename", &shipped.display().to_string()])?;
    expect(&refused?, "refused forbidden")?;
    ensure!(cluster.lab.list(METAL3.plural)?.is_empty());
    ensure!(findings.iter().any(|one| one.why.detail.contains("get clusters")), "{findings:?}");
    Ok(())
}

/// With a whole alerter: the reason is shown, and an operator's word ends it.
fn a_mark_is_held_until_an_operator_releases_it(cluster: &mut Cluster) -> anyhow::Result<()> {
    remediation::stage(cluster, "")?;
    cluster.lab.node(HOST, ago(60))?;
    label(&cluster.lab, "true")?;
    let keys = table(&cluster.lab.kubeconfig(Who::Remediation)?, KEYS);
    let mut site = Site::with(&format!("[kubernetes.metal]\n{keys}"))?;
    site.start()?;
    site.fence(NODE)?;
    let listed = || site.said(&["list", "--json"]);
    let held = wait::until("the mark to be held", SOON, || {
        let all: Value = serde_json::from_str(&listed()?)?;
        Ok((all[0]["deliveries"][0]["state"] == "held").then(|| all.to_string()))
    });
    let said = held.with_context(|| listed().unwrap_or_default())?;
    ensure!(said.contains("excluded") && said.contains(EXCLUDE), "{said}");
    let status = site.said(&["status"])?;
    ensure!(status.contains("held on route metal") && status.contains(EXCLUDE), "{status}");
    ensure!(cluster.lab.list(METAL3.plural)?.is_empty(), "it was made");
    site.said(&["release", NODE, "--reason", "it is to be recovered"])?;
    wait::until("the object", Duration::from_secs(60), || {
        Ok((cluster.lab.list(METAL3.plural)?.len() == 1).then_some(()))
    })
}
