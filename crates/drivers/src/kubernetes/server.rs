//! Questions to the API server, and changes of its objects.

use reqwest::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::Instant;

use super::access::{Access, Ask};
use super::object::{Cluster, Lease, Machine, Node, Turn};
use super::remediation::CLUSTER_API;
use crate::driver::{Failure, Outcome};
use crate::web::{Answer, Meaning, Pause, meaning};

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
pub(super) const JSON: &str = "application/json";

/// An API server in one exchange, which ends at `end`.
pub(super) struct Server<'a> {
    pub(super) access: &'a Access,
    pub(super) end: Instant,
}

/// Where an object is read, and where it is changed.
pub(super) struct Place {
    /// Its own path.
    pub(super) path: String,
    /// What is added to it for a change: the name of a part with rights of its own.
    pub(super) part: &'static str,
    /// How the patch is meant.
    pub(super) patch: &'static str,
}

#[derive(Deserialize)]
struct Page {
    items: Vec<Machine>,
    metadata: PageMeta,
}

#[derive(Deserialize)]
struct PageMeta {
    #[serde(rename = "continue", default)]
    next: String,
}

/// The kinds that the server has in one version of a group, as discovery shows them.
#[derive(Debug, Deserialize)]
pub(super) struct Kinds {
    #[serde(skip)]
    version: String,
    resources: Vec<Resource>,
}

#[derive(Debug, Deserialize)]
struct Resource {
    name: String,
    kind: String,
}

impl Kinds {
    /// The word for a kind in paths.
    ///
    /// # Errors
    /// The server does not have it.
    pub(super) fn plural(&self, kind: &str) -> Result<&str, Outcome> {
        let own = self.resources.iter().find(|one| one.kind == kind && !one.name.contains('/'));
        own.map(|own| own.name.as_str()).ok_or_else(|| {
            let version = &self.version;
            misconfigured(&format!(
                "the server has no {kind} in {version}: install its CustomResourceDefinition"
            ))
        })
    }
}

impl Server<'_> {
    /// One request that changes something.
    pub(super) async fn write(
        &self,
        method: &Method,
        path: &str,
        content_type: &'static str,
        body: &Value,
    ) -> Result<Answer, Outcome> {
        let body = body.to_string();
        let ask = Ask::write(method, path, content_type, body.as_bytes());
        self.access.send(&ask, self.end).await
    }

    async fn ask(&self, path: &str, query: &[(&str, &str)]) -> Result<Answer, Outcome> {
        self.access.send(&Ask::get(path, query), self.end).await.map_err(Outcome::not_sent)
    }

    /// What stands there; `None` if the server says that it does not exist.
    ///
    /// # Errors
    /// The answer is unknown.
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, Outcome> {
        found(&self.ask(path, &[]).await?)
    }

    /// A host's node.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub(super) async fn node(&self, host: &str) -> Result<Option<Node>, Outcome> {
        Node::read(self, &node_path(host)).await
    }

    /// Changes an object as `plan` says, and reads it again where somebody else was faster. Only an object that needs no further
    /// change acknowledges.
    pub(super) async fn amend<T: Read>(
        &self,
        place: &Place,
        plan: impl Fn(Option<&T>) -> Turn,
    ) -> Result<Outcome, Outcome> {
        for _ in 0..TRIES {
            let turn = plan(T::read(self, &place.path).await?.as_ref());
            if let Some(outcome) = self.step(place, turn, &plan).await? {
                return Ok(outcome);
            }
        }
        Err(Outcome::Retry(Failure::new("conflict", "somebody else keeps changing the object")))
    }

    /// The outcome, unless the object has to be read again.
    async fn step<T: DeserializeOwned>(
        &self,
        place: &Place,
        turn: Turn,
        plan: &impl Fn(Option<&T>) -> Turn,
    ) -> Result<Option<Outcome>, Outcome> {
        let patch = match turn {
            Turn::Ended(outcome) => return Ok(Some(outcome)),
            Turn::Patch(patch) => patch,
        };
        let path = format!("{}{}", place.path, place.part);
        let answer = self.write(&Method::PATCH, &path, place.patch, &patch).await?;
        match answer.status {
            409 => Ok(None),
            200 => Ok(Some(changed(&answer, plan))),
            _ => Err(usual(&answer)),
        }
    }

    /// The version of Cluster API that the server prefers. A server that has just started says too that it has none: it is asked again.
    pub(super) async fn cluster_api(&self) -> Result<String, Outcome> {
        let why = "the server has no Cluster API: check which cluster the kubeconfig leads to";
        let none = || Outcome::Retry(Failure::new("misconfigured", why));
        self.cluster_api_if_any().await?.ok_or_else(none)
    }

    /// The same; `None` if the server has none.
    pub(super) async fn cluster_api_if_any(&self) -> Result<Option<String>, Outcome> {
        let found: Option<Value> = self.get_any(&format!("/apis/{CLUSTER_API}")).await?;
        let version = found.as_ref().and_then(|found| found["preferredVersion"]["version"].as_str());
        Ok(version.map(str::to_owned))
    }

    /// The Cluster that a Machine names; `None` if there is none of this name.
    pub(super) async fn cluster_of(
        &self,
        version: &str,
        machine: &Machine,
    ) -> Result<Option<Cluster>, Outcome> {
        let (namespace, name) = (&machine.metadata.namespace, machine.cluster());
        // A name in an answer must not become another path.
        if name.is_empty() || name.contains(|c: char| !c.is_ascii_alphanumeric() && !"-.".contains(c)) {
            return Ok(None);
        }
        self.get_any(&format!("/apis/{CLUSTER_API}/{version}/namespaces/{namespace}/clusters/{name}")).await
    }

    /// The same where an answer that does not say what is missing counts as a missing thing.
    async fn get_any<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, Outcome> {
        let answer = self.ask(path, &[]).await?;
        if answer.status == 404 { Ok(None) } else { found(&answer) }
    }

    /// The Machines of these hosts, of all namespaces or of one.
    pub(super) async fn machines(
        &self,
        version: &str,
        namespace: Option<&str>,
        is_asked: impl Fn(&str) -> bool,
    ) -> Result<Vec<Machine>, Outcome> {
        let within = namespace.map_or_else(String::new, |namespace| format!("namespaces/{namespace}/"));
        let path = format!("/apis/{CLUSTER_API}/{version}/{within}machines");
        let (mut all, mut next, mut size) = (Vec::new(), String::new(), PAGE);
        loop {
            let answer = self.ask(&path, &[("limit", &size.to_string()), ("continue", &next)]).await?;
            match found::<Page>(&answer) {
                // It was longer than is read of an answer.
                Err(Outcome::Retry(why)) if why.kind == CUT && size > 1 => size /= 2,
                page => {
                    let page = page?.ok_or_else(|| of_a_question(&answer))?;
                    all.extend(page.items.into_iter().filter(|machine| is_asked(machine.node())));
                    next = page.metadata.next;
                    if next.is_empty() {
                        return Ok(all);
                    }
                }
            }
        }
    }

    /// The kinds of a version.
    pub(super) async fn kinds(&self, version: &str) -> Result<Kinds, Outcome> {
        let found = self.get_any::<Kinds>(&format!("/apis/{version}")).await?;
        let resources = found.map(|found| found.resources).unwrap_or_default();
        Ok(Kinds { version: version.to_owned(), resources })
    }
}

/// An object that is changed, with all that the change depends on.
pub(super) trait Read: DeserializeOwned {
    /// Reads it; `None` if it does not exist.
    ///
    /// # Errors
    /// The answer is unknown.
    fn read(server: &Server<'_>, path: &str) -> impl Future<Output = Result<Option<Self>, Outcome>> + Send;
}

impl Read for Machine {
    async fn read(server: &Server<'_>, path: &str) -> Result<Option<Self>, Outcome> {
        server.get(path).await
    }
}

/// With the lease of its kubelet.
impl Read for Node {
    async fn read(server: &Server<'_>, path: &str) -> Result<Option<Self>, Outcome> {
        let Some(node) = server.get::<Self>(path).await? else { return Ok(None) };
        // Of the path: a name in an answer must not become another one.
        let host = path.rsplit('/').next().unwrap_or_default();
        let lease = format!("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{host}");
        let lease = server.get::<Lease>(&lease).await?;
        Ok(Some(node.with(lease.as_ref())))
    }
}

/// Where a node is.
pub(super) fn node_path(host: &str) -> String {
    format!("/api/v1/nodes/{host}")
}

impl Answer {
    /// The reason in a `Status`, such as `AlreadyExists`; empty in anything else, as in the answer of a proxy.
    pub(super) fn reason(&self) -> String {
        let body = self.json();
        let reason = body["reason"].as_str().filter(|_| body["kind"] == "Status");
        reason.unwrap_or_default().to_owned()
    }
}

/// What a question found.
fn found<T: DeserializeOwned>(answer: &Answer) -> Result<Option<T>, Outcome> {
    match answer.status {
        200 => match serde_json::from_slice(&answer.body) {
            Ok(found) => Ok(Some(found)),
            Err(why) if why.is_data() => Err(misconfigured(
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
fn changed<T: DeserializeOwned>(answer: &Answer, plan: &impl Fn(Option<&T>) -> Turn) -> Outcome {
    let uid = answer.json()["metadata"]["uid"].as_str().map(str::to_owned);
    let now = serde_json::from_slice::<T>(&answer.body).ok();
    match now.map(|now| plan(Some(&now))) {
        Some(Turn::Ended(Outcome::Acknowledged { .. })) => Outcome::Acknowledged { reference: uid },
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
    use super::super::object::Object;
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
        let of = |status, body: &str| match found::<Object>(&Answer::of(status, body, None)) {
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
        let plan = |one: Option<&Object>| match one.is_some_and(|one| one.metadata.uid == "u") {
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
            assert_eq!(
                (usual(&answer).words(), of_a_question(&answer).words()),
                (change, question),
                "{status}"
            );
        }
    }
}
