//! Why a service gave no answer: Keystone, the catalog, or the network. Pure.

use std::time::Duration;

use serde_json::Value;

use crate::driver::{Failure, LOCKED_OUT, Outcome};
use crate::peer::Peer;
use crate::web::answer::{message, shown};
use crate::web::{Answer, Fault, Meaning, Pause, meaning, page};

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Keystone cannot be reached, or does not answer; nothing was sent to the service.
    Away(Fault),
    /// Keystone gave no token, with the reason; nothing was sent to the service.
    NoToken(Outcome),
    /// The catalog has no usable service of this kind; nothing was sent.
    Nowhere(String),
    /// There was no token in time; one is being fetched, from there. Nothing was sent to the service.
    Late(Option<Peer>),
    /// The time limit ended before everything was sent.
    Over,
    /// The service did not say where its current version is; nothing was sent to it.
    NoVersion(Outcome),
    /// A page for people answered in the service's place.
    Page(String),
    /// The service did not answer. The text is who, and the address that was asked.
    Fault(String, Fault),
}

impl Trouble {
    /// The outcome for a mark.
    pub(crate) fn outcome(&self) -> Outcome {
        match self {
            Self::Away(fault) => away(fault),
            Self::NoToken(outcome) => outcome.clone(),
            Self::Nowhere(why) => {
                Outcome::Refused(Failure::new("catalog", why).or_after(LOCKED_OUT).unsent())
            }
            Self::Late(peer) => {
                let why = "there is no token yet: one is being fetched for the next attempt, check whether Keystone is slow";
                Outcome::Unreachable(Failure::new("keystone", why).of_peer(peer.clone()))
            }
            Self::Over => Outcome::Unknown(Failure::new(
                "timeout",
                "the time limit ended after a part was sent: the next attempt sends it again; raise timeout if this repeats",
            )),
            Self::NoVersion(outcome) => outcome.clone(),
            Self::Page(at) => Outcome::Unknown(page::failure(&format!(
                "{at}: check what the catalog, or endpoint, names, and whether a proxy wants a sign-in there"
            ))),
            Self::Fault(at, fault) => fault.outcome().map(|failure| failure.at(at)),
        }
    }
}

/// Nothing was sent to the service. Only a certificate of ours that is rejected waits for a person.
fn away(fault: &Fault) -> Outcome {
    let says = |kind| Failure::new(kind, &format!("there is no token: Keystone: {}", fault.detail()));
    match fault.outcome() {
        Outcome::Refused(_) => Outcome::Refused(says("credentials").or_after(LOCKED_OUT).unsent()),
        Outcome::Unreachable(failure) => Outcome::Unreachable(says("keystone").of_peer(failure.peer)),
        _ => Outcome::Unreachable(says("keystone")),
    }
}

/// Where Keystone differs from the table: nothing was sent to the service, so nothing is open, and no mark is at fault.
static KEYSTONE: &[Meaning] = &[
    Meaning::of(|status| matches!(status, 401 | 403), Outcome::Refused, "credentials", Pause::LockedOut)
        .saying(": check user, password or application credential, project and domains"),
    Meaning::of(
        |status| matches!(status, 408 | 425 | 500..=599),
        Outcome::Unreachable,
        "keystone",
        Pause::Wished,
    ),
    Meaning::of(|status| status != 429, Outcome::Refused, "misconfigured", Pause::LockedOut)
        .saying(": check auth_url"),
];

/// The outcome of Keystone's answer without a token: nothing was sent to the service.
pub(super) fn no_token(status: u16, body: &[u8], wish: Option<Duration>, secret: &str) -> Outcome {
    let row = meaning(KEYSTONE, status);
    let said = shown(&message(body), secret);
    let outcome = row.outcome(&format!("Keystone answered {status}{}{said}", row.advice), wish);
    outcome.map(Failure::unsent)
}

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
    use crate::web::Why;

    /// Whether it counts as unsent.
    fn is_unsent(outcome: &Outcome) -> bool {
        matches!(outcome, Outcome::Unreachable(_))
            || outcome.failure().is_some_and(|failure| failure.is_unsent)
    }

    /// What was not sent is not ambiguous; only what the service left open is.
    #[test]
    fn without_a_token_nothing_is_unknown() {
        for status in 0..=999 {
            let expected = match status {
                401 | 403 => ("refused", "credentials"),
                429 => ("retry", "throttled"),
                408 | 425 | 500..=599 => ("unreachable", "keystone"),
                _ => ("refused", "misconfigured"),
            };
            let outcome = no_token(status, b"", None, "");
            assert_eq!(outcome.words(), expected, "{status}");
            assert!(is_unsent(&outcome) && !is_unsent(&outcome.left_open()), "{status}");
        }
        assert!(is_unsent(&Trouble::Nowhere("x".into()).outcome()));
        assert_eq!(Trouble::Away(Fault::Timeout).outcome().words(), ("unreachable", "keystone"));
        let keystone = Some(Peer("keystone".to_owned(), 5000));
        for trouble in
            [Trouble::Away(Fault::Unreached(Why::Late, keystone.clone())), Trouble::Late(keystone.clone())]
        {
            assert_eq!(trouble.outcome().failure().unwrap().peer, keystone, "that is asked, not the service");
        }
        assert_eq!(Trouble::Late(None).outcome().words(), ("unreachable", "keystone"));
        assert_eq!(Trouble::Over.outcome().words(), ("unknown", "timeout"));
        assert_eq!(Trouble::Nowhere("x".into()).outcome().words(), ("refused", "catalog"));
        let fault = Trouble::Fault("Nova at http://h".into(), Fault::Timeout).outcome();
        assert_eq!(fault.words(), ("unknown", "timeout"));
        assert!(fault.failure().unwrap().detail.starts_with("Nova at http://h: "));
        let page = Trouble::Page("Nova at http://h".into()).outcome();
        assert_eq!(page.words(), ("unknown", "protocol"));
        let why = &page.failure().unwrap().detail;
        assert!(why.contains("page for people answered, not the receiver: Nova at http://h"), "{why}");
    }

    const GONE: &str = r#"{"code": 404, "title": "Not Found", "explanation": "x", "error": {"type": "EntityNotFound", "traceback": null, "message": "The Resource (x) could not be found in Stack y."}}"#;

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
