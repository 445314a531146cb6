//! The object that asks an external remediation controller to recover a host: made of a template, as Cluster API makes it. Pure.

use serde_json::{Map, Value, json};

use super::body::Stored;
use super::object::{Object, pairs, signed};
use super::row::Row;

/// The group of Cluster API.
pub(super) const CLUSTER_API: &str = "cluster.x-k8s.io";

/// The mode `remediation`. Who is excluded, or paused, shows in Machines and Clusters; the template adds its own rights.
pub(super) static ROW: Row = Row {
    is_of_machine: true,
    rights: &[["list", CLUSTER_API, "machines"], ["get", CLUSTER_API, "clusters"]],
    undo: "an object for the remediation of {lower} may stand in Kubernetes; if the host is well, delete it",
    change: None,
};

/// The template that the configuration names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// Group and version, of the template and of the object.
    pub api_version: String,
    /// The template's kind; it ends with `Template`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its namespace; if unset, the Machine's.
    pub namespace: Option<String>,
}

impl Template {
    /// The object's kind.
    pub(super) fn object_kind(&self) -> &str {
        self.kind.strip_suffix("Template").unwrap_or(&self.kind)
    }

    /// Where its objects are, on one line.
    pub(super) fn target(&self) -> String {
        let namespace = self.namespace.as_deref().unwrap_or_default();
        format!("{} {} {namespace}", self.api_version, self.kind)
    }

    /// The group of both.
    pub(super) fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }
}

/// The object of a template as the server has it, as Cluster API's MachineHealthCheck makes it for a Machine; `version` is
/// that of the Machine's API. `None` if the template has no `spec.template`.
pub(super) fn object(
    found: &Object,
    template: &Template,
    (machine, version): (&Object, &str),
    stored: &Stored,
) -> Option<Value> {
    let inner = found.at("/spec/template").as_object()?;
    let meta = inner.get("metadata").unwrap_or(&Value::Null);
    let (name, kind) = (machine.name(), template.object_kind());
    let cluster = machine.text("/spec/clusterName");
    let labels = joined(&meta["labels"], pairs([("cluster.x-k8s.io/cluster-name", cluster)]));
    let from_kind = format!("{}.{}", template.kind, template.group());
    let from = pairs([
        ("cluster.x-k8s.io/cloned-from-name", template.name.as_str()),
        ("cluster.x-k8s.io/cloned-from-groupkind", from_kind.as_str()),
    ]);
    let annotations = joined(&joined(&meta["annotations"], from).into(), signed(stored));
    let owner = json!({"apiVersion": version, "kind": "Machine", "name": name, "uid": machine.uid()});
    let metadata = json!({
        "name": name, "namespace": machine.namespace(), "labels": labels, "annotations": annotations,
        "ownerReferences": [owner],
    });
    let spec = inner.get("spec").cloned().unwrap_or_else(|| json!({}));
    Some(json!({"apiVersion": template.api_version, "kind": kind, "metadata": metadata, "spec": spec}))
}

fn joined(of_template: &Value, ours: Map<String, Value>) -> Map<String, Value> {
    let mut all = of_template.as_object().cloned().unwrap_or_default();
    all.extend(ours);
    all
}

#[cfg(test)]
mod tests {
    use super::super::object::tests::stored;
    use super::*;

    fn template() -> Template {
        Template {
            api_version: "infrastructure.cluster.x-k8s.io/v1beta1".to_owned(),
            kind: "Metal3RemediationTemplate".to_owned(),
            name: "workers".to_owned(),
            namespace: None,
        }
    }

    fn machine() -> Object {
        json!({
            "metadata": {"name": "w-1", "namespace": "metal", "uid": "mu"},
            "spec": {"clusterName": "prod"}, "status": {"nodeRef": {"name": "n"}},
        })
        .into()
    }

    /// S4-32, S4-33, S4-37, S4-54: kind without `Template`, name and namespace of the Machine, the Machine as owner, and the
    /// template's strategy as it stands there.
    #[test]
    fn an_object_for_cluster_api_is_as_a_machine_health_check_makes_it() {
        let strategy = json!({"strategy": {"type": "Reboot", "retryLimit": 2, "timeout": "300s"}});
        let found = json!({"metadata": {"resourceVersion": "9", "uid": "tu", "finalizers": ["f"]},
            "spec": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": strategy}}});
        let template = template();
        let (machine, version) = (machine(), "cluster.x-k8s.io/v1beta1");
        let patient = (&machine, version);
        let golden = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
            "kind": "Metal3Remediation",
            "metadata": {
                "name": "w-1", "namespace": "metal",
                "labels": {"a": "b", "cluster.x-k8s.io/cluster-name": "prod"},
                "annotations": {
                    "cluster.x-k8s.io/cloned-from-name": "workers",
                    "cluster.x-k8s.io/cloned-from-groupkind": "Metal3RemediationTemplate.infrastructure.cluster.x-k8s.io",
                    "nova-host-alerter/mark": "m", "nova-host-alerter/failure-time": "2026-07-21T02:13:20Z",
                },
                "ownerReferences": [{"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Machine", "name": "w-1", "uid": "mu"}],
            },
            "spec": strategy,
        });
        assert_eq!(object(&found.into(), &template, patient, &stored(true)), Some(golden));
        assert_eq!(object(&json!({"spec": {}}).into(), &template, patient, &stored(true)), None);
    }
}
