//! The out-of-service taint: Kubernetes then deletes the pods of a node that is off, and detaches their volumes. Pure.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::body::Stored;
use super::object::{Object, Turn, Whose, rejected, signed, unknown_node, unsigned};
use super::row::{Case, Change, Row, standing};
use super::server::MERGE;
use crate::driver::{Failure, Outcome};

/// Kubernetes' own key (`node.kubernetes.io/out-of-service`, from 1.26 on).
const KEY: &str = "node.kubernetes.io/out-of-service";
const EFFECT: &str = "NoExecute";
/// How soon a node that is not ready is checked again, and how often before an operator should: ten minutes.
const AGAIN: Duration = Duration::from_secs(30);
const PATIENT: u32 = 20;

/// The mode `taint`.
pub(super) static ROW: Row = Row {
    is_of_machine: false,
    rights: &[["patch", "", "nodes"]],
    undo: "the node may have the out-of-service taint; if the host is well, run `kubectl taint node {lower} node.kubernetes.io/out-of-service-` and `kubectl annotate node {lower} nova-host-alerter/mark-`",
    change: Some(CHANGE),
};

const CHANGE: Change = Change {
    part: "",
    patch: MERGE,
    unknown: unknown_node,
    whose: Object::whose,
    standing: of_node,
    set,
    clear,
};

fn is_out_of_service(taint: &Value) -> bool {
    taint["key"] == KEY && taint["effect"] == EFFECT
}

fn of_node(node: &Object, stored: &Stored) -> Option<Outcome> {
    let whose = node.whose(stored);
    let counts = whose == Whose::Later || node.taints().iter().any(is_out_of_service);
    counts.then(|| standing(node, whose))?
}

/// With the taint on a host that runs, its volumes would be attached twice.
fn set(node: &Object, case: &Case<'_>) -> Turn {
    let (host, mut taints) = (&case.stored.host, node.taints().to_vec());
    match taints.iter().any(is_out_of_service) {
        // The mark that ends this taint is another one from now on.
        true => {}
        false if !case.stored.off => {
            let says = format!(
                "no fence_mark recorded that {host} is off, and Pacemaker may have rebooted it: if it is off, run `kubectl taint node {host} {KEY}=nodeshutdown:{EFFECT}`, then unmark"
            );
            return rejected("not-off", &says).into();
        }
        false => taints.push(json!({"key": KEY, "value": "nodeshutdown", "effect": EFFECT})),
    }
    change(node, taints, signed(case.stored))
}

/// The taint ends once the kubelet has reported that the node is ready.
fn clear(node: &Object, case: &Case<'_>) -> Turn {
    if node.is_ready_after(case.stored.failed_at()) {
        let others = node.taints().iter().filter(|taint| !is_out_of_service(taint));
        return change(node, others.cloned().collect(), unsigned());
    }
    let says = format!(
        "{} is back, and has not reported that its node is ready: check its kubelet",
        case.stored.host
    );
    let failure = Failure::new("not-ready", &says).after(Some(AGAIN));
    if case.attempt < PATIENT { Outcome::Wait(failure) } else { Outcome::Rejected(failure) }.into()
}

/// A whole list: Kubernetes merges no taints. With its version, so that nobody's change in between is lost.
fn change(node: &Object, taints: Vec<Value>, annotations: Map<String, Value>) -> Turn {
    let version = node.text("/metadata/resourceVersion");
    Turn::Patch(json!({
        "metadata": {"resourceVersion": version, "annotations": annotations},
        "spec": {"taints": taints},
    }))
}

#[cfg(test)]
mod tests {
    use super::super::object::tests::{node, of_other, of_ours, ready, stored, words};
    use super::super::row::tests::case;
    use super::*;

    const DONE: (&str, &str) = ("acknowledged", "");
    const PATCH: (&str, &str) = ("patch", "");

    fn set(off: bool, node: Option<&Object>) -> Turn {
        CHANGE.set(node, &case(&stored(off)))
    }

    fn clear(node: Option<&Object>, attempt: u32) -> Turn {
        CHANGE.clear(node, &Case { attempt, ..case(&stored(true)) })
    }

    fn ours() -> Value {
        json!({"key": KEY, "value": "nodeshutdown", "effect": EFFECT})
    }

    fn other() -> Value {
        json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule", "timeAdded": "2026-07-21T02:14:00Z"})
    }

    fn dead() -> Value {
        ready("Unknown", "02:13:00")
    }

    /// The broken variant sends the taint alone, and the others are gone.
    #[test]
    fn the_taint_is_added_and_the_others_stay() {
        let turn = set(true, Some(&node(json!([other()]), json!({}), dead())));
        let Turn::Patch(patch) = turn else { panic!("a change") };
        assert_eq!(patch["spec"]["taints"], json!([other(), ours()]));
        assert_eq!(patch["metadata"], json!({"resourceVersion": "7", "annotations": of_ours()}));
    }

    #[test]
    fn a_taint_is_set_once_and_only_on_a_host_that_is_off() {
        let earlier = || of_other("01:00:00");
        let later = || of_other("03:00:00");
        for (taints, annotations, conditions, off, expected) in [
            (json!([ours()]), of_ours(), dead(), true, DONE),
            (json!([ours()]), json!({}), dead(), true, DONE),
            (json!([ours()]), earlier(), dead(), true, PATCH),
            (json!([ours()]), later(), dead(), true, DONE),
            (json!([]), later(), dead(), true, DONE),
            // Somebody has removed it since.
            (json!([]), of_ours(), dead(), true, PATCH),
            (json!([]), json!({}), ready("True", "02:13:19"), true, PATCH),
            (json!([]), json!({}), ready("True", "02:13:21"), true, ("wait", "doubtful")),
            (json!([]), json!({}), ready("False", "02:15:21"), true, ("held", "alive")),
            (json!([ours()]), earlier(), ready("True", "02:16:00"), true, ("held", "alive")),
            (json!([]), json!({}), dead(), false, ("rejected", "not-off")),
        ] {
            let turn = set(off, Some(&node(taints.clone(), annotations.clone(), conditions)));
            assert_eq!(words(&turn), expected, "{taints} {annotations}");
        }
        assert_eq!(words(&set(true, None)), ("rejected", "unknown-node"));
    }

    /// Another effect of the same key is another taint.
    #[test]
    fn a_taint_is_known_by_key_and_effect() {
        let no_schedule = json!({"key": KEY, "effect": "NoSchedule"});
        let turn = set(true, Some(&node(json!([no_schedule]), json!({}), dead())));
        assert!(
            matches!(turn, Turn::Patch(patch) if patch["spec"]["taints"] == json!([no_schedule, ours()]))
        );
    }

    /// One broken variant removes a taint that somebody else has set, another removes it from a node that is not ready.
    #[test]
    fn only_our_own_taint_ends_and_only_on_a_node_that_is_ready() {
        let of = |annotations, conditions| {
            clear(Some(&node(json!([other(), ours()]), annotations, conditions)), 1)
        };
        let back = || ready("True", "02:20:00");
        let Turn::Patch(patch) = of(of_ours(), back()) else { panic!("a change") };
        assert_eq!(patch["spec"]["taints"], json!([other()]));
        assert_eq!(patch["metadata"]["annotations"], Value::Object(unsigned()));
        for annotations in [json!({}), of_other("01:00:00"), of_other("03:00:00")] {
            assert_eq!(words(&of(annotations, back())), DONE);
        }
        assert_eq!(words(&of(of_ours(), dead())), ("wait", "not-ready"));
        let late = clear(Some(&node(json!([ours()]), of_ours(), dead())), PATIENT);
        assert_eq!(words(&late), ("rejected", "not-ready"));
        assert_eq!(words(&clear(None, 1)), DONE);
    }
}
