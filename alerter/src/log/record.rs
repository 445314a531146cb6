//! One event as it is logged: a sentence and its fields, clean and bounded, whatever came from outside.

use std::fmt::{self, Write as _};

use tracing::field::{Field, Visit};
use tracing::{Event, Level};

use site::blanked;

/// Longest line in bytes: a pipe takes so much at once, or nothing.
pub const LINE: usize = 3900;
/// Longest sentence in bytes: the mark's id behind it fits in any case.
const SENTENCE: usize = 2048;
/// Longest value of a field in bytes.
const VALUE: usize = 512;
/// What stands first in a line, in this order.
const FIRST: [&str; 4] = ["mark", "host", "route", "kind"];

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its level.
    pub level: Level,
    /// The sentence.
    pub message: String,
    /// Names and values; first those that lines are searched by.
    pub fields: Vec<(&'static str, String)>,
}

impl Record {
    /// Reads an event.
    pub fn of(event: &Event<'_>) -> Self {
        let mut record = Self::new(*event.metadata().level());
        event.record(&mut record);
        record.fields.sort_by_key(|(name, _)| place(name));
        record
    }

    pub(crate) fn new(level: Level) -> Self {
        Self { level, message: String::new(), fields: Vec::new() }
    }

    /// The whole line: the sentence, then ` name=value` of every field.
    pub fn text(&self) -> String {
        let fields = self.fields.iter().map(|(name, value)| format!(" {name}={}", quoted(value)));
        fit(self.message.clone() + &fields.collect::<String>(), LINE)
    }

    fn put(&mut self, name: &'static str, value: &dyn fmt::Display) {
        let most = if name == "message" { SENTENCE } else { VALUE };
        let mut text = Bounded { text: String::new(), most };
        let _cut = write!(text, "{value}");
        let text = fit(text.text, most);
        match name {
            "message" => self.message = text,
            name => self.fields.push((name, text)),
        }
    }
}

impl Visit for Record {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field.name(), &format_args!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field.name(), &value);
    }
}

/// Takes no more text when it is full, however long the text is: no character in it ends the line, hides a part of it, or writes it backwards.
struct Bounded {
    text: String,
    most: usize,
}

impl fmt::Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        self.text.extend(blanked(part).take(self.most));
        if self.text.len() > self.most { Err(fmt::Error) } else { Ok(()) }
    }
}

/// As much of a text as fits into so many bytes.
fn fit(mut text: String, bytes: usize) -> String {
    let end = (0..=bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.truncate(end.unwrap_or_default());
    text
}

fn place(name: &str) -> usize {
    FIRST.iter().position(|first| *first == name).unwrap_or(FIRST.len())
}

/// In quotation marks where its end would not be clear.
fn quoted(value: &str) -> String {
    let is_plain = |c: char| !c.is_whitespace() && c != '"' && c != '=';
    if !value.is_empty() && value.chars().all(is_plain) {
        return value.to_owned();
    }
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, proptest};
    use site::is_hidden;

    use super::*;

    fn record(message: &str, fields: &[(&'static str, &str)]) -> Record {
        let mut record = Record::new(Level::WARN);
        record.put("message", &message);
        fields.iter().for_each(|(name, value)| record.put(name, value));
        record.fields.sort_by_key(|(name, _)| place(name));
        record
    }

    /// The broken variant blanks control characters alone: U+2028 ends a line for many readers, U+202E turns it round.
    #[test]
    fn what_ends_hides_or_turns_a_line_is_a_blank() {
        let odd = "a\nb\r\tc\x1b[31m\x7f\u{85}\u{2028}\u{202e}\u{2066}\u{200b}\u{feff}\u{e0041}z";
        let text = record(odd, &[]).text();
        assert!(!text.chars().any(is_hidden) && text.chars().count() == odd.chars().count(), "{text:?}");
        assert_eq!(record("größer, 東京, 👍", &[]).text(), "größer, 東京, 👍");
        assert_eq!(fit("aé".to_owned(), 2), "a");
    }

    proptest! {
        /// Whatever comes from outside, it is one line that can be read, with a bound, and with its mark in it. The
        /// broken variant that cuts the whole line at its end loses the mark behind a long sentence.
        #[test]
        fn no_text_from_outside_breaks_a_line(
            message in prop::collection::vec(any::<char>(), 0..3000),
            value in prop::collection::vec(any::<char>(), 0..3000),
            name in "[a-z]{1,8}",
        ) {
            let (message, value) = (String::from_iter(message), String::from_iter(value));
            let name: &'static str = ["cause", "error", "detail", "path"][name.len() % 4];
            let mark = "0199a3c4-0000-7000-8000-00000000000a";
            let fields = [(name, value.as_str()), ("mark", mark), ("route", value.as_str()), ("more", value.as_str())];
            let text = record(&message, &fields).text();
            assert!(!text.chars().any(is_hidden), "{text:?}");
            assert!(text.len() <= LINE, "{}", text.len());
            assert!(text.contains(&format!(" mark={mark}")), "{text:?}");
        }
    }
}
