//! `mode = "annotate"`: Cluster API is asked to remediate the Machine that became the node.

use anyhow::ensure;
use serde_json::Value;
use tests::kubernetes::{Kubernetes, Who};

use crate::Scenario;
use crate::cluster::{Cluster, HOST, expect, later, mark, marked};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("a_machine_is_annotated_until_its_host_is_back", a_machine_is_annotated_until_its_host_is_back),
    ("exactly_one_machine_must_be_the_node", exactly_one_machine_must_be_the_node),
    ("one_machine_of_many_is_found", one_machine_of_many_is_found),
];

const KEYS: &str = r#"mode = "annotate""#;
const REMEDIATE: &str = "cluster.x-k8s.io/remediate-machine";
const MACHINE: &str = "worker-1";

fn machine(lab: &Kubernetes) -> anyhow::Result<Value> {
    lab.get_in("metal", "machine", MACHINE)
}

fn annotation<'a>(machine: &'a Value, key: &str) -> Option<&'a str> {
    machine["metadata"]["annotations"][key].as_str()
}

/// Both annotations, and nothing else of the Machine.
fn a_machine_is_annotated_until_its_host_is_back(cluster: &mut Cluster) -> anyhow::Result<()> {
    cluster.lab.clean()?;
    cluster.lab.machine("metal", MACHINE, HOST)?;
    cluster.lab.machine("metal", "worker-2", "compute2.my.cloud.com")?;
    let before = machine(&cluster.lab)?;
    let (sender, first) = (cluster.sender(Who::Annotate, KEYS)?, mark());
    for _ in 0..2 {
        expect(&sender.down(&first), "acknowledged")?;
        let seen = machine(&cluster.lab)?;
        ensure!(annotation(&seen, REMEDIATE) == Some(""), "{}", seen["metadata"]);
        ensure!(marked(&seen) == Some(first.id.to_string()), "{}", seen["metadata"]);
        ensure!(seen["spec"] == before["spec"] && seen["status"] == before["status"], "{seen}");
    }
    ensure!(marked(&cluster.lab.get_in("metal", "machine", "worker-2")?).is_none());
    for _ in 0..2 {
        expect(&sender.back(&first), "acknowledged")?;
        let seen = machine(&cluster.lab)?;
        ensure!(annotation(&seen, REMEDIATE).is_none() && marked(&seen).is_none(), "{}", seen["metadata"]);
    }
    // A return of an outage that is over takes nothing from the next one.
    let second = later(&first);
    expect(&sender.down(&second), "acknowledged")?;
    expect(&sender.back(&first), "acknowledged")?;
    ensure!(marked(&machine(&cluster.lab)?) == Some(second.id.to_string()));
    Ok(())
}

/// None, one that is only named like it, and two that claim it.
fn exactly_one_machine_must_be_the_node(cluster: &mut Cluster) -> anyhow::Result<()> {
    cluster.lab.clean()?;
    let (sender, mark) = (cluster.sender(Who::Annotate, KEYS)?, mark());
    expect(&sender.down(&mark), "rejected unknown-machine")?;
    cluster.lab.machine("metal", HOST, "compute2.my.cloud.com")?;
    expect(&sender.down(&mark), "rejected unknown-machine")?;
    cluster.lab.machine("metal", MACHINE, HOST)?;
    cluster.lab.machine("other", "worker-2", HOST)?;
    expect(&sender.down(&mark), "rejected several-machines")?;
    for one in cluster.lab.list("machines")? {
        ensure!(marked(&one).is_none() && annotation(&one, REMEDIATE).is_none(), "{}", one["metadata"]);
    }
    Ok(())
}

/// The list comes in pages: the first Machine, one in the middle, and the last. Two that claim one node are on different pages.
fn one_machine_of_many_is_found(cluster: &mut Cluster) -> anyhow::Result<()> {
    cluster.lab.clean()?;
    let node = |number: usize| format!("node{number:03}.my.cloud.com");
    let all = (1..=120).map(|number| ("metal".to_owned(), format!("worker-{number:03}"), node(number)));
    cluster.lab.machines(&all.collect::<Vec<_>>())?;
    let sender = cluster.sender(Who::Annotate, KEYS)?;
    for number in [1, 60, 120] {
        let mark = crate::cluster::mark_of(&format!("node{number:03}"));
        expect(&sender.down(&mark), "acknowledged")?;
        let seen = cluster.lab.get_in("metal", "machine", &format!("worker-{number:03}"))?;
        ensure!(annotation(&seen, REMEDIATE) == Some(""), "{number}");
    }
    let requested = cluster.lab.list("machines")?;
    ensure!(requested.iter().filter(|one| annotation(one, REMEDIATE).is_some()).count() == 3);
    cluster.lab.machine("other", "zzz", &node(2))?;
    expect(&sender.down(&crate::cluster::mark_of("node002")), "rejected several-machines")
}
