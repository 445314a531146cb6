//! XML of Pacemaker and its tools: one pass through a document, and a tree for callers that need all of it.
//!
//! Elements and their attributes alone: neither a CIB nor the tools' output for machines has text.

use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

/// No CIB is nested as deeply; walking a tree must not exhaust the stack.
const DEEPEST: usize = 64;

/// Why a text is no document. The message never shows the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum XmlError {
    /// Not well-formed.
    #[error("not well-formed XML (at byte {at})")]
    Syntax {
        /// Where the parser stopped, in bytes.
        at: u64,
    },
    /// Another document than expected, or cut off.
    #[error("not complete ({what})")]
    Incomplete {
        /// What is wrong.
        what: &'static str,
    },
}

impl XmlError {
    /// A stable machine word.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Syntax { .. } => "syntax",
            Self::Incomplete { .. } => "incomplete",
        }
    }
}

/// The beginning of an element; its attributes are read and checked only on request.
pub(crate) struct Tag<'x> {
    start: BytesStart<'x>,
    at: u64,
}

impl Tag<'_> {
    pub(crate) fn name(&self) -> &str {
        self.start.name().into_inner()
    }

    /// The element with its attributes, entities resolved, and no children yet.
    pub(crate) fn read(&self) -> Result<Element, XmlError> {
        let fault = || XmlError::Syntax { at: self.at };
        let mut attributes = Vec::new();
        for attribute in self.start.attributes() {
            let attribute = attribute.map_err(|_| fault())?;
            let value = attribute.normalized_value(XmlVersion::Explicit1_0).map_err(|_| fault())?;
            attributes.push((attribute.key.as_ref().to_owned(), value.into_owned()));
        }
        Ok(Element { name: self.name().to_owned(), attributes, children: Vec::new() })
    }
}

/// Goes through a whole document: `enter` gets each element with its open ancestors, the outermost first. Returns whether
/// there was any.
///
/// # Errors
/// [`XmlError`] if the document is malformed or cut off, or from `enter`.
pub(crate) fn each<'x>(
    xml: &'x str,
    mut enter: impl FnMut(&Tag<'x>, &[Tag<'x>]) -> Result<(), XmlError>,
) -> Result<bool, XmlError> {
    let mut reader = Reader::from_str(xml);
    reader.config_mut().expand_empty_elements = true;
    let (mut open, mut any) = (Vec::new(), false);
    loop {
        let event = reader.read_event();
        let at = reader.error_position();
        match event.map_err(|_| XmlError::Syntax { at })? {
            Event::Start(start) => {
                let tag = Tag { start, at };
                enter(&tag, &open)?;
                open.push(tag);
                any = true;
            }
            Event::End(_) => drop(open.pop()),
            Event::DocType(_) => return Err(XmlError::Incomplete { what: "it must not have a DOCTYPE" }),
            Event::Eof if open.is_empty() => return Ok(any),
            Event::Eof => return Err(ENDS),
            _ => {}
        }
    }
}

/// What a query found, as text, and how many elements that is: the one element, or those in an `xpath-query`.
///
/// # Errors
/// [`XmlError`]
pub(crate) fn inside(answer: &str) -> Result<(&str, usize), XmlError> {
    let (mut outermost, mut second) = (0, 0);
    let mut is_wrapped = false;
    each(answer, |tag, around| {
        outermost += usize::from(around.is_empty());
        second += usize::from(around.len() == 1);
        is_wrapped |= around.is_empty() && tag.name() == "xpath-query";
        Ok(())
    })?;
    if !is_wrapped {
        return Ok((answer.trim(), outermost));
    }
    let begin = answer.split_once('>').map_or("", |(_, rest)| rest);
    Ok((begin.rsplit_once("</").map_or("", |(inside, _)| inside), second))
}

/// A text as the value of an attribute.
pub(crate) fn escape(text: &str) -> String {
    quick_xml::escape::escape(text).into_owned()
}

const ENDS: XmlError = XmlError::Incomplete { what: "it was cut off" };

/// Every element of that name at any depth, in order and without its children.
///
/// # Errors
/// [`XmlError`]; faults in other elements' attributes are ignored.
pub fn elements(xml: &str, name: &str) -> Result<Vec<Element>, XmlError> {
    let mut found = Vec::new();
    let any = each(xml, |tag, _| {
        if tag.name() == name {
            found.push(tag.read()?);
        }
        Ok(())
    })?;
    if any { Ok(found) } else { Err(ENDS) }
}

/// An element with its children, without text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    /// Its name.
    pub name: String,
    attributes: Vec<(String, String)>,
    /// Its children, in order.
    pub children: Vec<Element>,
}

impl Element {
    /// Reads a whole document and returns its outermost element.
    ///
    /// # Errors
    /// [`XmlError`] when it is malformed or cut off.
    pub fn parse(xml: &str) -> Result<Self, XmlError> {
        let mut roots = Vec::new();
        each(xml, |tag, around| {
            if around.len() >= DEEPEST {
                return Err(XmlError::Incomplete { what: "it is nested too deeply" });
            }
            let innermost = around.iter().fold(&mut roots, |list: &mut Vec<Self>, _| {
                &mut list.last_mut().expect("what is open was put there").children
            });
            innermost.push(tag.read()?);
            Ok(())
        })?;
        roots.into_iter().next().ok_or(ENDS)
    }

    /// The value of an attribute.
    pub fn find(&self, attribute: &str) -> Option<&str> {
        self.attributes.iter().find(|(name, _)| name == attribute).map(|(_, value)| value.as_str())
    }

    /// The same, empty if there is no such attribute.
    pub fn get(&self, attribute: &str) -> &str {
        self.find(attribute).unwrap_or_default()
    }

    /// Its start tag.
    pub(crate) fn opened(&self) -> String {
        let attributes =
            self.attributes.iter().map(|(name, value)| format!(r#" {name}="{}""#, escape(value)));
        format!("<{}{}>", self.name, attributes.collect::<String>())
    }

    pub(crate) fn attributes(&self) -> &[(String, String)] {
        &self.attributes
    }

    /// The value of an attribute as a text of its own; empty where there is none.
    pub fn own(&self, attribute: &str) -> String {
        self.get(attribute).to_owned()
    }

    /// Its children of that name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// Every element that is reached by these names, one in the other.
    pub fn at<'a>(&'a self, path: &[&str]) -> Vec<&'a Element> {
        path.iter().fold(vec![self], |found, name| {
            found
                .into_iter()
                .flat_map(|one| one.children.iter().filter(|child| child.name == *name))
                .collect()
        })
    }

    /// The same without dropped elements; `drop` gets each with its parent and its attributes by name.
    #[must_use]
    pub fn without(&self, is_dropped: &impl Fn(&Self, &Self) -> bool) -> Self {
        let left = self.children.iter().filter(|child| !is_dropped(self, child));
        let children = left.map(|child| child.without(is_dropped)).collect();
        let mut attributes = self.attributes.clone();
        attributes.sort();
        Self { name: self.name.clone(), attributes, children }
    }

    /// Itself and all its descendants, in order.
    pub fn walk(&self) -> Vec<&Element> {
        let mut found = vec![self];
        found.extend(self.children.iter().flat_map(Self::walk));
        found
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
    fn only_a_whole_document_counts() {
        let values = |xml| Some(elements(xml, "a").ok()?.iter().map(|a| a.own("v")).collect::<Vec<_>>());
        assert_eq!(values("<x><a v='1'/><b v='2'/><a v='&lt;'></a></x>"), Some(vec!["1".into(), "<".into()]));
        let deep = "<a>".repeat(DEEPEST) + &"</a>".repeat(DEEPEST);
        assert!(Element::parse(&deep).is_ok() && Element::parse(&format!("<a>{deep}</a>")).is_err());
        for broken in
            ["", "text", "<x><a v='1'/>", "<x><a></x>", "<x><a v=1/></x>", "<!DOCTYPE x><x/>", "<x></y>"]
        {
            assert_eq!(values(broken), None, "{broken}");
            assert!(Element::parse(broken).is_err(), "{broken}");
        }
    }

    /// An agent's message is in the CIB, and Pacemaker writes its control characters unchanged, or as `&#x1B;` (2.1.8 and
    /// later). The broken variant follows XML 1.0, which has neither: then one agent with a coloured message hides the
    /// cluster.
    #[test]
    fn a_control_character_hides_nothing() {
        for reason in ["\u{1b}[31mfailed", "&#x1B;[31mfailed"] {
            let read = Element::parse(&format!("<lrm_rsc_op exit-reason='{reason}'/>")).unwrap();
            assert_eq!(read.get("exit-reason"), "\u{1b}[31mfailed");
        }
    }
}
