//! The register in etcd: independent of the cluster, and with access rights of its own.
//!
//! Each entry is written by a transaction that succeeds only if its key is free. Success means that most members have it
//! on disk.

use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use marks::register::{Entries, Entry, Held};

use super::error::{Done, RegisterError};
use super::etcd_seal;
use super::etcdctl::{self, Answer};
use super::keeper::{At, Keeper, Written, batches};
use super::published::Published;
use super::tools::Tools;

/// The most operations of a transaction by etcd's default, and the longest request, 1.5 MiB, in which a key occurs twice.
const LIMITS: (usize, usize) = (128, 1 << 20);

/// etcd.
pub(super) struct InEtcd;

type Values = Vec<(String, String)>;

impl Keeper for InEtcd {
    fn publish(&self, tools: &Tools, entry: &Entry, deadline: Instant) -> Done {
        if create(tools, &[entry], deadline)? {
            return Ok(());
        }
        let key = entry.key().to_string();
        let found = self.all(tools, deadline)?.into_iter().find(|(found, _)| *found == key);
        match entry.held(found.as_ref().map_or("", |(_, value)| value)) {
            Held::Counts => Ok(()),
            Held::Other => Err(RegisterError::Other { key }),
            Held::Absent => Err(RegisterError::NotReadBack { key }),
        }
    }

    fn insert_all(&self, (tools, deadline): At<'_>, entries: &[&Entry]) -> Done<bool> {
        for batch in batches(entries, LIMITS, |entry| text_of(entry)) {
            if !create(tools, batch, deadline)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// If the key is taken, another writer was there: its next reader decides whether it counts.
    fn write(&self, tools: &Tools, entry: &Entry, deadline: Instant) -> Done {
        create(tools, &[entry], deadline).map(drop)
    }

    /// The entries of a failed transaction go one by one.
    fn write_all<'a>(&self, at: At<'_>, missing: Vec<&'a Entry>, published: &mut Published) -> Written<'a> {
        let (tools, deadline) = at;
        for batch in batches(&missing, LIMITS, |entry| text_of(entry)) {
            if !create(tools, batch, deadline)? {
                published.write(batch.iter().copied(), |entry| self.write(tools, entry, deadline))?;
            }
        }
        Ok(missing)
    }

    fn delete(&self, tools: &Tools, keys: &[String], deadline: Instant) -> Done {
        let prefix = &etcdctl::place(tools)?.prefix;
        for batch in batches(keys, LIMITS, String::len) {
            let operations: String = batch.iter().map(|key| format!("del \"{prefix}{key}\"\n")).collect();
            transaction(tools, &format!("\n{operations}\n\n"), deadline)?;
        }
        Ok(())
    }

    fn all(&self, tools: &Tools, deadline: Instant) -> Done<Values> {
        let own = |(key, value): (String, String)| (key, etcd_seal::parts(&value).0.to_owned());
        Ok(sealed(tools, deadline)?.into_iter().map(own).collect())
    }

    fn entries(&self, tools: &Tools, deadline: Instant) -> Done<Entries> {
        let prefix = &etcdctl::place(tools)?.prefix;
        Ok(etcd_seal::read(sealed(tools, deadline)?, prefix, &tools.keys))
    }

    /// Reads the output of `etcdctl --write-out=json get --prefix PREFIX`, for any prefix.
    fn parse(&self, printed: &str) -> Done<Values> {
        let answer: Answer = etcdctl::parse(printed.as_bytes())?;
        let last = |key: String| key.rsplit('/').next().map(str::to_owned).unwrap_or_default();
        Ok(pairs(&answer).map(|(key, value)| (last(key), etcd_seal::parts(&value).0.to_owned())).collect())
    }

    fn is_late(&self) -> bool {
        false
    }
}

/// Everything there, with its seals. Deeper keys under the same prefix belong to another cluster.
fn sealed(tools: &Tools, deadline: Instant) -> Done<Values> {
    let prefix = &etcdctl::place(tools)?.prefix;
    let answer = etcdctl::ask(tools, &["get", "--prefix", prefix], "", deadline)?;
    let own = |(key, value): (String, String)| {
        let key = key.strip_prefix(prefix).filter(|key| !key.contains('/'))?;
        Some((key.to_owned(), value))
    };
    Ok(pairs(&answer).filter_map(own).collect())
}

/// Writes all of these, or none if one of their keys is taken; returns whether it did.
fn create(tools: &Tools, entries: &[&Entry], deadline: Instant) -> Done<bool> {
    let prefix = &etcdctl::place(tools)?.prefix;
    let (mut absent, mut puts) = (String::new(), String::new());
    for entry in entries {
        let (key, value) = (entry.key(), etcd_seal::write(entry, prefix, (tools.part, &tools.keys)));
        absent += &format!("create(\"{prefix}{key}\") = \"0\"\n");
        puts += &format!("put \"{prefix}{key}\" \"{value}\"\n");
    }
    transaction(tools, &format!("{absent}\n{puts}\n\n"), deadline)
}

/// The alphabet of keys and values needs no escapes there.
fn transaction(tools: &Tools, text: &str, deadline: Instant) -> Done<bool> {
    Ok(etcdctl::ask(tools, &["txn"], text, deadline)?.succeeded)
}

/// A value that is not text is not ours, and is kept separately in a lossy form.
fn pairs(answer: &Answer) -> impl Iterator<Item = (String, String)> {
    let text = |coded: &str| {
        let bytes = STANDARD.decode(coded).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    answer.kvs.iter().map(move |pair| (text(&pair.key), text(&pair.value)))
}

/// The size that an entry adds to a transaction, beside the prefix.
fn text_of(entry: &Entry) -> usize {
    2 * entry.key().to_string().len() + entry.value().len() + etcd_seal::LENGTH
}
