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

#[cfg(test)]
mod tests {
    use super::super::read_texts;
    use super::*;

    fn written(texts: &[&str], without: &[&str]) -> Written {
        read_texts(texts, |root| Written::of(root.table(), without)).unwrap()
    }

    /// The broken variant compares the text: a comment would cut a connection.
    #[test]
    fn what_is_said_counts_and_not_how() {
        let said = written(&["a = 1\nb = [\"x\", {c = true}]\n[t]\nd = 1979-05-27\n"], &[]);
        assert_eq!(
            said,
            written(&["# why\n\nb = [ 'x', { c = true } ]\na = 1 # one\nt.d = 1979-05-27"], &[])
        );
        assert_eq!(said, written(&["a = 2\n[t]\nd = 1979-05-27\n", "b = [\"x\", {c = true}]\na = 1"], &[]));
        for other in [
            "a = 2\nb = [\"x\", {c = true}]\n[t]\nd = 1979-05-27\n",
            "a = 1\nb = [\"x\", {c = false}]\n[t]\nd = 1979-05-27\n",
            "a = 1\nb = [\"x\"]\n[t]\nd = 1979-05-27\n",
            "a = 1\nb = [\"x\", {c = true}]\n[t]\nd = 1979-05-28\n",
            "a = \"1\"\nb = [\"x\", {c = true}]\n[t]\nd = 1979-05-27\n",
        ] {
            assert_ne!(said, written(&[other], &[]), "{other}");
        }
        assert_ne!(written(&["a = [\"xy\"]"], &[]), written(&["a = [\"x\", \"y\"]"], &[]));
        assert_eq!(written(&["a = 1\nb = 2"], &["b"]), written(&["a = 1"], &["b"]));
        assert_eq!(written(&[""], &[]), Written::of(None, &[]));
        assert_eq!(format!("{said:?}"), "Written");
    }
}
