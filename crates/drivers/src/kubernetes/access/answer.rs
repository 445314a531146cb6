//! An answer of the API server, and what it says of an error: a `Status`, which is not trusted. Pure.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use secrecy::ExposeSecret as _;
use serde_json::Value;

use super::site::Pass;
use crate::driver::{Failure, Outcome};
use crate::web::{Fault, answer};

/// An answer with its whole header section.
pub(crate) struct Answer {
    /// The status.
    pub(crate) status: u16,
    /// How long it asks us to wait.
    pub(crate) wish: Option<Duration>,
    /// The body.
    pub(crate) body: Vec<u8>,
    /// What the server got from us: it must not be shown.
    pass: Option<Arc<Pass>>,
}

impl Answer {
    /// What the server answered to this pass.
    pub(super) fn new(status: u16, wish: Option<Duration>, body: Vec<u8>, pass: &Arc<Pass>) -> Self {
        Self { status, wish, body, pass: Some(Arc::clone(pass)) }
    }

    /// Its body; null if it is not JSON, or was cut off.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The reason in a `Status`, such as `AlreadyExists`; empty in anything else, as in the answer of a proxy.
    pub(crate) fn reason(&self) -> String {
        let body = self.json();
        let reason = body["reason"].as_str().filter(|_| body["kind"] == "Status");
        reason.unwrap_or_default().to_owned()
    }

    /// The message in an error's body.
    pub(crate) fn message(&self) -> String {
        answer::message(&self.body)
    }

    /// The same for people: `: …`, or nothing.
    pub(crate) fn said(&self) -> String {
        let secret = self.pass.as_ref().map(|pass| pass.token.expose_secret());
        answer::shown(&self.message(), &[secret.unwrap_or_default()])
    }
}

impl fmt::Debug for Answer {
    /// A server may repeat the token in its body.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").field("status", &self.status).finish_non_exhaustive()
    }
}

#[cfg(test)]
impl Answer {
    /// The answer for a table of answers.
    pub(crate) fn of(status: u16, body: &str, wish: Option<Duration>) -> Self {
        Self { status, wish, body: body.as_bytes().to_vec(), pass: None }
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The time limit ended before the request was sent.
    Late,
    /// The server did not answer.
    Fault(Fault),
}

impl Trouble {
    /// The outcome for a mark, if this was the first request of its exchange.
    pub(crate) fn outcome(&self) -> Outcome {
        match self {
            Self::Late => Outcome::Unreachable(Failure::new(
                "timeout",
                "the time limit ended before the request was sent: raise timeout if this repeats",
            )),
            Self::Fault(fault) => fault.outcome(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXISTS: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"x \"a\" already exists","reason":"AlreadyExists","details":{"name":"a"},"code":409}"#;

    /// The broken variant takes any field of this name for the server's own word.
    #[test]
    fn only_a_status_has_a_reason() {
        for (body, reason, said) in [
            (EXISTS, "AlreadyExists", ": x \"a\" already exists"),
            (r#"{"reason": "NotFound"}"#, "", ""),
            (r#"{"kind": "Status"}"#, "", ""),
            (r#"{"kind": "Status", "reason": 7}"#, "", ""),
            (&EXISTS[..80], "", ""),
            ("<html>", "", ""),
        ] {
            let answer = Answer::of(409, body, None);
            assert_eq!((answer.reason().as_str(), answer.said().as_str()), (reason, said), "{body}");
        }
    }

    /// The broken variant counts a request that was never made as one that may have arrived.
    #[test]
    fn what_was_not_sent_is_not_ambiguous() {
        assert_eq!(Trouble::Late.outcome().words(), ("unreachable", "timeout"));
        for fault in [Fault::Request, Fault::Timeout, Fault::Closed] {
            assert_eq!(Trouble::Fault(fault.clone()).outcome(), fault.outcome());
        }
    }
}
