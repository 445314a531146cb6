//! The register in Pacemaker's attribute manager: private attributes under names that are no node's.
//!
//! Pacemaker erases what stands under a node's name when that node is cleaned up, within seconds of the fencing. Private,
//! so that a write starts no transition. It survives everything but the stop of all controllers.

use std::thread;
use std::time::{Duration, Instant};

use super::NAME;
use super::entries::Entries;
use super::entry::Entry;
use super::error::RegisterError;
use super::tools::{Tool, Tools};
use crate::xml;

/// `attrd_updater`: nobody ever wrote an attribute of that name; a later Pacemaker says "no such".
const ABSENT: [i32; 2] = [78, 105];
/// Between two looks for what was written: attrd acknowledges before the cluster has it.
const PAUSE: Duration = Duration::from_millis(5);

pub(super) fn publish(tools: &Tools, entry: &Entry, deadline: Instant) -> Result<(), RegisterError> {
    let (key, value) = (entry.key().to_string(), entry.value());
    write(tools, &key, &value, deadline)?;
    confirm(tools, &key, &value, deadline)
}

fn write(tools: &Tools, key: &str, value: &str, deadline: Instant) -> Result<(), RegisterError> {
    let update = ["--private".to_owned(), format!("--node={key}"), format!("--update={value}")];
    tools.run(Tool::AttrdUpdater, &arguments(&update), &[], deadline).map(drop)
}

/// Only what can be read again counts as written. Where time ends, what was seen last says why it does not count.
fn confirm(tools: &Tools, key: &str, value: &str, deadline: Instant) -> Result<(), RegisterError> {
    let mut missing = None;
    loop {
        match (look(tools, key, deadline), missing.take()) {
            (Ok(found), _) if found == value => return Ok(()),
            (Ok(found), _) if found.is_empty() => {
                missing = Some(RegisterError::NotReadBack { key: key.to_owned() });
            }
            (Ok(_), _) => missing = Some(RegisterError::Other { key: key.to_owned() }),
            (Err(e), earlier) => return Err(earlier.unwrap_or(e)),
        }
        thread::sleep(PAUSE);
    }
}

/// The value of one key; empty where there is none.
fn look(tools: &Tools, key: &str, deadline: Instant) -> Result<String, RegisterError> {
    let query = ["--query".to_owned(), format!("--node={key}"), "--output-as=xml".to_owned()];
    let found = values(&ask(tools, &query, deadline)?)?;
    Ok(found.into_iter().find(|(host, _)| host == key).map(|(_, value)| value).unwrap_or_default())
}

pub(super) fn read(tools: &Tools, deadline: Instant) -> Result<Entries, RegisterError> {
    let query = ["--query", "--all", "--output-as=xml"].map(str::to_owned);
    parse(&ask(tools, &query, deadline)?)
}

/// Reads `attrd_updater --query --all --output-as=xml`.
pub(super) fn parse(xml: &str) -> Result<Entries, RegisterError> {
    let mut entries = Entries::default();
    values(xml)?.iter().for_each(|(host, value)| entries.take(host, value));
    Ok(entries)
}

const NOTHING: &str = "<pacemaker-result/>";

fn ask(tools: &Tools, query: &[String], deadline: Instant) -> Result<String, RegisterError> {
    let answer = tools.run(Tool::AttrdUpdater, &arguments(query), &ABSENT, deadline)?;
    Ok(answer.unwrap_or_else(|_absent| NOTHING.to_owned()))
}

fn arguments(more: &[String]) -> Vec<String> {
    [&[format!("--name={NAME}")], more].concat()
}

fn values(xml: &str) -> Result<Vec<(String, String)>, RegisterError> {
    let all = xml::elements(xml, "attribute").map_err(|_| Tool::AttrdUpdater.unreadable())?;
    let own = all.into_iter().filter(|attribute| attribute.get("name") == NAME);
    Ok(own.map(|attribute| (attribute.own("host"), attribute.own("value"))).collect())
}
