//! What keeps marks from a cluster: a right that the account lacks, or a host that Kubernetes does not know. Nothing is changed.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::Method;
use serde_json::{Value, json};

use super::body::lower;
use super::change::row;
use super::object::{Object, the_one, unknown_machine, unknown_node};
use super::remediation::Template;
use super::server::{Server, node_path, usual};
use crate::driver::{Failure, Finding, Outcome};
use crate::which::Named;

/// What the account must be able to do, as RBAC names it.
struct Right {
    verb: &'static str,
    group: String,
    /// With its part, such as `nodes/status`.
    resource: String,
    /// In all namespaces, if unset.
    namespace: Option<String>,
}

impl Right {
    fn to([verb, group, resource]: [&'static str; 3], namespace: Option<&String>) -> Self {
        Self { verb, group: group.to_owned(), resource: resource.to_owned(), namespace: namespace.cloned() }
    }

    fn review(&self) -> Value {
        let (resource, part) = self.resource.split_once('/').unwrap_or((&self.resource, ""));
        let attributes = json!({
            "verb": self.verb, "group": self.group, "resource": resource, "subresource": part,
            "namespace": self.namespace.as_deref().unwrap_or_default(),
        });
        let spec = json!({"resourceAttributes": attributes});
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec})
    }

    fn missing(&self) -> Failure {
        let within = self.namespace.as_ref().map_or_else(String::new, |name| format!(" in namespace {name}"));
        let says = format!(
            "the account may not {} {}{within}: give it the rights in /usr/share/nova-host-alerter/kubernetes",
            self.verb, self.resource
        );
        Failure::new("forbidden", &says)
    }
}

impl Server<'_> {
    /// The rights that the account lacks.
    ///
    /// # Errors
    /// The server did not say.
    pub(super) async fn missing(&self) -> Result<Vec<Failure>, Outcome> {
        let mut missing = Vec::new();
        for right in self.needed().await? {
            if !self.is_allowed(&right).await? {
                missing.push(right.missing());
            }
        }
        Ok(missing)
    }

    /// What the mode needs, and no more. In each mode: whether a host lives shows in its Node, and in the lease of its kubelet.
    async fn needed(&self) -> Result<Vec<Right>, Outcome> {
        let (mode, leases) = (row(self.options.mode), "kube-node-lease".to_owned());
        let mut all = vec![
            Right::to(["get", "", "nodes"], None),
            Right::to(["get", "coordination.k8s.io", "leases"], Some(&leases)),
        ];
        let within = self.options.namespace.as_ref().filter(|_| mode.is_of_machine);
        all.extend(mode.rights.iter().map(|right| Right::to(*right, within)));
        if let Some(template) = &self.options.template {
            let kinds = self.kinds(&template.api_version).await?;
            let right = |verb, kind: &str, namespace: Option<&String>| {
                let (group, resource) = (template.group().to_owned(), kinds.plural(kind)?.to_owned());
                Ok(Right { verb, group, resource, namespace: namespace.cloned() })
            };
            all.push(right("get", &template.kind, template.namespace.as_ref().or(within))?);
            for verb in ["get", "create", "delete"] {
                all.push(right(verb, template.object_kind(), within)?);
            }
        }
        Ok(all)
    }

    async fn is_allowed(&self, right: &Right) -> Result<bool, Outcome> {
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let answer = self.write(&Method::POST, path, &right.review()).await?;
        match answer.status {
            201 => Ok(answer.json()["status"]["allowed"] == true),
            _ => Err(usual(&answer).of_a_question()),
        }
    }

    /// Whether the server has what the mode names, as far as that is known without a host.
    ///
    /// # Errors
    /// It has not, or it did not say.
    pub(super) async fn has_kinds(&self) -> Result<(), Outcome> {
        match &self.options.template {
            Some(template) => {
                let namespace = template.namespace.as_ref().or(self.options.namespace.as_ref());
                self.are_there(template, namespace.map(String::as_str).into_iter().collect()).await
            }
            None if row(self.options.mode).is_of_machine => self.cluster_api().await.map(drop),
            None => Ok(()),
        }
    }

    /// Whatever keeps marks from the cluster, and each host that it does not know. What was found before an answer was missing stays.
    pub(super) async fn findings(&self, hosts: &[Named]) -> Vec<Finding> {
        let mut found = Vec::new();
        let asked = self.find(hosts, &mut found).await;
        found.extend(asked.err().as_ref().and_then(Finding::of));
        found
    }

    async fn find(&self, hosts: &[Named], found: &mut Vec<Finding>) -> Result<(), Outcome> {
        found.extend(self.missing().await?.into_iter().map(|why| Finding { host: None, why }));
        match found.is_empty() {
            false => Ok(()),
            true if row(self.options.mode).is_of_machine => self.find_machines(hosts, found).await,
            true => self.find_nodes(hosts, found).await,
        }
    }

    async fn find_nodes(&self, hosts: &[Named], found: &mut Vec<Finding>) -> Result<(), Outcome> {
        for host in hosts {
            let name = lower(&self.options.host_name.of_host(host));
            if self.get(&node_path(&name)).await?.is_none() {
                found.extend(Finding::of_host(host, &unknown_node(&name)));
            }
        }
        Ok(())
    }

    async fn find_machines(&self, hosts: &[Named], found: &mut Vec<Finding>) -> Result<(), Outcome> {
        let version = self.cluster_api().await?;
        let named = |host| (lower(&self.options.host_name.of_host(host)), host);
        let names: BTreeMap<String, &Named> = hosts.iter().map(named).collect();
        let all = self.machines(&version, |node| names.contains_key(node)).await?;
        for (name, host) in &names {
            let unclaimed = match the_one(name, &all) {
                Ok(Some(_)) => continue,
                Ok(None) => unknown_machine(name),
                Err(outcome) => outcome,
            };
            found.extend(Finding::of_host(host, &unclaimed));
        }
        let Some(template) = &self.options.template else { return Ok(()) };
        self.are_there(template, all.iter().map(Object::namespace).collect()).await
    }

    /// Whether there is a template for each of these namespaces.
    async fn are_there(&self, template: &Template, namespaces: BTreeSet<&str>) -> Result<(), Outcome> {
        let kinds = self.kinds(&template.api_version).await?;
        for namespace in namespaces {
            self.template(template, &kinds, namespace).await?;
        }
        Ok(())
    }
}
