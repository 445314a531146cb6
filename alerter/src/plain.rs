//! Characters that a reader does not see, and that change what is read: control characters and those that turn the direction of
//! writing. Pure.

/// Whether a character is one of these.
pub(crate) fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_is_found() {
        assert!(
            ['\n', '\u{1b}', '\u{7f}', '\u{9b}', '\u{202e}', '\u{2066}', '\u{feff}']
                .into_iter()
                .all(is_hidden)
        );
        assert!(!"compute1 Zürich 東京 \"x\"".chars().any(is_hidden));
    }
}
