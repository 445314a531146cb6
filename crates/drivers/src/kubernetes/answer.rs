//! What the API server's answers mean for a mark. Pure.

use crate::driver::{Failure, Outcome};
use crate::web::{Meaning, Pause, meaning};

use super::access::Answer;

/// The outcome of an answer that has no special meaning where it came. No status acknowledges: the object in the body does.
pub(super) fn usual(answer: &Answer) -> Outcome {
    let row = meaning(KUBERNETES, answer.status);
    row.outcome(&sentence(answer, row.advice), answer.wish)
}

/// The failure that an answer means.
pub(super) fn described(answer: &Answer, kind: &'static str, advice: &str) -> Failure {
    Failure::new(kind, &sentence(answer, advice))
}

fn sentence(answer: &Answer, advice: &str) -> String {
    format!("Kubernetes answered {}{advice}{}", answer.status, answer.said())
}

/// Its differences from the common table, and its texts.
static KUBERNETES: &[Meaning] = &[
    Meaning::of(|status| matches!(status, 400 | 413 | 422), Outcome::Rejected, "rejected", Pause::Usual)
        .saying(": it rejects the change for this host"),
    Meaning::of(|status| status == 401, Outcome::Refused, "credentials", Pause::LockedOut)
        .saying(" to credentials that were just read: renew the token or the certificate"),
    Meaning::of(|status| status == 403, Outcome::Refused, "forbidden", Pause::LockedOut).saying(
        ": the account may not do this, give it the rights in /usr/share/nova-host-alerter/kubernetes",
    ),
    // The object was there a moment before, or the page of a list has expired.
    Meaning::of(|status| matches!(status, 404 | 410), Outcome::Retry, "conflict", Pause::Usual)
        .saying(": the object has just changed"),
    Meaning::of(|status| status == 409, Outcome::Retry, "conflict", Pause::Wished)
        .saying(": somebody else keeps changing the object"),
    Meaning::of(|status| matches!(status, 300..=399), Outcome::Refused, "redirect", Pause::Usual)
        .saying(": redirects are not followed, correct the server's address"),
];

/// The outcome of a question's answer: it changes nothing, so it leaves nothing open, and no mark is at fault.
pub(super) fn of_a_question(answer: &Answer) -> Outcome {
    match usual(answer).of_a_question() {
        Outcome::Rejected(failure) => Outcome::Refused(Failure { kind: "misconfigured", ..failure }),
        outcome => outcome,
    }
}

/// Kubernetes has no such thing as the configuration names.
pub(super) fn misconfigured(why: &str) -> Outcome {
    Outcome::Refused(Failure::new("misconfigured", why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::expected;

    /// No status acknowledges, and nothing that was only asked is open or any mark's fault.
    #[test]
    fn every_status_has_its_outcome() {
        for status in 0..=1000 {
            let change = if matches!(status, 404 | 410) { ("retry", "conflict") } else { expected(status) };
            let question = match change {
                ("rejected", _) => ("refused", "misconfigured"),
                ("unknown", kind) => ("retry", kind),
                other => other,
            };
            let answer = Answer::of(status, "", None);
            assert_eq!(
                (usual(&answer).words(), of_a_question(&answer).words()),
                (change, question),
                "{status}"
            );
        }
    }
}
