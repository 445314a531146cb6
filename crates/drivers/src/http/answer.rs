//! What a status means for a mark. Pure: the acknowledgement table is here and nowhere else.

use std::time::Duration;

use reqwest::StatusCode;

use crate::driver::{Failure, LOCKED_OUT, Outcome};
use crate::web::SHORTEST_THROTTLE;

/// The outcome of an answer whose header section was complete. `wish` is its `Retry-After`.
///
/// Only 2xx acknowledges. No status ever ends a mark in another way: what is refused is kept and tried again.
pub(super) fn outcome(status: u16, wish: Option<Duration>) -> Outcome {
    let says = |kind, advice: &str| {
        Failure::new(kind, &format!("the endpoint answered {}{advice}", in_words(status)))
    };
    match status {
        200..=299 => Outcome::Acknowledged { reference: None },
        100..=199 => Outcome::Unknown(says("interim", " and nothing final after it")),
        300..=399 => {
            Outcome::Refused(says("redirect", ": redirects are not followed, set url to the final address"))
        }
        401 | 403 | 407 => {
            let refusal = says("credentials", ": check that it lets this controller in");
            Outcome::Refused(refusal.or_after(LOCKED_OUT))
        }
        408 | 425 | 500 | 502 | 503 | 504 | 507 | 520..=529 => {
            Outcome::Retry(says("unavailable", "").after(wish))
        }
        409 => {
            Outcome::Retry(says("conflict", ": it may still be working on an earlier attempt").after(wish))
        }
        429 => {
            let pause = wish.unwrap_or_default().max(SHORTEST_THROTTLE);
            Outcome::Retry(says("throttled", "").after(Some(pause)))
        }
        413 => Outcome::Rejected(says("body-too-large", ": raise what it takes to 64 KiB")),
        400 | 411 | 422 | 431 => {
            Outcome::Rejected(says("rejected", ": it does not take this message, look into its log"))
        }
        400..=599 => Outcome::Refused(says("misconfigured", ": check url, and what runs at that address")),
        _ => Outcome::Unknown(says("protocol", ", which is no HTTP status")),
    }
}

/// The number with its name from the standard; the endpoint's own words are not repeated.
fn in_words(status: u16) -> String {
    let name = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    name.map_or_else(|| status.to_string(), |name| format!("{status} {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every word that an answer can get.
    const WORDS: [&str; 10] = [
        "body-too-large",
        "interim",
        "redirect",
        "credentials",
        "unavailable",
        "conflict",
        "throttled",
        "rejected",
        "misconfigured",
        "protocol",
    ];

    /// What the table says, written a second time as a table.
    fn expected(status: u16) -> &'static str {
        match status {
            200..=299 => "acknowledged",
            400 | 411 | 413 | 422 | 431 => "rejected",
            300..=399 | 401 | 403 | 407 | 501 | 505 => "refused",
            408 | 409 | 425 | 429 | 500 | 502 | 503 | 504 | 507 => "retry",
            520..=529 => "retry",
            400..=599 => "refused",
            _ => "unknown",
        }
    }

    /// S1-16: exactly the 2xx acknowledge; every other answer keeps the mark.
    #[test]
    fn every_status_has_its_outcome() {
        for status in 0..=1000 {
            let outcome = outcome(status, None);
            assert_eq!(outcome.as_str(), expected(status), "{status}");
            assert_eq!(outcome.failure().is_none(), (200..300).contains(&status), "{status}");
            if let Some(failure) = outcome.failure() {
                assert!(WORDS.contains(&failure.kind), "{}", failure.kind);
                assert!(failure.detail.contains(&status.to_string()));
            }
        }
    }

    /// The broken variant: a classifier that counts everything below 400 as success would acknowledge a redirect.
    #[test]
    fn a_careless_classifier_would_be_caught() {
        let careless = |status: u16| status < 400;
        let caught =
            (100..=599).filter(|status| careless(*status) != outcome(*status, None).failure().is_none());
        assert_eq!(caught.count(), 200, "1xx and 3xx");
    }

    #[test]
    fn too_many_requests_always_brings_a_pause() {
        let pause = |wish| outcome(429, wish).failure().and_then(|failure| failure.after);
        assert_eq!(pause(None), Some(SHORTEST_THROTTLE));
        assert_eq!(pause(Some(Duration::from_secs(1))), Some(SHORTEST_THROTTLE));
        assert_eq!(pause(Some(Duration::from_secs(60))), Some(Duration::from_secs(60)));
        assert_eq!(outcome(503, None).failure().and_then(|failure| failure.after), None);
    }
}
