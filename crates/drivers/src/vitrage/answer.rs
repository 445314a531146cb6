//! What Vitrage's answer means for a mark. Pure.

use serde::de::IgnoredAny;

use crate::driver::Outcome;
use crate::openstack::{Answer, described, usual};
use crate::web::{Meaning, Pause};

/// Vitrage answers 404 to any failure behind its API, so a 404 says nothing of the address.
static DELTAS: &[Meaning] =
    &[Meaning::of(|status| status == 404, Outcome::Unknown, "server-error", Pause::Wished).saying(
        ": it could not pass the event on, check its log; or check what the catalog, or endpoint, names",
    )];

/// Reads an answer.
pub(super) fn outcome(answer: &Answer) -> Outcome {
    match answer.status {
        200 if is_its_own(&answer.body) => Outcome::Acknowledged { reference: None },
        200 => {
            let advice = " with an unknown body: check what the catalog, or endpoint, names as Vitrage";
            Outcome::Unknown(described("Vitrage", answer, "protocol", advice).after(answer.wish))
        }
        _ => usual("Vitrage", answer, DELTAS),
    }
}

/// Vitrage's body is `null`, or empty behind a proxy. A web server's page is neither.
fn is_its_own(body: &[u8]) -> bool {
    body.is_empty() || serde_json::from_slice::<IgnoredAny>(body).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S1-16: a web server that answers 200 to everything has no alarm. The broken variant goes by the status alone.
    #[test]
    fn a_page_is_no_acknowledgement() {
        let of = |body: &str| outcome(&Answer::of(200, body, None)).as_str();
        for body in ["null", "", "{}", " null\n"] {
            assert_eq!(of(body), "acknowledged", "{body}");
        }
        let careless = |_: &str| "acknowledged";
        for body in ["<html>It works!</html>", "OK", "nu", "null null", " "] {
            assert_eq!(of(body), "unknown", "{body}");
            assert_ne!(careless(body), of(body));
        }
    }
}
