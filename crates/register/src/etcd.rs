//! The register in etcd: independent of the cluster, and with access rights of its own.
//!
//! Each entry is written by a transaction that succeeds only if its key is free. Success means that most members have it
//! on disk. Behind its value is its seal.

mod tool;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use marks::register::{Entries, Part, Stands, Trust};

use crate::backend::{At, Backend, Place, Traits};
use crate::error::Done;
use crate::pages::Line;
use crate::seal::SealKeys;

use tool::{Answer, place};
pub use tool::{Etcd, Login};

/// The most operations of a transaction by etcd's default, and the longest request, 1.5 MiB, in which a key occurs twice.
const LIMITS: (usize, usize) = (128, 1 << 20);
/// The separator before the seal: no value of an entry has it.
const SEPARATOR: char = '|';

/// etcd.
pub(crate) struct InEtcd;

impl Backend for InEtcd {
    fn read(&self, at: At<'_>, _: Place<'_>) -> Done<Vec<Line>> {
        Ok(sealed(at)?.into_iter().map(|(key, text)| (key, parts(&text).0.to_owned())).collect())
    }

    /// If a key is taken, another writer was there: its next reader decides whether it counts.
    fn write(&self, at: At<'_>, _: Place<'_>, lines: &[Line]) -> Done<bool> {
        let (prefix, (access, _)) = (&place(at.0)?.prefix, at);
        let (mut absent, mut puts) = (String::new(), String::new());
        for (key, value) in lines {
            let text = text_of((key, value), prefix, (access.part, &access.keys));
            absent += &format!("create(\"{prefix}{key}\") = \"0\"\n");
            puts += &format!("put \"{prefix}{key}\" \"{text}\"\n");
        }
        transaction(at, &format!("{absent}\n{puts}\n\n"))
    }

    fn delete(&self, at: At<'_>, keys: &[Line]) -> Done {
        let prefix = &place(at.0)?.prefix;
        let operations: String = keys.iter().map(|(key, _)| format!("del \"{prefix}{key}\"\n")).collect();
        transaction(at, &format!("\n{operations}\n\n")).map(drop)
    }

    fn limits(&self) -> (usize, usize) {
        LIMITS
    }

    fn traits(&self) -> Traits {
        Traits { is_sure: true, ..Traits::default() }
    }
}

/// All entries, with what their seals say.
pub(crate) fn entries(at: At<'_>) -> Done<Entries> {
    Ok(read(sealed(at)?, &place(at.0)?.prefix, &at.0.keys))
}

fn read(lines: Vec<Line>, prefix: &str, keys: &SealKeys) -> Entries {
    let trust = Trust { is_keyless: keys.is_empty(), ..Trust::default() };
    let mut entries = Entries::default();
    for (key, text) in lines {
        let (value, seal) = parts(&text);
        let by = Part::ALL.into_iter().find(|part| keys.opens(&place_of(*part, prefix, &key), value, seal));
        let mut read = Entries::default();
        read.take(&key, value);
        entries.unite_all(read, Stands::Apart(by), &trust);
    }
    entries
}

/// The value of an entry, with its seal if there is a key.
fn text_of((key, value): (&str, &str), prefix: &str, (part, keys): (Part, &SealKeys)) -> String {
    match keys.seal(&place_of(part, prefix, key), value) {
        Some(seal) => format!("{value}{SEPARATOR}{seal}"),
        None => value.to_owned(),
    }
}

/// A value and its seal.
fn parts(text: &str) -> (&str, &str) {
    text.split_once(SEPARATOR).unwrap_or((text, ""))
}

/// The seal of one entry is invalid in another cluster's directory, and an alerter's for an agent's.
fn place_of(part: Part, prefix: &str, key: &str) -> String {
    format!("{};{prefix}{key}", part.as_str())
}

/// Everything there, with its seals. Deeper keys under the same prefix belong to another cluster.
fn sealed(at: At<'_>) -> Done<Vec<Line>> {
    let prefix = &place(at.0)?.prefix;
    let answer = tool::ask(at, &["get", "--prefix", prefix], "")?;
    let own = |(key, value): Line| {
        let key = key.strip_prefix(prefix).filter(|key| !key.contains('/'))?;
        Some((key.to_owned(), value))
    };
    Ok(pairs(&answer).filter_map(own).collect())
}

/// The alphabet of keys and values needs no escapes there.
fn transaction(at: At<'_>, text: &str) -> Done<bool> {
    Ok(tool::ask(at, &["txn"], text)?.succeeded)
}

/// A value that is not text is not ours, and is kept separately in a lossy form.
fn pairs(answer: &Answer) -> impl Iterator<Item = Line> {
    let text = |coded: &str| {
        let bytes = STANDARD.decode(coded).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    answer.kvs.iter().map(move |pair| (text(&pair.key), text(&pair.value)))
}

#[cfg(test)]
mod tests;
