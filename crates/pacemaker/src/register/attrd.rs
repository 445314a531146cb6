//! The register in Pacemaker's attribute manager: private attributes under names that belong to no node.
//!
//! Pacemaker erases attributes under a node's name when that node is cleaned up, within seconds of the fencing. They are
//! private, so that a write starts no transition. They survive everything but the stop of all controllers.

use std::thread;
use std::time::{Duration, Instant};

use super::error::{Done, RegisterError};
use super::keeper::{Keeper, Shelf, Texts};
use super::tools::{Tool, Tools};
use super::{NAME, PAGES};
use crate::cib::releases::NO_SUCH_OPTION;
use crate::xml;
use marks::register::pages::Writer;
use marks::register::{Entry, Held};

/// `attrd_updater`: no attribute of that name was ever written; a later Pacemaker says "no such".
const ABSENT: [i32; 2] = [78, 105];
/// The shortest and the longest pause between two reads for a written value.
const PAUSES: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(100)];

/// Pacemaker's attribute manager.
pub(super) struct Attrd;

impl Keeper for Attrd {
    /// A write replaces the present value, so the value is read first. What another controller writes in between is lost;
    /// ids are unique to their writer, and of two entries on one mark either will do. A fencing is not read first: its id
    /// is new, and its host waits.
    fn publish(&self, tools: &Tools, entry: &Entry, deadline: Instant) -> Done {
        if !matches!(entry, Entry::Fencing(_)) {
            let key = entry.key().to_string();
            match entry.held(&value(tools, &key, deadline)?) {
                Held::Absent => {}
                Held::Counts => return Ok(()),
                Held::Other => return Err(RegisterError::Other { key }),
            }
        }
        self.write(tools, entry, deadline)?;
        confirm(tools, entry, deadline)
    }

    fn write(&self, tools: &Tools, entry: &Entry, deadline: Instant) -> Done {
        let (key, value) = (entry.key(), entry.value());
        let update = ["--private".to_owned(), format!("--node={key}"), format!("--update={value}")];
        tools.run(Tool::AttrdUpdater, &arguments(NAME, &update), &[], deadline).map(drop)
    }

    /// One by one, in order; after a failure the rest stays. The empty name stays in attrd as long as one controller
    /// runs, some hundred bytes each.
    fn delete(&self, tools: &Tools, keys: &[String], deadline: Instant) -> Done {
        for key in keys {
            let deletion = ["--private".to_owned(), format!("--node={key}"), "--delete".to_owned()];
            tools.run(Tool::AttrdUpdater, &arguments(NAME, &deletion), &[], deadline).map(drop)?;
        }
        Ok(())
    }

    fn all(&self, tools: &Tools, deadline: Instant) -> Done<Values> {
        ask(tools, NAME, &["--query", "--all"].map(str::to_owned), deadline)
    }

    /// Reads the output of `attrd_updater --query --all`, with `--output-as=xml` or without.
    fn parse(&self, printed: &str) -> Done<Values> {
        if printed.starts_with('<') { values(printed, NAME) } else { Ok(lines(printed, NAME)) }
    }

    fn is_late(&self) -> bool {
        true
    }
}

/// Waits before a written value is read again, which was first read at `begun`: attrd acknowledges before the cluster has it. While a
/// membership forms that takes seconds, in which each read would be one more program and Pacemaker's time.
pub(super) fn pause(begun: Instant) {
    thread::sleep((begun.elapsed() / 4).clamp(PAUSES[0], PAUSES[1]));
}

/// A write counts only once it can be read back. At the end of the time, the last value read says why it does not count.
fn confirm(tools: &Tools, entry: &Entry, deadline: Instant) -> Done {
    let (begun, mut missing) = (Instant::now(), None);
    loop {
        let key = entry.key().to_string();
        match (value(tools, &key, deadline).map(|found| entry.held(&found)), missing.take()) {
            (Ok(Held::Counts), _) => return Ok(()),
            (Ok(Held::Absent), _) => missing = Some(RegisterError::NotReadBack { key }),
            (Ok(Held::Other), _) => missing = Some(RegisterError::Other { key }),
            (Err(e), earlier) => return Err(earlier.unwrap_or(e)),
        }
        pause(begun);
    }
}

/// The value of one key; empty if there is none.
fn value(tools: &Tools, key: &str, deadline: Instant) -> Done<String> {
    let query = ["--query".to_owned(), format!("--node={key}")];
    let found = ask(tools, NAME, &query, deadline)?;
    Ok(found.into_iter().find(|(host, _)| host == key).map(|(_, value)| value).unwrap_or_default())
}

type Values = Vec<(String, String)>;

impl Shelf for Attrd {
    fn texts(&self, tools: &Tools, number: u16, deadline: Instant) -> Done<Texts> {
        ask(tools, &name_of(number), &["--query", "--all"].map(str::to_owned), deadline)
    }

    fn put(&self, tools: &Tools, place: (u16, &Writer), text: &str, deadline: Instant) -> Done {
        let (number, writer) = place;
        let update = ["--private".to_owned(), format!("--node={writer}"), format!("--update={text}")];
        tools.run(Tool::AttrdUpdater, &arguments(&name_of(number), &update), &[], deadline).map(drop)
    }
}

/// An answer has the pages of one number: attrd fails to answer a query whose answer is too long.
fn name_of(number: u16) -> String {
    format!("{PAGES}-{number}")
}

/// As XML; in lines from a Pacemaker without XML.
fn ask(tools: &Tools, name: &str, query: &[String], deadline: Instant) -> Done<Values> {
    let as_xml = arguments(name, &[query, &["--output-as=xml".to_owned()]].concat());
    let expected = [&ABSENT[..], &[NO_SUCH_OPTION]].concat();
    match tools.run(Tool::AttrdUpdater, &as_xml, &expected, deadline)? {
        Ok(xml) => values(&xml, name),
        Err(NO_SUCH_OPTION) => {
            let answer = tools.run(Tool::AttrdUpdater, &arguments(name, query), &ABSENT, deadline)?;
            Ok(answer.map_or_else(|_absent| Vec::new(), |text| lines(&text, name)))
        }
        Err(_absent) => Ok(Vec::new()),
    }
}

fn arguments(name: &str, more: &[String]) -> Vec<String> {
    [&[format!("--name={name}")], more].concat()
}

/// Reads lines `name="NAME" host="KEY" value="VALUE"`; any other line is not ours: our keys and values have no quotes.
fn lines(text: &str, name: &str) -> Values {
    let start = format!("name=\"{name}\" host=\"");
    let own = text
        .lines()
        .filter_map(|line| line.strip_prefix(&start)?.strip_suffix('"')?.split_once("\" value=\""));
    own.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn values(xml: &str, name: &str) -> Done<Values> {
    let all = xml::elements(xml, "attribute").map_err(|_| Tool::AttrdUpdater.unreadable())?;
    let own = all.into_iter().filter(|attribute| attribute.get("name") == name);
    Ok(own.map(|attribute| (attribute.own("host"), attribute.own("value"))).collect())
}
