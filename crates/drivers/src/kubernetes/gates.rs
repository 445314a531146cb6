//! What keeps the health checks of Kubernetes from remediating a host. A route with `mode = "remediation"` stands in their place, so
//! what an operator has said to them counts here: on the host's Node, on its Machine, on its Cluster.

use std::time::Duration;

use serde_json::Value;

use super::keys::Options;
use super::object::{Cluster, Machine, Meta, Node};
use super::server::Server;
use crate::driver::{Failure, Outcome};

/// That of medik8s: `true` excludes the node.
const EXCLUDED: &str = "remediation.medik8s.io/exclude-from-remediation";
/// Those of Cluster API: whatever they say, they count.
const SKIPPED: &str = "cluster.x-k8s.io/skip-remediation";
const PAUSED: &str = "cluster.x-k8s.io/paused";
/// The taint of medik8s' node maintenance operator.
const MAINTENANCE: &str = "medik8s.io/drain";
/// How soon the objects are read again.
const AGAIN: Duration = Duration::from_secs(60);

/// A reason to leave a host alone.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Gate {
    kind: &'static str,
    /// Where it stands, and what.
    why: String,
}

impl Gate {
    fn of(kind: &'static str, why: String) -> Self {
        Self { kind, why }
    }

    /// Nothing was sent; the objects are read again, and an operator's release goes before them.
    fn outcome(self, host: &str) -> Outcome {
        let says = format!("{}: {host} is left alone, and that is read again every minute", self.why);
        Outcome::Held(Failure::new(self.kind, &says).unsent().after(Some(AGAIN)))
    }
}

/// Why a host may not be remediated now, if so.
///
/// # Errors
/// An object that may keep it back could not be read.
pub(super) async fn closed(
    server: &Server<'_>,
    options: &Options,
    host: &str,
) -> Result<Option<Outcome>, Outcome> {
    let node = server.node(host).await?;
    let mut gate = node.as_ref().and_then(of_node);
    if gate.is_none()
        && let Some(version) = server.cluster_api_if_any().await?
    {
        let all = server.machines(&version, options.namespace.as_deref(), |node| node == host).await?;
        for machine in &all {
            let cluster = server.cluster_of(&version, machine).await?;
            gate = gate.or_else(|| of_machine(machine)).or_else(|| cluster.as_ref().and_then(of_cluster));
        }
    }
    Ok(gate.map(|gate| gate.outcome(host)))
}

fn of_node(node: &Node) -> Option<Gate> {
    let name = &node.metadata.name;
    match node.metadata.labels.get(EXCLUDED).map(String::as_str) {
        None | Some("false") => {}
        Some("true") => return Some(Gate::of("excluded", format!("Node {name} has the label {EXCLUDED}"))),
        Some(_) => {
            let why = format!("Node {name} has the label {EXCLUDED}, and it is neither true nor false");
            return Some(Gate::of("unknown-gate", why));
        }
    }
    let is_drained = node.taints().iter().any(|taint| taint["key"] == MAINTENANCE);
    is_drained.then(|| Gate::of("maintenance", format!("Node {name} has the taint {MAINTENANCE}")))
}

fn of_machine(Machine { metadata: meta, .. }: &Machine) -> Option<Gate> {
    annotated(meta, "Machine", SKIPPED, "excluded").or_else(|| annotated(meta, "Machine", PAUSED, "paused"))
}

fn of_cluster(cluster: &Cluster) -> Option<Gate> {
    let name = &cluster.metadata.name;
    match cluster.paused() {
        Value::Null | Value::Bool(false) => annotated(&cluster.metadata, "Cluster", PAUSED, "paused"),
        Value::Bool(true) => Some(Gate::of("paused", format!("Cluster {name} has spec.paused: true"))),
        _ => {
            let why = format!("Cluster {name} has a spec.paused that is neither true nor false");
            Some(Gate::of("unknown-gate", why))
        }
    }
}

fn annotated(meta: &Meta, what: &str, annotation: &str, kind: &'static str) -> Option<Gate> {
    let name = &meta.name;
    let has = meta.annotations.contains_key(annotation);
    has.then(|| Gate::of(kind, format!("{what} {name} has the annotation {annotation}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(labels: Value, taints: Value) -> Node {
        let all = json!({"metadata": {"name": "n", "labels": labels}, "spec": {"taints": taints}});
        serde_json::from_value(all).unwrap()
    }

    fn kind(gate: Option<Gate>) -> &'static str {
        gate.map_or("open", |gate| gate.kind)
    }

    /// The broken variants read the label's presence, or take an unknown word for a no.
    #[test]
    fn a_node_says_whether_it_is_excluded() {
        for (labels, taints, expected) in [
            (json!({}), json!([]), "open"),
            (json!({EXCLUDED: "false"}), json!([]), "open"),
            (json!({EXCLUDED: "true"}), json!([]), "excluded"),
            (json!({EXCLUDED: ""}), json!([]), "unknown-gate"),
            (json!({EXCLUDED: "True"}), json!([]), "unknown-gate"),
            (json!({}), json!([{"key": MAINTENANCE, "effect": "NoSchedule"}]), "maintenance"),
            (json!({}), json!([{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]), "open"),
        ] {
            assert_eq!(kind(of_node(&node(labels.clone(), taints.clone()))), expected, "{labels} {taints}");
        }
    }

    /// The broken variants want a value of the annotations, or read those of the Machine alone.
    #[test]
    fn a_machine_and_its_cluster_say_whether_they_are_left_alone() {
        let machine = |annotations: Value| {
            let all = json!({"metadata": {"name": "w", "annotations": annotations}});
            kind(of_machine(&serde_json::from_value(all).unwrap()))
        };
        assert_eq!(machine(json!({})), "open");
        for value in ["", "true", "false"] {
            assert_eq!(machine(json!({SKIPPED: value})), "excluded");
            assert_eq!(machine(json!({PAUSED: value})), "paused");
        }
        let cluster = |annotations: Value, spec: Value| {
            let all = json!({"metadata": {"name": "c", "annotations": annotations}, "spec": spec});
            kind(of_cluster(&serde_json::from_value(all).unwrap()))
        };
        for (annotations, spec, expected) in [
            (json!({}), json!({}), "open"),
            (json!({}), json!({"paused": false}), "open"),
            (json!({}), json!({"paused": null}), "open"),
            (json!({}), json!({"paused": true}), "paused"),
            (json!({}), json!({"paused": "true"}), "unknown-gate"),
            (json!({PAUSED: ""}), json!({"paused": false}), "paused"),
        ] {
            assert_eq!(cluster(annotations.clone(), spec.clone()), expected, "{annotations} {spec}");
        }
    }

    /// The broken variant counts the attempt as one that may have arrived, or is never made again.
    #[test]
    fn what_is_kept_back_was_not_sent_and_is_read_again() {
        let outcome = Gate::of("excluded", "Node n has the label".to_owned()).outcome("n");
        let Outcome::Held(why) = &outcome else { panic!("{outcome:?}") };
        assert!(why.is_unsent && why.after == Some(AGAIN));
    }
}
