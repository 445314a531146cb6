//! A service's own error message: four shapes of a body, none trusted. Pure.

use serde_json::Value;

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
pub(crate) fn shown(message: &str, secrets: &[&str]) -> String {
    let is_secret = |secret: &&str| !secret.is_empty() && message.contains(secret);
    // Fernet tokens begin so; a JWS has two dots, and no blank within this many characters.
    let like_a_token = |word: &str| word.contains("gAAAA") || word.len() > 80;
    if message.is_empty() || secrets.iter().any(is_secret) || message.split_whitespace().any(like_a_token) {
        return String::new();
    }
    format!(": {}", message.chars().take(LONGEST).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
        assert_eq!(shown("no such host", &["s3kr1t"]), ": no such host");
        for message in ["bad s3kr1t", "token gAAAAABn", "", &"x".repeat(81)] {
            assert_eq!(shown(message, &["s3kr1t", ""]), "", "{message}");
        }
    }

    proptest! {
        #[test]
        fn any_body_has_a_short_message_without_tags(body in any::<Vec<u8>>(), text in ".{0,400}") {
            message(&body);
            let body = serde_json::json!({ "message": text }).to_string();
            let said = message(body.as_bytes());
            prop_assert!(!said.contains('\n') && shown(&said, &[]).chars().count() <= LONGEST + 2);
        }
    }
}
