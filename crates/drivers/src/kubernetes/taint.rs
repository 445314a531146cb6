//! The out-of-service taint: Kubernetes then deletes the pods of a node that is off, and detaches their volumes. Pure.

use marks::time::CLOCK_SKEW;
use serde_json::{Value, json};

use super::body::Stored;
use super::object::{MARK, Node, Turn, alive, done, gone, rejected, unknown_node};
use crate::driver::{Failure, Outcome};

/// Kubernetes' own key (`node.kubernetes.io/out-of-service`, from 1.24 on).
const KEY: &str = "node.kubernetes.io/out-of-service";
const EFFECT: &str = "NoExecute";

fn is_out_of_service(taint: &Value) -> bool {
    taint["key"] == KEY && taint["effect"] == EFFECT
}

/// The host was fenced. With the taint on a host that runs, its volumes would be attached twice.
pub(super) fn set(stored: &Stored, node: Option<&Node>) -> Turn {
    let Some(node) = node else { return unknown_node(&stored.host).into() };
    let meta = &node.metadata;
    let there = node.taints().iter().any(is_out_of_service);
    match (there, meta.mark()) {
        (true, Some(mark)) if mark == stored.id => done(meta, "").into(),
        (true, None) => done(meta, "set-by-another").into(),
        _ if node.is_ready_after(stored.failed_at() + skew()) => alive(&stored.host).into(),
        // The mark that ends this taint is another one from now on.
        (true, Some(_)) => change(node, node.taints().to_vec(), json!(stored.id)),
        (false, _) if !stored.off => not_off(&stored.host).into(),
        (false, _) => change(node, with_ours(node), json!(stored.id)),
    }
}

/// The host is back: the taint ends if it is ours, and once the kubelet has reported that the node is ready.
pub(super) fn clear(stored: &Stored, node: Option<&Node>) -> Turn {
    let Some(node) = node else { return gone().into() };
    if !node.metadata.is_of(stored) {
        return done(&node.metadata, "left-alone").into();
    }
    if !node.is_ready_after(stored.failed_at()) {
        let says =
            format!("{} is back, and its kubelet has not reported that the node is ready", stored.host);
        return Outcome::Wait(Failure::new("not-ready", &says)).into();
    }
    let others = node.taints().iter().filter(|taint| !is_out_of_service(taint));
    change(node, others.cloned().collect(), Value::Null)
}

/// A whole list: Kubernetes merges no taints. With its version, so that nobody's change in between is lost.
fn change(node: &Node, taints: Vec<Value>, mark: Value) -> Turn {
    let version = &node.metadata.resource_version;
    Turn::Patch(json!({
        "metadata": {"resourceVersion": version, "annotations": {MARK: mark}},
        "spec": {"taints": taints},
    }))
}

fn with_ours(node: &Node) -> Vec<Value> {
    let ours = json!({"key": KEY, "value": "nodeshutdown", "effect": EFFECT});
    node.taints().iter().cloned().chain([ours]).collect()
}

/// The clocks of the node and of this controller may differ by this much.
fn skew() -> i64 {
    i64::try_from(CLOCK_SKEW.as_secs()).expect("two minutes")
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
    format!("kubectl taint node {host} {KEY}-")
}

#[cfg(test)]
mod tests {
    use super::super::object::tests::{node, ready, stored, words};
    use super::*;

    const DONE: (&str, &str) = ("acknowledged", "");

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
        let Turn::Patch(patch) = set(&stored(true), Some(&node(json!([other()]), json!({}), dead()))) else {
            panic!("a change")
        };
        assert_eq!(patch["spec"]["taints"], json!([other(), ours()]));
        assert_eq!(patch["metadata"], json!({"resourceVersion": "7", "annotations": {MARK: "m"}}));
    }

    #[test]
    fn a_taint_is_set_once_and_only_on_a_host_that_is_off() {
        let mine = json!({MARK: "m"});
        let earlier = json!({MARK: "earlier"});
        for (taints, annotations, conditions, off, expected) in [
            (json!([ours()]), mine.clone(), dead(), true, DONE),
            (json!([ours()]), json!({}), dead(), true, DONE),
            (json!([ours()]), earlier.clone(), dead(), true, ("patch", "")),
            // Somebody has removed it since.
            (json!([]), mine, dead(), true, ("patch", "")),
            (json!([]), json!({}), ready("True", "02:13:19"), true, ("patch", "")),
            (json!([]), json!({}), ready("True", "02:15:20"), true, ("patch", "")),
            (json!([]), json!({}), ready("True", "02:15:21"), true, ("held", "node-ready")),
            (json!([ours()]), earlier, ready("True", "02:16:00"), true, ("held", "node-ready")),
            (json!([]), json!({}), dead(), false, ("rejected", "not-off")),
        ] {
            let turn = set(&stored(off), Some(&node(taints.clone(), annotations, conditions)));
            assert_eq!(words(&turn), expected, "{taints}");
        }
        assert_eq!(words(&set(&stored(true), None)), ("rejected", "unknown-node"));
    }

    /// Another effect of the same key is another taint.
    #[test]
    fn a_taint_is_known_by_key_and_effect() {
        let no_schedule = json!({"key": KEY, "effect": "NoSchedule"});
        let turn = set(&stored(true), Some(&node(json!([no_schedule]), json!({}), dead())));
        assert!(
            matches!(turn, Turn::Patch(patch) if patch["spec"]["taints"] == json!([no_schedule, ours()]))
        );
    }

    /// One broken variant removes a taint that somebody else has set, another removes it from a node that is not ready.
    #[test]
    fn only_our_own_taint_ends_and_only_on_a_node_that_is_ready() {
        let of = |annotations, conditions| {
            clear(&stored(true), Some(&node(json!([other(), ours()]), annotations, conditions)))
        };
        let back = || ready("True", "02:20:00");
        let Turn::Patch(patch) = of(json!({MARK: "m"}), back()) else { panic!("a change") };
        assert_eq!(patch["spec"]["taints"], json!([other()]));
        assert_eq!(patch["metadata"]["annotations"], json!({MARK: null}));
        assert_eq!(words(&of(json!({}), back())), DONE);
        assert_eq!(words(&of(json!({MARK: "later"}), back())), DONE);
        assert_eq!(words(&of(json!({MARK: "m"}), dead())), ("wait", "not-ready"));
        assert_eq!(words(&clear(&stored(true), None)), DONE);
    }
}
