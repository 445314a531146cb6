//! `mode = "taint"`: a node that was fenced is out of service, and only as long as it is.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context as _, ensure};
use marks::mark::Mark;
use serde_json::{Value, json};
use tests::kubernetes::{Kubernetes, Who};

use crate::Scenario;
use crate::cluster::{Cluster, HOST, NODE, ago, expect, mark, mark_of, marked, word};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("a_node_is_out_of_service_until_its_host_is_back", a_node_is_out_of_service_until_its_host_is_back),
    ("a_taint_is_written_beside_a_busy_writer", a_taint_is_written_beside_a_busy_writer),
    ("a_node_that_is_back_already_is_held", a_node_that_is_back_already_is_held),
    ("nodes_have_short_names_or_long_ones", nodes_have_short_names_or_long_ones),
];

const KEYS: &str = r#"mode = "taint""#;
pub(crate) const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// All taints, as kubectl shows them.
fn taints(lab: &Kubernetes, node: &str) -> anyhow::Result<Vec<Value>> {
    Ok(lab.get("node", node)?["spec"]["taints"].as_array().cloned().unwrap_or_default())
}

fn is_out_of_service(lab: &Kubernetes, node: &str) -> anyhow::Result<bool> {
    Ok(taints(lab, node)?.iter().any(|taint| taint["key"] == OUT_OF_SERVICE))
}

fn expect_marked(lab: &Kubernetes, node: &str, mark: Option<&Mark>) -> anyhow::Result<()> {
    let seen = lab.get("node", node)?;
    ensure!(marked(&seen) == mark.map(|mark| mark.id.to_string()), "{}", seen["metadata"]);
    Ok(())
}

/// Any number of times, with the same end.
fn a_node_is_out_of_service_until_its_host_is_back(cluster: &mut Cluster) -> anyhow::Result<()> {
    cluster.lab.clean()?;
    cluster.lab.node(HOST, ago(60))?;
    let (sender, mark) = (cluster.sender(Who::Taint, KEYS)?, mark());
    for _ in 0..2 {
        expect(&sender.down(&mark), "acknowledged")?;
        let taint = json!({"key": OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoExecute"});
        let seen = taints(&cluster.lab, HOST)?;
        let ours: Vec<_> = seen.iter().filter(|taint| taint["key"] == OUT_OF_SERVICE).collect();
        // A taint that evicts has a time, which the server may add.
        let fits = ours.len() == 1 && ["key", "value", "effect"].iter().all(|key| ours[0][key] == taint[key]);
        ensure!(fits, "{seen:?}");
        expect_marked(&cluster.lab, HOST, Some(&mark))?;
    }
    cluster.lab.heartbeat(HOST, "True", ago(-5))?;
    for _ in 0..2 {
        expect(&sender.back(&mark), "acknowledged")?;
        ensure!(!is_out_of_service(&cluster.lab, HOST)?);
        expect_marked(&cluster.lab, HOST, None)?;
    }
    Ok(())
}

/// Somebody changes the node all the time: what the driver has read is old when it writes. It reads again, and where three times
/// are not enough, it tries again.
fn a_taint_is_written_beside_a_busy_writer(cluster: &mut Cluster) -> anyhow::Result<()> {
    cluster.lab.clean()?;
    cluster.lab.node(HOST, ago(60))?;
    cluster.lab.kubectl(&["taint", "node", HOST, "rack=east:NoSchedule"], None)?;
    let (sender, mark) = (cluster.sender(Who::Taint, KEYS)?, mark());
    let (lab, is_over) = (&cluster.lab, AtomicBool::new(false));
    let rounds = || {
        (0..10).try_for_each(|_| {
            lab.heartbeat(HOST, "True", ago(60))?;
            until_acknowledged(|| sender.down(&mark))?;
            ensure!(is_out_of_service(lab, HOST)?);
            lab.heartbeat(HOST, "True", ago(-5))?;
            until_acknowledged(|| sender.back(&mark))?;
            ensure!(!is_out_of_service(lab, HOST)?);
            ensure!(taints(lab, HOST)?.iter().any(|taint| taint["key"] == "rack"));
            Ok(())
        })
    };
    thread::scope(|scope| {
        let writers = [0, 1].map(|number| {
            scope.spawn({
                let is_over = &is_over;
                move || write_until(lab, number, is_over)
            })
        });
        let played = rounds();
        is_over.store(true, Ordering::Relaxed);
        for writer in writers {
            writer.join().ok().context("a writer panicked")??;
        }
        played
    })
}

/// Changes a label of the node all the time.
fn write_until(lab: &Kubernetes, writer: usize, is_over: &AtomicBool) -> anyhow::Result<()> {
    let (path, label) = (format!("/api/v1/nodes/{HOST}"), format!("writer-{writer}"));
    let mut number = 0;
    while !is_over.load(Ordering::Relaxed) {
        lab.patch(&path, &json!({"metadata": {"labels": {&label: number.to_string()}}}))?;
        number += 1;
    }
    Ok(())
}

fn until_acknowledged(attempt: impl Fn() -> drivers::Outcome) -> anyhow::Result<()> {
    let mut seen = Vec::new();
    for _ in 0..20 {
        let outcome = attempt();
        if word(&outcome) == "acknowledged" {
            return Ok(());
        }
        expect(&outcome, "retry conflict")?;
        seen.push(outcome);
    }
    anyhow::bail!("{seen:?}")
}

/// Its kubelet has said something after the failure, whatever it said, or has renewed its lease alone: its pods run, and would be taken
/// from it. What is said within two minutes may be the clocks'.
fn a_node_that_is_back_already_is_held(cluster: &mut Cluster) -> anyhow::Result<()> {
    for (ready, after, lease, expected) in [
        ("True", 130, None, "held alive"),
        ("False", 130, None, "held alive"),
        ("Unknown", -60, Some(130), "held alive"),
        ("Unknown", -60, Some(60), "wait doubtful"),
        ("Unknown", -60, Some(-60), "acknowledged"),
    ] {
        cluster.lab.clean()?;
        cluster.lab.node(HOST, ago(60))?;
        let (sender, mark) = (cluster.sender(Who::Taint, KEYS)?, mark());
        cluster.lab.heartbeat(HOST, ready, ago(-after))?;
        if let Some(after) = lease {
            cluster.lab.lease(HOST, ago(-after))?;
        }
        expect(&sender.down(&mark), expected).with_context(|| format!("{ready} {after} {lease:?}"))?;
        ensure!(is_out_of_service(&cluster.lab, HOST)? == (expected == "acknowledged"), "{after}");
    }
    Ok(())
}

/// Whichever Kubernetes knows, which are in small letters always.
fn nodes_have_short_names_or_long_ones(cluster: &mut Cluster) -> anyhow::Result<()> {
    for (host, keys, node) in [
        (NODE, "", HOST),
        (NODE, "host-name = \"node\"", NODE),
        ("COMPUTE1", "", HOST),
        ("COMPUTE1", "host-name = \"node\"", NODE),
    ] {
        cluster.lab.clean()?;
        cluster.lab.node(HOST, ago(60))?;
        cluster.lab.node(NODE, ago(60))?;
        let sender = cluster.sender(Who::Taint, &format!("{KEYS}\n{keys}"))?;
        expect(&sender.down(&mark_of(host)), "acknowledged")?;
        for name in [HOST, NODE] {
            ensure!(is_out_of_service(&cluster.lab, name)? == (name == node), "{host} {keys}: {name}");
        }
    }
    Ok(())
}
