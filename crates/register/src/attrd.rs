//! The register in Pacemaker's attribute manager: private attributes under names that belong to no node.
//!
//! Pacemaker erases attributes under a node's name when that node is cleaned up, within seconds of the fencing. They are
//! private, so that a write starts no transition. They survive everything but the stop of all controllers.
//!
//! What another controller writes between a read and a write is lost; ids are unique to their writer, and of two entries on
//! one mark either will do.

use pacemaker::cib::releases::NO_SUCH_OPTION;
use pacemaker::tools::Tool;
use pacemaker::xml;

use crate::backend::{At, Backend, Place, Traits};
use crate::error::Done;
use crate::pages::Line;
use crate::{NAME, PAGES};

/// `attrd_updater`: no attribute of that name was ever written; a later Pacemaker says "no such".
const ABSENT: [i32; 2] = [78, 105];

/// Pacemaker's attribute manager.
pub(crate) struct Attrd;

impl Backend for Attrd {
    /// As XML; in lines from a Pacemaker without XML.
    fn read(&self, at: At<'_>, place: Place<'_>) -> Done<Vec<Line>> {
        let (name, mut query) = (name_of(place), vec!["--query".to_owned()]);
        query.push(match place {
            Place::Only(key) => format!("--node={key}"),
            Place::Plain | Place::Pages(_) => "--all".to_owned(),
        });
        let as_xml = [&query[..], &["--output-as=xml".to_owned()]].concat();
        let expected = [&ABSENT[..], &[NO_SUCH_OPTION]].concat();
        match run(at, &name, &as_xml, &expected)? {
            Ok(xml) => values(&xml, &name),
            Err(NO_SUCH_OPTION) => {
                let answer = run(at, &name, &query, &ABSENT)?;
                Ok(answer.map_or_else(|_absent| Vec::new(), |text| lines(&text, &name)))
            }
            Err(_absent) => Ok(Vec::new()),
        }
    }

    fn write(&self, at: At<'_>, place: Place<'_>, lines: &[Line]) -> Done<bool> {
        for (key, value) in lines {
            let update = ["--private".to_owned(), format!("--node={key}"), format!("--update={value}")];
            run(at, &name_of(place), &update, &[]).map(drop)?;
        }
        Ok(true)
    }

    /// The empty name stays in attrd as long as one controller runs, some hundred bytes each.
    fn delete(&self, at: At<'_>, keys: &[Line]) -> Done {
        for (key, _) in keys {
            let deletion = ["--private".to_owned(), format!("--node={key}"), "--delete".to_owned()];
            run(at, NAME, &deletion, &[]).map(drop)?;
        }
        Ok(())
    }

    /// One by one, in order; after a failure the rest stays.
    fn limits(&self) -> (usize, usize) {
        (1, usize::MAX)
    }

    /// It acknowledges before the cluster has it.
    fn traits(&self) -> Traits {
        Traits { overwrites: true, is_late: true, has_pages: true, ..Traits::default() }
    }
}

/// An answer has the pages of one number: attrd fails to answer a query whose answer is too long.
fn name_of(place: Place<'_>) -> String {
    match place {
        Place::Pages(number) => format!("{PAGES}-{number}"),
        Place::Plain | Place::Only(_) => NAME.to_owned(),
    }
}

fn run(
    (access, deadline): At<'_>,
    name: &str,
    more: &[String],
    expected: &[i32],
) -> Done<Result<String, i32>> {
    let arguments = [&[format!("--name={name}")], more].concat();
    Ok(access.tools.run(Tool::AttrdUpdater, &arguments, expected, deadline)?)
}

/// Reads lines `name="NAME" host="KEY" value="VALUE"`; any other line is not ours: our keys and values have no quotes.
fn lines(text: &str, name: &str) -> Vec<Line> {
    let start = format!("name=\"{name}\" host=\"");
    let own = text
        .lines()
        .filter_map(|line| line.strip_prefix(&start)?.strip_suffix('"')?.split_once("\" value=\""));
    own.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

pub(crate) fn values(xml: &str, name: &str) -> Done<Vec<Line>> {
    let all = xml::elements(xml, "attribute").map_err(|_| Tool::AttrdUpdater.unreadable())?;
    let own = all.into_iter().filter(|attribute| attribute.get("name") == name);
    Ok(own.map(|attribute| (attribute.own("host"), attribute.own("value"))).collect())
}
