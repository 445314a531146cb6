//! Questions to the API server, and changes of its objects.

use reqwest::Method;
use serde_json::Value;
use tokio::time::Instant;

use super::access::Access;
use super::keys::Options;
use super::object::{Object, Turn, node_of, the_one};
use super::remediation::CLUSTER_API;
use crate::driver::{Failure, Outcome};
use crate::web::{Answer, Ask, Meaning, Pause, meaning};

/// How often an object is read again that somebody else has just changed, in one exchange.
const TRIES: usize = 3;
/// How many Machines one answer may have: a Machine with its history takes some KiB.
const PAGE: usize = 64;
/// The word for an answer that was cut off.
const CUT: &str = "protocol";

/// How a patch is meant.
pub(super) const MERGE: &str = "application/merge-patch+json";
/// The same with lists that Kubernetes merges by their keys.
pub(super) const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// An API server in one exchange, which ends at `end`.
pub(super) struct Server<'a> {
    pub(super) access: &'a Access,
    pub(super) options: &'a Options,
    pub(super) end: Instant,
}

/// What is next for an object as it is; `None` if it does not exist.
pub(super) type Plan<'p> = dyn Fn(Option<&Object>) -> Turn + Sync + 'p;

/// The kinds that the server has in one version of a group, as discovery shows them.
pub(super) struct Kinds {
    version: String,
    /// `None` if it has no such version.
    found: Option<Object>,
}

impl Kinds {
    /// The word for a kind in paths.
    ///
    /// # Errors
    /// The server does not have it.
    pub(super) fn plural(&self, kind: &str) -> Result<&str, Outcome> {
        let all = self.found.as_ref().map_or(&[][..], |found| found.list("/resources"));
        let names = all.iter().filter(|one| one["kind"] == kind).filter_map(|one| one["name"].as_str());
        names.into_iter().find(|name| !name.contains('/')).ok_or_else(|| {
            let version = &self.version;
            misconfigured(&format!(
                "the server has no {kind} in {version}: install its CustomResourceDefinition"
            ))
        })
    }
}

impl Server<'_> {
    /// One request that changes something.
    pub(super) async fn write(&self, method: &Method, path: &str, body: &Value) -> Result<Answer, Outcome> {
        let body = body.to_string();
        self.access.send(&Ask::write(method, path, body.as_bytes()), self.end).await
    }

    async fn ask(&self, path: &str, query: &[(&str, &str)]) -> Result<Answer, Outcome> {
        self.access.send(&Ask::get(path, query), self.end).await.map_err(Outcome::not_sent)
    }

    /// What stands there; `None` if the server says that it does not exist.
    ///
    /// # Errors
    /// The answer is unknown.
    pub(super) async fn get(&self, path: &str) -> Result<Option<Object>, Outcome> {
        found(&self.ask(path, &[]).await?, "metadata")
    }

    /// A host's node, with the lease of its kubelet.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub(super) async fn node(&self, host: &str) -> Result<Option<Object>, Outcome> {
        let Some(node) = self.get(&node_path(host)).await? else { return Ok(None) };
        let lease = format!("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{host}");
        let lease = found(&self.ask(&lease, &[]).await?, "spec")?;
        Ok(Some(node.with(lease.as_ref())))
    }

    /// An object that is about to change, with all that the change depends on.
    async fn read(&self, path: &str) -> Result<Option<Object>, Outcome> {
        match path.strip_prefix(NODES) {
            Some(host) => self.node(host).await,
            None => self.get(path).await,
        }
    }

    /// Changes an object as `plan` says, and reads it again where somebody else was faster. Only an object that needs no further
    /// change acknowledges. `part` is added to its path for a change, and `kind` says how the patch is meant.
    pub(super) async fn amend(
        &self,
        path: &str,
        (part, kind): (&str, &'static str),
        plan: &Plan<'_>,
    ) -> Result<Outcome, Outcome> {
        for _ in 0..TRIES {
            let patch = match plan(self.read(path).await?.as_ref()) {
                Turn::Ended(outcome) => return Ok(outcome),
                Turn::Patch(patch) => patch.to_string(),
            };
            let path = format!("{path}{part}");
            let ask = Ask::write(&Method::PATCH, &path, patch.as_bytes()).of_type(kind);
            let answer = self.access.send(&ask, self.end).await?;
            match answer.status {
                409 => {}
                200 => return Ok(changed(&answer, plan)),
                _ => return Err(usual(&answer)),
            }
        }
        Err(Outcome::Retry(Failure::new("conflict", "somebody else keeps changing the object")))
    }

    /// The version of Cluster API that the server prefers. A server that has just started says too that it has none: it is asked again.
    pub(super) async fn cluster_api(&self) -> Result<String, Outcome> {
        let why = "the server has no Cluster API: check which cluster the kubeconfig leads to";
        let none = || Outcome::Retry(Failure::new("misconfigured", why));
        self.cluster_api_if_any().await?.ok_or_else(none)
    }

    /// The same; `None` if the server has none.
    pub(super) async fn cluster_api_if_any(&self) -> Result<Option<String>, Outcome> {
        let found = self.get_any(&format!("/apis/{CLUSTER_API}"), "kind").await?;
        let version = found.as_ref().and_then(|found| found.at("/preferredVersion/version").as_str());
        Ok(version.map(str::to_owned))
    }

    /// The Cluster that a Machine names; `None` if there is none of this name.
    pub(super) async fn cluster_of(
        &self,
        version: &str,
        machine: &Object,
    ) -> Result<Option<Object>, Outcome> {
        let (namespace, name) = (machine.namespace(), machine.text("/spec/clusterName"));
        // A name in an answer must not become another path.
        if name.is_empty() || name.contains(|c: char| !c.is_ascii_alphanumeric() && !"-.".contains(c)) {
            return Ok(None);
        }
        let path = format!("/apis/{CLUSTER_API}/{version}/namespaces/{namespace}/clusters/{name}");
        self.get_any(&path, "metadata").await
    }

    /// What stands there; an answer that does not say what is missing counts as a missing thing.
    async fn get_any(&self, path: &str, field: &str) -> Result<Option<Object>, Outcome> {
        let answer = self.ask(path, &[]).await?;
        if answer.status == 404 { Ok(None) } else { found(&answer, field) }
    }

    /// The Machine of a host; `None` if there is none.
    ///
    /// # Errors
    /// There are several, or the server did not say.
    pub(super) async fn machine(&self, version: &str, host: &str) -> Result<Option<Object>, Outcome> {
        let all = self.machines(version, |node| node == host).await?;
        the_one(host, &all).map(Option::<&Object>::cloned)
    }

    /// The Machines of these hosts, of all namespaces or of the route's.
    pub(super) async fn machines(
        &self,
        version: &str,
        is_asked: impl Fn(&str) -> bool,
    ) -> Result<Vec<Object>, Outcome> {
        let within =
            self.options.namespace.as_ref().map_or_else(String::new, |one| format!("namespaces/{one}/"));
        let path = format!("/apis/{CLUSTER_API}/{version}/{within}machines");
        let (mut all, mut next, mut size) = (Vec::new(), String::new(), PAGE);
        loop {
            let answer = self.ask(&path, &[("limit", &size.to_string()), ("continue", &next)]).await?;
            match found(&answer, "items") {
                // It was longer than is read of an answer.
                Err(Outcome::Retry(why)) if why.kind == CUT && size > 1 => size /= 2,
                page => {
                    let page = page?.ok_or_else(|| of_a_question(&answer))?;
                    let own = page.list("/items").iter().filter(|machine| is_asked(node_of(machine)));
                    all.extend(own.cloned().map(Object::from));
                    next = page.text("/metadata/continue").to_owned();
                    if next.is_empty() {
                        return Ok(all);
                    }
                }
            }
        }
    }

    /// The kinds of a version.
    pub(super) async fn kinds(&self, version: &str) -> Result<Kinds, Outcome> {
        let found = self.get_any(&format!("/apis/{version}"), "resources").await?;
        Ok(Kinds { version: version.to_owned(), found })
    }
}

/// Where a node is.
pub(super) fn node_path(host: &str) -> String {
    format!("{NODES}{host}")
}

/// What stands before a node's name in its path.
const NODES: &str = "/api/v1/nodes/";

impl Answer {
    /// The reason in a `Status`, such as `AlreadyExists`; empty in anything else, as in the answer of a proxy.
    pub(super) fn reason(&self) -> String {
        let body = self.json();
        let reason = body["reason"].as_str().filter(|_| body["kind"] == "Status");
        reason.unwrap_or_default().to_owned()
    }
}

/// What a question found: an object with this field.
fn found(answer: &Answer, field: &str) -> Result<Option<Object>, Outcome> {
    match answer.status {
        200 => match serde_json::from_slice::<Value>(&answer.body) {
            Ok(found) if found.get(field).is_some() => Ok(Some(found.into())),
            Ok(_) => Err(misconfigured(
                "the server's answer is no object of Kubernetes: check the server's address",
            )),
            Err(_) => Err(Outcome::Retry(described(answer, CUT, " with an object that was cut off"))),
        },
        404 if answer.reason() == "NotFound" => Ok(None),
        404 => Err(misconfigured(
            "the server does not know this path: check the server's address and its version",
        )),
        _ => Err(of_a_question(answer)),
    }
}

/// The broken variant would take each 200 for the change.
fn changed(answer: &Answer, plan: &Plan<'_>) -> Outcome {
    let now = serde_json::from_slice::<Value>(&answer.body).ok().map(Object::from);
    match now.as_ref().map(|now| (now.uid().to_owned(), plan(Some(now)))) {
        Some((uid, Turn::Ended(Outcome::Acknowledged { .. }))) => {
            Outcome::Acknowledged { reference: Some(uid) }
        }
        _ => Outcome::Unknown(described(answer, "protocol", " and did not show the object as wanted")),
    }
}

/// The outcome of an answer that has no special meaning where it came. No status acknowledges: the object in the body does.
pub(super) fn usual(answer: &Answer) -> Outcome {
    let row = meaning(KUBERNETES, answer.status);
    row.outcome(&sentence(answer, row.advice), answer.wish)
}

/// The failure that an answer means.
pub(super) fn described(answer: &Answer, kind: &'static str, advice: &str) -> Failure {
    Failure::new(kind, &sentence(answer, advice))
}

fn sentence(answer: &Answer, advice: &str) -> String {
    format!("Kubernetes answered {}{advice}{}", answer.status, answer.said())
}

/// Its differences from the common table, and its texts.
static KUBERNETES: &[Meaning] = &[
    Meaning::of(|status| matches!(status, 400 | 413 | 422), Outcome::Rejected, "rejected", Pause::Usual)
        .saying(": it rejects the change for this host"),
    Meaning::of(|status| status == 401, Outcome::Refused, "credentials", Pause::LockedOut)
        .saying(" to credentials that were just read: renew the token or the certificate"),
    Meaning::of(|status| status == 403, Outcome::Refused, "forbidden", Pause::LockedOut).saying(
        ": the account may not do this, give it the rights in /usr/share/nova-host-alerter/kubernetes",
    ),
    // The object was there a moment before, or the page of a list has expired.
    Meaning::of(|status| matches!(status, 404 | 410), Outcome::Retry, "conflict", Pause::Usual)
        .saying(": the object has just changed"),
    Meaning::of(|status| status == 409, Outcome::Retry, "conflict", Pause::Wished)
        .saying(": somebody else keeps changing the object"),
    Meaning::of(|status| matches!(status, 300..=399), Outcome::Refused, "redirect", Pause::Usual)
        .saying(": redirects are not followed, correct the server's address"),
];

/// The outcome of a question's answer: it changes nothing, so it leaves nothing open, and no mark is at fault.
pub(super) fn of_a_question(answer: &Answer) -> Outcome {
    match usual(answer).of_a_question() {
        Outcome::Rejected(failure) => Outcome::Refused(Failure { kind: "misconfigured", ..failure }),
        outcome => outcome,
    }
}

/// Kubernetes has no such thing as the configuration names.
pub(super) fn misconfigured(why: &str) -> Outcome {
    Outcome::Refused(Failure::new("misconfigured", why))
}

#[cfg(test)]
mod tests {
    use crate::web::expected;

    use super::*;

    const EXISTS: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"x \"a\" already exists","reason":"AlreadyExists","details":{"name":"a"},"code":409}"#;

    /// The broken variant takes any field of this name for the server's own word.
    #[test]
    fn only_a_status_has_a_reason() {
        for (body, reason, said) in [
            (EXISTS, "AlreadyExists", ": x \"a\" already exists"),
            (r#"{"reason": "NotFound"}"#, "", ""),
            (r#"{"kind": "Status"}"#, "", ""),
            (r#"{"kind": "Status", "reason": 7}"#, "", ""),
            (&EXISTS[..80], "", ""),
            ("<html>", "", ""),
        ] {
            let answer = Answer::of(409, body, None);
            assert_eq!((answer.reason().as_str(), answer.said().as_str()), (reason, said), "{body}");
        }
    }

    const NOT_FOUND: &str = r#"{"kind": "Status", "reason": "NotFound", "code": 404}"#;

    /// The broken variant takes each 404 for a missing object: a wrong path would say that a host is in no cluster.
    #[test]
    fn a_question_finds_or_does_not_or_says_nothing() {
        let of = |status, body: &str| match found(&Answer::of(status, body, None), "metadata") {
            Ok(found) => (if found.is_some() { "there" } else { "gone" }, ""),
            Err(outcome) => outcome.words(),
        };
        for (status, body, expected) in [
            (200, r#"{"metadata": {}}"#, ("there", "")),
            (200, r#"{"metadata": {"#, ("retry", "protocol")),
            (200, "", ("retry", "protocol")),
            (200, "{}", ("refused", "misconfigured")),
            (200, "null", ("refused", "misconfigured")),
            (404, NOT_FOUND, ("gone", "")),
            (404, "404 page not found", ("refused", "misconfigured")),
            (403, "", ("refused", "forbidden")),
            (500, "", ("retry", "server-error")),
            (302, "", ("refused", "redirect")),
        ] {
            assert_eq!(of(status, body), expected, "{status} {body}");
        }
    }

    #[test]
    fn only_an_object_that_needs_no_change_acknowledges() {
        let plan = |one: Option<&Object>| match one.is_some_and(|one| one.uid() == "u") {
            true => Turn::Ended(Outcome::Acknowledged { reference: None }),
            false => Turn::Patch(Value::Null),
        };
        let of = |body: &str| changed(&Answer::of(200, body, None), &plan).words();
        assert_eq!(of(r#"{"metadata": {"uid": "u"}}"#), ("acknowledged", ""));
        for body in [r#"{"metadata": {"uid": "x"}}"#, r#"{"metadata": {"uid": "u""#, "", "null"] {
            assert_eq!(of(body), ("unknown", "protocol"), "{body}");
        }
    }

    /// No status acknowledges, and nothing that was only asked is open or any mark's fault.
    #[test]
    fn every_status_has_its_outcome() {
        for status in 0..=1000 {
            let change = if matches!(status, 404 | 410) { ("retry", "conflict") } else { expected(status) };
            let question = match change {
                ("rejected", _) => ("refused", "misconfigured"),
                ("unknown", kind) => ("retry", kind),
                other => other,
            };
            let answer = Answer::of(status, "", None);
            assert_eq!(usual(&answer).words(), change, "{status}");
            assert_eq!(of_a_question(&answer).words(), question, "{status}");
        }
    }
}
