//! What keeps the health checks of Kubernetes from remediating a host. A route with `mode = "remediation"` stands in their place, so
//! what an operator has said to them counts here: on the host's Node, on its Machine, on its Cluster.

use std::time::Duration;

use serde_json::Value;

use super::object::Object;
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

/// A reason to leave a host alone: its word, and where it stands.
type Gate = (&'static str, String);

impl Server<'_> {
    /// Why a host may not be remediated now, if so.
    ///
    /// # Errors
    /// An object that may keep it back could not be read.
    pub(super) async fn closed(&self, host: &str) -> Result<Option<Outcome>, Outcome> {
        let node = self.node(host).await?;
        let mut gate = node.as_ref().and_then(of_node);
        if gate.is_none()
            && let Some(version) = self.cluster_api_if_any().await?
        {
            for machine in &self.machines(&version, |node| node == host).await? {
                let cluster = self.cluster_of(&version, machine).await?;
                gate = gate.or_else(|| of_machine(machine)).or_else(|| cluster.as_ref().and_then(of_cluster));
            }
        }
        Ok(gate.map(|gate| outcome(gate, host)))
    }
}

/// Nothing was sent; the objects are read again, and an operator's release goes before them.
fn outcome((kind, why): Gate, host: &str) -> Outcome {
    let says = format!("{why}: {host} is left alone, and that is read again every minute");
    Outcome::Held(Failure::new(kind, &says).unsent().after(Some(AGAIN)))
}

fn of_node(node: &Object) -> Option<Gate> {
    let name = node.name();
    let labelled = format!("Node {name} has the label {EXCLUDED}");
    match node.at("/metadata/labels")[EXCLUDED].as_str() {
        None | Some("false") => {}
        Some("true") => return Some(("excluded", labelled)),
        Some(_) => return Some(("unknown-gate", format!("{labelled}, and it is neither true nor false"))),
    }
    let is_drained = node.taints().iter().any(|taint| taint["key"] == MAINTENANCE);
    is_drained.then(|| ("maintenance", format!("Node {name} has the taint {MAINTENANCE}")))
}

fn of_machine(machine: &Object) -> Option<Gate> {
    let annotated = |annotation, kind| annotated(machine, "Machine", annotation, kind);
    annotated(SKIPPED, "excluded").or_else(|| annotated(PAUSED, "paused"))
}

fn of_cluster(cluster: &Object) -> Option<Gate> {
    let says = |what| format!("Cluster {} has {what}", cluster.name());
    match cluster.at("/spec/paused") {
        Value::Null | Value::Bool(false) => annotated(cluster, "Cluster", PAUSED, "paused"),
        Value::Bool(true) => Some(("paused", says("spec.paused: true"))),
        _ => Some(("unknown-gate", says("a spec.paused that is neither true nor false"))),
    }
}

fn annotated(object: &Object, what: &str, annotation: &str, kind: &'static str) -> Option<Gate> {
    let says = || format!("{what} {} has the annotation {annotation}", object.name());
    object.annotation(annotation).map(|_| (kind, says()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(labels: Value, taints: Value) -> Object {
        json!({"metadata": {"name": "n", "labels": labels}, "spec": {"taints": taints}}).into()
    }

    fn kind(gate: Option<Gate>) -> &'static str {
        gate.map_or("open", |(kind, _)| kind)
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
            kind(of_machine(&json!({"metadata": {"name": "w", "annotations": annotations}}).into()))
        };
        assert_eq!(machine(json!({})), "open");
        for value in ["", "true", "false"] {
            assert_eq!(machine(json!({SKIPPED: value})), "excluded");
            assert_eq!(machine(json!({PAUSED: value})), "paused");
        }
        let cluster = |annotations: Value, spec: Value| {
            let all = json!({"metadata": {"name": "c", "annotations": annotations}, "spec": spec});
            kind(of_cluster(&all.into()))
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
        let outcome = outcome(("excluded", "Node n has the label".to_owned()), "n");
        let Outcome::Held(why) = &outcome else { panic!("{outcome:?}") };
        assert!(why.is_unsent && why.after == Some(AGAIN));
    }
}
