//! What Mistral's answers mean for a mark. Pure.

use serde_json::Value;

use crate::driver::{Failure, LOCKED_OUT, Outcome};
use crate::openstack::{described, usual};
use crate::web::{Answer, Meaning, Pause};

/// Who is asked, for people.
const WHO: &str = "Mistral";

/// A route gives Mistral nothing but the input.
static DELTAS: &[Meaning] =
    &[Meaning::of(|status| status == 400, Outcome::Rejected, "rejected", Pause::Usual)
        .saying(": it does not take this: check input and the workflow")];

/// How the start of an execution ended. Its id is the mark's: whatever was open, Mistral starts no second one.
pub(super) fn started(answer: &Answer, id: &str) -> Outcome {
    match answer.status {
        201 if answer.json()["id"] == id => shown(&answer.json()["state"], id),
        201 => Outcome::Unknown(says(answer, "protocol", " and did not show this mark's execution")),
        _ if is_without_workflow(answer) => no_workflow(answer),
        _ => usual(WHO, answer, DELTAS),
    }
}

/// The state of the mark's execution: a repetition shows the first execution, which may have ended.
fn shown(state: &Value, id: &str) -> Outcome {
    match state.as_str() {
        Some(state @ ("ERROR" | "CANCELLED")) => {
            let why = format!(
                "this mark's execution is in {state}: rerun it in Mistral, or evacuate by hand and end the mark"
            );
            Outcome::Rejected(Failure::new("execution-failed", &why))
        }
        _ => Outcome::Acknowledged { reference: Some(id.to_owned()) },
    }
}

/// What a question for the workflow found. It starts nothing and leaves nothing open.
pub(super) fn found(answer: &Answer) -> Outcome {
    match answer.status {
        200 if answer.json()["id"].is_string() => Outcome::Acknowledged { reference: None },
        200 => Outcome::Retry(says(answer, "protocol", " and did not show the workflow")),
        _ if is_without_workflow(answer) => no_workflow(answer),
        _ => usual(WHO, answer, &[]).of_a_question(),
    }
}

fn says(answer: &Answer, kind: &'static str, advice: &str) -> Failure {
    described(WHO, answer, kind, advice)
}

/// If the API cannot read the engine's error, it answers 500 with the same words: nothing was started then either.
fn is_without_workflow(answer: &Answer) -> bool {
    matches!(answer.status, 404 | 500) && answer.message().contains("Workflow not found [")
}

/// The alerter is not notified when somebody creates the workflow.
fn no_workflow(answer: &Answer) -> Outcome {
    let advice = ": create the workflow in the user's project, or correct workflow and namespace";
    Outcome::Refused(says(answer, "misconfigured", advice).or_after(LOCKED_OUT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::expected as usual;

    const ID: &str = "0193b3a4-5c6d-7e8f-9a0b-1c2d3e4f5a6b";

    fn start(status: u16, body: &str) -> Outcome {
        started(&Answer::of(status, body, None), ID)
    }

    fn find(status: u16, body: &str) -> Outcome {
        found(&Answer::of(status, body, None))
    }

    #[test]
    fn a_question_leaves_nothing_open() {
        for status in 0..=1000 {
            let expected = match usual(status) {
                ("unknown", kind) => ("retry", kind),
                expected => expected,
            };
            assert_eq!(find(status, "").words(), expected, "{status}");
        }
    }

    /// The broken variant takes each 201 for its own.
    #[test]
    fn only_the_execution_of_this_mark_acknowledges() {
        let body = |id: &str| format!(r#"{{"id": "{id}", "workflow_name": "w", "state": "RUNNING"}}"#);
        assert_eq!(start(201, &body(ID)), Outcome::Acknowledged { reference: Some(ID.into()) });
        let other = body("0193b3a4-0000-7e8f-9a0b-1c2d3e4f5a6b");
        let careless = |_: &str| "acknowledged";
        for body in [other.as_str(), "", "null", "{\"id\":", "{}"] {
            assert_eq!(start(201, body).words(), ("unknown", "protocol"), "{body}");
            assert_ne!(careless(body), start(201, body).as_str());
        }
        assert_eq!(start(200, &body(ID)).words(), ("unknown", "protocol"));
        assert_eq!(find(200, &body(ID)).words(), ("acknowledged", ""));
    }

    /// S1-16: nobody would notice otherwise. The broken variant goes by the id alone.
    #[test]
    fn an_execution_that_failed_meanwhile_is_no_success() {
        let body = |state: &str| format!(r#"{{"id": "{ID}", "workflow_name": "w", "state": "{state}"}}"#);
        for state in ["IDLE", "RUNNING", "PAUSED", "SUCCESS", "DELAYED", ""] {
            assert_eq!(start(201, &body(state)).words(), ("acknowledged", ""), "{state}");
        }
        let careless = |body: &str| if body.contains(ID) { "acknowledged" } else { "unknown" };
        for state in ["ERROR", "CANCELLED"] {
            let outcome = start(201, &body(state));
            assert_eq!(outcome.words(), ("rejected", "execution-failed"));
            assert!(outcome.failure().unwrap().detail.contains(state));
            assert_ne!(careless(&body(state)), outcome.as_str());
        }
    }

    #[test]
    fn a_workflow_that_is_not_there_is_said_to_be_missing() {
        let gone = r#"{"faultcode": "Client", "faultstring": "Workflow not found [workflow_identifier=nosuch, namespace=]", "debuginfo": null}"#;
        let by_the_engine =
            gone.replace("Workflow not found", "DBEntityNotFoundError: 404: Workflow not found");
        for outcome in [start(404, gone), find(404, gone), start(500, &by_the_engine)] {
            assert_eq!(outcome.words(), ("refused", "misconfigured"));
            let failure = outcome.failure().unwrap();
            assert!(failure.detail.contains("workflow_identifier=nosuch"), "{}", failure.detail);
            assert_eq!(failure.after, Some(LOCKED_OUT));
        }
        let elsewhere = start(404, "<html>");
        assert!(elsewhere.failure().unwrap().detail.contains("names as Mistral"));
    }

    #[test]
    fn what_is_wrong_with_an_input_is_shown() {
        let body = r#"{"faultcode": "Client", "faultstring": "Invalid input [workflow=w, missing=['host'], unexpected=['x']]", "debuginfo": null}"#;
        let outcome = start(400, body);
        assert!(outcome.failure().unwrap().detail.contains("missing=['host']"));
    }

    /// Mistral's answer contains the whole token.
    #[test]
    fn a_refused_token_is_not_shown() {
        let body = r#"{"code": 401, "title": "Unauthorized", "description": "Failed to validate access token: t0ken"}"#;
        let shown = |outcome: Outcome| outcome.failure().unwrap().detail.clone();
        assert!(!shown(start(401, body)).contains("t0ken"));
        assert!(!shown(start(401, r#"{"faultstring": "bad t0ken"}"#)).contains("t0ken"));
    }
}
