//! What a status means for a mark. Pure: the acknowledgement table is here and nowhere else.

use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::HeaderMap;

use crate::drivers::{Failure, LOCKED_OUT, LONGEST_WISH, Outcome};

/// However short, an endpoint that says "too many" gets this pause.
pub(crate) const SHORTEST_THROTTLE: Duration = Duration::from_secs(5);

/// A larger header section is no answer that an endpoint of ours gives; the client itself stops reading at 408 KiB.
const HEADER_BYTES: usize = 16 * 1024;

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

/// Whether an answer's header section is larger than is taken.
pub(crate) fn is_too_large(headers: &HeaderMap) -> bool {
    let fields = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    fields.sum::<usize>() > HEADER_BYTES
}

/// The number with its name from the standard; the endpoint's own words are not repeated.
fn in_words(status: u16) -> String {
    let name = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    name.map_or_else(|| status.to_string(), |name| format!("{status} {name}"))
}

/// Reads `Retry-After`: whole seconds, or a date, which is compared with the answer's own `Date` because the clocks may
/// differ. What cannot be read is as if it were not there.
pub(crate) fn wish(retry_after: Option<&str>, date: Option<&str>) -> Option<Duration> {
    let text = retry_after?.trim();
    let wanted = match text.bytes().all(|b| b.is_ascii_digit()) {
        true => text.parse().ok().map(Duration::from_secs)?,
        false => Duration::try_from(http_date(text)?.duration_since(http_date(date?)?)).ok()?,
    };
    (!wanted.is_zero()).then(|| wanted.min(LONGEST_WISH))
}

fn http_date(text: &str) -> Option<jiff::Timestamp> {
    jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text.trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use reqwest::header::{HeaderName, HeaderValue};

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

    /// The limit counts names, values and what stands between them. The broken variant counts the fields alone.
    #[test]
    fn a_header_section_has_a_size() {
        let with = |length: usize| {
            HeaderMap::from_iter([(
                HeaderName::from_static("x"),
                HeaderValue::try_from("v".repeat(length)).unwrap(),
            )])
        };
        let most = HEADER_BYTES - "x: \r\n".len();
        assert!(!is_too_large(&with(most)) && is_too_large(&with(most + 1)));
        let careless = |headers: &HeaderMap| headers.len() > 64;
        assert!(!careless(&with(most + 1)));
    }

    #[test]
    fn retry_after_is_seconds_or_a_date_of_the_endpoints_own_clock() {
        let date = Some("Wed, 21 Oct 2015 07:28:00 GMT");
        let seconds = |text| wish(Some(text), date).map(|wish| wish.as_secs());
        assert_eq!(seconds("120"), Some(120));
        assert_eq!(seconds(" 7 "), Some(7));
        assert_eq!(seconds("Wed, 21 Oct 2015 07:29:30 GMT"), Some(90));
        assert_eq!(seconds("86400"), Some(900), "clamped");
        assert_eq!(seconds("Thu, 22 Oct 2015 07:28:00 GMT"), Some(900), "clamped");
        assert_eq!(wish(Some("Wed, 21 Oct 2015 07:29:30 GMT"), None), None, "no clock to compare with");
        assert_eq!(wish(None, date), None);
    }

    #[test]
    fn a_retry_after_that_makes_no_sense_is_ignored() {
        let date = Some("Wed, 21 Oct 2015 07:28:00 GMT");
        let senseless = [
            "",
            "0",
            "-1",
            "+5",
            "1e309",
            "NaN",
            "1.5",
            "99999999999999999999",
            "soon",
            "Wed, 21 Oct 2015 07:27:00 GMT",
            "Wed, 99 Oct 2015 07:27:00 GMT",
            "5, 10",
        ];
        for text in senseless {
            assert_eq!(wish(Some(text), date), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_header_can_ask_for_more_than_the_limit(text in ".{0,40}", date in ".{0,40}") {
            prop_assert!(wish(Some(&text), Some(&date)).is_none_or(|wish| wish <= LONGEST_WISH));
        }
    }
}
