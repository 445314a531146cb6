//! What is made in the cluster for a scenario to find.

use anyhow::Context as _;
use marks::time::Timestamp;
use serde_json::{Value, json};

use super::Kubernetes;
use super::ask::Ask;

/// The cluster that every Machine here belongs to.
pub const CLUSTER: &str = "east";
/// Where the objects that have a namespace are.
pub const NAMESPACES: [&str; 2] = ["metal", "other"];

const MACHINES: &str = "cluster.x-k8s.io/v1beta1";

/// A kind of objects that remediation is asked for by, without `Template`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remediation {
    /// As in `template-api-version`.
    pub api_version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The same as kubectl and rules name it.
    pub plural: &'static str,
}

/// Metal3's.
pub const METAL3: Remediation = Remediation {
    api_version: "infrastructure.cluster.x-k8s.io/v1beta1",
    kind: "Metal3Remediation",
    plural: "metal3remediations",
};
impl Kubernetes {
    /// A node without a kubelet, by kubectl; Ready, since this time.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn node(&self, name: &str, ready_at: Timestamp) -> anyhow::Result<()> {
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
        self.create(&node)?;
        self.heartbeat(name, "True", ready_at)
    }

    /// What a kubelet says of its node: `Ready` is `True` or `False`, or `Unknown` where nobody has said anything.
    ///
    /// # Errors
    /// The node is not there.
    pub fn heartbeat(&self, node: &str, ready: &str, at: Timestamp) -> anyhow::Result<()> {
        let ready = json!({"type": "Ready", "status": ready, "reason": "Kubelet", "message": "of a test",
            "lastHeartbeatTime": second(at), "lastTransitionTime": second(at)});
        let mut conditions = vec![ready];
        let stand = self.get("node", node)?["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.extend(stand.into_iter().filter(|condition| condition["type"] != "Ready"));
        self.patch(&format!("/api/v1/nodes/{node}/status"), &json!({"status": {"conditions": conditions}}))
    }

    /// The lease of a node, as its kubelet renews it.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn lease(&self, node: &str, renewed: Timestamp) -> anyhow::Result<()> {
        let renewed = second(renewed).replace('Z', ".000000Z");
        let (kind, metadata) =
            ("coordination.k8s.io/v1", json!({"name": node, "namespace": "kube-node-lease"}));
        let spec = json!({"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": renewed});
        let lease = json!({"apiVersion": kind, "kind": "Lease", "metadata": metadata, "spec": spec});
        self.kubectl(&["apply", "--filename", "-"], Some(&lease.to_string())).map(drop)
    }

    /// A Machine that has become this node.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn machine(&self, namespace: &str, name: &str, node: &str) -> anyhow::Result<()> {
        self.machines(&[(namespace.to_owned(), name.to_owned(), node.to_owned())])
    }

    /// Many, each with its namespace, its name and its node.
    ///
    /// # Errors
    /// One cannot be made.
    pub fn machines(&self, all: &[(String, String, String)]) -> anyhow::Result<()> {
        let asks = all.iter().flat_map(|(namespace, name, node)| {
            let path = format!("/apis/{MACHINES}/namespaces/{namespace}/machines");
            let machine = json!({
                "apiVersion": MACHINES,
                "kind": "Machine",
                "metadata": {"name": name, "namespace": namespace,
                    "labels": {"cluster.x-k8s.io/cluster-name": CLUSTER}},
                "spec": {"clusterName": CLUSTER, "bootstrap": {"dataSecretName": "of-a-test"}},
            });
            let reference = json!({"apiVersion": "v1", "kind": "Node", "name": node});
            let status = json!({"status": {"nodeRef": reference, "phase": "Running"}});
            [Ask::post(&path, machine), Ask::merge(&format!("{path}/{name}/status"), status)]
        });
        self.ask(&asks.collect::<Vec<_>>()).map(drop)
    }

    /// The Cluster of the Machines of a namespace.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn cluster(&self, namespace: &str, annotations: &Value, spec: &Value) -> anyhow::Result<()> {
        let metadata = json!({"name": CLUSTER, "namespace": namespace, "annotations": annotations});
        self.create(&json!({"apiVersion": MACHINES, "kind": "Cluster", "metadata": metadata, "spec": spec}))
    }

    /// A template of a kind of objects, with this in `spec.template`.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn template(
        &self,
        of: Remediation,
        namespace: &str,
        name: &str,
        template: &Value,
    ) -> anyhow::Result<()> {
        self.create(&json!({
            "apiVersion": of.api_version,
            "kind": format!("{}Template", of.kind),
            "metadata": {"name": name, "namespace": namespace, "labels": {"of": "the-template-itself"},
                "finalizers": ["of.the/template"]},
            "spec": {"template": template},
        }))
    }

    /// The only object of this kind.
    ///
    /// # Errors
    /// There is none, or there are several.
    pub fn only(&self, of: Remediation) -> anyhow::Result<Value> {
        let mut all = self.list(of.plural)?;
        let count = all.len();
        let one = all.pop().filter(|_| count == 1);
        one.with_context(|| format!("{count} {}, and not one", of.plural))
    }
}

/// A time as Kubernetes writes it.
#[must_use]
pub fn second(at: Timestamp) -> String {
    Timestamp::from_seconds(at.seconds()).rfc3339().replace(".000Z", "Z")
}
