//! An answer of a service: what its header section says, whatever its status, and what its body says of an error, which
//! is not trusted. Pure.

use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

use httpdate::parse_http_date;
use reqwest::header::HeaderMap;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use crate::driver::LONGEST_WISH;

/// An answer with its whole header section.
pub(crate) struct Answer {
    /// The status.
    pub(crate) status: u16,
    /// How long it asks us to wait.
    pub(crate) wish: Option<Duration>,
    /// When it was given, by the service's own clock: seconds since the epoch.
    pub(crate) date: Option<i64>,
    /// The body.
    pub(crate) body: Vec<u8>,
    /// The service's address that was asked.
    pub(crate) at: String,
    /// The token that the service got, if any: it must not be shown.
    pub(crate) secret: SecretString,
}

impl Answer {
    /// Its body; null if it is not JSON, or was cut off.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The message in an error's body.
    pub(crate) fn message(&self) -> String {
        message(&self.body)
    }

    /// The same for people: `: …`, or nothing.
    pub(crate) fn said(&self) -> String {
        shown(&self.message(), self.secret.expose_secret())
    }
}

#[cfg(test)]
impl Answer {
    /// The answer for a table of answers.
    pub(crate) fn of(status: u16, body: &str, wish: Option<Duration>) -> Self {
        let (body, at) = (body.as_bytes().to_vec(), "http://service/v1".to_owned());
        Self { status, wish, date: None, body, at, secret: "t0ken".into() }
    }
}

impl fmt::Debug for Answer {
    /// A service may repeat the token in its body.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").field("status", &self.status).finish_non_exhaustive()
    }
}

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

/// How much of it is shown.
const LONGEST: usize = 160;

/// The message in an error's body; empty where there is none.
///
/// `{"NAME": {"code": 409, "message": …}}`, `{"error": {"code": 401, "title", "message"}}`, flat
/// `{"message", "code": "404 Not Found", "title"}`, the last with HTML in it, and `{"faultstring": …}`.
pub(crate) fn message(body: &[u8]) -> String {
    let Ok(Value::Object(fields)) = serde_json::from_slice::<Value>(body) else { return String::new() };
    let flat = ["message", "faultstring"].into_iter().find_map(|key| fields.get(key)?.as_str());
    let below = || fields.values().find_map(|field| field.get("message")?.as_str());
    plain(flat.or_else(below).unwrap_or_default())
}

/// Without tags, on one line.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut in_tag = false;
    for c in text.chars() {
        match c {
            '<' => in_tag = true,
            '>' if in_tag => in_tag = false,
            c if !in_tag => plain.push(c),
            _ => {}
        }
    }
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The message for people: `: …`, or nothing. A service may repeat our token: a message with it, or with anything that
/// resembles one, is not shown.
pub(crate) fn shown(message: &str, secret: &str) -> String {
    let has_secret = !secret.is_empty() && message.contains(secret);
    // Fernet tokens begin so; a JWS has two dots, and no blank within this many characters.
    let like_a_token = |word: &str| word.contains("gAAAA") || word.len() > 80;
    if message.is_empty() || has_secret || message.split_whitespace().any(like_a_token) {
        return String::new();
    }
    format!(": {}", message.chars().take(LONGEST).collect::<String>())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

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

    proptest! {
        #[test]
        fn no_header_can_ask_for_more_than_the_limit(text in ".{0,40}", date in ".{0,40}") {
            prop_assert!(wish(Some(&text), Some(&date)).is_none_or(|wish| wish <= LONGEST_WISH));
        }
    }

    #[test]
    fn each_shape_has_its_message() {
        for (body, expected) in [
            (r#"{"conflictingRequest": {"code": 409, "message": "is duplicate."}}"#, "is duplicate."),
            (r#"{"error": {"code": 401, "title": "Unauthorized", "message": "It requires"}}"#, "It requires"),
            (
                "{\"message\": \"The resource could not be found.<br /><br />\\n\\n\\n\", \"code\": \"404 Not Found\", \"title\": \"Not Found\"}",
                "The resource could not be found.",
            ),
            (
                r#"{"faultcode": "Client", "faultstring": "Workflow not found", "debuginfo": null}"#,
                "Workflow not found",
            ),
            ("null", ""),
            ("", ""),
            ("<html>", ""),
            ("[]", ""),
            (r#"{"message": 7, "x": {"message": "y"}}"#, "y"),
            (r#"{"notification": {"id": 1}}"#, ""),
        ] {
            assert_eq!(message(body.as_bytes()), expected, "{body}");
        }
    }

    /// Mistral's 401 has the whole token in its body.
    #[test]
    fn a_message_with_a_token_is_not_shown() {
        assert_eq!(shown("no such host", "s3kr1t"), ": no such host");
        for message in ["bad s3kr1t", "token gAAAAABn", "", &"x".repeat(81)] {
            assert_eq!(shown(message, "s3kr1t"), "", "{message}");
        }
    }

    proptest! {
        #[test]
        fn any_body_has_a_short_message_without_tags(body in any::<Vec<u8>>(), text in ".{0,400}") {
            message(&body);
            let body = serde_json::json!({ "message": text }).to_string();
            let said = message(body.as_bytes());
            prop_assert!(!said.contains('\n') && shown(&said, "").chars().count() <= LONGEST + 2);
        }
    }
}
