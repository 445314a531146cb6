//! A table as a digest, which shows whether two readings are equal. A table may hold secrets: the digest does not show them.

use std::fmt;

use sha2::{Digest as _, Sha256};
use site::Table;
use toml::de::DeValue;

/// The content of a table, merged from all files, without layout and comments.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Written([u8; 32]);

impl Written {
    /// The digest of a table without some of its keys. An absent table counts as an empty one.
    pub(super) fn of(table: Option<&Table<'_>>, without: &[&str]) -> Self {
        let mut digest = Sha256::new();
        if let Some(table) = table {
            add_table(&mut digest, table, without);
        }
        Self(digest.finalize().into())
    }
}

/// A digest of a short secret could be guessed.
impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Written")
    }
}

fn add_table(digest: &mut Sha256, table: &Table<'_>, without: &[&str]) {
    for (key, entry) in table.entries.iter().filter(|(key, _)| !without.contains(key)) {
        add_text(digest, b'k', key);
        // Of several files the last one counts.
        if let Some(value) = entry.values.last() {
            add_value(digest, value.value);
        }
        if let Some(below) = &entry.table {
            digest.update(b"{");
            add_table(digest, below, &[]);
            digest.update(b"}");
        }
    }
}

fn add_value(digest: &mut Sha256, value: &DeValue<'_>) {
    match value {
        DeValue::String(text) => add_text(digest, b's', text),
        DeValue::Integer(number) => {
            add_text(digest, b'i', &format!("{} {}", number.radix(), number.as_str()));
        }
        DeValue::Float(number) => add_text(digest, b'f', number.as_str()),
        DeValue::Boolean(is) => digest.update(if *is { b"y" } else { b"n" }),
        DeValue::Datetime(time) => add_text(digest, b'd', &time.to_string()),
        DeValue::Array(list) => {
            digest.update(b"[");
            list.iter().for_each(|item| add_value(digest, item.get_ref()));
            digest.update(b"]");
        }
        DeValue::Table(table) => {
            digest.update(b"{");
            for (key, value) in table {
                add_text(digest, b'k', key.get_ref());
                add_value(digest, value.get_ref());
            }
            digest.update(b"}");
        }
    }
}

/// With its length: no text can pass for two.
fn add_text(digest: &mut Sha256, what: u8, text: &str) {
    digest.update([what]);
    digest.update(text.len().to_be_bytes());
    digest.update(text);
}
