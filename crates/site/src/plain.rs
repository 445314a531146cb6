//! Invisible characters that change what a person reads: control characters, and those that hide in a line, end it or
//! reverse it; and names without any. Pure.

/// Whether a character is one of these. With them two names could seem the same.
pub fn is_hidden(c: char) -> bool {
    let is_odd = matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}'
        // Zero width, and the marks of direction.
        | '\u{200b}'..='\u{200f}'
        // Separators of lines and paragraphs, embeddings and overrides.
        | '\u{2028}'..='\u{202e}'
        // Joiners, invisible operators, isolates.
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        // Tags, which are invisible.
        | '\u{e0000}'..='\u{e007f}'
    );
    c.is_control() || is_odd
}

/// A foreign text with a blank in place of each of them: one line, which shows all its characters.
pub fn blanked(text: &str) -> impl Iterator<Item = char> {
    text.chars().map(|c| if is_hidden(c) { ' ' } else { c })
}

/// Whether a name from the configuration is 1 to 64 of `A-Z a-z 0-9 _ -`.
pub fn is_plain_name(text: &str) -> bool {
    let plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    plain && (1..=64).contains(&text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The broken variant checks control characters alone: U+2028 ends a line for many readers, U+202E reverses it.
    #[test]
    fn what_is_not_seen_is_found() {
        let odd = "\n\u{1b}\u{7f}\u{9b}\u{ad}\u{61c}\u{180e}\u{200b}\u{2028}\u{202e}\u{2066}\u{feff}\u{fff9}\u{e0041}";
        assert!(odd.chars().all(is_hidden));
        assert!(!odd.chars().all(char::is_control));
        assert!(!"compute1 Zürich 東京 👍 \"x\"".chars().any(is_hidden));
        assert_eq!(blanked("a\nb\u{202e}c").collect::<String>(), "a b c");
    }
}
