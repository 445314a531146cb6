//! `mode = "taint"`: a node that was fenced is out of service, and only as long as it is.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context as _, ensure};
use marks::mark::Mark;
use serde_json::{Value, json};
use tests::kubernetes::{Kubernetes, Who};

use crate::Scenario;
use crate::cluster::{Cluster, HOST, NODE, ago, expect, later, mark, mark_of, marked, word};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("a_node_is_out_of_service_until_its_host_is_back", a_node_is_out_of_service_until_its_host_is_back),
    ("other_taints_stay", other_taints_stay),
    ("a_taint_is_written_beside_a_busy_writer", a_taint_is_written_beside_a_busy_writer),
    ("the_taint_of_somebody_else_stays", the_taint_of_somebody_else_stays),
    ("the_taint_of_a_later_mark_stays", the_taint_of_a_later_mark_stays),
    ("a_node_that_is_not_ready_stays_out_of_service", a_node_that_is_not_ready_stays_out_of_service),
    ("a_node_that_is_gone_needs_nothing", a_node_that_is_gone_needs_nothing),
    ("a_node_that_is_back_already_is_held", a_node_that_is_back_already_is_held),
    ("a_node_that_was_registered_again_is_held", a_node_that_was_registered_again_is_held),
    ("an_older_mark_changes_nothing_of_a_later_one", an_older_mark_changes_nothing_of_a_later_one),
    ("nodes_have_short_names_or_long_ones", nodes_have_short_names_or_long_ones),
    ("a_test_changes_no_node", a_test_changes_no_node),
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

/// The list of taints is written as a whole: the broken variant writes only its own.
fn other_taints_stay(cluster: &mut Cluster) -> anyhow::Result<()> {
    cluster.lab.clean()?;
    cluster.lab.node(HOST, ago(60))?;
    cluster.lab.kubectl(&["taint", "node", HOST, "rack=east:NoSchedule", "gpu:PreferNoSchedule"], None)?;
    cluster.lab.kubectl(&["annotate", "node", HOST, "of=somebody"], None)?;
    let before = taints(&cluster.lab, HOST)?;
    ensure!(before.len() == 3, "{before:?}");
    let (sender, mark) = (cluster.sender(Who::Taint, KEYS)?, mark());
    expect(&sender.down(&mark), "acknowledged")?;
    let seen = taints(&cluster.lab, HOST)?;
    ensure!(seen.len() == 4 && before.iter().all(|taint| seen.contains(taint)), "{seen:?}");
    cluster.lab.heartbeat(HOST, "True", ago(-5))?;
    expect(&sender.back(&mark), "acknowledged")?;
    let after = taints(&cluster.lab, HOST)?;
    ensure!(after == before, "{after:?}");
    ensure!(cluster.lab.get("node", HOST)?["metadata"]["annotations"]["of"] == "somebody");
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

/// Neither replaced nor removed: who has set it had a reason, and there is no mark of ours on the node.
fn the_taint_of_somebody_else_stays(cluster: &mut Cluster) -> anyhow::Result<()> {
    cluster.lab.clean()?;
    cluster.lab.node(HOST, ago(60))?;
    let taint = format!("{OUT_OF_SERVICE}=nodeshutdown:NoExecute");
    cluster.lab.kubectl(&["taint", "node", HOST, &taint], None)?;
    let (sender, mark) = (cluster.sender(Who::Taint, KEYS)?, mark());
    expect(&sender.down(&mark), "acknowledged")?;
    expect_marked(&cluster.lab, HOST, None)?;
    cluster.lab.heartbeat(HOST, "True", ago(-5))?;
    expect(&sender.back(&mark), "acknowledged")?;
    ensure!(is_out_of_service(&cluster.lab, HOST)?, "somebody else's taint is gone");
    Ok(())
}

/// The host has failed again before the return of its first outage is delivered.
fn the_taint_of_a_later_mark_stays(cluster: &mut Cluster) -> anyhow::Result<()> {
    cluster.lab.clean()?;
    cluster.lab.node(HOST, ago(60))?;
    let (sender, first) = (cluster.sender(Who::Taint, KEYS)?, mark());
    let second = later(&first);
    expect(&sender.down(&first), "acknowledged")?;
    cluster.lab.heartbeat(HOST, "True", ago(-5))?;
    expect(&sender.back(&first), "acknowledged")?;
    cluster.lab.heartbeat(HOST, "Unknown", ago(60))?;
    expect(&sender.down(&second), "acknowledged")?;
    cluster.lab.heartbeat(HOST, "True", ago(-10))?;
    expect(&sender.back(&first), "acknowledged")?;
    ensure!(is_out_of_service(&cluster.lab, HOST)?, "the first return has removed the second taint");
    expect_marked(&cluster.lab, HOST, Some(&second))
}

/// Neither while the kubelet says nothing, nor by a word of it from before the failure.
fn a_node_that_is_not_ready_stays_out_of_service(cluster: &mut Cluster) -> anyhow::Result<()> {
    cluster.lab.clean()?;
    cluster.lab.node(HOST, ago(60))?;
    let (sender, mark) = (cluster.sender(Who::Taint, KEYS)?, mark());
    expect(&sender.down(&mark), "acknowledged")?;
    for (ready, at) in [("True", ago(60)), ("Unknown", ago(-5)), ("False", ago(-5))] {
        cluster.lab.heartbeat(HOST, ready, at)?;
        expect(&sender.back(&mark), "wait not-ready")?;
        ensure!(is_out_of_service(&cluster.lab, HOST)?, "{ready}");
    }
    cluster.lab.heartbeat(HOST, "True", ago(-5))?;
    expect(&sender.back(&mark), "acknowledged")?;
    ensure!(!is_out_of_service(&cluster.lab, HOST)?);
    Ok(())
}

/// A failure of a host without a node waits for somebody; a return of it is done.
fn a_node_that_is_gone_needs_nothing(cluster: &mut Cluster) -> anyhow::Result<()> {
    cluster.lab.clean()?;
    let (sender, mark) = (cluster.sender(Who::Taint, KEYS)?, mark());
    expect(&sender.down(&mark), "rejected unknown-node")?;
    cluster.lab.node(HOST, ago(60))?;
    let mark = crate::cluster::mark();
    expect(&sender.down(&mark), "acknowledged")?;
    cluster.lab.kubectl(&["delete", "node", HOST], None)?;
    expect(&sender.back(&mark), "acknowledged")?;
    ensure!(cluster.lab.list("nodes")?.is_empty(), "a node was made");
    Ok(())
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

/// A host that was made new has a Node that is younger than the failure.
fn a_node_that_was_registered_again_is_held(cluster: &mut Cluster) -> anyhow::Result<()> {
    cluster.lab.clean()?;
    let failed = ago(700);
    let mark = Mark { failure_time: failed, generated_time: failed, ..mark() };
    cluster.lab.node(HOST, ago(800))?;
    expect(&cluster.sender(Who::Taint, KEYS)?.down(&mark), "held alive")?;
    ensure!(!is_out_of_service(&cluster.lab, HOST)?);
    Ok(())
}

/// It was parked or held meanwhile. The broken variant takes each other mark for an earlier one: nobody would end the taint then.
fn an_older_mark_changes_nothing_of_a_later_one(cluster: &mut Cluster) -> anyhow::Result<()> {
    cluster.lab.clean()?;
    cluster.lab.node(HOST, ago(60))?;
    let (sender, first) = (cluster.sender(Who::Taint, KEYS)?, mark());
    let second = later(&first);
    expect(&sender.down(&second), "acknowledged")?;
    expect(&sender.down(&first), "acknowledged")?;
    expect_marked(&cluster.lab, HOST, Some(&second))?;
    cluster.lab.heartbeat(HOST, "True", ago(-5))?;
    expect(&sender.back(&first), "acknowledged")?;
    ensure!(is_out_of_service(&cluster.lab, HOST)?, "the older mark has taken it over");
    expect(&sender.back(&second), "acknowledged")?;
    ensure!(!is_out_of_service(&cluster.lab, HOST)?);
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

fn a_test_changes_no_node(cluster: &mut Cluster) -> anyhow::Result<()> {
    cluster.lab.clean()?;
    cluster.lab.node(HOST, ago(60))?;
    let before = cluster.lab.get("node", HOST)?;
    expect(&cluster.sender(Who::Taint, KEYS)?.test(), "acknowledged")?;
    expect(&cluster.sender(Who::Nothing, KEYS)?.test(), "refused forbidden")?;
    ensure!(cluster.lab.get("node", HOST)? == before, "a test changed the node");
    Ok(())
}
