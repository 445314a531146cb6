//! Reading the XML of a CIB. Tolerant of what it does not know, strict about being cut off.

use std::sync::Arc;

use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use super::hosts::{Known, truth};
use super::index::Index;
use super::operations::{History, Operation};
use super::releases::FENCING_TIMEOUT;
use super::{Cib, CibError, Level, Node, NodeState, Resource, Target};
use crate::xml::Attributes;
use marks::host::HostName;

/// OCF's exit code of a monitor for what does not run.
const NOT_RUNNING: &str = "7";
/// Pacemaker's status of an operation that has not ended.
const UNDER_WAY: &str = "-1";

/// The elements that are open, by name.
#[derive(Default)]
struct Builder {
    cib: Cib,
    open: Vec<String>,
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
        (true, true) => Ok(builder.finish()),
    }
}

impl Builder {
    fn finish(self) -> Cib {
        let mut cib = self.cib;
        cib.index = Arc::new(Index::new(&cib.resources, &cib.states, &cib.histories));
        cib.known = Arc::new(Known::of(&cib));
        cib
    }

    /// Takes what matters from an element. True for the root element.
    fn enter(&mut self, element: &BytesStart<'_>, at: u64) -> Result<bool, CibError> {
        let name = element.name();
        if self.open.is_empty() {
            if name.as_ref() != "cib" {
                return Err(CibError::Incomplete { what: "its outermost element is not cib" });
            }
            let attributes = read(element, at)?;
            self.cib.quorum = truth(attributes.get("have-quorum"));
            self.cib.dc = attributes.own("dc-uuid");
            self.cib.feature_set = attributes.own("crm_feature_set");
            return Ok(true);
        }
        match name.as_ref() {
            "node" if self.parent_is("nodes") => self.node(node(&read(element, at)?)),
            "primitive" => self.cib.resources.push(resource(&read(element, at)?, false)),
            "template" if self.parent_is("resources") => {
                self.cib.resources.push(resource(&read(element, at)?, true));
            }
            "nvpair" => self.nvpair(&read(element, at)?),
            "fencing-level" => self.cib.levels.extend(level(&read(element, at)?)),
            "node_state" => self.cib.states.push(node_state(&read(element, at)?)),
            "lrm_resource" => {
                let history = self.history(&read(element, at)?);
                self.cib.histories.push(history);
            }
            "lrm_rsc_op" => self.operation(&read(element, at)?),
            _ => {}
        }
        Ok(false)
    }

    fn parent_is(&self, name: &str) -> bool {
        self.open.last().is_some_and(|open| open == name)
    }

    fn node(&mut self, node: Node) {
        if let Ok(name) = HostName::parse(&node.name) {
            self.cib.places.entry(name).or_default().push(self.cib.nodes.len());
        }
        self.cib.nodes.push(node);
    }

    /// An nvpair belongs to the nearest node, resource or property set that is open.
    fn nvpair(&mut self, attributes: &Attributes) {
        let mut outwards = self.open.iter().rev().map(String::as_str);
        let Some(set) = outwards.next() else { return };
        let owner = outwards.next().unwrap_or_default();
        let cib = &mut self.cib;
        let list = match (owner, set) {
            ("node", "instance_attributes") => cib.nodes.last_mut().map(|node| &mut node.attributes),
            ("transient_attributes", "instance_attributes") => {
                cib.states.last_mut().map(|state| &mut state.attributes)
            }
            ("primitive" | "template", "instance_attributes") => {
                cib.resources.last_mut().map(|resource| &mut resource.parameters)
            }
            ("primitive" | "template", "meta_attributes") => {
                cib.resources.last_mut().map(|resource| &mut resource.meta)
            }
            ("rsc_defaults", "meta_attributes") => Some(&mut cib.resource_defaults),
            (_, "cluster_property_set") => return self.property(attributes),
            _ => None,
        };
        list.into_iter().for_each(|list| list.push((attributes.own("name"), attributes.own("value"))));
    }

    fn property(&mut self, attributes: &Attributes) {
        match attributes.get("name") {
            "dc-version" => self.cib.dc_version = attributes.own("value"),
            name if FENCING_TIMEOUT.contains(&name) => {
                self.cib.stonith_timeouts.push(attributes.own("value"));
            }
            "maintenance-mode" => self.cib.maintenance_modes.push(attributes.own("value")),
            _ => {}
        }
    }

    fn history(&self, attributes: &Attributes) -> History {
        let agent = ["class", "provider", "type"].map(|name| attributes.get(name));
        History {
            resource: attributes.own("id"),
            agent: agent.join(":"),
            node: self.cib.states.last().map(|state| state.name.clone()).unwrap_or_default(),
            operations: Vec::new(),
            is_starting: false,
        }
    }

    /// What is under way has no call id yet; of that only a start says something.
    fn operation(&mut self, attributes: &Attributes) {
        let Some(history) = self.cib.histories.last_mut() else { return };
        if history.node.is_empty() {
            history.node = attributes.own("on_node");
        }
        let (kind, code) = (attributes.own("operation"), attributes.get("rc-code"));
        history.is_starting |= kind == "start" && attributes.get("op-status") == UNDER_WAY;
        let seconds = attributes.get("last-rc-change").parse();
        let (Ok(call_id), Ok(seconds)) = (attributes.get("call-id").parse(), seconds) else { return };
        let (succeeded, found_nothing) = (code == "0", code == NOT_RUNNING);
        history.operations.push(Operation { kind, succeeded, found_nothing, call_id, seconds });
    }
}

fn node_state(attributes: &Attributes) -> NodeState {
    NodeState {
        id: attributes.own("id"),
        name: attributes.own("uname"),
        in_ccm: attributes.own("in_ccm"),
        crmd: attributes.own("crmd"),
        fenced: attributes.own("node_fenced"),
        attributes: Vec::new(),
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
        provider: attributes.own("provider"),
        agent: attributes.own("type"),
        template: attributes.own("template"),
        parameters: Vec::new(),
        meta: Vec::new(),
    }
}

/// `None` for an entry without a target, which the fencer passes over too.
fn level(attributes: &Attributes) -> Option<Level> {
    let target = Target::read(|name| attributes.find(name))?;
    let index = attributes.get("index").parse().ok()?;
    let devices = attributes.get("devices").split(',').map(str::trim).filter(|id| !id.is_empty());
    Some(Level { target, index, devices: devices.map(str::to_owned).collect() })
}

fn read(element: &BytesStart<'_>, at: u64) -> Result<Attributes, CibError> {
    Attributes::read(element).map_err(|_| CibError::Syntax { at })
}
