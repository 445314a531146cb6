//! XML of Pacemaker's tools, read into names and attributes.

use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

/// Not well-formed, or cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// An element's attributes, with entities resolved.
pub(crate) struct Attributes(Vec<(String, String)>);

impl Attributes {
    pub(crate) fn read(element: &BytesStart<'_>) -> Result<Self, Malformed> {
        let mut all = Vec::new();
        for attribute in element.attributes() {
            let attribute = attribute.map_err(|_| Malformed)?;
            let value = attribute.normalized_value(XmlVersion::Explicit1_0).map_err(|_| Malformed)?;
            all.push((attribute.key.as_ref().to_owned(), value.into_owned()));
        }
        Ok(Self(all))
    }

    pub(crate) fn find(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn get(&self, name: &str) -> &str {
        self.find(name).unwrap_or_default()
    }

    pub(crate) fn into_pairs(self) -> Vec<(String, String)> {
        self.0
    }

    pub(crate) fn own(&self, name: &str) -> String {
        self.get(name).to_owned()
    }
}

/// The attributes of every element of that name, in order; the document must be whole.
pub(crate) fn elements(xml: &str, name: &str) -> Result<Vec<Attributes>, Malformed> {
    let mut reader = Reader::from_str(xml);
    let (mut found, mut open, mut any) = (Vec::new(), 0_usize, false);
    loop {
        match reader.read_event().map_err(|_| Malformed)? {
            Event::Start(element) => {
                take(&element, name, &mut found)?;
                (open, any) = (open + 1, true);
            }
            Event::Empty(element) => {
                take(&element, name, &mut found)?;
                any = true;
            }
            Event::End(_) => open = open.saturating_sub(1),
            Event::DocType(_) => return Err(Malformed),
            Event::Eof => return if any && open == 0 { Ok(found) } else { Err(Malformed) },
            _ => {}
        }
    }
}

fn take(element: &BytesStart<'_>, name: &str, found: &mut Vec<Attributes>) -> Result<(), Malformed> {
    if element.name().as_ref() == name {
        found.push(Attributes::read(element)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_document_counts() {
        let values = |xml| Some(elements(xml, "a").ok()?.iter().map(|a| a.own("v")).collect::<Vec<_>>());
        assert_eq!(values("<x><a v='1'/><b v='2'/><a v='&lt;'></a></x>"), Some(vec!["1".into(), "<".into()]));
        for broken in ["", "text", "<x><a v='1'/>", "<x><a v=1/></x>", "<!DOCTYPE x><x/>", "<x></y>"] {
            assert_eq!(values(broken), None, "{broken}");
        }
    }
}
