//! The outcome of an answer that has no special meaning at its service: the common table, and its texts. Pure.

use serde_json::Value;

use super::Answer;
use crate::driver::{Failure, Outcome};
use crate::web::{Meaning, meaning};

/// The outcome of an answer, except for the driver's `deltas`. `who` is the service for people. No status acknowledges:
/// the driver knows which one does.
pub(crate) fn usual(who: &str, answer: &Answer, deltas: &[Meaning]) -> Outcome {
    let row = meaning(deltas, answer.status);
    let advice = if row.advice.is_empty() { advice(row.word) } else { row.advice };
    row.outcome(&sentence(who, answer, row.word, &advice.replace("{who}", who)), answer.wish)
}

fn advice(word: &str) -> &'static str {
    match word {
        "rejected" => ": it rejects the request for this mark",
        "credentials" => " to a new token: check {who}'s own access to Keystone",
        "forbidden" => ": the user may not do this, give it the role that {who}'s policy requires",
        "redirect" => ": redirects are not followed, correct the catalog or set endpoint",
        "misconfigured" => ": check what the catalog, or endpoint, names as {who}",
        "protocol" => ", which {who} never does",
        _ => "",
    }
}

/// What a question found under `key`; `None` if the service says that it does not exist.
///
/// # Errors
/// The answer is unknown.
pub(crate) fn found(who: &str, answer: &Answer, key: &str) -> Result<Option<Value>, Outcome> {
    match (answer.status, answer.json().get(key)) {
        (200, Some(value)) => Ok(Some(value.clone())),
        (200, None) => {
            Err(Outcome::Unknown(described(who, answer, "protocol", ", but the body was cut off")))
        }
        _ if answer.is_absent() => Ok(None),
        _ => Err(usual(who, answer, &[])),
    }
}

/// The failure that an answer means: the service and its status, what to do, and the service's own message.
pub(crate) fn described(who: &str, answer: &Answer, kind: &'static str, advice: &str) -> Failure {
    Failure::new(kind, &sentence(who, answer, kind, advice))
}

/// Where the address may be what is wrong, it is named: the one that was asked.
fn sentence(who: &str, answer: &Answer, kind: &str, advice: &str) -> String {
    let at = match kind {
        "redirect" | "misconfigured" | "protocol" => format!(" at {}", answer.at),
        _ => String::new(),
    };
    format!("{who}{at} answered {}{advice}{}", answer.status, answer.said())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GONE: &str = r#"{"code": 404, "title": "Not Found", "explanation": "x", "error": {"type": "EntityNotFound", "traceback": null, "message": "The Resource (x) could not be found in Stack y."}}"#;

    #[test]
    fn what_a_service_says_is_shown_without_the_token() {
        let detail =
            |body: &str| usual("Heat", &Answer::of(400, body, None), &[]).failure().unwrap().detail.clone();
        assert!(detail(r#"{"message": "no such key"}"#).ends_with(": no such key"));
        assert!(!detail(r#"{"message": "bad t0ken"}"#).contains("t0ken"));
    }

    #[test]
    fn a_question_finds_or_does_not_or_says_nothing() {
        let read = |status, body: &str| match found("Heat", &Answer::of(status, body, None), "resource") {
            Ok(found) => (if found.is_some() { "there" } else { "gone" }, ""),
            Err(outcome) => outcome.words(),
        };
        for (status, body, expected) in [
            (200, r#"{"resource": {}}"#, ("there", "")),
            (200, r#"{"resource": {"#, ("unknown", "protocol")),
            (200, "null", ("unknown", "protocol")),
            (404, GONE, ("gone", "")),
            (404, "{}", ("refused", "misconfigured")),
            (302, "", ("refused", "redirect")),
            (403, "", ("refused", "forbidden")),
            (500, "", ("unknown", "server-error")),
        ] {
            assert_eq!(read(status, body), expected, "{status} {body}");
        }
    }
}
