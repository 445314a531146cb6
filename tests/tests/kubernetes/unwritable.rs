//! The built alerter while the API takes nothing: right after a fencing its own etcd may wait for it. The mark is tried again, and is
//! one object in the end.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use tests::kubernetes::{Kubernetes, METAL3, Part, Who};
use tests::lab::wait;
use tests::programs::Site;

use crate::Scenario;
use crate::cluster::{Cluster, HOST, MARK, NODE, SOON, ago, table};
use crate::remediation;

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("a_dead_etcd_delays_the_mark_alone", a_dead_etcd_delays_the_mark_alone),
    ("a_frozen_etcd_delays_the_mark_alone", a_frozen_etcd_delays_the_mark_alone),
    ("a_frozen_server_delays_the_mark_alone", a_frozen_server_delays_the_mark_alone),
    ("a_dead_server_delays_the_mark_alone", a_dead_server_delays_the_mark_alone),
    ("a_taint_comes_when_the_server_does", a_taint_comes_when_the_server_does),
];

/// The API stays unwritable for longer than an attempt takes.
const OUTAGE: Duration = Duration::from_secs(5);
const HASTE: &str = "timeout = 2";

fn a_dead_etcd_delays_the_mark_alone(cluster: &mut Cluster) -> anyhow::Result<()> {
    one_object_in_the_end(cluster, |lab| lab.kill(Part::Etcd), |lab| lab.start(Part::Etcd))
}

fn a_frozen_etcd_delays_the_mark_alone(cluster: &mut Cluster) -> anyhow::Result<()> {
    one_object_in_the_end(cluster, |lab| lab.freeze(Part::Etcd), |lab| lab.thaw(Part::Etcd))
}

/// What lies before it is done when it goes on, although nobody waits for it any more.
fn a_frozen_server_delays_the_mark_alone(cluster: &mut Cluster) -> anyhow::Result<()> {
    one_object_in_the_end(cluster, |lab| lab.freeze(Part::Api), |lab| lab.thaw(Part::Api))
}

fn a_dead_server_delays_the_mark_alone(cluster: &mut Cluster) -> anyhow::Result<()> {
    one_object_in_the_end(cluster, |lab| lab.kill(Part::Api), |lab| lab.start(Part::Api))
}

type Act = fn(&mut Kubernetes) -> anyhow::Result<()>;

/// S1-16, S4-35: the failure comes in the middle of an outage of the API; afterwards it is acknowledged, and there is one object.
fn one_object_in_the_end(cluster: &mut Cluster, stop: Act, go_on: Act) -> anyhow::Result<()> {
    cluster.lab.clean()?;
    cluster.lab.machine("metal", "worker-1", HOST)?;
    cluster.lab.template(METAL3, "metal", "worker", &json!({"spec": {"strategy": {"type": "Reboot"}}}))?;
    let site = alerter(cluster, Who::Remediation, remediation::KEYS)?;
    through_an_outage(cluster, &site, stop, go_on)?;
    let one = cluster.lab.only(METAL3)?;
    let id = shown(&site)?["id"].clone();
    ensure!(one["metadata"]["annotations"][MARK] == id, "{one}, and not of {id}");
    Ok(())
}

fn a_taint_comes_when_the_server_does(cluster: &mut Cluster) -> anyhow::Result<()> {
    cluster.lab.clean()?;
    cluster.lab.node(HOST, ago(60))?;
    let site = alerter(cluster, Who::Taint, r#"mode = "taint""#)?;
    through_an_outage(cluster, &site, |lab| lab.kill(Part::Etcd), |lab| lab.start(Part::Etcd))?;
    let node = cluster.lab.get("node", HOST)?;
    let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    let ours = taints.iter().filter(|taint| taint["key"] == crate::taint::OUT_OF_SERVICE).count();
    ensure!(ours == 1, "{taints:?}");
    Ok(())
}

fn alerter(cluster: &Cluster, who: Who, keys: &str) -> anyhow::Result<Site> {
    let keys = table(&cluster.lab.kubeconfig(who)?, &format!("{keys}\n{HASTE}"));
    let mut site = Site::with(&format!("[kubernetes.lab]\n{keys}"))?;
    site.start()?;
    site.said(&["send-test"])?;
    Ok(site)
}

fn through_an_outage(cluster: &mut Cluster, site: &Site, stop: Act, go_on: Act) -> anyhow::Result<()> {
    stop(&mut cluster.lab)?;
    let marked = site.said(&["mark", NODE, "--fenced", "--reason", "a test"]);
    let tried = marked.and_then(|_| {
        std::thread::sleep(OUTAGE);
        wait::until("an attempt", SOON, || {
            let delivery = shown(site)?["deliveries"][0].clone();
            Ok((delivery["attempts"].as_u64() >= Some(1)).then_some(()))
        })
    });
    let state = shown(site).map(|mark| mark["state"].clone());
    let problems = problems(site);
    // Whatever became of that: the next scenario needs the server.
    go_on(&mut cluster.lab)?;
    cluster.lab.wait_until_writable()?;
    tried?;
    ensure!(state? == "open", "it was acknowledged by nobody");
    let problems = problems?;
    ensure!(!problems.contains("failing"), "an API server is usually away for a while: {problems}");
    wait::until(
        "the mark to be settled",
        SOON,
        || Ok((shown(site)?["state"] == "acknowledged").then_some(())),
    )
    .with_context(|| shown(site).unwrap_or_default().to_string())
}

/// As `status` has them, whatever its exit code.
fn problems(site: &Site) -> anyhow::Result<String> {
    let said = site.alerter(&["status", "-o", "json"])?;
    let status: Value = serde_json::from_slice(&said.stdout)?;
    Ok(status["problems"].to_string())
}

fn shown(site: &Site) -> anyhow::Result<Value> {
    let all: Value = serde_json::from_str(&site.said(&["show", NODE, "--json"])?)?;
    Ok(all[0].clone())
}
