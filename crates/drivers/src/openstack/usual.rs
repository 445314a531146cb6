//! What an answer means that has no meaning of its own at its service: the table of all, and what people are told. Pure.

use serde_json::Value;

use super::Answer;
use crate::driver::{Failure, Outcome};
use crate::web::{Meaning, meaning};

/// What an answer comes to, of which its driver knows no more than `deltas`. `who` is the service for people. No status
/// acknowledges: which one does, its driver knows.
pub(crate) fn usual(who: &str, answer: &Answer, deltas: &[Meaning]) -> Outcome {
    let row = meaning(deltas, answer.status);
    let advice = if row.advice.is_empty() { advice(row.word) } else { row.advice };
    row.outcome(&sentence(who, answer, &advice.replace("{who}", who)), answer.wish)
}

fn advice(word: &str) -> &'static str {
    match word {
        "rejected" => ": it does not take what was sent for this mark",
        "credentials" => " to a new token: look at {who}'s own access to Keystone",
        "forbidden" => ": the user may not do this, give it the role that {who}'s policy asks for",
        "redirect" => ": redirects are not followed, correct the catalog or set endpoint",
        "misconfigured" => ": check what the catalog, or endpoint, names as {who}",
        "protocol" => ", which {who} never does",
        _ => "",
    }
}

/// What a look at something found under `key`; `None` if the service says that there is no such thing.
///
/// # Errors
/// It did not say.
pub(crate) fn found(who: &str, answer: &Answer, key: &str) -> Result<Option<Value>, Outcome> {
    match (answer.status, answer.json().get(key)) {
        (200, Some(value)) => Ok(Some(value.clone())),
        (200, None) => Err(Outcome::Unknown(told(who, answer, "protocol", ", and not wholly"))),
        _ if answer.is_absent() => Ok(None),
        _ => Err(usual(who, answer, &[])),
    }
}

/// A failure that an answer tells of: who said what, what to do, and the answer's own words.
pub(crate) fn told(who: &str, answer: &Answer, kind: &'static str, advice: &str) -> Failure {
    Failure::new(kind, &sentence(who, answer, advice))
}

fn sentence(who: &str, answer: &Answer, advice: &str) -> String {
    format!("{who} answered {}{advice}{}", answer.status, answer.said())
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
    fn a_look_finds_or_does_not_or_says_nothing() {
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
