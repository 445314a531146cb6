//! What Vitrage's answer means for a mark. Pure: the table is here and nowhere else.

use serde::de::IgnoredAny;

use crate::driver::Outcome;
use crate::openstack::{Answer, told, usual};

/// Reads an answer. Vitrage answers 404 to whatever goes wrong behind its API, so that a 404 says nothing of the address.
pub(super) fn outcome(answer: &Answer) -> Outcome {
    match answer.status {
        200 if is_its_own(&answer.body) => Outcome::Acknowledged { reference: None },
        200 => {
            let advice =
                " with a body that it never gives: check what the catalog, or endpoint, names as Vitrage";
            Outcome::Unknown(told("Vitrage", answer, "protocol", advice).after(answer.wish))
        }
        404 => {
            let advice = ": it could not pass the event on, look into its log; or what the catalog, or endpoint, names is none";
            Outcome::Unknown(told("Vitrage", answer, "server-error", advice).after(answer.wish))
        }
        _ => usual("Vitrage", answer),
    }
}

/// Vitrage says `null`, and one behind something else nothing at all. A page of some web server is none of it.
fn is_its_own(body: &[u8]) -> bool {
    body.is_empty() || serde_json::from_slice::<IgnoredAny>(body).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the table says, written a second time as a table.
    fn expected(status: u16) -> (&'static str, &'static str) {
        match status {
            200 => ("acknowledged", ""),
            300..=399 => ("refused", "redirect"),
            400 | 413 | 422 => ("rejected", "rejected"),
            401 => ("refused", "credentials"),
            403 => ("refused", "forbidden"),
            404 | 500 | 502 | 504 => ("unknown", "server-error"),
            408 | 425 | 503 | 507 | 520..=529 => ("retry", "unavailable"),
            409 => ("retry", "conflict"),
            429 => ("retry", "throttled"),
            402..=599 => ("refused", "misconfigured"),
            _ => ("unknown", "protocol"),
        }
    }

    #[test]
    fn every_status_has_its_outcome() {
        for status in 0..=1000 {
            let outcome = outcome(&Answer::of(status, "null", None));
            let word = (outcome.as_str(), outcome.failure().map_or("", |failure| failure.kind));
            assert_eq!(word, expected(status), "{status}");
        }
    }

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
