//! A real Pacemaker cluster with a real Kubernetes in its network: from a compute host that dies to a taint and an object, and back.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use libtest_mimic::Trial;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tests::kubernetes::{Kubernetes, METAL3, Who, packages};
use tests::lab::cib::{Configuration, Spread};
use tests::lab::{self, Fault, Lab, Products, Shape, wait};
use tests::trials;

use crate::cluster::{HOST, MARK, NODE, ago};
use crate::taint::OUT_OF_SERVICE;

const SHAPE: Shape = Shape { controllers: 3, remotes: 1 };
/// Longer than a fencing, and the longest pause between two attempts.
const LIMIT: Duration = Duration::from_secs(120);
/// A taint of somebody else's.
const OTHERS: &str = "example.com/maintenance";

/// The scenario, or why it cannot be played here.
pub(crate) fn trial() -> Trial {
    let no_cluster = || lab::machine::check().err().map(|error| format!("{error:#}"));
    let cannot = packages::cannot().or_else(no_cluster);
    trials::alone(
        "a_dead_host_is_tainted_and_remediated_until_it_is_back",
        trials::KUBERNETES,
        cannot,
        || Outage::boot()?.play(),
    )
}

struct Outage {
    /// Before the lab, in whose network it is.
    kubernetes: Kubernetes,
    lab: Lab,
}

impl Outage {
    fn boot() -> anyhow::Result<Self> {
        let lab = Lab::boot(SHAPE, Some(&Products::built()?))?;
        let kubernetes = Kubernetes::in_lab(&lab)?;
        kubernetes.node(HOST, ago(60))?;
        kubernetes.node("other.my.cloud.com", ago(60))?;
        kubernetes.kubectl(&["taint", "node", HOST, &format!("{OTHERS}=x:NoSchedule")], None)?;
        kubernetes.machine("metal", "worker-1", HOST)?;
        kubernetes.template(METAL3, "metal", "worker", &json!({"spec": {"strategy": {"type": "Reboot"}}}))?;
        for who in [Who::Taint, Who::Remediation] {
            let text = fs::read_to_string(kubernetes.kubeconfig(who)?)?;
            lab.write_secret(&format!("{}.kubeconfig", who.name()), &text)?;
        }
        lab.write_site("alerter.toml", &configuration())?;
        lab.configure(&Configuration { shape: SHAPE, alerter: true, spread: Spread::Everywhere })?;
        Ok(Self { kubernetes, lab })
    }

    fn play(&self) -> anyhow::Result<()> {
        let played = self.kubernetes_knows().and_then(|()| self.nothing_of_ours_is_left());
        played.with_context(|| format!("{}\n{}", self.lab.keep_logs(), self.kubernetes.explain()))
    }

    /// S4-10, S4-33, S4-37: the host stays down, and Kubernetes knows it by both routes.
    fn kubernetes_knows(&self) -> anyhow::Result<()> {
        self.lab.bmc().break_for(NODE, Fault::NoBoot);
        let killed = self.lab.signal(NODE, &["pacemaker-remoted"], Signal::SIGKILL)?;
        ensure!(killed >= 1, "{NODE} runs no pacemaker-remoted");
        let mark = self.wait_mark("to be acknowledged", |mark| mark["state"] == "acknowledged")?;
        let node = self.kubernetes.get("node", HOST)?;
        ensure!(keys(&node).contains(&OUT_OF_SERVICE.to_owned()), "{node}");
        ensure!(keys(&node).contains(&OTHERS.to_owned()), "somebody else's taint is gone: {node}");
        ensure!(node["metadata"]["annotations"][MARK] == mark["id"], "{node} is not of {mark}");
        let one = self.kubernetes.get_in("metal", METAL3.plural, "worker-1")?;
        let machine = self.kubernetes.get_in("metal", "machines", "worker-1")?;
        let owner = &one["metadata"]["ownerReferences"][0]["uid"];
        ensure!(*owner == machine["metadata"]["uid"], "{one} is not of {machine}");
        ensure!(one["metadata"]["annotations"][MARK] == mark["id"], "{one} is not of {mark}");
        ensure!(self.kubernetes.list(METAL3.plural)?.len() == 1, "more than one was made");
        Ok(())
    }

    /// S4-34: the host is back, first in the cluster and then in Kubernetes. The broken variant removes the taint before its kubelet
    /// has said anything.
    fn nothing_of_ours_is_left(&self) -> anyhow::Result<()> {
        self.lab.bmc().repair();
        self.lab.power_on(NODE)?;
        wait::until("the object to be deleted", LIMIT, || {
            Ok(self.kubernetes.list(METAL3.plural)?.is_empty().then_some(()))
        })?;
        self.wait_mark("to wait for the kubelet", |mark| {
            let all = mark["deliveries"].as_array().cloned().unwrap_or_default();
            let back = all.into_iter().find(|one| one["route"] == "scheduler.return").unwrap_or_default();
            back["last"]["kind"] == "not-ready"
        })?;
        let node = self.kubernetes.get("node", HOST)?;
        ensure!(keys(&node).contains(&OUT_OF_SERVICE.to_owned()), "its kubelet has said nothing yet: {node}");
        self.kubernetes.heartbeat(HOST, "True", ago(0))?;
        wait::until("the taint to end", LIMIT, || {
            let node = self.kubernetes.get("node", HOST)?;
            Ok((!keys(&node).contains(&OUT_OF_SERVICE.to_owned())).then_some(()))
        })?;
        let node = self.kubernetes.get("node", HOST)?;
        ensure!(keys(&node).contains(&OTHERS.to_owned()), "somebody else's taint is gone: {node}");
        ensure!(node["metadata"]["annotations"][MARK].is_null(), "{node}");
        Ok(())
    }

    fn wait_mark(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
        self.lab.wait_shown(NODE, (what, LIMIT), wanted)
    }
}

fn configuration() -> String {
    let route = |name: &str, who: Who, keys: &str| {
        let file = format!("/etc/nova-host-alerter/{}.kubeconfig", who.name());
        format!("[kubernetes.{name}]\nkubeconfig = \"{file}\"\n{keys}\n\n")
    };
    let taint = route("scheduler", Who::Taint, r#"mode = "taint""#);
    let remediation = route("metal", Who::Remediation, crate::remediation::KEYS);
    format!("[hosts]\ndomain = \"my.cloud.com\"\non-shared-storage = true\n\n{taint}{remediation}")
}

/// Of its taints.
fn keys(node: &Value) -> Vec<String> {
    let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    taints.iter().filter_map(|taint| taint["key"].as_str().map(str::to_owned)).collect()
}
