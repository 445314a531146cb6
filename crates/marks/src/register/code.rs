//! Text in the alphabet that every register stores unchanged: `a-z 0-9 . : ; _ -`.
//!
//! attrd compares values without regard to case, changes control characters and refuses what is not ASCII; so everything
//! but small letters, digits, dot and dash is written as `_` and two hexadecimal digits for each byte.

use std::fmt::Write;

/// No host name, controller or domain is longer.
const FIELD_MAX: usize = 1024;

/// A text in the alphabet, without `:` and `;`, which separate.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-') {
            out.push(char::from(byte));
        } else {
            write!(out, "_{byte:02x}").expect("a String takes all that is written");
        }
    }
    out
}

/// The text of [`escape`]; `None` for anything that it would not have written, for control characters, and for a text
/// that is too long.
pub(super) fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (byte, length) = match first {
            '_' => (u8::from_str_radix(rest.get(1..3)?, 16).ok()?, 3),
            plain => (u8::try_from(plain).ok()?, 1),
        };
        bytes.push(byte);
        rest = rest.get(length..)?;
    }
    let plain = String::from_utf8(bytes).ok()?;
    let fits = plain.len() <= FIELD_MAX && !plain.chars().any(char::is_control);
    (fits && escape(&plain) == text).then_some(plain)
}

/// An optional text: nothing, or a colon and the text.
pub(super) fn escape_maybe(text: Option<&str>) -> String {
    text.map_or_else(String::new, |text| format!(":{}", escape(text)))
}

/// The outer `None` is an error, the inner one an absent text.
pub(super) fn unescape_maybe(text: &str) -> Option<Option<String>> {
    match text.strip_prefix(':') {
        Some(text) => unescape(text).map(Some),
        None => text.is_empty().then_some(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{ProptestConfig, prop_assert, prop_assert_eq, proptest};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn every_text_without_control_characters_comes_back(text in "\\PC{0,80}") {
            let escaped = escape(&text);
            prop_assert!(escaped.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' | b'_')));
            prop_assert_eq!(unescape(&escaped), Some(text));
        }

        #[test]
        fn whatever_is_read_is_what_would_have_been_written(text in ".{0,40}") {
            if let Some(plain) = unescape(&text) {
                prop_assert_eq!(escape(&plain), text);
            }
        }
    }

    #[test]
    fn what_nobody_wrote_is_not_read() {
        let long = "a".repeat(FIELD_MAX + 1);
        for bad in ["A", "_", "_4", "_zz", "_61", "_4G", "_+1", "_0a", "_1b", "_ff", "é", "_é", "a b", &long]
        {
            assert_eq!(unescape(bad), None, "{bad}");
        }
        assert_eq!(
            (unescape_maybe(""), unescape_maybe(":"), unescape_maybe("x")),
            (Some(None), Some(Some(String::new())), None)
        );
    }
}
