//! What an answer's header section says, whatever its status. Pure.

use std::time::{Duration, UNIX_EPOCH};

use httpdate::parse_http_date;
use reqwest::header::HeaderMap;

use crate::driver::LONGEST_WISH;

/// The shortest pause after "too many requests".
pub(super) const SHORTEST_THROTTLE: Duration = Duration::from_secs(5);

/// A header section larger than this is no answer of ours; the client itself stops reading at 408 KiB.
const HEADER_BYTES: usize = 16 * 1024;

/// Whether an answer's header section is too large.
pub(super) fn is_too_large(headers: &HeaderMap) -> bool {
    let fields = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    fields.sum::<usize>() > HEADER_BYTES
}

/// Reads `Retry-After`: whole seconds, or a date, which is compared with the answer's own `Date` because the clocks may
/// differ. An unreadable value counts as missing.
pub(super) fn wish(retry_after: Option<&str>, date: Option<&str>) -> Option<Duration> {
    let text = retry_after?.trim();
    let wanted = match text.bytes().all(|b| b.is_ascii_digit()) {
        true => text.parse().ok().map(Duration::from_secs)?,
        false => parse_http_date(text).ok()?.duration_since(parse_http_date(date?.trim()).ok()?).ok()?,
    };
    (!wanted.is_zero()).then(|| wanted.min(LONGEST_WISH))
}

/// Reads `Date`: seconds since the epoch by the endpoint's own clock.
pub(super) fn date(text: Option<&str>) -> Option<i64> {
    let since = parse_http_date(text?.trim()).ok()?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_secs()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use reqwest::header::{HeaderName, HeaderValue};

    /// The limit counts names, values and separators. The broken variant counts the fields alone.
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
        // RFC 9110, section 5.6.7: a recipient of dates reads the two old forms too.
        assert_eq!(seconds("Wednesday, 21-Oct-15 07:29:30 GMT"), Some(90));
        assert_eq!(seconds("Wed Oct 21 07:29:30 2015"), Some(90));
        assert_eq!(seconds("86400"), Some(900), "clamped");
        assert_eq!(seconds("Thu, 22 Oct 2015 07:28:00 GMT"), Some(900), "clamped");
        assert_eq!(wish(Some("Wed, 21 Oct 2015 07:29:30 GMT"), None), None, "no clock to compare with");
        assert_eq!(wish(None, date), None);
    }

    #[test]
    fn a_date_is_the_endpoints_time() {
        assert_eq!(date(Some("Tue, 21 Jul 2026 02:13:21 GMT")), Some(1_784_600_001));
        assert_eq!([None, Some(""), Some("2026-07-21")].map(date), [None; 3]);
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
