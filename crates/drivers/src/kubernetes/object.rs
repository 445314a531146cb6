//! The parts of Kubernetes' objects that a mark is about. Pure.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::body::Stored;
use crate::driver::{Failure, Outcome};
use crate::openstack::seconds;

/// The annotation on everything that we have changed or made: the id of the mark that it was done for.
pub(super) const MARK: &str = "nova-host-alerter/mark";

/// What every object has.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Meta {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) uid: String,
    pub(super) resource_version: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
    creation_timestamp: Option<String>,
    deletion_timestamp: Option<String>,
}

impl Meta {
    /// When it was made, in seconds.
    pub(super) fn created(&self) -> Option<i64> {
        seconds(self.creation_timestamp.as_deref()?)
    }

    /// The mark that we changed it for.
    pub(super) fn mark(&self) -> Option<&str> {
        self.annotations.get(MARK).map(String::as_str)
    }

    /// Whether we changed it for this very mark.
    pub(super) fn is_of(&self, stored: &Stored) -> bool {
        self.mark() == Some(&stored.id)
    }

    /// Whether it is gone as soon as its finalizers are.
    pub(super) fn is_being_deleted(&self) -> bool {
        self.deletion_timestamp.is_some()
    }
}

/// An object of any kind.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Object {
    pub(super) metadata: Meta,
}

/// A node.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Node {
    pub(super) metadata: Meta,
    #[serde(default)]
    spec: NodeSpec,
    #[serde(default)]
    status: NodeStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct NodeSpec {
    /// As they stand there: those of others are written back unchanged.
    taints: Vec<Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct NodeStatus {
    conditions: Vec<Condition>,
}

/// A condition of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Condition {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) status: String,
    pub(super) reason: String,
    pub(super) message: String,
    last_heartbeat_time: Option<String>,
}

impl Node {
    /// Its taints.
    pub(super) fn taints(&self) -> &[Value] {
        &self.spec.taints
    }

    /// Its condition of this kind.
    pub(super) fn condition(&self, kind: &str) -> Option<&Condition> {
        self.status.conditions.iter().find(|condition| condition.kind == kind)
    }

    /// Whether its kubelet has said that it is ready, later than this second. Kubernetes counts a dead node as ready for most
    /// of a minute.
    pub(super) fn is_ready_after(&self, second: i64) -> bool {
        let ready = self.condition("Ready").filter(|ready| ready.status == "True");
        let seen = ready.and_then(|ready| seconds(ready.last_heartbeat_time.as_deref()?));
        seen.is_some_and(|seen| seen > second)
    }

    /// Whether it belongs to the control plane.
    pub(super) fn is_control_plane(&self) -> bool {
        ["control-plane", "master"]
            .iter()
            .any(|role| self.metadata.labels.contains_key(&format!("node-role.kubernetes.io/{role}")))
    }
}

/// A Machine of Cluster API.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Machine {
    pub(super) metadata: Meta,
    #[serde(default)]
    spec: MachineSpec,
    #[serde(default)]
    status: MachineStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct MachineSpec {
    cluster_name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct MachineStatus {
    node_ref: Option<NodeRef>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct NodeRef {
    name: String,
}

impl Machine {
    /// The node that it has become.
    pub(super) fn node(&self) -> &str {
        self.status.node_ref.as_ref().map_or("", |node| &node.name)
    }

    /// The cluster that it belongs to.
    pub(super) fn cluster(&self) -> &str {
        &self.spec.cluster_name
    }
}

/// The only Machine of a host; `None` if there is none.
///
/// # Errors
/// Several claim its node.
pub(super) fn the_one(host: &str, machines: Vec<Machine>) -> Result<Option<Machine>, Outcome> {
    let mut own: Vec<Machine> = machines.into_iter().filter(|machine| machine.node() == host).collect();
    match (own.pop(), own.len()) {
        (found, 0) => Ok(found),
        (_, others) => {
            let count = others + 1;
            Err(rejected(
                "several-machines",
                &format!("{count} Machines claim node {host}: delete the wrong ones"),
            ))
        }
    }
}

/// What is next for an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Turn {
    /// Nothing more: this came of it.
    Ended(Outcome),
    /// This change of it.
    Patch(Value),
}

impl From<Outcome> for Turn {
    fn from(outcome: Outcome) -> Self {
        Self::Ended(outcome)
    }
}

/// Nothing is to be done. `why` says why not, where that is no matter of course.
pub(super) fn done(meta: &Meta, why: &str) -> Outcome {
    let reference = if why.is_empty() { meta.uid.clone() } else { format!("{} {why}", meta.uid) };
    Outcome::Acknowledged { reference: Some(reference) }
}

/// The object is not there any more, so nothing of ours is.
pub(super) fn gone() -> Outcome {
    Outcome::Acknowledged { reference: Some("gone".to_owned()) }
}

/// A rejection of this host.
pub(super) fn rejected(kind: &'static str, why: &str) -> Outcome {
    Outcome::Rejected(Failure::new(kind, why))
}

/// Kubernetes has no Node of a host.
pub(super) fn unknown_node(host: &str) -> Outcome {
    rejected(
        "unknown-node",
        &format!(
            "Kubernetes has no Node {host}: set host-name or [hosts.names], or unmark a host that was removed"
        ),
    )
}

/// A host is not marked while its kubelet works.
pub(super) fn alive(host: &str) -> Outcome {
    let says = format!(
        "the kubelet of {host} has reported since the failure: check whether the host is back, then release or unmark"
    );
    Outcome::Held(Failure::new("node-ready", &says))
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    /// A message of the mark `m`, of a host that failed at 02:13:20.
    pub(in super::super) fn stored(off: bool) -> Stored {
        let body = json!({"id": "m", "host": "n", "failure_time": "2026-07-21T02:13:20Z", "off": off});
        Stored::read(body.to_string().as_bytes()).unwrap()
    }

    /// A node with these taints, annotations and conditions.
    pub(in super::super) fn node(taints: Value, annotations: Value, conditions: Value) -> Node {
        let metadata = json!({"name": "n", "uid": "u", "resourceVersion": "7", "annotations": annotations});
        let all =
            json!({"metadata": metadata, "spec": {"taints": taints}, "status": {"conditions": conditions}});
        serde_json::from_value(all).unwrap()
    }

    /// The condition of a kubelet that reported at this time.
    pub(in super::super) fn ready(status: &str, at: &str) -> Value {
        json!([{"type": "Ready", "status": status, "lastHeartbeatTime": format!("2026-07-21T{at}Z")}])
    }

    /// The word of an outcome and of its failure, or the change.
    pub(in super::super) fn words(turn: &Turn) -> (&'static str, &'static str) {
        match turn {
            Turn::Ended(outcome) => outcome.words(),
            Turn::Patch(_) => ("patch", ""),
        }
    }

    #[test]
    fn an_object_without_optional_parts_is_read() {
        let node: Node = serde_json::from_value(json!({"metadata": {"name": "n"}})).unwrap();
        assert!(node.taints().is_empty() && node.condition("Ready").is_none() && !node.is_control_plane());
        let machine: Machine = serde_json::from_value(json!({"metadata": {}, "status": {}})).unwrap();
        assert_eq!((machine.node(), machine.cluster()), ("", ""));
    }

    /// The broken variant believes `Ready` alone: Kubernetes says that of a node that died half a minute ago.
    #[test]
    fn a_node_is_back_only_if_its_kubelet_has_reported_since() {
        let at = |status: &str, at: &str| node(json!([]), json!({}), ready(status, at));
        let failed = stored(true).failed_at();
        assert!(at("True", "02:13:21").is_ready_after(failed));
        for dead in [at("True", "02:13:20"), at("Unknown", "02:20:00"), at("False", "02:20:00")] {
            assert!(!dead.is_ready_after(failed));
        }
        assert!(!node(json!([]), json!({}), json!([])).is_ready_after(failed));
    }

    #[test]
    fn a_host_has_one_machine() {
        let machine = |name: &str, node: &str| -> Machine {
            let all = json!({"metadata": {"name": name}, "status": {"nodeRef": {"name": node}}});
            serde_json::from_value(all).unwrap()
        };
        let found = |machines| the_one("n", machines).map(|found| found.map(|one| one.metadata.name));
        assert_eq!(found(vec![machine("a", "n"), machine("b", "other")]), Ok(Some("a".to_owned())));
        assert_eq!(found(vec![machine("b", "other")]), Ok(None));
        let two = found(vec![machine("a", "n"), machine("b", "n")]).unwrap_err();
        assert_eq!(two.words(), ("rejected", "several-machines"));
    }
}
