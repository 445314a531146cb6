//! The register in the CIB: a `cluster_property_set` for each entry, on every controller's disk.
//!
//! An entry is inserted if it is absent, and never changed. Without quorum nothing is written: when a partition ends, the
//! configuration with more changes replaces the other, quorate or not.

use std::collections::BTreeMap;

use pacemaker::cib::releases::NOTHING_FOUND;
use pacemaker::tools::Tool;
use pacemaker::xml;

use crate::backend::{At, Backend, Place, Traits};
use crate::error::{Done, RegisterError};
use crate::pages::Line;
use crate::{NAME, PAGES};

/// `cibadmin`: an element with that id exists.
const EXISTS: i32 = 108;

/// The most entries for one call of `cibadmin`, since libxml2 recurses once for every `or` of an expression; and the most
/// text, since the kernel rejects an argument of 128 KiB.
const LIMITS: (usize, usize) = (200, 60 << 10);

/// Where the entries are.
const SETS: &str = "/cib/configuration/crm_config/cluster_property_set";

/// The CIB.
pub(crate) struct InCib;

impl Backend for InCib {
    fn read(&self, at: At<'_>, place: Place<'_>) -> Done<Vec<Line>> {
        match place {
            Place::Plain => named(&all_of_it(at)?, NAME),
            Place::Only(key) => named(&ask(at, &format!("{SETS}[@id='{NAME}.{key}']"))?, NAME),
            Place::Pages(number) => {
                let only = format!("{SETS}/nvpair[starts-with(@name,'{PAGES}.{number}.')]");
                Ok(pages_in(&ask(at, &only)?)?.remove(&number).unwrap_or_default())
            }
        }
    }

    /// As one change of the configuration. An element that `--modify --allow-create` makes is in memory alone until something
    /// else changes: 2.1.5 neither counts it as a change nor writes it to disk.
    fn write(&self, at: At<'_>, place: Place<'_>, lines: &[Line]) -> Done<bool> {
        let id = |key: &str| match place {
            Place::Pages(number) => format!("{PAGES}.{number}.{key}"),
            Place::Plain | Place::Only(_) => format!("{NAME}.{key}"),
        };
        let sets: String = lines.iter().map(|(key, value)| set(&id(key), value)).collect();
        if matches!(place, Place::Pages(_)) && change(at, "--modify", &sets, NOTHING_FOUND)? {
            return Ok(true);
        }
        change(
            at,
            "--create",
            &if lines.len() > 1 { format!("<crm_config>{sets}</crm_config>") } else { sets },
            EXISTS,
        )
    }

    fn delete(&self, (access, deadline): At<'_>, keys: &[Line]) -> Done {
        let terms: Vec<String> = keys.iter().map(|(key, _)| format!("@id='{NAME}.{key}'")).collect();
        let which = format!("--xpath=//crm_config/cluster_property_set[{}]", terms.join(" or "));
        let arguments = ["--delete-all".to_owned(), "--force".to_owned(), which];
        Ok(access.tools.run(Tool::Cibadmin, &arguments, &[], deadline).map(drop)?)
    }

    fn permits(&self, (access, deadline): At<'_>) -> Done {
        if access.tools.quorum(deadline)? { Ok(()) } else { Err(RegisterError::NoQuorum) }
    }

    fn limits(&self) -> (usize, usize) {
        LIMITS
    }

    fn traits(&self) -> Traits {
        Traits { has_pages: true, ..Traits::default() }
    }
}

/// Entries and pages, in one answer.
pub(crate) fn all_of_it(at: At<'_>) -> Done<String> {
    ask(at, &format!("{SETS}[starts-with(@id,'{NAME}')]"))
}

/// The pages by number in a CIB, or in a part of it.
pub(crate) fn pages_in(xml: &str) -> Done<BTreeMap<u16, Vec<Line>>> {
    let mut all: BTreeMap<u16, Vec<Line>> = BTreeMap::new();
    for (place, text) in named(xml, PAGES)? {
        if let Some((number, writer)) = place.split_once('.')
            && let Ok(number) = number.parse()
        {
            all.entry(number).or_default().push((writer.to_owned(), text));
        }
    }
    Ok(all)
}

/// `false`: the tool ended with `expected`.
fn change((access, deadline): At<'_>, how: &str, xml: &str, expected: i32) -> Done<bool> {
    let arguments = [how, "--scope=crm_config", "--xml-text", xml].map(str::to_owned);
    Ok(access.tools.run(Tool::Cibadmin, &arguments, &[expected], deadline)?.is_ok())
}

/// The alphabet of keys and values needs no escapes in XML.
fn set(id: &str, value: &str) -> String {
    format!(
        r#"<cluster_property_set id="{id}"><nvpair id="{id}.value" name="{id}" value="{value}"/></cluster_property_set>"#
    )
}

fn ask((access, deadline): At<'_>, path: &str) -> Done<String> {
    let answer = access.tools.parts(path, deadline)?;
    Ok(if answer.is_empty() { "<crm_config/>".to_owned() } else { answer })
}

/// What stands in a CIB, or in a part of it, under names of that beginning and a dot.
pub(crate) fn named(xml: &str, beginning: &str) -> Done<Vec<Line>> {
    let pairs = xml::elements(xml, "nvpair").map_err(|_| Tool::Cibadmin.unreadable())?;
    let own = pairs.iter().filter_map(|pair| {
        let key = pair.get("name").strip_prefix(beginning)?.strip_prefix('.')?;
        Some((key.to_owned(), pair.own("value")))
    });
    Ok(own.collect())
}
