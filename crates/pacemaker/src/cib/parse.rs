//! Reading the XML of a CIB. It tolerates unknown parts, but not a document that was cut off.

use std::sync::Arc;

use super::hosts::{Known, truth};
use super::index::Index;
use super::operations::{FAULTY, History, Operation, Total};
use super::releases::FENCING_TIMEOUT;
use super::{Cib, Level, Node, NodeState, Resource, Target};
use crate::xml::{self, Element, Tag, XmlError};
use marks::host::HostName;

/// OCF's exit code of a monitor for a resource that does not run.
const NOT_RUNNING: &str = "7";
/// Pacemaker's status of an operation that has not ended.
const UNDER_WAY: &str = "-1";
/// The name of a CIB's outermost element.
const ROOT: &str = "cib";
/// That of an answer to an XPath query that found more than one element.
const ANSWER: &str = "xpath-query";
const OTHER_ROOT: XmlError = XmlError::Incomplete { what: "its outermost element is not cib" };

pub(super) fn cib(xml: &str) -> Result<Cib, XmlError> {
    let mut cib = Cib::default();
    let any = xml::each(xml, |tag, around| match around.is_empty() && tag.name() != ROOT {
        true => Err(OTHER_ROOT),
        false => cib.enter(tag, around),
    })?;
    any.then(|| cib.indexed()).ok_or(XmlError::Incomplete { what: "there is no cib element" })
}

/// See [`super::tree`].
pub(super) fn tree(xml: &str) -> Result<Element, XmlError> {
    Some(Element::parse(xml)?).filter(|root| root.name == ROOT).ok_or(OTHER_ROOT)
}

impl Cib {
    /// Adds an answer to an XPath query: the elements that were found, without their ancestors. Returns how many.
    pub(super) fn add(&mut self, answer: &str) -> Result<usize, XmlError> {
        let mut found = 0;
        xml::each(answer, |tag, around| {
            let is_outermost = around.last().is_none_or(|parent| parent.name() == ANSWER);
            found += usize::from(is_outermost && tag.name() != ANSWER);
            self.enter(tag, around)
        })?;
        Ok(found)
    }

    /// The same document with its indices, when all of it was added.
    #[must_use]
    pub fn indexed(mut self) -> Self {
        self.index = Arc::new(Index::new(&self.resources, &self.states, &self.histories));
        self.known = Arc::new(Known::of(&self));
        self
    }

    /// Takes the relevant parts of an element.
    fn enter(&mut self, tag: &Tag<'_>, around: &[Tag<'_>]) -> Result<(), XmlError> {
        let mut outwards = around.iter().rev().map(Tag::name).filter(|name| *name != ANSWER);
        let parent = outwards.next();
        match (tag.name(), parent) {
            (ROOT, None) => self.root(&tag.read()?),
            ("node", None | Some("nodes")) => self.node(node(&tag.read()?)),
            ("primitive", _) => self.resources.push(resource(&tag.read()?, false)),
            ("template", None | Some("resources")) => self.resources.push(resource(&tag.read()?, true)),
            ("nvpair", Some(set)) => self.nvpair(outwards.next().unwrap_or_default(), set, &tag.read()?),
            // In the order of the document it follows its node's state.
            ("nvpair", None) => self.nvpair("transient_attributes", "instance_attributes", &tag.read()?),
            ("fencing-level", _) => self.levels.extend(level(&tag.read()?)),
            ("node_state", _) => self.states.push(node_state(&tag.read()?)),
            ("lrm_resource", _) => {
                let is_within = around.iter().any(|tag| tag.name() == "node_state");
                let state = self.states.last().filter(|_| is_within).map(|state| state.name.clone());
                // Without its node's state: a remote node's id is its name.
                let lrm = around.iter().find(|tag| tag.name() == "lrm").filter(|_| !is_within);
                let node = state.or(lrm.map(|lrm| Ok(lrm.read()?.own("id"))).transpose()?);
                self.histories.push(history(&tag.read()?, node.unwrap_or_default()));
            }
            ("lrm_rsc_op", _) => self.operation(&tag.read()?),
            _ => {}
        }
        Ok(())
    }

    fn root(&mut self, root: &Element) {
        self.quorum = truth(root.get("have-quorum"));
        self.dc = root.own("dc-uuid");
        self.feature_set = root.own("crm_feature_set");
    }

    fn node(&mut self, node: Node) {
        if let Ok(name) = HostName::parse(&node.name) {
            self.places.entry(name).or_default().push(self.nodes.len());
        }
        self.nodes.push(node);
    }

    /// An nvpair belongs to the nearest open node, resource or property set.
    fn nvpair(&mut self, owner: &str, set: &str, pair: &Element) {
        let list = match (owner, set) {
            ("node", "instance_attributes") => self.nodes.last_mut().map(|node| &mut node.attributes),
            ("transient_attributes", "instance_attributes") => {
                self.states.last_mut().map(|state| &mut state.attributes)
            }
            ("primitive" | "template", "instance_attributes") => {
                self.resources.last_mut().map(|resource| &mut resource.parameters)
            }
            ("primitive" | "template", "meta_attributes") => {
                self.resources.last_mut().map(|resource| &mut resource.meta)
            }
            ("rsc_defaults", "meta_attributes") => Some(&mut self.resource_defaults),
            (_, "cluster_property_set") => return self.property(pair),
            _ => None,
        };
        list.into_iter().for_each(|list| list.push((pair.own("name"), pair.own("value"))));
    }

    fn property(&mut self, pair: &Element) {
        match pair.get("name") {
            "dc-version" => self.dc_version = pair.own("value"),
            name if FENCING_TIMEOUT.contains(&name) => {
                self.stonith_timeouts.push(pair.own("value"));
            }
            "maintenance-mode" => self.maintenance_modes.push(pair.own("value")),
            _ => {}
        }
    }

    /// An operation in flight has no call id yet; only a start matters.
    fn operation(&mut self, element: &Element) {
        let Some(history) = self.histories.last_mut() else { return };
        if history.node.is_empty() {
            history.node = element.own("on_node");
        }
        history.total.add(element);
        let (kind, code) = (element.own("operation"), element.get("rc-code"));
        history.is_starting |= kind == "start" && element.get("op-status") == UNDER_WAY;
        let seconds = element.get("last-rc-change").parse();
        let (Ok(call_id), Ok(seconds)) = (element.get("call-id").parse(), seconds) else { return };
        let (succeeded, found_nothing) = (code == "0", code == NOT_RUNNING);
        let reason = FAULTY.contains(&code).then(|| element.own("exit-reason"));
        history.operations.push(Operation { kind, succeeded, found_nothing, call_id, seconds, reason });
    }
}

fn history(element: &Element, node: String) -> History {
    let agent = ["class", "provider", "type"].map(|name| element.get(name));
    let (resource, agent) = (element.own("id"), agent.join(":"));
    History { resource, agent, node, operations: Vec::new(), is_starting: false, total: Total::default() }
}

fn node_state(element: &Element) -> NodeState {
    NodeState {
        id: element.own("id"),
        name: element.own("uname"),
        in_ccm: element.own("in_ccm"),
        crmd: element.own("crmd"),
        fenced: element.own("node_fenced"),
        attributes: Vec::new(),
    }
}

fn node(element: &Element) -> Node {
    Node { name: element.own("uname"), kind: element.own("type"), attributes: Vec::new() }
}

fn resource(element: &Element, is_template: bool) -> Resource {
    Resource {
        id: element.own("id"),
        is_template,
        class: element.own("class"),
        provider: element.own("provider"),
        agent: element.own("type"),
        template: element.own("template"),
        parameters: Vec::new(),
        meta: Vec::new(),
    }
}

/// `None` for an entry without a target, which the fencer ignores too.
fn level(element: &Element) -> Option<Level> {
    let target = Target::read(|name| element.find(name))?;
    let index = element.get("index").parse().ok()?;
    let devices = element.get("devices").split(',').map(str::trim).filter(|id| !id.is_empty());
    Some(Level { target, index, devices: devices.map(str::to_owned).collect() })
}
