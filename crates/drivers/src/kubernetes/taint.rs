//! The out-of-service taint: Kubernetes then deletes the pods of a node that is off, and detaches their volumes. Pure.

use std::time::Duration;

use marks::time::Timestamp;
use serde_json::{Map, Value, json};

use super::body::Stored;
use super::object::{Node, Turn, Whose, done, gone, life, rejected, signed, unknown_node, unsigned};
use crate::driver::{Failure, Outcome};

/// Kubernetes' own key (`node.kubernetes.io/out-of-service`, from 1.26 on).
const KEY: &str = "node.kubernetes.io/out-of-service";
const EFFECT: &str = "NoExecute";
/// How soon a node that is not ready is checked again, and how often before an operator should: ten minutes.
const AGAIN: Duration = Duration::from_secs(30);
const PATIENT: u32 = 20;

fn is_out_of_service(taint: &Value) -> bool {
    taint["key"] == KEY && taint["effect"] == EFFECT
}

/// The host was fenced. With the taint on a host that runs, its volumes would be attached twice.
pub(super) fn set(stored: &Stored, node: Option<&Node>, now: Timestamp) -> Turn {
    let Some(node) = node else { return unknown_node(&stored.host).into() };
    let meta = &node.metadata;
    let there = node.taints().iter().any(is_out_of_service);
    match (there, meta.whose(stored)) {
        (true, Whose::Ours) => return done(meta, "").into(),
        (true, Whose::Nobodys) => return done(meta, "set-by-another").into(),
        (_, Whose::Later) => return done(meta, "overtaken").into(),
        _ => {}
    }
    match life(node.sign(), stored, now) {
        Some(lives) => lives.into(),
        // The mark that ends this taint is another one from now on.
        None if there => change(node, node.taints().to_vec(), signed(stored)),
        None if !stored.off => not_off(&stored.host).into(),
        None => change(node, with_ours(node), signed(stored)),
    }
}

/// The host is back: the taint ends if it is ours, and once the kubelet has reported that the node is ready. `attempt` is the number
/// of this one: after many an operator should check.
pub(super) fn clear(stored: &Stored, node: Option<&Node>, attempt: u32) -> Turn {
    let Some(node) = node else { return gone().into() };
    if node.metadata.whose(stored) != Whose::Ours {
        return done(&node.metadata, "left-alone").into();
    }
    if !node.is_ready_after(stored.failed_at()) {
        let says = format!(
            "{} is back, and has not reported that its node is ready: check its kubelet",
            stored.host
        );
        let failure = Failure::new("not-ready", &says).after(Some(AGAIN));
        return if attempt < PATIENT { Outcome::Wait(failure) } else { Outcome::Rejected(failure) }.into();
    }
    let others = node.taints().iter().filter(|taint| !is_out_of_service(taint));
    change(node, others.cloned().collect(), unsigned())
}

/// A whole list: Kubernetes merges no taints. With its version, so that nobody's change in between is lost.
fn change(node: &Node, taints: Vec<Value>, annotations: Map<String, Value>) -> Turn {
    let version = &node.metadata.resource_version;
    Turn::Patch(json!({
        "metadata": {"resourceVersion": version, "annotations": annotations},
        "spec": {"taints": taints},
    }))
}

fn with_ours(node: &Node) -> Vec<Value> {
    let ours = json!({"key": KEY, "value": "nodeshutdown", "effect": EFFECT});
    node.taints().iter().cloned().chain([ours]).collect()
}

fn not_off(host: &str) -> Outcome {
    let says = format!(
        "no fence_mark recorded that {host} is off, and Pacemaker may have rebooted it: if it is off, run `{}`, then unmark",
        command(host)
    );
    rejected("not-off", &says)
}

fn command(host: &str) -> String {
    format!("kubectl taint node {host} {KEY}=nodeshutdown:{EFFECT}")
}

/// How an operator removes it.
pub(super) fn undo(host: &str) -> String {
    format!("kubectl taint node {host} {KEY}-` and `kubectl annotate node {host} nova-host-alerter/mark-")
}

#[cfg(test)]
mod tests {
    use super::super::object::tests::{node, of_other, of_ours, ready, stored, words};
    use super::*;

    const DONE: (&str, &str) = ("acknowledged", "");
    const PATCH: (&str, &str) = ("patch", "");
    /// Ten seconds after the failure.
    const NOW: Timestamp = Timestamp(1_784_600_010_000);

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
        let turn = set(&stored(true), Some(&node(json!([other()]), json!({}), dead())), NOW);
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
            let turn = set(&stored(off), Some(&node(taints.clone(), annotations.clone(), conditions)), NOW);
            assert_eq!(words(&turn), expected, "{taints} {annotations}");
        }
        assert_eq!(words(&set(&stored(true), None, NOW)), ("rejected", "unknown-node"));
    }

    /// Another effect of the same key is another taint.
    #[test]
    fn a_taint_is_known_by_key_and_effect() {
        let no_schedule = json!({"key": KEY, "effect": "NoSchedule"});
        let turn = set(&stored(true), Some(&node(json!([no_schedule]), json!({}), dead())), NOW);
        assert!(
            matches!(turn, Turn::Patch(patch) if patch["spec"]["taints"] == json!([no_schedule, ours()]))
        );
    }

    /// One broken variant removes a taint that somebody else has set, another removes it from a node that is not ready.
    #[test]
    fn only_our_own_taint_ends_and_only_on_a_node_that_is_ready() {
        let of = |annotations, conditions| {
            clear(&stored(true), Some(&node(json!([other(), ours()]), annotations, conditions)), 1)
        };
        let back = || ready("True", "02:20:00");
        let Turn::Patch(patch) = of(of_ours(), back()) else { panic!("a change") };
        assert_eq!(patch["spec"]["taints"], json!([other()]));
        assert_eq!(patch["metadata"]["annotations"], Value::Object(unsigned()));
        for annotations in [json!({}), of_other("01:00:00"), of_other("03:00:00")] {
            assert_eq!(words(&of(annotations, back())), DONE);
        }
        assert_eq!(words(&of(of_ours(), dead())), ("wait", "not-ready"));
        let late = clear(&stored(true), Some(&node(json!([ours()]), of_ours(), dead())), PATIENT);
        assert_eq!(words(&late), ("rejected", "not-ready"));
        assert_eq!(words(&clear(&stored(true), None, 1)), DONE);
    }
}
