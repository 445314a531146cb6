//! What a status of an endpoint over plain HTTP means: where it differs from the table, and what people are told. Pure.

use std::time::Duration;

use reqwest::StatusCode;

use super::status::{Meaning, Pause, meaning};
use crate::driver::Outcome;

/// An endpoint takes the same bytes of the same id as often as they come: to send them again after an error of its own does no harm.
static PLAIN: &[Meaning] = &[
    Meaning::of(|status| matches!(status, 100..=199), Outcome::Unknown, "interim", Pause::Usual),
    // Here as there somebody has to let this controller in.
    Meaning::of(|status| matches!(status, 403 | 407), Outcome::Refused, "credentials", Pause::LockedOut),
    Meaning::of(|status| matches!(status, 500 | 502 | 504), Outcome::Retry, "unavailable", Pause::Wished),
    // There is a remedy of its own.
    Meaning::of(|status| status == 413, Outcome::Rejected, "body-too-large", Pause::Usual),
    // A proxy that finds fault with the form of a request.
    Meaning::of(|status| matches!(status, 411 | 431), Outcome::Rejected, "rejected", Pause::Usual),
];

/// What an answer whose header section was complete comes to. `wish` is its `Retry-After`.
///
/// Only 2xx acknowledges. No status ever ends a mark in another way: what is refused is kept and tried again.
pub(crate) fn plain(status: u16, wish: Option<Duration>) -> Outcome {
    if (200..300).contains(&status) {
        return Outcome::Acknowledged { reference: None };
    }
    let row = meaning(PLAIN, status);
    let detail = format!("the endpoint answered {}{}", in_words(status), advice(row.word));
    row.outcome(&detail, wish)
}

fn advice(word: &str) -> &'static str {
    match word {
        "interim" => " and nothing final after it",
        "redirect" => ": redirects are not followed, set url to the final address",
        "credentials" => ": check that it lets this controller in",
        "conflict" => ": it may still be working on an earlier attempt",
        "body-too-large" => ": raise what it takes to 64 KiB",
        "rejected" => ": it does not take this message, look into its log",
        "misconfigured" => ": check url, and what runs at that address",
        "protocol" => ", which is no HTTP status",
        _ => "",
    }
}

/// The number with its name from the standard; the endpoint's own words are not repeated.
fn in_words(status: u16) -> String {
    let name = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    name.map_or_else(|| status.to_string(), |name| format!("{status} {name}"))
}

#[cfg(test)]
mod tests {
    use super::super::status::tests::expected as usual;
    use super::*;

    /// What the deltas say, written a second time.
    fn expected(status: u16) -> (&'static str, &'static str) {
        match status {
            100..=199 => ("unknown", "interim"),
            200..=299 => ("acknowledged", ""),
            403 | 407 => ("refused", "credentials"),
            411 | 431 => ("rejected", "rejected"),
            413 => ("rejected", "body-too-large"),
            500 | 502 | 504 => ("retry", "unavailable"),
            _ => usual(status),
        }
    }

    /// S1-16: exactly the 2xx acknowledge; every other answer keeps the mark, and says its number.
    #[test]
    fn every_status_has_its_outcome() {
        for status in 0..=1000 {
            let outcome = plain(status, None);
            assert_eq!(outcome.words(), expected(status), "{status}");
            let says = |failure: &crate::Failure| failure.detail.contains(&status.to_string());
            assert!(outcome.failure().is_none_or(says), "{status}");
        }
    }

    /// The broken variant: a classifier that counts everything below 400 as success would acknowledge a redirect.
    #[test]
    fn a_careless_classifier_would_be_caught() {
        let careless = |status: u16| status < 400;
        let caught =
            (100..=599).filter(|status| careless(*status) != plain(*status, None).failure().is_none());
        assert_eq!(caught.count(), 200, "1xx and 3xx");
    }
}
