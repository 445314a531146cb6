//! What Senlin's answers mean for a mark. Pure.

use serde_json::Value;

use super::body::{Stored, Whose};
use crate::driver::{Failure, Outcome};
use crate::openstack::usual;
use crate::web::{Answer, Meaning, Pause};

/// The state of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// It has to be recovered.
    Idle,
    /// It needs nothing: it has moved to another host, and is well there.
    Elsewhere,
    /// Its recovery began after the failure: the action's id.
    Begun(String),
}

/// Reads a target and its recoveries.
///
/// # Errors
/// It is being recovered from something earlier.
pub(super) fn seen(stored: &Stored, target: &Value, actions: &Value) -> Result<Seen, Outcome> {
    let is_since = |action: &&Value| action["created_at"].as_str().is_some_and(|made| stored.is_since(made));
    let begun = actions.as_array().into_iter().flatten().find(is_since);
    match begun {
        Some(action) => Ok(Seen::Begun(id(action, "id"))),
        None if target["status"] == "RECOVERING" => Err(Outcome::Retry(Failure::new(
            "conflict",
            "Senlin still recovers this host from something earlier: the next attempt asks again",
        ))),
        None => Ok(Seen::Idle),
    }
}

/// A route may need a version of the API that an old Senlin does not have.
static DELTAS: &[Meaning] =
    &[Meaning::of(|status| status == 406, Outcome::Refused, "misconfigured", Pause::Usual)
        .saying(": it is too old for check and check-capacity, remove these from the route")];

/// Reads the answer to a request: the action's id.
///
/// # Errors
/// It is not taken, or that is unknown.
pub(super) fn begun(whose: Whose, target: &str, answer: &Answer) -> Result<String, Outcome> {
    match answer.status {
        202 => Ok(id(&answer.json(), "action")),
        404 if answer.is_absent() => Err(no_such(whose, target)),
        _ => Err(usual("Senlin", answer, DELTAS)),
    }
}

/// Senlin's name for its action; only a printable one is used.
fn id(value: &Value, key: &str) -> String {
    let id = value[key].as_str().unwrap_or_default();
    id.chars().filter(char::is_ascii_graphic).take(36).collect()
}

/// The actions' ids, as many as fit a message.
pub(super) fn acknowledged(actions: &[String]) -> Outcome {
    let reference = match actions {
        [] => "nothing to recover".to_owned(),
        [one] => one.clone(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    };
    Outcome::Acknowledged { reference: Some(reference).filter(|reference| !reference.is_empty()) }
}

/// The configuration names something that does not exist.
pub(super) fn no_such(whose: Whose, id: &str) -> Outcome {
    let why = format!("Senlin has no {} {id} in this project: correct {}", whose.key, whose.path);
    Outcome::Rejected(Failure::new(whose.unknown, &why))
}

/// No service can say whether a node is still on the host.
pub(super) fn no_server(id: &str) -> Outcome {
    let why = format!(
        "Nova has no server of node {id}, so it is unknown whether the node is still on this host: find out, and recover it by hand if it failed"
    );
    Outcome::Rejected(Failure::new("not-a-server", &why))
}

#[cfg(test)]
mod tests {
    use marks::mark::Mark;
    use marks::time::Timestamp;
    use serde_json::json;

    use super::super::body::{self, Operation, Recovery};
    use super::*;

    fn of(status: u16, body: &str) -> Result<String, (&'static str, &'static str)> {
        begun(body::NODE, "n", &Answer::of(status, body, None)).map_err(|outcome| outcome.words())
    }

    #[test]
    fn a_recovery_is_begun_or_its_target_is_gone() {
        let gone = r#"{"code": 404, "title": "Not Found", "error": {"code": 404, "type": "ResourceNotFound", "message": "The node 'n' could not be found."}}"#;
        assert_eq!(of(404, gone), Err(("rejected", "unknown-node")));
        assert_eq!(of(202, r#"{"action": "7f3b\n"}"#), Ok("7f3b".to_owned()));
    }

    /// The broken variant goes by the target's status alone, or by any action.
    #[test]
    fn a_recovery_since_the_failure_is_enough() {
        let mark = Mark { failure_time: Timestamp(1_784_600_001_000), ..crate::event::tests::mark() };
        let recovery = Recovery { operation: Operation::Rebuild, check: None, check_capacity: None };
        let stored = Stored::read(&body::of_mark(&mark, &mark.fqdn, &recovery)).unwrap();
        let action = |made: &str| json!({"id": made, "created_at": made});
        let (old, new) = ("2026-07-20T00:00:00Z", "2026-07-21T02:13:30");
        let of = |status: &str, actions: Vec<Value>| {
            seen(&stored, &json!({ "status": status }), &json!(actions)).map_err(|outcome| outcome.words())
        };
        assert_eq!(of("ACTIVE", vec![]), Ok(Seen::Idle));
        assert_eq!(of("ERROR", vec![action(old)]), Ok(Seen::Idle));
        assert_eq!(of("RECOVERING", vec![action(old)]), Err(("retry", "conflict")));
        for status in ["RECOVERING", "ACTIVE", "ERROR"] {
            assert_eq!(of(status, vec![action(old), action(new)]), Ok(Seen::Begun(new.to_owned())));
        }
    }

    #[test]
    fn a_reference_is_short() {
        let reference = |actions: &[&str]| {
            let actions: Vec<String> = actions.iter().map(|id| (*id).to_owned()).collect();
            match acknowledged(&actions) {
                Outcome::Acknowledged { reference } => reference,
                other => Some(other.as_str().to_owned()),
            }
        };
        assert_eq!(reference(&["a"]).as_deref(), Some("a"));
        assert_eq!(reference(&["a", "b", "c"]).as_deref(), Some("a and 2 more"));
        assert_eq!((reference(&[]).as_deref(), reference(&[""])), (Some("nothing to recover"), None));
    }
}
