//! What an answer means that has no meaning of its own at its service. Pure: the table is here and nowhere else.

use serde_json::Value;

use super::Answer;
use crate::driver::{Failure, LOCKED_OUT, Outcome};
use crate::web::SHORTEST_THROTTLE;

/// What an answer comes to, of which its driver knows nothing better. `who` is the service for people. No status
/// acknowledges: which one does, its driver knows.
pub(crate) fn usual(who: &str, answer: &Answer) -> Outcome {
    let says = |kind, advice: &str| told(who, answer, kind, advice);
    match answer.status {
        400 | 413 | 422 => {
            Outcome::Rejected(says("rejected", ": it does not take what was sent for this mark"))
        }
        401 => {
            let advice = format!(" to a new token: look at {who}'s own access to Keystone");
            Outcome::Refused(says("credentials", &advice).or_after(LOCKED_OUT))
        }
        403 => {
            let advice = format!(": the user may not do this, give it the role that {who}'s policy asks for");
            Outcome::Refused(says("forbidden", &advice).or_after(LOCKED_OUT))
        }
        429 => {
            let pause = answer.wish.unwrap_or_default().max(SHORTEST_THROTTLE);
            Outcome::Retry(says("throttled", "").after(Some(pause)))
        }
        // It may be done all the same.
        500 | 502 | 504 => Outcome::Unknown(says("server-error", "").after(answer.wish)),
        408 | 425 | 503 | 507 | 520..=529 => Outcome::Retry(says("unavailable", "").after(answer.wish)),
        409 => Outcome::Retry(says("conflict", "").after(answer.wish)),
        300..=399 => Outcome::Refused(says(
            "redirect",
            ": redirects are not followed, correct the catalog or set endpoint",
        )),
        402..=599 => {
            let advice = format!(": check what the catalog, or endpoint, names as {who}");
            Outcome::Refused(says("misconfigured", &advice))
        }
        _ => Outcome::Unknown(says("protocol", &format!(", which {who} never does"))),
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
        _ => Err(usual(who, answer)),
    }
}

/// A failure that an answer tells of: who said what, what to do, and the answer's own words.
pub(crate) fn told(who: &str, answer: &Answer, kind: &'static str, advice: &str) -> Failure {
    Failure::new(kind, &format!("{who} answered {}{advice}{}", answer.status, answer.said()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const GONE: &str = r#"{"code": 404, "title": "Not Found", "explanation": "x", "error": {"type": "EntityNotFound", "traceback": null, "message": "The Resource (x) could not be found in Stack y."}}"#;

    /// What the table says, written a second time as a table.
    fn expected(status: u16) -> (&'static str, &'static str) {
        match status {
            300..=399 => ("refused", "redirect"),
            400 | 413 | 422 => ("rejected", "rejected"),
            401 => ("refused", "credentials"),
            403 => ("refused", "forbidden"),
            408 | 425 | 503 | 507 | 520..=529 => ("retry", "unavailable"),
            409 => ("retry", "conflict"),
            429 => ("retry", "throttled"),
            500 | 502 | 504 => ("unknown", "server-error"),
            402..=599 => ("refused", "misconfigured"),
            _ => ("unknown", "protocol"),
        }
    }

    #[test]
    fn every_status_has_its_outcome() {
        for status in 0..=1000 {
            let outcome = usual("Heat", &Answer::of(status, "", None));
            assert_eq!((outcome.as_str(), outcome.failure().unwrap().kind), expected(status), "{status}");
        }
    }

    #[test]
    fn what_a_service_says_is_shown_without_the_token() {
        let detail =
            |body: &str| usual("Heat", &Answer::of(400, body, None)).failure().unwrap().detail.clone();
        assert!(detail(r#"{"message": "no such key"}"#).ends_with(": no such key"));
        assert!(!detail(r#"{"message": "bad t0ken"}"#).contains("t0ken"));
        let pause = usual("Heat", &Answer::of(429, "", Some(Duration::from_secs(1))));
        assert_eq!(pause.failure().unwrap().after, Some(SHORTEST_THROTTLE));
    }

    #[test]
    fn a_look_finds_or_does_not_or_says_nothing() {
        let look = |status, body: &str| match found("Heat", &Answer::of(status, body, None), "resource") {
            Ok(found) => (if found.is_some() { "there" } else { "gone" }, ""),
            Err(outcome) => (outcome.as_str(), outcome.failure().unwrap().kind),
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
            assert_eq!(look(status, body), expected, "{status} {body}");
        }
    }
}
