//! The annotation by which a person asks the MachineHealthCheck of a Machine to remediate it, with all of its own gates. Pure.

use marks::time::Timestamp;
use serde_json::{Map, Value, json};

use super::body::Stored;
use super::object::{Machine, Meta, Node, Turn, Whose, done, gone, life, rejected, signed, unsigned};
use crate::driver::Outcome;

/// Cluster API's own.
const REMEDIATE: &str = "cluster.x-k8s.io/remediate-machine";

/// The host was fenced. `node` is its Node, where this server has it too.
pub(super) fn set(stored: &Stored, machine: Option<&Machine>, node: Option<&Node>, now: Timestamp) -> Turn {
    let own = machine.filter(|machine| machine.node() == stored.host);
    let Some(Machine { metadata: meta, .. }) = own else { return unknown_machine(&stored.host).into() };
    match (meta.annotations.contains_key(REMEDIATE), meta.whose(stored)) {
        // Nothing is left to be asked for.
        _ if meta.deleted().is_some() => return done(meta, "being-deleted").into(),
        // Its controller may have taken the annotation already.
        (_, Whose::Ours) => return done(meta, "").into(),
        (_, Whose::Later) => return done(meta, "overtaken").into(),
        (true, Whose::Nobodys) => return done(meta, "set-by-another").into(),
        _ => {}
    }
    let sign = meta.created().max(node.and_then(Node::sign));
    life(sign, stored, now).map_or_else(|| change(meta, json!(""), signed(stored)), Turn::from)
}

/// The host is back: the annotation ends if it is ours.
pub(super) fn clear(stored: &Stored, machine: Option<&Machine>) -> Turn {
    let Some(Machine { metadata: meta, .. }) = machine else { return gone().into() };
    match meta.whose(stored) {
        Whose::Ours => change(meta, Value::Null, unsigned()),
        _ => done(meta, "left-alone").into(),
    }
}

fn change(meta: &Meta, remediate: Value, mut annotations: Map<String, Value>) -> Turn {
    annotations.insert(REMEDIATE.to_owned(), remediate);
    Turn::Patch(json!({"metadata": {"resourceVersion": meta.resource_version, "annotations": annotations}}))
}

/// Cluster API has no Machine of a host.
pub(super) fn unknown_machine(host: &str) -> Outcome {
    rejected(
        "unknown-machine",
        &format!(
            "no Machine has node {host} in status.nodeRef: check namespace, host-name and host-names, or unmark a host that was removed"
        ),
    )
}

/// How an operator removes it.
pub(super) const UNDO: &str =
    "kubectl annotate machine MACHINE cluster.x-k8s.io/remediate-machine- nova-host-alerter/mark-";

#[cfg(test)]
mod tests {
    use super::super::object::tests::{node, of_other, of_ours, ready, stored, words};
    use super::*;

    const DONE: (&str, &str) = ("acknowledged", "");
    const PATCH: (&str, &str) = ("patch", "");
    /// Ten seconds after the failure.
    const NOW: Timestamp = Timestamp(1_784_600_010_000);

    fn machine(annotations: Value, deleted: Option<&str>) -> Machine {
        let metadata = json!({"name": "w-1", "uid": "u", "resourceVersion": "7", "annotations": annotations,
            "deletionTimestamp": deleted, "creationTimestamp": "2026-07-01T00:00:00Z"});
        let status = json!({"nodeRef": {"name": "n"}});
        serde_json::from_value(json!({"metadata": metadata, "status": status})).unwrap()
    }

    fn with(mut annotations: Value) -> Value {
        annotations[REMEDIATE] = json!("");
        annotations
    }

    /// S4-10: remediation is asked for by the condition's own controller, whose gates count.
    #[test]
    fn a_machine_is_annotated_once() {
        for (annotations, deleted, expected) in [
            (json!({}), None, PATCH),
            (with(json!({})), None, DONE),
            (with(of_ours()), None, DONE),
            (of_ours(), None, DONE),
            (with(of_other("01:00:00")), None, PATCH),
            (with(of_other("03:00:00")), None, DONE),
            (json!({}), Some("2026-07-21T02:13:30Z"), DONE),
        ] {
            let turn = set(&stored(true), Some(&machine(annotations.clone(), deleted)), None, NOW);
            assert_eq!(words(&turn), expected, "{annotations}");
        }
        assert_eq!(words(&set(&stored(true), None, None, NOW)), ("rejected", "unknown-machine"));
    }

    /// The broken variants annotate what is a Machine of this name, and what lives.
    #[test]
    fn a_machine_of_another_host_or_of_one_that_lives_stays_as_it_is() {
        let set =
            |machine: &Machine, node: Option<&Node>| words(&set(&stored(true), Some(machine), node, NOW));
        let mut other = machine(json!({}), None);
        other = serde_json::from_value(
            json!({"metadata": {"name": other.metadata.name}, "status": {"nodeRef": {"name": "x"}}}),
        )
        .unwrap();
        assert_eq!(set(&other, None), ("rejected", "unknown-machine"));
        let living = node(json!([]), json!({}), ready("True", "02:16:00"));
        assert_eq!(set(&machine(json!({}), None), Some(&living)), ("held", "alive"));
        let dead = node(json!([]), json!({}), ready("Unknown", "02:13:00"));
        assert_eq!(set(&machine(json!({}), None), Some(&dead)), PATCH);
    }

    #[test]
    fn only_our_own_annotation_ends() {
        let clear = |annotations| clear(&stored(true), Some(&machine(annotations, None)));
        let Turn::Patch(patch) = clear(with(of_ours())) else { panic!("a change") };
        let annotations = patch["metadata"]["annotations"].as_object().unwrap();
        assert!(annotations.len() == 3 && annotations.values().all(Value::is_null), "{patch}");
        for other in [with(json!({})), with(of_other("03:00:00")), json!({})] {
            assert_eq!(words(&clear(other.clone())), DONE, "{other}");
        }
        assert_eq!(words(&super::clear(&stored(true), None)), DONE);
    }
}
