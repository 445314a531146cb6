//! A condition of the node, which a MachineHealthCheck or a NodeHealthCheck can match. Pure.

use marks::time::Timestamp;
use serde_json::json;

use super::body::Stored;
use super::object::{Condition, Node, Turn, Whose, done, gone, life, unknown_node};

/// Its type.
pub(super) const TYPE: &str = "HostFenced";
const FENCED: &str = "PacemakerFenced";
const RETURNED: &str = "HostReturned";

/// The host was fenced.
pub(super) fn set(stored: &Stored, node: Option<&Node>, now: Timestamp) -> Turn {
    let Some(node) = node else { return unknown_node(&stored.host).into() };
    let standing = node.condition(TYPE).filter(|standing| standing.status == "True");
    match standing.map(|standing| whose(standing, stored)) {
        Some(Whose::Ours) => done(&node.metadata, "").into(),
        Some(Whose::Nobodys) => done(&node.metadata, "set-by-another").into(),
        Some(Whose::Later) => done(&node.metadata, "overtaken").into(),
        // An earlier mark's of ours is this one's from now on.
        Some(Whose::Earlier) | None => life(node.sign(), stored, now).map_or_else(
            || change(node, "True", FENCED, &message(stored), (now, &stored.failure_time)),
            Turn::from,
        ),
    }
}

/// For which mark a condition was set: it has no annotations, so the whole message and the time count.
fn whose(standing: &Condition, stored: &Stored) -> Whose {
    match standing.reason == FENCED {
        false => Whose::Nobodys,
        true if standing.message == message(stored) => Whose::Ours,
        true => Whose::other(standing.since(), stored),
    }
}

/// The host is back: the condition ends if this mark has set it. Nothing else ever ends it.
pub(super) fn clear(stored: &Stored, node: Option<&Node>, now: Timestamp) -> Turn {
    let Some(node) = node else { return gone().into() };
    let is_ours = |standing: &&Condition| standing.status == "True" && whose(standing, stored) == Whose::Ours;
    let says = "the host is back in the Pacemaker cluster";
    match node.condition(TYPE).filter(is_ours) {
        Some(_) => change(node, "False", RETURNED, says, (now, &now.rfc3339_seconds())),
        None => done(&node.metadata, "left-alone").into(),
    }
}

fn message(stored: &Stored) -> String {
    format!("Pacemaker fenced the host at {}, mark {}", stored.failure_time, stored.id)
}

/// Conditions are merged by their type. `since`: when the host changed.
fn change(node: &Node, status: &str, reason: &str, message: &str, (now, since): (Timestamp, &str)) -> Turn {
    let condition = json!({
        "type": TYPE, "status": status, "reason": reason, "message": message,
        "lastHeartbeatTime": now.rfc3339_seconds(), "lastTransitionTime": since,
    });
    let version = &node.metadata.resource_version;
    Turn::Patch(json!({"metadata": {"resourceVersion": version}, "status": {"conditions": [condition]}}))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::object::tests::{node, ready, stored, words};
    use super::*;

    const DONE: (&str, &str) = ("acknowledged", "");
    const NOW: Timestamp = Timestamp(1_784_600_010_000);

    fn standing(status: &str, reason: &str, message: &str) -> Value {
        let since = if message == "a later mark" { "2026-07-21T03:00:00Z" } else { "2026-07-21T01:00:00Z" };
        json!([{"type": TYPE, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}])
    }

    fn of(conditions: Value) -> Node {
        node(json!([]), json!({}), conditions)
    }

    #[test]
    fn the_condition_is_set_once() {
        let ours = message(&stored(true));
        for (conditions, expected) in [
            (json!([]), ("patch", "")),
            (standing("True", FENCED, &ours), DONE),
            (standing("True", FENCED, "an earlier mark"), ("patch", "")),
            (standing("True", FENCED, "a later mark"), DONE),
            (standing("True", "Alice", "hers"), DONE),
            (standing("False", RETURNED, ""), ("patch", "")),
            (ready("False", "02:16:00"), ("held", "alive")),
            (ready("True", "02:13:00"), ("patch", "")),
        ] {
            assert_eq!(
                words(&set(&stored(true), Some(&of(conditions.clone())), NOW)),
                expected,
                "{conditions}"
            );
        }
        assert_eq!(words(&set(&stored(true), None, NOW)), ("rejected", "unknown-node"));
    }

    #[test]
    fn the_condition_has_its_type_its_reason_and_its_times() {
        let Turn::Patch(patch) = set(&stored(true), Some(&of(json!([]))), NOW) else { panic!("a change") };
        let golden = json!([{
            "type": "HostFenced", "status": "True", "reason": "PacemakerFenced",
            "message": "Pacemaker fenced the host at 2026-07-21T02:13:20Z, mark m",
            "lastHeartbeatTime": "2026-07-21T02:13:30Z", "lastTransitionTime": "2026-07-21T02:13:20Z",
        }]);
        assert_eq!(patch["status"]["conditions"], golden);
    }

    /// The broken variant ends whatever stands there.
    #[test]
    fn only_our_own_condition_ends() {
        let ours = message(&stored(true));
        let clear = |conditions| words(&clear(&stored(true), Some(&of(conditions)), NOW));
        assert_eq!(clear(standing("True", FENCED, &ours)), ("patch", ""));
        for other in [standing("True", FENCED, "a later mark"), standing("False", RETURNED, &ours), json!([])]
        {
            assert_eq!(clear(other.clone()), DONE, "{other}");
        }
        assert_eq!(words(&super::clear(&stored(true), None, NOW)), DONE);
    }
}
