//! Reading the XML of a CIB. Tolerant of what it does not know, strict about being cut off.

use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use super::{Cib, CibError, Level, Node, Operation, Resource, Target};
use crate::xml::Attributes;

/// The elements that are open, by name.
#[derive(Default)]
struct Builder {
    cib: Cib,
    open: Vec<String>,
    /// The controller whose history is being read.
    controller: String,
    /// The resource whose history is being read.
    history_of: String,
}

pub(super) fn cib(xml: &str) -> Result<Cib, CibError> {
    let mut reader = Reader::from_str(xml);
    let mut builder = Builder::default();
    let mut complete = false;
    loop {
        let event = reader.read_event();
        let at = reader.error_position();
        match event.map_err(|_| CibError::Syntax { at })? {
            Event::Start(element) => {
                complete |= builder.enter(&element, at)?;
                builder.open.push(element.name().as_ref().to_owned());
            }
            Event::Empty(element) => complete |= builder.enter(&element, at)?,
            Event::End(_) => drop(builder.open.pop()),
            Event::DocType(_) => return Err(CibError::Incomplete { what: "a DOCTYPE has no place in it" }),
            Event::Eof => break,
            _ => {}
        }
    }
    match (complete, builder.open.is_empty()) {
        (false, _) => Err(CibError::Incomplete { what: "there is no cib element" }),
        (true, false) => Err(CibError::Incomplete { what: "it ends in the middle" }),
        (true, true) => Ok(builder.cib),
    }
}

impl Builder {
    /// Takes what matters from an element. True for the root element.
    fn enter(&mut self, element: &BytesStart<'_>, at: u64) -> Result<bool, CibError> {
        let name = element.name();
        if self.open.is_empty() {
            let what = "its outermost element is not cib";
            return if name.as_ref() == "cib" { Ok(true) } else { Err(CibError::Incomplete { what }) };
        }
        match name.as_ref() {
            "node" if self.parent_is("nodes") => self.cib.nodes.push(node(&read(element, at)?)),
            "primitive" => self.cib.resources.push(resource(&read(element, at)?, false)),
            "template" if self.parent_is("resources") => {
                self.cib.resources.push(resource(&read(element, at)?, true));
            }
            "nvpair" => self.nvpair(&read(element, at)?),
            "fencing-level" => self.cib.levels.extend(level(&read(element, at)?)),
            "node_state" => self.controller = read(element, at)?.own("uname"),
            "lrm_resource" => self.history_of = read(element, at)?.own("id"),
            "lrm_rsc_op" => self.operation(&read(element, at)?),
            _ => {}
        }
        Ok(false)
    }

    fn parent_is(&self, name: &str) -> bool {
        self.open.last().is_some_and(|open| open == name)
    }

    /// An nvpair belongs to the nearest node, resource or property set that is open.
    fn nvpair(&mut self, attributes: &Attributes) {
        let pair = || (attributes.own("name"), attributes.own("value"));
        let mut outwards = self.open.iter().rev().map(String::as_str);
        let Some(set) = outwards.next() else { return };
        let owner = outwards.next().unwrap_or_default();
        match (owner, set) {
            ("node", "instance_attributes") => {
                self.cib.nodes.last_mut().into_iter().for_each(|node| node.attributes.push(pair()));
            }
            ("primitive" | "template", "instance_attributes") => {
                self.cib
                    .resources
                    .last_mut()
                    .into_iter()
                    .for_each(|resource| resource.parameters.push(pair()));
            }
            (_, "cluster_property_set") if attributes.get("name") == "stonith-timeout" => {
                self.cib.stonith_timeouts.push(attributes.own("value"));
            }
            _ => {}
        }
    }

    /// Keeps the successful starts and monitors: they show when a connection was last good.
    fn operation(&mut self, attributes: &Attributes) {
        let good =
            attributes.get("rc-code") == "0" && matches!(attributes.get("operation"), "start" | "monitor");
        let call_id = attributes.get("call-id").parse();
        let seconds = attributes.get("last-rc-change").parse();
        if let (true, Ok(call_id), Ok(seconds)) = (good, call_id, seconds) {
            let controller =
                if self.controller.is_empty() { attributes.own("on_node") } else { self.controller.clone() };
            self.cib.operations.push(Operation {
                resource: self.history_of.clone(),
                controller,
                call_id,
                seconds,
            });
        }
    }
}

fn node(attributes: &Attributes) -> Node {
    Node { name: attributes.own("uname"), kind: attributes.own("type"), attributes: Vec::new() }
}

fn resource(attributes: &Attributes, is_template: bool) -> Resource {
    Resource {
        id: attributes.own("id"),
        is_template,
        class: attributes.own("class"),
        agent: attributes.own("type"),
        template: attributes.own("template"),
        parameters: Vec::new(),
    }
}

/// `None` for an entry without a target, which the fencer passes over too.
fn level(attributes: &Attributes) -> Option<Level> {
    let target = match (attributes.find("target"), attributes.find("target-pattern")) {
        (Some(name), _) => Target::Name(name.to_owned()),
        (None, Some(pattern)) => Target::Pattern(pattern.to_owned()),
        (None, None) => Target::Attribute {
            name: attributes.find("target-attribute")?.to_owned(),
            value: attributes.find("target-value")?.to_owned(),
        },
    };
    let index = attributes.get("index").parse().ok()?;
    let devices = attributes.get("devices").split(',').map(str::trim).filter(|id| !id.is_empty());
    Some(Level { target, index, devices: devices.map(str::to_owned).collect() })
}

fn read(element: &BytesStart<'_>, at: u64) -> Result<Attributes, CibError> {
    Attributes::read(element).map_err(|_| CibError::Syntax { at })
}
