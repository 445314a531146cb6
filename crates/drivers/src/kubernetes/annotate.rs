//! The annotation by which a person asks the MachineHealthCheck of a Machine to remediate it, with all of its own gates. Pure.

use serde_json::{Map, Value, json};

use super::body::Stored;
use super::object::{Object, Turn, Whose, done, signed, unknown_machine, unsigned};
use super::remediation::CLUSTER_API;
use super::row::{Change, Row, standing};
use super::server::MERGE;
use crate::driver::Outcome;

/// Cluster API's own.
const REMEDIATE: &str = "cluster.x-k8s.io/remediate-machine";

/// The mode `annotate`.
pub(super) static ROW: Row = Row {
    is_of_machine: true,
    rights: &[
        ["get", CLUSTER_API, "machines"],
        ["list", CLUSTER_API, "machines"],
        ["patch", CLUSTER_API, "machines"],
    ],
    undo: "the Machine of {lower} may be annotated; if the host is well, run `kubectl annotate machine MACHINE cluster.x-k8s.io/remediate-machine- nova-host-alerter/mark-`",
    change: Some(CHANGE),
};

const CHANGE: Change = Change {
    part: "",
    patch: MERGE,
    unknown: unknown_machine,
    whose: Object::whose,
    standing: of_machine,
    set: |machine, case| change(machine, json!(""), signed(case.stored)),
    clear: |machine, _| change(machine, Value::Null, unsigned()),
};

fn of_machine(machine: &Object, stored: &Stored) -> Option<Outcome> {
    match machine.whose(stored) {
        _ if machine.node() != stored.host => Some(unknown_machine(&stored.host)),
        // Nothing is left to be asked for.
        _ if machine.deleted().is_some() => Some(done(machine, "being-deleted")),
        Whose::Nobodys if machine.annotation(REMEDIATE).is_none() => None,
        // Where it is ours, its controller may have taken the annotation already.
        whose => standing(machine, whose),
    }
}

fn change(machine: &Object, remediate: Value, mut annotations: Map<String, Value>) -> Turn {
    annotations.insert(REMEDIATE.to_owned(), remediate);
    let version = machine.text("/metadata/resourceVersion");
    Turn::Patch(json!({"metadata": {"resourceVersion": version, "annotations": annotations}}))
}

#[cfg(test)]
mod tests {
    use super::super::object::tests::{node, of_other, of_ours, ready, stored, words};
    use super::super::row::Case;
    use super::super::row::tests::case;
    use super::*;

    const DONE: (&str, &str) = ("acknowledged", "");
    const PATCH: (&str, &str) = ("patch", "");

    fn set(machine: Option<&Object>, node: Option<&Object>) -> Turn {
        CHANGE.set(machine, &Case { node, ..case(&stored(true)) })
    }

    fn machine(annotations: Value, deleted: Option<&str>) -> Object {
        let metadata = json!({"name": "w-1", "uid": "u", "resourceVersion": "7", "annotations": annotations,
            "deletionTimestamp": deleted, "creationTimestamp": "2026-07-01T00:00:00Z"});
        let status = json!({"nodeRef": {"name": "n"}});
        json!({"metadata": metadata, "status": status}).into()
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
            let turn = set(Some(&machine(annotations.clone(), deleted)), None);
            assert_eq!(words(&turn), expected, "{annotations}");
        }
        assert_eq!(words(&set(None, None)), ("rejected", "unknown-machine"));
    }

    /// The broken variants annotate what is a Machine of this name, and what lives.
    #[test]
    fn a_machine_of_another_host_or_of_one_that_lives_stays_as_it_is() {
        let set = |machine: &Object, node: Option<&Object>| words(&set(Some(machine), node));
        let other = json!({"metadata": {"name": "w-1"}, "status": {"nodeRef": {"name": "x"}}}).into();
        assert_eq!(set(&other, None), ("rejected", "unknown-machine"));
        let living = node(json!([]), json!({}), ready("True", "02:16:00"));
        assert_eq!(set(&machine(json!({}), None), Some(&living)), ("held", "alive"));
        let dead = node(json!([]), json!({}), ready("Unknown", "02:13:00"));
        assert_eq!(set(&machine(json!({}), None), Some(&dead)), PATCH);
    }

    #[test]
    fn only_our_own_annotation_ends() {
        let clear = |machine: Option<Object>| CHANGE.clear(machine.as_ref(), &case(&stored(true)));
        let of = |annotations| clear(Some(machine(annotations, None)));
        let Turn::Patch(patch) = of(with(of_ours())) else { panic!("a change") };
        let annotations = patch["metadata"]["annotations"].as_object().unwrap();
        assert!(annotations.len() == 3 && annotations.values().all(Value::is_null), "{patch}");
        for other in [with(json!({})), with(of_other("03:00:00")), json!({})] {
            assert_eq!(words(&of(other.clone())), DONE, "{other}");
        }
        assert_eq!(words(&clear(None)), DONE);
    }
}
