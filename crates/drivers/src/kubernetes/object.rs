//! The parts of Kubernetes' objects that a mark is about. Pure.

use std::time::Duration;

use marks::time::{CLOCK_SKEW, Timestamp};
use serde_json::{Map, Value};

use super::body::Stored;
use crate::driver::{Failure, Outcome};
use crate::times;
use crate::which::ADVICE;

/// The annotations on everything that we have changed or made: for which mark, and when that mark's host had failed.
const MARK: &str = "nova-host-alerter/mark";
const FAILED: &str = "nova-host-alerter/failure-time";

/// The annotations for this mark.
pub(super) fn signed(stored: &Stored) -> Map<String, Value> {
    pairs([(MARK, stored.id.as_str()), (FAILED, stored.failure_time.as_str())])
}

/// What removes them.
pub(super) fn unsigned() -> Map<String, Value> {
    pairs([(MARK, Value::Null), (FAILED, Value::Null)])
}

/// Labels or annotations.
pub(super) fn pairs<V: Into<Value>, const N: usize>(pairs: [(&str, V); N]) -> Map<String, Value> {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect()
}

/// For which mark something was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// For none: somebody else did it, or nobody.
    Nobodys,
    /// For this mark.
    Ours,
    /// For a mark of an earlier failure.
    Earlier,
    /// For a mark of a later failure: this one is overtaken, and must change nothing that ends with that one.
    Later,
}

impl Whose {
    /// Of a mark whose host failed at this second. Ids have no order.
    pub(super) fn other(failed_at: Option<i64>, stored: &Stored) -> Self {
        match failed_at.is_some_and(|at| at > stored.failed_at()) {
            true => Self::Later,
            false => Self::Earlier,
        }
    }
}

/// An object as the server shows it. A field that is not there reads as null, or as an empty text.
#[derive(Clone, Debug)]
pub(super) struct Object {
    fields: Value,
    /// Of a Node: when its kubelet renewed its lease, in seconds.
    renewed: Option<i64>,
}

impl From<Value> for Object {
    fn from(fields: Value) -> Self {
        Self { fields, renewed: None }
    }
}

impl Object {
    /// The field at this path, such as `/metadata/name`.
    pub(super) fn at(&self, path: &str) -> &Value {
        self.fields.pointer(path).unwrap_or(&Value::Null)
    }

    /// The same as a text.
    pub(super) fn text(&self, path: &str) -> &str {
        self.at(path).as_str().unwrap_or_default()
    }

    /// The same as a list.
    pub(super) fn list(&self, path: &str) -> &[Value] {
        self.at(path).as_array().map_or(&[], Vec::as_slice)
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        self.text("/metadata/name")
    }

    /// Its namespace.
    pub(super) fn namespace(&self) -> &str {
        self.text("/metadata/namespace")
    }

    /// Its id: another object of its name has another one.
    pub(super) fn uid(&self) -> &str {
        self.text("/metadata/uid")
    }

    /// An annotation.
    pub(super) fn annotation(&self, key: &str) -> Option<&str> {
        self.at("/metadata/annotations")[key].as_str()
    }

    /// When it was made, in seconds.
    pub(super) fn created(&self) -> Option<i64> {
        times::of(self.at("/metadata/creationTimestamp"))
    }

    /// Since when it waits for its finalizers, in seconds; then it is gone.
    pub(super) fn deleted(&self) -> Option<i64> {
        times::of(self.at("/metadata/deletionTimestamp"))
    }

    /// For which mark we changed or made it.
    pub(super) fn whose(&self, stored: &Stored) -> Whose {
        match self.annotation(MARK) {
            None => Whose::Nobodys,
            Some(mark) if mark == stored.id => Whose::Ours,
            Some(_) => Whose::other(self.annotation(FAILED).and_then(times::seconds), stored),
        }
    }

    /// The taints of a Node, as they stand there: those of others are written back unchanged.
    pub(super) fn taints(&self) -> &[Value] {
        self.list("/spec/taints")
    }

    /// Its condition of this kind.
    pub(super) fn condition(&self, kind: &str) -> Option<&Value> {
        self.list("/status/conditions").iter().find(|condition| condition["type"] == kind)
    }

    /// A Node with the lease of its kubelet, which renews it every ten seconds; it reports its node's conditions every five minutes
    /// only, unless they change.
    pub(super) fn with(self, lease: Option<&Self>) -> Self {
        Self { renewed: lease.and_then(|lease| times::of(lease.at("/spec/renewTime"))), ..self }
    }

    /// When something last showed that it lives, in seconds: its registration, a report of its kubelet, whatever that said, or its
    /// lease. The node controller, which calls a node unknown, leaves all of these as they are.
    pub(super) fn sign(&self) -> Option<i64> {
        let reported = || times::of(&self.condition("Ready")?["lastHeartbeatTime"]);
        self.created().max(reported()).max(self.renewed)
    }

    /// Whether its kubelet has said that it is ready, after this second. Kubernetes counts a dead node as ready for most of a minute.
    pub(super) fn is_ready_after(&self, second: i64) -> bool {
        let is_ready = self.condition("Ready").is_some_and(|ready| ready["status"] == "True");
        is_ready && self.sign().is_some_and(|sign| sign > second)
    }

    /// The node that a Machine of Cluster API has become.
    pub(super) fn node(&self) -> &str {
        node_of(&self.fields)
    }
}

/// The node that a Machine has become, as it stands in a list.
pub(super) fn node_of(machine: &Value) -> &str {
    machine["status"]["nodeRef"]["name"].as_str().unwrap_or_default()
}

/// The only Machine of a host; `None` if there is none.
///
/// # Errors
/// Several claim its node.
pub(super) fn the_one<'m>(host: &str, machines: &'m [Object]) -> Result<Option<&'m Object>, Outcome> {
    let mut own: Vec<&Object> = machines.iter().filter(|machine| machine.node() == host).collect();
    match (own.pop(), own.len()) {
        (found, 0) => Ok(found),
        (_, others) => {
            let says = format!("{} Machines claim node {host}: delete the wrong ones", others + 1);
            Err(rejected("several-machines", &says))
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
pub(super) fn done(object: &Object, why: &str) -> Outcome {
    Outcome::Acknowledged { reference: Some(format!("{} {why}", object.uid()).trim_end().to_owned()) }
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
    let says = format!("Kubernetes has no Node {host}: {ADVICE}, or unmark a host that was removed");
    rejected("unknown-node", &says)
}

/// Cluster API has no Machine of a host.
pub(super) fn unknown_machine(host: &str) -> Outcome {
    let says = format!(
        "no Machine has node {host} in status.nodeRef: check namespace, host-name and host-names, or unmark a host that was removed"
    );
    rejected("unknown-machine", &says)
}

/// For so long after a failure the clocks of a node and of this controller can explain a sign of life.
const SKEW: i64 = CLOCK_SKEW.as_secs().cast_signed();
/// A living kubelet renews its lease in this time, by a clock that is a little late.
const RENEWAL: i64 = 60;
/// How soon a doubt is checked again.
const AGAIN: Duration = Duration::from_secs(15);

/// Why a host is left alone: Kubernetes has heard from it since its failure, or may have. `sign`: when it last did, in seconds.
///
/// A sign shortly after the failure may be the dead node's, by a clock that is ahead. A living kubelet makes a newer one.
pub(super) fn life(sign: Option<i64>, stored: &Stored, now: Timestamp) -> Option<Outcome> {
    let (failed_at, host) = (stored.failed_at(), &stored.host);
    let sign = sign.filter(|sign| *sign > failed_at)?;
    if sign > failed_at.saturating_add(SKEW) {
        let says = format!(
            "Kubernetes has heard from {host} since its failure: if it is back, unmark it; if it is off, do by hand what this route does, then unmark it"
        );
        return Some(Outcome::Held(Failure::new("alive", &says)));
    }
    let is_settled = now.seconds() > failed_at.saturating_add(SKEW + RENEWAL);
    let says =
        format!("Kubernetes may have heard from {host} since its failure: that is checked for three minutes");
    (!is_settled).then(|| Outcome::Wait(Failure::new("doubtful", &says).after(Some(AGAIN))))
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
    pub(in super::super) fn node(taints: Value, annotations: Value, conditions: Value) -> Object {
        let metadata = json!({"name": "n", "uid": "u", "resourceVersion": "7", "annotations": annotations});
        json!({"metadata": metadata, "spec": {"taints": taints}, "status": {"conditions": conditions}}).into()
    }

    /// The condition of a kubelet that reported at this time.
    pub(in super::super) fn ready(status: &str, at: &str) -> Value {
        json!([{"type": "Ready", "status": status, "lastHeartbeatTime": format!("2026-07-21T{at}Z")}])
    }

    /// The annotations of the mark `other`, whose host failed at this time.
    pub(in super::super) fn of_other(at: &str) -> Value {
        json!({MARK: "other", FAILED: format!("2026-07-21T{at}Z")})
    }

    /// The annotations of the mark `m`.
    pub(in super::super) fn of_ours() -> Value {
        Value::Object(signed(&stored(true)))
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
        let node = Object::from(json!({"metadata": {"name": "n"}}));
        assert!(node.taints().is_empty() && node.condition("Ready").is_none());
        let machine = Object::from(json!({"metadata": {}, "status": {}}));
        assert_eq!((machine.node(), machine.text("/spec/clusterName")), ("", ""));
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
        let renewed = at("True", "02:13:00").with(Some(&lease("02:13:21")));
        assert!(renewed.is_ready_after(failed));
    }

    fn lease(at: &str) -> Object {
        json!({"spec": {"renewTime": format!("2026-07-21T{at}.123456Z")}}).into()
    }

    /// One broken variant wants `Ready` to be true: a kubelet whose network is broken lives. Another goes by the conditions alone:
    /// a kubelet reports them every five minutes.
    #[test]
    fn whatever_a_kubelet_says_shows_that_it_lives() {
        let failed = stored(true).failed_at();
        let sign = |node: Object| node.sign().map(|sign| sign - failed);
        let dead = || node(json!([]), json!({}), ready("Unknown", "02:13:00"));
        assert_eq!(sign(dead()), Some(-20));
        assert_eq!(sign(node(json!([]), json!({}), ready("False", "02:16:00"))), Some(160));
        assert_eq!(sign(dead().with(Some(&lease("02:16:00")))), Some(160));
        assert_eq!(sign(dead().with(None)), Some(-20));
        let mut registered = dead();
        registered.fields["metadata"]["creationTimestamp"] = json!("2026-07-21T02:20:00Z");
        assert_eq!(sign(registered), Some(400));
    }

    /// The broken variant takes each sign before the limit for the dead node's: a host that was off for a minute is back then.
    #[test]
    fn a_doubt_lasts_until_a_living_kubelet_would_have_shown_it() {
        let at = |sign: Option<i64>, now: i64| {
            let failed = stored(true).failed_at();
            let now = Timestamp::from_seconds(failed + now);
            life(sign.map(|sign| failed + sign), &stored(true), now).map(|outcome| outcome.words())
        };
        let (alive, doubtful) = (Some(("held", "alive")), Some(("wait", "doubtful")));
        for (sign, now, expected) in [
            (None, 0, None),
            (Some(0), 5, None),
            (Some(1), 5, doubtful),
            (Some(90), 180, doubtful),
            (Some(90), 181, None),
            (Some(120), 181, None),
            (Some(121), 125, alive),
            (Some(121), 9999, alive),
        ] {
            assert_eq!(at(sign, now), expected, "{sign:?} {now}");
        }
    }

    /// The broken variant takes each other mark for an earlier one: its object would stay for ever on a host that is back.
    #[test]
    fn an_older_mark_knows_that_it_is_overtaken() {
        let of = |annotations: Value| {
            Object::from(json!({"metadata": {"annotations": annotations}})).whose(&stored(true))
        };
        let other = |time: &str| json!({MARK: "other", FAILED: time});
        assert_eq!(of(json!({})), Whose::Nobodys);
        assert_eq!(of(Value::Object(signed(&stored(true)))), Whose::Ours);
        assert_eq!(of(other("2026-07-21T02:13:21Z")), Whose::Later);
        for time in ["2026-07-21T02:13:20Z", "2026-07-20T00:00:00Z", "soon"] {
            assert_eq!(of(other(time)), Whose::Earlier, "{time}");
        }
        assert_eq!(of(json!({MARK: "other"})), Whose::Earlier);
    }

    #[test]
    fn a_host_has_one_machine() {
        let machine = |name: &str, node: &str| {
            Object::from(json!({"metadata": {"name": name}, "status": {"nodeRef": {"name": node}}}))
        };
        let found =
            |machines: &[Object]| the_one("n", machines).map(|found| found.map(|one| one.name().to_owned()));
        assert_eq!(found(&[machine("a", "n"), machine("b", "other")]), Ok(Some("a".to_owned())));
        assert_eq!(found(&[machine("b", "other")]), Ok(None));
        let two = found(&[machine("a", "n"), machine("b", "n")]).unwrap_err();
        assert_eq!(two.words(), ("rejected", "several-machines"));
    }
}
