//! What a program says, without what only a terminal reads. Pure.

use std::iter::Peekable;
use std::str::Chars;

/// The text without escape sequences, such as colours, as ECMA-48 forms them.
pub fn without_escapes(text: &str) -> String {
    let mut left = text.chars().peekable();
    let mut plain = String::with_capacity(text.len());
    while let Some(c) = left.next() {
        match c {
            '\u{1b}' => match left.next_if(|next| "[]PX^_".contains(*next)) {
                Some('[') => skip_control(&mut left),
                Some(_) => skip_string(&mut left),
                None => skip_short(&mut left),
            },
            '\u{9b}' => skip_control(&mut left),
            other => plain.push(other),
        }
    }
    plain
}

/// Parameters, then one final character.
fn skip_control(left: &mut Peekable<Chars<'_>>) {
    while left.next_if(|c| (' '..='?').contains(c)).is_some() {}
    left.next_if(|c| ('@'..='~').contains(c));
}

/// A title or the like: up to the bell, or to another escape.
fn skip_string(left: &mut Peekable<Chars<'_>>) {
    while left.next_if(|c| !"\u{7}\u{1b}\n".contains(*c)).is_some() {}
    if left.next_if_eq(&'\u{1b}').is_some() {
        left.next_if_eq(&'\\');
    }
    left.next_if_eq(&'\u{7}');
}

/// Such as the choice of a set of characters.
fn skip_short(left: &mut Peekable<Chars<'_>>) {
    while left.next_if(|c| (' '..='/').contains(c)).is_some() {}
    left.next_if(|c| ('0'..='~').contains(c));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_text_is_left_and_nothing_of_a_terminal() {
        let cases = [
            ("\u{1b}[31mERROR\u{1b}[0m: no such agent", "ERROR: no such agent"),
            ("\u{1b}[1;38;5;196mx\u{1b}(B\u{1b}[m", "x"),
            ("\u{1b}]0;title\u{7}a\u{1b}]8;;http://x\u{1b}\\b", "ab"),
            ("\u{9b}31mred\n\u{1b}[Kend\u{1b}", "red\nend"),
            ("\u{1b}[31", ""),
            ("a [31m b", "a [31m b"),
        ];
        for (text, plain) in cases {
            assert_eq!(without_escapes(text), plain, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_escape_is_left(text in "(\u{1b}|\u{9b}|\\[|\\]|[ -~]|\u{7}|\n|\u{e4}){0,40}") {
            let is_left = without_escapes(&text).contains(['\u{1b}', '\u{9b}']);
            prop_assert!(!is_left);
            let without: String = text.chars().filter(|c| !"\u{1b}\u{9b}".contains(*c)).collect();
            prop_assert_eq!(without_escapes(&without), without);
        }
    }
}
