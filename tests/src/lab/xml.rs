//! The elements of a Pacemaker tool's XML output, flat and in order: enough for the questions a test asks.

use std::collections::BTreeMap;

use quick_xml::Reader;
use quick_xml::escape::unescape;
use quick_xml::events::attributes::Attribute;
use quick_xml::events::{BytesStart, Event};

#[derive(Debug, Clone)]
pub(super) struct Element {
    pub(super) name: String,
    pub(super) depth: usize,
    attributes: BTreeMap<String, String>,
}

impl Element {
    pub(super) fn get(&self, name: &str) -> &str {
        self.attributes.get(name).map(String::as_str).unwrap_or_default()
    }

    pub(super) fn is(&self, name: &str) -> bool {
        self.get(name) == "true"
    }
}

/// Reads as far as the text is XML: a tool that failed half-way shows what it had.
pub(super) fn elements(text: &str) -> Vec<Element> {
    let mut reader = Reader::from_str(text);
    let (mut found, mut depth) = (Vec::new(), 0);
    loop {
        match reader.read_event() {
            Ok(Event::Start(start)) => {
                found.push(element(&start, depth));
                depth += 1;
            }
            Ok(Event::Empty(start)) => found.push(element(&start, depth)),
            Ok(Event::End(_)) => depth -= 1,
            Ok(Event::Eof) | Err(_) => return found,
            Ok(_) => {}
        }
    }
}

fn element(start: &BytesStart<'_>, depth: usize) -> Element {
    let pair = |attribute: Attribute<'_>| {
        let value = unescape(&attribute.value).map_or_else(|_| attribute.value.to_string(), Into::into);
        (attribute.key.as_ref().to_owned(), value)
    };
    let attributes = start.attributes().flatten().map(pair).collect();
    Element { name: start.name().as_ref().to_owned(), depth, attributes }
}
