//! A condition of the node, which a MachineHealthCheck or a NodeHealthCheck can match. Pure.

use marks::time::Timestamp;
use serde_json::{Value, json};

use super::body::Stored;
use super::object::{Object, Turn, Whose, unknown_node};
use super::row::{Change, Row, standing};
use super::server::STRATEGIC;
use crate::times;

/// Its type.
const TYPE: &str = "HostFenced";
const FENCED: &str = "PacemakerFenced";
const RETURNED: &str = "HostReturned";

/// The mode `condition`.
pub(super) static ROW: Row = Row {
    is_of_machine: false,
    rights: &[["patch", "", "nodes/status"]],
    undo: "the condition HostFenced of node {lower} may be True; if the host is well, set it to False",
    change: Some(CHANGE),
};

const CHANGE: Change = Change {
    part: "/status",
    patch: STRATEGIC,
    unknown: unknown_node,
    whose: |node, stored| set_in(node).map_or(Whose::Nobodys, |set| whose(set, stored)),
    standing: |node, stored| standing(node, whose(set_in(node)?, stored)),
    set: |node, case| {
        change(node, "True", FENCED, &message(case.stored), (case.now, &case.stored.failure_time))
    },
    clear: |node, case| {
        let says = "the host is back in the Pacemaker cluster";
        change(node, "False", RETURNED, says, (case.now, &case.now.rfc3339_seconds()))
    },
};

/// The condition where it is true.
fn set_in(node: &Object) -> Option<&Value> {
    node.condition(TYPE).filter(|condition| condition["status"] == "True")
}

/// For which mark a condition was set: it has no annotations, so the whole message and the time count.
fn whose(set: &Value, stored: &Stored) -> Whose {
    match set["reason"] == FENCED {
        false => Whose::Nobodys,
        true if set["message"] == message(stored) => Whose::Ours,
        true => Whose::other(times::of(&set["lastTransitionTime"]), stored),
    }
}

fn message(stored: &Stored) -> String {
    format!("Pacemaker fenced the host at {}, mark {}", stored.failure_time, stored.id)
}

/// Conditions are merged by their type. `since`: when the host changed.
fn change(node: &Object, status: &str, reason: &str, message: &str, (now, since): (Timestamp, &str)) -> Turn {
    let condition = json!({
        "type": TYPE, "status": status, "reason": reason, "message": message,
        "lastHeartbeatTime": now.rfc3339_seconds(), "lastTransitionTime": since,
    });
    let version = node.text("/metadata/resourceVersion");
    Turn::Patch(json!({"metadata": {"resourceVersion": version}, "status": {"conditions": [condition]}}))
}

#[cfg(test)]
mod tests {
    use super::super::object::tests::{node, ready, stored, words};
    use super::super::row::tests::case;
    use super::*;

    const DONE: (&str, &str) = ("acknowledged", "");

    fn set(node: Option<&Object>) -> Turn {
        CHANGE.set(node, &case(&stored(true)))
    }

    fn with(status: &str, reason: &str, message: &str) -> Value {
        let since = if message == "a later mark" { "2026-07-21T03:00:00Z" } else { "2026-07-21T01:00:00Z" };
        json!([{"type": TYPE, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}])
    }

    fn of(conditions: Value) -> Object {
        node(json!([]), json!({}), conditions)
    }

    #[test]
    fn the_condition_is_set_once() {
        let ours = message(&stored(true));
        for (conditions, expected) in [
            (json!([]), ("patch", "")),
            (with("True", FENCED, &ours), DONE),
            (with("True", FENCED, "an earlier mark"), ("patch", "")),
            (with("True", FENCED, "a later mark"), DONE),
            (with("True", "Alice", "hers"), DONE),
            (with("False", RETURNED, ""), ("patch", "")),
            (ready("False", "02:16:00"), ("held", "alive")),
            (ready("True", "02:13:00"), ("patch", "")),
        ] {
            assert_eq!(words(&set(Some(&of(conditions.clone())))), expected, "{conditions}");
        }
        assert_eq!(words(&set(None)), ("rejected", "unknown-node"));
    }

    #[test]
    fn the_condition_has_its_type_its_reason_and_its_times() {
        let Turn::Patch(patch) = set(Some(&of(json!([])))) else { panic!("a change") };
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
        let clear = |node: Option<Object>| words(&CHANGE.clear(node.as_ref(), &case(&stored(true))));
        let clear_of = |conditions| clear(Some(of(conditions)));
        assert_eq!(clear_of(with("True", FENCED, &ours)), ("patch", ""));
        for other in [with("True", FENCED, "a later mark"), with("False", RETURNED, &ours), json!([])] {
            assert_eq!(clear_of(other.clone()), DONE, "{other}");
        }
        assert_eq!(clear(None), DONE);
    }
}
