//! One event as it is logged: a sentence and its fields, clean and bounded, whatever came from outside.

use std::fmt::{self, Write as _};

use tracing::field::{Field, Visit};
use tracing::{Event, Level};

use super::clean::{clean, fit};

/// Longest line in characters: a host name or an answer from outside must not fill the log.
pub const LINE: usize = 1024;
/// The same in bytes: a pipe takes so much at once, or nothing.
pub const BYTES: usize = 3900;
/// Longest value of a field, in characters.
const VALUE: usize = 128;
/// What all fields together may take of a line, in characters: a mark's id comes first and always fits.
const FIELDS: usize = 512;
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
    /// Its source file.
    pub file: &'static str,
    /// The line there.
    pub line: u32,
    /// How many lines like it were folded into it.
    pub more: u64,
}

impl Record {
    /// Reads an event.
    pub fn of(event: &Event<'_>) -> Self {
        let meta = event.metadata();
        let mut record = Self::new(*meta.level(), meta.file().unwrap_or("?"), meta.line().unwrap_or(0));
        event.record(&mut record);
        record.fields.sort_by_key(|(name, _)| place(name));
        record
    }

    pub(crate) fn new(level: Level, file: &'static str, line: u32) -> Self {
        Self { level, message: String::new(), fields: Vec::new(), file, line, more: 0 }
    }

    /// A field's value.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// The whole line: the sentence, then ` name=value` of every field. A sentence that is too long is cut, and no field.
    pub fn text(&self) -> String {
        let fields = self.all_fields();
        let room = LINE - fields.chars().count();
        let message: String = self.message.chars().take(room).collect();
        fit(&message, BYTES - fields.len()).to_owned() + &fields
    }

    fn all_fields(&self) -> String {
        let mut all = String::new();
        let mut room = FIELDS;
        for (name, value) in &self.fields {
            let field = format!(" {name}={}", quoted(value));
            room = room.saturating_sub(field.chars().count());
            if room > 0 {
                all += &field;
            }
        }
        all
    }

    fn put(&mut self, name: &'static str, value: &dyn fmt::Display) {
        let mut text = Bounded { text: String::new(), room: if name == "message" { LINE } else { VALUE } };
        let _cut = write!(text, "{value}");
        match name {
            "message" => self.message = text.text,
            name => self.fields.push((name, text.text)),
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

/// Takes so many clean characters and no more, however long the text is.
struct Bounded {
    text: String,
    room: usize,
}

impl fmt::Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let part = clean(part, self.room);
        self.room -= part.chars().count();
        self.text += &part;
        if self.room == 0 { Err(fmt::Error) } else { Ok(()) }
    }
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
        let mut record = Record::new(Level::WARN, "x.rs", 1);
        record.put("message", &message);
        fields.iter().for_each(|(name, value)| record.put(name, value));
        record.fields.sort_by_key(|(name, _)| place(name));
        record
    }

    #[test]
    fn a_line_is_a_sentence_and_its_fields() {
        let record = record("a\nb\x1b[31m", &[("cause", "x y=\"z\""), ("mark", "1"), ("empty", "")]);
        assert_eq!(record.text(), "a b [31m mark=1 cause=\"x y=\\\"z\\\"\" empty=\"\"");
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
            assert!(text.chars().count() <= LINE && text.len() <= BYTES, "{}", text.len());
            assert!(text.contains(&format!(" mark={mark}")), "{text:?}");
        }
    }
}
