//! The outcome of a status over plain HTTP: its differences from the table, and its texts. Pure.

use std::time::Duration;

use reqwest::StatusCode;

use super::status::{Meaning, Pause, meaning};
use crate::driver::Outcome;

/// An endpoint takes the same bytes with the same id any number of times: repeating them after its own error does no
/// harm.
static PLAIN: &[Meaning] = &[
    Meaning::of(|status| matches!(status, 100..=199), Outcome::Unknown, "interim", Pause::Usual),
    // As elsewhere, somebody has to let this controller in.
    Meaning::of(|status| matches!(status, 403 | 407), Outcome::Refused, "credentials", Pause::LockedOut),
    Meaning::of(|status| matches!(status, 500 | 502 | 504), Outcome::Retry, "unavailable", Pause::Wished),
    // It has a remedy of its own.
    Meaning::of(|status| status == 413, Outcome::Rejected, "body-too-large", Pause::Usual),
    // A proxy that rejects the form of a request.
    Meaning::of(|status| matches!(status, 411 | 431), Outcome::Rejected, "rejected", Pause::Usual),
];

/// The outcome of an answer with a complete header section. `wish` is its `Retry-After`.
///
/// Only 2xx acknowledges. No status ends a mark in another way: a refused mark is kept and retried.
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
        "credentials" => ": check that it gives this controller access",
        "conflict" => ": it may still be working on an earlier attempt",
        "body-too-large" => ": raise its limit for a request to 64 KiB",
        "rejected" => ": it rejects this message, check its log",
        "misconfigured" => ": check url, and what runs there",
        "protocol" => ", which is not an HTTP status",
        _ => "",
    }
}

/// The number with its name from the standard; the endpoint's own text is not repeated.
fn in_words(status: u16) -> String {
    let name = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    name.map_or_else(|| status.to_string(), |name| format!("{status} {name}"))
}
