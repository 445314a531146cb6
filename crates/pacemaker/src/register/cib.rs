//! The register in the CIB: a `cluster_property_set` for each entry, on every controller's disk.
//!
//! An entry is inserted if it is absent, and never changed. Without quorum nothing is written: when a partition ends, the
//! configuration with more changes replaces the other, quorate or not.

use std::collections::BTreeMap;
use std::time::Instant;

use super::error::{Done, RegisterError};
use super::keeper::{At, Keeper, Shelf, Texts, Written, batches};
use super::published::Published;
use super::tools::{Tool, Tools};
use super::{NAME, PAGES};
use crate::cib::releases::NOTHING_FOUND;
use crate::xml::{self, Element};
use marks::register::pages::Writer;
use marks::register::{Entry, Held};

/// `cibadmin`: an element with that id exists.
const EXISTS: i32 = 108;

/// The most entries for one call of `cibadmin`, since libxml2 recurses once for every `or` of an expression; and the most
/// text, since the kernel rejects an argument of 128 KiB.
const LIMITS: (usize, usize) = (200, 60 << 10);

/// Where the entries are.
const SETS: &str = "/cib/configuration/crm_config/cluster_property_set";

/// The CIB.
pub(super) struct InCib;

impl Keeper for InCib {
    fn publish(&self, tools: &Tools, entry: &Entry, deadline: Instant) -> Done {
        need_quorum(tools, deadline)?;
        insert(tools, &set_of(entry), deadline)?;
        confirm(tools, entry, deadline)
    }

    /// Inserts entries with as few changes of the configuration as possible. Returns whether that was all; otherwise some
    /// may be there now.
    fn insert_all(&self, (tools, deadline): At<'_>, entries: &[&Entry]) -> Done<bool> {
        need_quorum(tools, deadline)?;
        let sets: Vec<(&Entry, String)> = entries.iter().map(|entry| (*entry, set_of(entry))).collect();
        for batch in batches(&sets, LIMITS, |(_, set)| set.len()) {
            if !at_once(tools, batch, deadline)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn write(&self, tools: &Tools, entry: &Entry, deadline: Instant) -> Done {
        insert(tools, &set_of(entry), deadline)
    }

    /// Inserts entries that are known to be absent, with as few changes of the configuration as possible; returns those
    /// that may be there now. Only after [`Keeper::insert_all`], which checks quorum.
    ///
    /// A change is done completely or not at all. If it is rejected, another writer was quicker, or one entry is at
    /// fault: then the entries go one by one.
    fn write_all<'a>(&self, at: At<'_>, missing: Vec<&'a Entry>, published: &mut Published) -> Written<'a> {
        let (tools, deadline) = at;
        let sets: Vec<(&Entry, String)> = missing.into_iter().map(|entry| (entry, set_of(entry))).collect();
        let mut written = Vec::new();
        for batch in batches(&sets, LIMITS, |(_, set)| set.len()) {
            if at_once(tools, batch, deadline)? {
                written.extend(batch.iter().map(|(entry, _)| *entry));
                continue;
            }
            let one = |entry: &Entry| self.write(tools, entry, deadline);
            written.extend(published.write(batch.iter().map(|(entry, _)| *entry), one)?);
        }
        Ok(written)
    }

    /// Deletes entries, with as few changes of the configuration as possible. A missing one is no error.
    fn delete(&self, tools: &Tools, keys: &[String], deadline: Instant) -> Done {
        need_quorum(tools, deadline)?;
        let terms: Vec<String> = keys.iter().map(|key| format!("@id='{NAME}.{key}'")).collect();
        for batch in batches(&terms, LIMITS, |term| term.len() + OR.len()) {
            let which = format!("--xpath=//crm_config/cluster_property_set[{}]", batch.join(OR));
            let arguments = ["--delete-all".to_owned(), "--force".to_owned(), which];
            tools.run(Tool::Cibadmin, &arguments, &[], deadline).map(drop)?;
        }
        Ok(())
    }

    fn all(&self, tools: &Tools, deadline: Instant) -> Done<Vec<(String, String)>> {
        values(&all_of_it(tools, deadline)?)
    }

    /// Reads a CIB, or a part of it.
    fn parse(&self, printed: &str) -> Done<Vec<(String, String)>> {
        values(printed)
    }

    fn is_late(&self) -> bool {
        false
    }
}

impl Shelf for InCib {
    fn texts(&self, tools: &Tools, number: u16, deadline: Instant) -> Done<Texts> {
        let only = format!("{SETS}/nvpair[starts-with(@name,'{PAGES}.{number}.')]");
        Ok(texts_in(&ask(tools, &only, deadline)?)?.remove(&number).unwrap_or_default())
    }

    /// An element that `--modify --allow-create` makes is in memory alone until something else changes: 2.1.5 neither
    /// counts it as a change of the configuration nor writes it to disk.
    fn put(&self, tools: &Tools, place: (u16, &Writer), text: &str, deadline: Instant) -> Done {
        let (number, writer) = place;
        need_quorum(tools, deadline)?;
        let set = set(&format!("{PAGES}.{number}.{writer}"), text);
        let arguments = ["--modify", "--scope=crm_config", "--xml-text", &set].map(str::to_owned);
        match tools.run(Tool::Cibadmin, &arguments, &[NOTHING_FOUND], deadline)? {
            Ok(_) => Ok(()),
            Err(_absent) => insert(tools, &set, deadline),
        }
    }
}

/// Entries and pages, in one answer.
pub(super) fn all_of_it(tools: &Tools, deadline: Instant) -> Done<String> {
    ask(tools, &format!("{SETS}[starts-with(@id,'{NAME}')]"), deadline)
}

/// The pages by number in a CIB, or in a part of it.
pub(super) fn texts_in(xml: &str) -> Done<BTreeMap<u16, Texts>> {
    let pairs = xml::elements(xml, "nvpair").map_err(|_| Tool::Cibadmin.unreadable())?;
    let mut all: BTreeMap<u16, Texts> = BTreeMap::new();
    for pair in &pairs {
        let place =
            pair.get("name").strip_prefix(PAGES).and_then(|place| place.strip_prefix('.')?.split_once('.'));
        if let Some((number, writer)) =
            place.and_then(|(number, writer)| Some((number.parse().ok()?, writer)))
        {
            all.entry(number).or_default().push((writer.to_owned(), pair.own("value")));
        }
    }
    Ok(all)
}

/// Whether all of them were inserted.
fn at_once(tools: &Tools, batch: &[(&Entry, String)], deadline: Instant) -> Done<bool> {
    let sets: String = batch.iter().map(|(_, set)| set.as_str()).collect();
    match insert_text(tools, &format!("<crm_config>{sets}</crm_config>"), deadline) {
        Ok(answer) => Ok(answer.is_ok()),
        Err(RegisterError::Tool { source, .. }) if source.code().is_some() => Ok(false),
        Err(e) => Err(e),
    }
}

const OR: &str = " or ";

fn need_quorum(tools: &Tools, deadline: Instant) -> Done {
    if tools.quorum(deadline)? { Ok(()) } else { Err(RegisterError::NoQuorum) }
}

fn insert(tools: &Tools, set: &str, deadline: Instant) -> Done {
    insert_text(tools, set, deadline).map(drop)
}

/// An inner `Err` means that an element with that id exists.
fn insert_text(tools: &Tools, xml: &str, deadline: Instant) -> Done<Result<String, i32>> {
    let arguments = ["--create", "--scope=crm_config", "--xml-text", xml].map(str::to_owned);
    tools.run(Tool::Cibadmin, &arguments, &[EXISTS], deadline)
}

fn set_of(entry: &Entry) -> String {
    set(&format!("{NAME}.{}", entry.key()), &entry.value())
}

/// The alphabet of keys and values needs no escapes in XML.
fn set(id: &str, value: &str) -> String {
    format!(
        r#"<cluster_property_set id="{id}"><nvpair id="{id}.value" name="{id}" value="{value}"/></cluster_property_set>"#
    )
}

/// A write counts only once it can be read back.
fn confirm(tools: &Tools, entry: &Entry, deadline: Instant) -> Done {
    let key = entry.key().to_string();
    let only = format!("{SETS}[@id='{NAME}.{key}']");
    let found = values(&ask(tools, &only, deadline)?)?.into_iter().find(|(found, _)| *found == key);
    match entry.held(found.as_ref().map_or("", |(_, value)| value)) {
        Held::Counts => Ok(()),
        Held::Other => Err(RegisterError::Other { key }),
        Held::Absent => Err(RegisterError::NotReadBack { key }),
    }
}

fn ask(tools: &Tools, path: &str, deadline: Instant) -> Done<String> {
    let answer = tools.parts(path, deadline)?;
    Ok(if answer.is_empty() { "<crm_config/>".to_owned() } else { answer })
}

fn values(xml: &str) -> Done<Vec<(String, String)>> {
    let pairs = xml::elements(xml, "nvpair").map_err(|_| Tool::Cibadmin.unreadable())?;
    Ok(pairs.iter().filter_map(own).collect())
}

fn own(pair: &Element) -> Option<(String, String)> {
    let key = pair.get("name").strip_prefix(NAME)?.strip_prefix('.')?;
    Some((key.to_owned(), pair.own("value")))
}
