//! What keeps marks from a cluster: a right that the account lacks, or a host that Kubernetes does not know. Nothing is changed.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::Method;
use serde_json::{Value, json};

use super::annotate::unknown_machine;
use super::body::{Mode, lower};
use super::keys::Options;
use super::object::{Machine, Object, the_one, unknown_node};
use super::remediate::found_template;
use super::remediation::{CLUSTER_API, Template};
use super::server::{JSON, Server, node_path, usual};
use crate::driver::{Failure, Finding, Named, Outcome};

/// What the account must be able to do, as RBAC names it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Right {
    verb: &'static str,
    group: String,
    /// With its part, such as `nodes/status`.
    resource: String,
    /// In all namespaces, if unset.
    namespace: Option<String>,
}

impl Right {
    fn to(verb: &'static str, group: &str, resource: &str, namespace: Option<&String>) -> Self {
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

/// The rights that the account lacks.
///
/// # Errors
/// The server did not say.
pub(super) async fn missing(server: &Server<'_>, options: &Options) -> Result<Vec<Failure>, Outcome> {
    let mut missing = Vec::new();
    for right in needed(server, options).await? {
        if !is_allowed(server, &right).await? {
            missing.push(right.missing());
        }
    }
    Ok(missing)
}

/// What the mode needs, and no more.
async fn needed(server: &Server<'_>, options: &Options) -> Result<Vec<Right>, Outcome> {
    let within = options.namespace.as_ref();
    let machines = |verb| Right::to(verb, CLUSTER_API, "machines", within);
    let own = match (options.mode, &options.template) {
        (Mode::Taint, _) => vec![Right::to("patch", "", "nodes", None)],
        (Mode::Condition, _) => vec![Right::to("patch", "", "nodes/status", None)],
        (Mode::Annotate, _) => ["get", "list", "patch"].map(machines).into(),
        (Mode::Remediation, None) => Vec::new(),
        (Mode::Remediation, Some(template)) => of_template(server, options, template).await?,
    };
    Ok(of_nodes().into_iter().chain(own).collect())
}

/// In each mode: whether a host lives shows in its Node, and in the lease of its kubelet.
fn of_nodes() -> [Right; 2] {
    let leases = "kube-node-lease".to_owned();
    [Right::to("get", "", "nodes", None), Right::to("get", "coordination.k8s.io", "leases", Some(&leases))]
}

async fn of_template(
    server: &Server<'_>,
    options: &Options,
    template: &Template,
) -> Result<Vec<Right>, Outcome> {
    let (version, group) = (&template.api_version, template.group());
    let (own, machines) = (template.namespace.as_ref(), options.namespace.as_ref());
    // Who is excluded, or paused, shows there.
    let to_hosts = [
        Right::to("list", CLUSTER_API, "machines", machines),
        Right::to("get", CLUSTER_API, "clusters", machines),
    ];
    let kinds = server.kinds(version).await?;
    let (kind, templates) = (kinds.plural(template.object_kind())?, kinds.plural(&template.kind)?);
    let to_objects = ["get", "create", "delete"].map(|verb| Right::to(verb, group, kind, machines));
    let to_template = Right::to("get", group, templates, own.or(machines));
    Ok(to_hosts.into_iter().chain([to_template]).chain(to_objects).collect())
}

async fn is_allowed(server: &Server<'_>, right: &Right) -> Result<bool, Outcome> {
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let answer = server.write(&Method::POST, path, JSON, &right.review()).await?;
    match answer.status {
        201 => Ok(answer.json()["status"]["allowed"] == true),
        _ => Err(usual(&answer).of_a_question()),
    }
}

/// Whether the server has what the mode names, as far as that is known without a host.
///
/// # Errors
/// It has not, or it did not say.
pub(super) async fn has_kinds(server: &Server<'_>, options: &Options) -> Result<(), Outcome> {
    match (options.mode, &options.template) {
        (Mode::Annotate, _) => server.cluster_api().await.map(drop),
        (Mode::Remediation, Some(template)) => {
            let namespace = template.namespace.as_ref().or(options.namespace.as_ref());
            are_there(server, template, namespace.map(String::as_str)).await
        }
        _ => Ok(()),
    }
}

/// Whatever keeps marks from the cluster, and each host that it does not know. What was found before an answer was missing stays.
pub(super) async fn findings(server: &Server<'_>, options: &Options, hosts: &[Named]) -> Vec<Finding> {
    let mut found = Vec::new();
    let asked = match missing(server, options).await {
        Ok(missing) if missing.is_empty() => unknown(server, options, hosts, &mut found).await,
        Ok(missing) => {
            found.extend(missing.into_iter().map(|why| Finding { host: None, why }));
            Ok(())
        }
        Err(outcome) => Err(outcome),
    };
    found.extend(asked.err().and_then(|outcome| Finding::of(&outcome)));
    found
}

async fn unknown(
    server: &Server<'_>,
    options: &Options,
    hosts: &[Named],
    found: &mut Vec<Finding>,
) -> Result<(), Outcome> {
    match (options.mode, &options.template) {
        (Mode::Taint | Mode::Condition, _) => nodes(server, options, hosts, found).await,
        (_, template) => machines(server, options, template.as_ref(), hosts, found).await,
    }
}

async fn nodes(
    server: &Server<'_>,
    options: &Options,
    hosts: &[Named],
    found: &mut Vec<Finding>,
) -> Result<(), Outcome> {
    for host in hosts {
        let name = lower(&options.host_name.of_host(host));
        if server.get::<Object>(&node_path(&name)).await?.is_none() {
            found.extend(of_host(host, &unknown_node(&name)));
        }
    }
    Ok(())
}

async fn machines(
    server: &Server<'_>,
    options: &Options,
    template: Option<&Template>,
    hosts: &[Named],
    found: &mut Vec<Finding>,
) -> Result<(), Outcome> {
    let version = server.cluster_api().await?;
    let names: BTreeMap<String, &Named> =
        hosts.iter().map(|host| (lower(&options.host_name.of_host(host)), host)).collect();
    let namespace = options.namespace.as_deref();
    let all = server.machines(&version, namespace, |node| names.contains_key(node)).await?;
    found.extend(names.iter().filter_map(|(name, host)| of_host(host, &claimed(&all, name))));
    let Some(template) = template else { return Ok(()) };
    let namespaces: BTreeSet<&str> = all.iter().map(|machine| machine.metadata.namespace.as_str()).collect();
    are_there(server, template, namespaces).await
}

/// Whether there is a template for each of these namespaces.
async fn are_there<'n>(
    server: &Server<'_>,
    template: &Template,
    namespaces: impl IntoIterator<Item = &'n str>,
) -> Result<(), Outcome> {
    let kinds = server.kinds(&template.api_version).await?;
    for namespace in namespaces {
        found_template(server, template, &kinds, namespace).await?;
    }
    Ok(())
}

/// Whether one Machine claims a host.
fn claimed(machines: &[Machine], host: &str) -> Outcome {
    match the_one(host, machines) {
        Ok(Some(_)) => Outcome::Acknowledged { reference: None },
        Ok(None) => unknown_machine(host),
        Err(outcome) => outcome,
    }
}

fn of_host(host: &Named, outcome: &Outcome) -> Option<Finding> {
    Finding::of(outcome).map(|finding| Finding { host: Some(host.node.clone()), ..finding })
}
