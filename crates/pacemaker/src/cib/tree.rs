//! A CIB as a tree of elements, for one who asks once and for more than what [`Cib`](super::Cib) keeps.

use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use super::CibError;
use crate::xml::Attributes;

/// No CIB is nested as deeply; who walks one does not run out of stack.
const DEEPEST: usize = 64;

/// An element with all that is in it, but for text: a CIB has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    /// What it is called.
    pub name: String,
    attributes: Vec<(String, String)>,
    /// What is in it, in the order of the document.
    pub children: Vec<Element>,
}

impl Element {
    /// Reads a whole CIB; this is then its outermost element.
    ///
    /// # Errors
    /// [`CibError`] when it is malformed, cut off, or something else.
    pub fn parse(xml: &str) -> Result<Self, CibError> {
        let root = Self::parse_any(xml)?;
        if root.name == "cib" {
            Ok(root)
        } else {
            Err(CibError::Incomplete { what: "its outermost element is not cib" })
        }
    }

    /// Reads a whole document, whatever its outermost element is: what Pacemaker's tools print.
    ///
    /// # Errors
    /// [`CibError`] when it is malformed or cut off.
    pub fn parse_any(xml: &str) -> Result<Self, CibError> {
        let mut reader = Reader::from_str(xml);
        let (mut open, mut whole) = (Vec::new(), None);
        loop {
            let event = reader.read_event();
            let at = reader.error_position();
            match event.map_err(|_| CibError::Syntax { at })? {
                Event::Start(_) if open.len() == DEEPEST => {
                    return Err(CibError::Incomplete { what: "it is nested too deeply" });
                }
                Event::Start(element) => open.push(Self::new(&element, at)?),
                Event::Empty(element) => close(Self::new(&element, at)?, &mut open, &mut whole),
                Event::End(_) => {
                    let ended = open.pop().ok_or(CibError::Syntax { at })?;
                    close(ended, &mut open, &mut whole);
                }
                Event::DocType(_) => {
                    return Err(CibError::Incomplete { what: "a DOCTYPE has no place in it" });
                }
                Event::Eof => break,
                _ => {}
            }
        }
        whole.filter(|_| open.is_empty()).ok_or(CibError::Incomplete { what: "it ends in the middle" })
    }

    fn new(element: &BytesStart<'_>, at: u64) -> Result<Self, CibError> {
        let attributes = Attributes::read(element).map_err(|_| CibError::Syntax { at })?;
        let name = element.name().as_ref().to_owned();
        Ok(Self { name, attributes: attributes.into_pairs(), children: Vec::new() })
    }

    /// What an attribute says.
    pub fn find(&self, attribute: &str) -> Option<&str> {
        self.attributes.iter().find(|(name, _)| name == attribute).map(|(_, value)| value.as_str())
    }

    /// The same, and nothing where there is no such attribute.
    pub fn get(&self, attribute: &str) -> &str {
        self.find(attribute).unwrap_or_default()
    }

    /// The elements of that name right in it.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// Everything that is reached by these names, one in the other.
    pub fn at<'a>(&'a self, path: &[&str]) -> Vec<&'a Element> {
        path.iter().fold(vec![self], |found, name| {
            found
                .into_iter()
                .flat_map(|one| one.children.iter().filter(|child| child.name == *name))
                .collect()
        })
    }

    /// The same without what is dropped, which is asked with the element around it, and with its attributes by their names.
    #[must_use]
    pub fn without(&self, is_dropped: &impl Fn(&Self, &Self) -> bool) -> Self {
        let left = self.children.iter().filter(|child| !is_dropped(self, child));
        let children = left.map(|child| child.without(is_dropped)).collect();
        let mut attributes = self.attributes.clone();
        attributes.sort();
        Self { name: self.name.clone(), attributes, children }
    }

    /// Itself and all that is in it, in the order of the document.
    pub fn walk(&self) -> Vec<&Element> {
        let mut found = vec![self];
        found.extend(self.children.iter().flat_map(Self::walk));
        found
    }
}

/// An element has ended: it is in the one that is open, or it is the outermost one.
fn close(ended: Element, open: &mut [Element], whole: &mut Option<Element>) {
    match open.last_mut() {
        Some(around) => around.children.push(ended),
        None => *whole = whole.take().or(Some(ended)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_read_in_the_order_of_the_document() {
        let xml = "<?xml version='1.0'?><cib a='1'><x><y v='&lt;'/><z/><y v='2'/></x><x><y v='3'/></x></cib>";
        let cib = Element::parse(xml).unwrap();
        let values: Vec<&str> = cib.at(&["x", "y"]).into_iter().map(|y| y.get("v")).collect();
        assert_eq!((values, cib.get("a"), cib.find("b")), (vec!["<", "2", "3"], "1", None));
        let names: Vec<&str> = cib.walk().into_iter().map(|e| e.name.as_str()).collect();
        assert_eq!(names, ["cib", "x", "y", "z", "y", "x", "y"]);
    }

    #[test]
    fn only_a_whole_cib_is_one() {
        let deep = format!("<cib>{}{}</cib>", "<a>".repeat(DEEPEST), "</a>".repeat(DEEPEST));
        for broken in
            ["", "x", "<cib>", "<cib><a></cib>", "<a/>", "<!DOCTYPE cib><cib/>", "<cib a=1/>", &deep]
        {
            assert!(Element::parse(broken).is_err(), "{broken:.40}");
        }
        assert!(Element::parse("<cib/>").is_ok());
    }
}
