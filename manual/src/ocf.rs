//! The OCF agent on its page: its own metadata.

use anyhow::Context as _;
use quick_xml::Reader;
use quick_xml::escape::unescape;
use quick_xml::events::Event;

use crate::roff::{Page, bold, prose};

/// The metadata as the agent prints it, from its script.
///
/// # Errors
/// The script has no such document.
pub(crate) fn metadata(script: &str) -> anyhow::Result<String> {
    let (_, rest) = script.split_once("cat <<END\n").context("the OCF agent has no metadata")?;
    let (document, _) = rest.split_once("\nEND\n").context("the metadata of the OCF agent has no end")?;
    let defaults = script.lines().filter_map(|line| line.strip_prefix("default_")?.split_once('='));
    Ok(defaults.fold(document.to_owned(), |document, (name, value)| {
        document.replace(&format!("${{default_{name}}}"), value)
    }))
}

/// The texts of the elements that stand below one another like this, from the root's children on.
///
/// # Errors
/// No XML.
pub(crate) fn text_of(xml: &str, path: &[&str]) -> anyhow::Result<Vec<String>> {
    let mut reader = Reader::from_str(xml);
    let (mut at, mut found) = (Vec::new(), Vec::new());
    loop {
        match reader.read_event()? {
            Event::Start(tag) => {
                at.push(tag.name().as_ref().to_owned());
                if at[1..] == *path {
                    found.push(String::new());
                }
            }
            Event::End(_) => drop(at.pop()),
            Event::Text(text) if at.get(1..).is_some_and(|at| at == path) => {
                if let Some(last) = found.last_mut() {
                    last.push_str(&text.xml10_content());
                }
            }
            Event::GeneralRef(name) if at.get(1..).is_some_and(|at| at == path) => {
                let text = format!("&{};", name.xml10_content());
                if let Some(last) = found.last_mut() {
                    last.push_str(&unescape(&text)?);
                }
            }
            Event::Eof => return Ok(found),
            _ => {}
        }
    }
}

/// What the elements of this name have as attributes, in the order of the document.
///
/// # Errors
/// No XML.
pub(crate) fn attributes_of(xml: &str, element: &str) -> anyhow::Result<Vec<Vec<(String, String)>>> {
    let mut reader = Reader::from_str(xml);
    let mut found = Vec::new();
    loop {
        match reader.read_event()? {
            Event::Start(tag) | Event::Empty(tag) if tag.name().as_ref() == element => {
                let mut of_one = Vec::new();
                for attribute in tag.attributes() {
                    let attribute = attribute?;
                    let name = attribute.key.as_ref().to_owned();
                    of_one.push((name, unescape(&attribute.value)?.into_owned()));
                }
                found.push(of_one);
            }
            Event::Eof => return Ok(found),
            _ => {}
        }
    }
}

/// What it is for.
///
/// # Errors
/// No such metadata.
pub(crate) fn description(xml: &str) -> anyhow::Result<String> {
    let long = text_of(xml, &["longdesc"])?;
    let mut page = Page::default();
    page.paragraph(&prose(long.first().context("the OCF agent has no description")?));
    Ok(page.into_text())
}

/// Its parameters.
///
/// # Errors
/// No such metadata.
pub(crate) fn parameters(xml: &str) -> anyhow::Result<String> {
    let names = attributes_of(xml, "parameter")?;
    let values = attributes_of(xml, "content")?;
    let abouts = text_of(xml, &["parameters", "parameter", "longdesc"])?;
    let mut page = Page::default();
    for ((parameter, content), about) in names.iter().zip(&values).zip(&abouts) {
        let default =
            value(content, "default").map_or_else(String::new, |default| format!(" = {}", prose(default)));
        let reload = match value(parameter, "reloadable") {
            Some("1") => " A change is taken up without a restart.",
            _ => "",
        };
        let name = bold(value(parameter, "name").context("a parameter without a name")?);
        page.item(&[format!("{name}{default}")], &[format!("{}{reload}", prose(about.trim()))]);
    }
    Ok(page.into_text())
}

/// Its actions with the least time that each should have.
///
/// # Errors
/// No such metadata.
pub(crate) fn actions(xml: &str) -> anyhow::Result<String> {
    let mut page = Page::default();
    for action in attributes_of(xml, "action")? {
        let name = value(&action, "name").context("an action without a name")?;
        let others = action.iter().filter(|(key, _)| key != "name" && key != "depth");
        let others: Vec<String> = others.map(|(key, value)| format!("{key} {}", prose(value))).collect();
        page.item(&[bold(name)], &[format!("Suggested: {}.", others.join(", "))]);
    }
    Ok(page.into_text())
}

fn value<'a>(attributes: &'a [(String, String)], name: &str) -> Option<&'a str> {
    attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}
