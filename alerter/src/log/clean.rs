//! What may stand in a line of the log: no character that ends it, hides a part of it, or writes it backwards.

use site::blanked;

/// A text with blanks in place of such characters, and at most so many characters.
pub fn clean(text: &str, most: usize) -> String {
    blanked(text).take(most).collect()
}

/// As much of a text as fits into so many bytes.
pub fn fit(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}

#[cfg(test)]
mod tests {
    use site::is_hidden;

    use super::*;

    /// The broken variant blanks control characters alone: U+2028 ends a line for many readers, U+202E turns it round.
    #[test]
    fn what_ends_hides_or_turns_a_line_is_a_blank() {
        let odd = "a\nb\r\tc\x1b[31m\x7f\u{85}\u{2028}\u{202e}\u{2066}\u{200b}\u{feff}\u{e0041}z";
        let text = clean(odd, 100);
        assert!(!text.chars().any(is_hidden) && text.chars().count() == odd.chars().count(), "{text:?}");
        assert_eq!(clean("größer, 東京, 👍", 100), "größer, 東京, 👍");
        assert_eq!(clean("abc", 2), "ab");
        assert_eq!(fit("aé", 2), "a");
    }
}
