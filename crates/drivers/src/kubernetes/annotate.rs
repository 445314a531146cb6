//! The annotation by which a person asks the MachineHealthCheck of a Machine to remediate it, with all of its own gates. Pure.

use serde_json::{Value, json};

use super::body::Stored;
use super::object::{MARK, Machine, Meta, Turn, done, gone, rejected};
use crate::driver::Outcome;

/// Cluster API's own.
const REMEDIATE: &str = "cluster.x-k8s.io/remediate-machine";

/// The host was fenced.
pub(super) fn set(stored: &Stored, machine: Option<&Machine>) -> Turn {
    let Some(Machine { metadata: meta, .. }) = machine else { return unknown_machine(&stored.host).into() };
    match (meta.annotations.contains_key(REMEDIATE), meta.mark()) {
        // Nothing is left to be asked for.
        _ if meta.is_being_deleted() => done(meta, "being-deleted").into(),
        // Its controller may have taken the annotation already.
        (_, Some(mark)) if mark == stored.id => done(meta, "").into(),
        (true, None) => done(meta, "set-by-another").into(),
        _ => change(meta, json!(""), json!(stored.id)),
    }
}

/// The host is back: the annotation ends if it is ours.
pub(super) fn clear(stored: &Stored, machine: Option<&Machine>) -> Turn {
    let Some(Machine { metadata: meta, .. }) = machine else { return gone().into() };
    match meta.is_of(stored) {
        true => change(meta, Value::Null, Value::Null),
        false => done(meta, "left-alone").into(),
    }
}

fn change(meta: &Meta, remediate: Value, mark: Value) -> Turn {
    Turn::Patch(json!({"metadata": {
        "resourceVersion": meta.resource_version,
        "annotations": {REMEDIATE: remediate, MARK: mark},
    }}))
}

/// Cluster API has no Machine of a host.
pub(super) fn unknown_machine(host: &str) -> Outcome {
    rejected(
        "unknown-machine",
        &format!(
            "no Machine has node {host} in status.nodeRef: check namespace and host-name, or unmark a host that was removed"
        ),
    )
}

/// How an operator removes it.
pub(super) const UNDO: &str = "kubectl annotate machine MACHINE cluster.x-k8s.io/remediate-machine-";

#[cfg(test)]
mod tests {
    use super::super::object::tests::{stored, words};
    use super::*;

    const DONE: (&str, &str) = ("acknowledged", "");

    fn machine(annotations: Value, deleted: Option<&str>) -> Machine {
        let metadata = json!({"name": "w-1", "uid": "u", "resourceVersion": "7", "annotations": annotations, "deletionTimestamp": deleted});
        serde_json::from_value(json!({ "metadata": metadata })).unwrap()
    }

    /// S4-10: remediation is asked for by the condition's own controller, whose gates count.
    #[test]
    fn a_machine_is_annotated_once() {
        let asked = json!({REMEDIATE: ""});
        for (annotations, deleted, expected) in [
            (json!({}), None, ("patch", "")),
            (asked, None, DONE),
            (json!({REMEDIATE: "", MARK: "m"}), None, DONE),
            (json!({MARK: "m"}), None, DONE),
            (json!({REMEDIATE: "", MARK: "earlier"}), None, ("patch", "")),
            (json!({}), Some("2026-07-21T02:13:30Z"), DONE),
        ] {
            let turn = set(&stored(true), Some(&machine(annotations.clone(), deleted)));
            assert_eq!(words(&turn), expected, "{annotations}");
        }
        assert_eq!(words(&set(&stored(true), None)), ("rejected", "unknown-machine"));
    }

    #[test]
    fn only_our_own_annotation_ends() {
        let clear = |annotations| clear(&stored(true), Some(&machine(annotations, None)));
        let Turn::Patch(patch) = clear(json!({REMEDIATE: "", MARK: "m"})) else { panic!("a change") };
        assert_eq!(patch["metadata"]["annotations"], json!({REMEDIATE: null, MARK: null}));
        for other in [json!({REMEDIATE: ""}), json!({REMEDIATE: "", MARK: "later"}), json!({})] {
            assert_eq!(words(&clear(other.clone())), DONE, "{other}");
        }
        assert_eq!(words(&super::clear(&stored(true), None)), DONE);
    }
}
