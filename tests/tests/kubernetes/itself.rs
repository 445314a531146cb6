//! The lab itself: what the other scenarios take for granted.

use anyhow::{Context as _, ensure};
use serde_json::json;
use tests::kubernetes::{ALL, Kubernetes, Login, METAL3, Who};

use crate::Scenario;
use crate::cluster::{Cluster, HOST, ago};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("the_lab_works", the_lab_works),
    ("each_user_has_exactly_the_shipped_rights", each_user_has_exactly_the_shipped_rights),
    ("the_server_judges_what_it_is_given", the_server_judges_what_it_is_given),
    ("the_lab_survives_what_is_done_to_it", the_lab_survives_what_is_done_to_it),
];

/// In every mode: whether a host lives.
const LEASES: (&str, &str) = ("leases.coordination.k8s.io", "get");

/// What a user may do beyond everybody's rights, as kubectl lists it: kinds, and the verbs of each.
fn rights(who: Who) -> &'static [(&'static str, &'static str)] {
    match who {
        Who::Admin | Who::Nothing => &[],
        Who::Taint => &[LEASES, ("nodes", "get patch")],
        Who::Condition => &[LEASES, ("nodes", "get"), ("nodes/status", "patch")],
        Who::Annotate => &[LEASES, ("machines.cluster.x-k8s.io", "list get patch"), ("nodes", "get")],
        Who::Remediation => &[
            LEASES,
            ("nodes", "get"),
            ("clusters.cluster.x-k8s.io", "get"),
            ("machines.cluster.x-k8s.io", "list"),
            ("metal3remediations.infrastructure.cluster.x-k8s.io", "get create delete"),
            ("metal3remediationtemplates.infrastructure.cluster.x-k8s.io", "get"),
        ],
    }
}

/// A node, a Machine that became it, and a template: read as kubectl shows them, by each way to show who one is.
fn the_lab_works(cluster: &mut Cluster) -> anyhow::Result<()> {
    let lab = &mut cluster.lab;
    lab.clean()?;
    lab.node(HOST, ago(60))?;
    let node = lab.get("node", HOST)?;
    ensure!(node["status"]["conditions"][0]["status"] == "True", "{node}");
    ensure!(node["spec"]["taints"][0]["key"] == "node.kubernetes.io/not-ready", "{node}");
    lab.machine("metal", "worker-1", HOST)?;
    let machine = lab.get_in("metal", "machine", "worker-1")?;
    ensure!(machine["status"]["nodeRef"]["name"] == HOST, "{machine}");
    lab.template(METAL3, "metal", "worker", &json!({"spec": {"strategy": {"type": "Reboot"}}}))?;
    let template = lab.get_in("metal", "metal3remediationtemplate", "worker")?;
    ensure!(template["spec"]["template"]["spec"]["strategy"]["type"] == "Reboot", "{template}");
    for login in [Login::Token, Login::Certificate, Login::EmbeddedCertificate] {
        let seen = lab.kubectl_with(&lab.kubeconfig_by(Who::Taint, login)?, &["get", "node", HOST], None)?;
        ensure!(seen.status.success(), "{login:?}: {}", String::from_utf8_lossy(&seen.stderr));
    }
    lab.clean()?;
    for kind in ["nodes", "machines", "metal3remediationtemplates"] {
        ensure!(lab.list(kind)?.is_empty(), "{kind} are left");
    }
    Ok(())
}

/// All that the server grants is listed: a right that no driver needs is as wrong as one that is missing.
fn each_user_has_exactly_the_shipped_rights(cluster: &mut Cluster) -> anyhow::Result<()> {
    let lab = &cluster.lab;
    let everybodys = granted(lab, Who::Nothing)?;
    ensure!(everybodys.iter().all(|(kind, _)| kind.starts_with("selfsubject")), "{everybodys:?}");
    for who in ALL.into_iter().filter(|who| *who != Who::Admin) {
        let own: Vec<_> = granted(lab, who)?.into_iter().filter(|one| !everybodys.contains(one)).collect();
        let mut expected: Vec<_> =
            rights(who).iter().map(|(kind, verbs)| (kind.to_string(), verbs.to_string())).collect();
        expected.sort();
        ensure!(own == expected, "{}: {own:?}, and not {expected:?}", who.name());
        for (kind, verbs) in rights(who) {
            verbs.split(' ').try_for_each(|verb| may(lab, who, verb, kind))?;
        }
    }
    Ok(())
}

/// Kinds and verbs, sorted.
fn granted(lab: &Kubernetes, who: Who) -> anyhow::Result<Vec<(String, String)>> {
    let words = ["auth", "can-i", "--list", "--no-headers", "--namespace=metal"];
    let said = lab.kubectl_with(&lab.kubeconfig(who)?, &words, None)?;
    let said = String::from_utf8(said.stdout)?;
    let rule = |line: &str| {
        let kind = line.split_whitespace().next()?;
        let verbs = line.trim_end().strip_suffix(']')?.rsplit('[').next()?;
        // A line without a kind is of addresses.
        (!kind.starts_with('[')).then(|| (kind.to_owned(), verbs.to_owned()))
    };
    let mut all: Vec<_> = said.lines().filter_map(rule).collect();
    all.sort();
    Ok(all)
}

/// One by one, in all namespaces.
fn may(lab: &Kubernetes, who: Who, verb: &str, kind: &str) -> anyhow::Result<()> {
    let (kind, part) = kind.split_once('/').unwrap_or((kind, ""));
    let part = format!("--subresource={part}");
    let words = ["auth", "can-i", verb, kind, &part, "--all-namespaces"];
    let said = lab.kubectl_with(&lab.kubeconfig(who)?, &words, None)?;
    ensure!(said.stdout.starts_with(b"yes"), "{} may not {verb} {kind}", who.name());
    Ok(())
}

/// What the scenarios take for granted: a template may hold what its object may not, an old version is a conflict, a finalizer keeps
/// what is deleted, a list comes in pages, and only the next scenario finds nothing.
fn the_server_judges_what_it_is_given(cluster: &mut Cluster) -> anyhow::Result<()> {
    let lab = &mut cluster.lab;
    lab.clean()?;
    let spec = json!({"strategy": {"type": "Reboot", "retryLimit": 11}});
    lab.template(METAL3, "metal", "worker", &json!({ "spec": spec }))?;
    let object = json!({"apiVersion": METAL3.api_version, "kind": METAL3.kind,
        "metadata": {"name": "worker-1", "namespace": "metal"}, "spec": spec});
    let why = lab.create(&object).err().context("it is taken")?;
    ensure!(format!("{why:#}").contains("retryLimit"), "{why:#}");

    lab.foreign(METAL3, "metal", "worker-1")?;
    let path = format!("/apis/{}/namespaces/metal/{}/worker-1", METAL3.api_version, METAL3.plural);
    let stale = json!({"metadata": {"resourceVersion": "1", "finalizers": ["of.a/test"]}});
    let why = lab.patch(&path, &stale).err().context("an old version is taken")?;
    ensure!(format!("{why:#}").contains("409"), "{why:#}");
    lab.patch(&path, &json!({"metadata": {"finalizers": ["of.a/test"]}}))?;
    lab.kubectl(&["delete", METAL3.plural, "worker-1", "--namespace=metal", "--wait=false"], None)?;
    ensure!(lab.only(METAL3)?["metadata"]["deletionTimestamp"].is_string());
    lab.report(METAL3, "metal", "worker-1", &json!({"phase": "Failed"}))?;
    ensure!(lab.only(METAL3)?["status"]["phase"] == "Failed");

    let machine = |number: usize| ("metal".to_owned(), format!("worker-{number}"), format!("node{number}"));
    lab.machines(&(0..120).map(machine).collect::<Vec<_>>())?;
    let page = lab.kubectl(&["get", "--raw", "/apis/cluster.x-k8s.io/v1beta1/machines?limit=50"], None)?;
    let page: serde_json::Value = serde_json::from_str(&page)?;
    ensure!(page["items"].as_array().map(Vec::len) == Some(50), "{page}");
    ensure!(page["metadata"]["continue"].is_string(), "{}", page["metadata"]);
    lab.clean()?;
    ensure!(lab.list("machines")?.is_empty() && lab.list(METAL3.plural)?.is_empty());
    Ok(())
}

/// New tokens end the former ones, and both servers come back with what they had.
fn the_lab_survives_what_is_done_to_it(cluster: &mut Cluster) -> anyhow::Result<()> {
    use tests::kubernetes::Part::{Api, Etcd};
    let lab = &mut cluster.lab;
    lab.clean()?;
    lab.node(HOST, ago(60))?;
    let former = lab.kubeconfig(Who::Taint)?;
    lab.rotate()?;
    let may = |lab: &Kubernetes, file: &std::path::Path| {
        Ok::<_, anyhow::Error>(lab.kubectl_with(file, &["get", "node", HOST], None)?.status.success())
    };
    ensure!(!may(lab, &former)?, "a former token is good");
    ensure!(may(lab, &lab.kubeconfig(Who::Taint)?)?, "a new token is not");
    lab.kill(Etcd)?;
    let label = ["label", "node", HOST, "a=b", "--request-timeout=2s"];
    ensure!(lab.kubectl(&label, None).is_err(), "it is written down without etcd");
    lab.start(Etcd)?;
    lab.wait_until_writable()?;
    for part in [Etcd, Api] {
        lab.freeze(part)?;
        let label = lab.kubectl(&label, None);
        lab.thaw(part)?;
        ensure!(label.is_err(), "it is written down by a frozen {part:?}");
        lab.wait_until_writable()?;
    }
    ensure!(lab.get("node", HOST)?["metadata"]["name"] == HOST);
    Ok(())
}
