//! The register in the CIB: for each entry a `cluster_property_set` of its own, on every controller's disk.
//!
//! An entry is inserted if it is absent, and never changed. Without quorum nothing is written: when a partition ends, the
//! configuration with more changes replaces the other, quorate or not.

use std::time::Instant;

use super::NAME;
use super::entries::Entries;
use super::entry::Entry;
use super::error::RegisterError;
use super::tools::{Tool, Tools};
use crate::xml::{self, Attributes};

/// `cibadmin`: an element of that id is there.
const EXISTS: i32 = 108;
/// `cibadmin`: nothing there.
const ABSENT: i32 = 105;

pub(super) fn publish(tools: &Tools, entry: &Entry, deadline: Instant) -> Result<(), RegisterError> {
    let (key, value) = (entry.key().to_string(), entry.value());
    need_quorum(tools, deadline)?;
    insert(tools, &key, &value, deadline)?;
    confirm(tools, key, &value, deadline)
}

fn need_quorum(tools: &Tools, deadline: Instant) -> Result<(), RegisterError> {
    if tools.quorum(deadline)? { Ok(()) } else { Err(RegisterError::NoQuorum) }
}

/// The alphabet of keys and values needs no escapes in XML.
fn insert(tools: &Tools, key: &str, value: &str, deadline: Instant) -> Result<(), RegisterError> {
    let id = format!("{NAME}.{key}");
    let set = format!(
        r#"<cluster_property_set id="{id}"><nvpair id="{id}.value" name="{id}" value="{value}"/></cluster_property_set>"#
    );
    let arguments = ["--create", "--scope=crm_config", "--xml-text", &set].map(str::to_owned);
    tools.run(Tool::Cibadmin, &arguments, &[EXISTS], deadline).map(drop)
}

/// Only what can be read again counts as written.
fn confirm(tools: &Tools, key: String, value: &str, deadline: Instant) -> Result<(), RegisterError> {
    let only = format!("--xpath=//cluster_property_set[@id='{NAME}.{key}']");
    let found = values(&ask(tools, only, deadline)?)?.into_iter().find(|(found, _)| *found == key);
    match found {
        Some((_, found)) if found == value => Ok(()),
        Some(_) => Err(RegisterError::Other { key }),
        None => Err(RegisterError::NotReadBack { key }),
    }
}

pub(super) fn read(tools: &Tools, deadline: Instant) -> Result<Entries, RegisterError> {
    parse(&ask(tools, "--scope=crm_config".to_owned(), deadline)?)
}

/// Reads `cibadmin --query --scope=crm_config`, or a whole CIB.
pub(super) fn parse(xml: &str) -> Result<Entries, RegisterError> {
    let mut entries = Entries::default();
    values(xml)?.iter().for_each(|(key, value)| entries.take(key, value));
    Ok(entries)
}

fn ask(tools: &Tools, what: String, deadline: Instant) -> Result<String, RegisterError> {
    let arguments = ["--query".to_owned(), "--local".to_owned(), what];
    let answer = tools.run(Tool::Cibadmin, &arguments, &[ABSENT], deadline)?;
    Ok(answer.unwrap_or_else(|_absent| "<crm_config/>".to_owned()))
}

fn values(xml: &str) -> Result<Vec<(String, String)>, RegisterError> {
    let pairs = xml::elements(xml, "nvpair").map_err(|_| Tool::Cibadmin.unreadable())?;
    Ok(pairs.iter().filter_map(own).collect())
}

fn own(pair: &Attributes) -> Option<(String, String)> {
    let key = pair.get("name").strip_prefix(NAME)?.strip_prefix('.')?;
    Some((key.to_owned(), pair.own("value")))
}
