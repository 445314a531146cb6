//! The cluster's state as its own tools show it.

use std::fmt;

use super::node::Ended;
use super::xml::{Element, elements};

/// One answer of `crm_mon`.
#[derive(Debug)]
pub struct View {
    elements: Vec<Element>,
    /// How `crm_mon` ended, where that was badly.
    complaint: Option<String>,
}

/// One entry of the fencing history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fencing {
    /// `off`, `reboot`, `on`.
    pub action: String,
    /// `success`, `failed`, `pending`.
    pub status: String,
    /// Who did the last step.
    pub delegate: String,
    /// Who asked.
    pub client: String,
}

impl View {
    pub(super) fn read(answer: &Ended) -> Self {
        let complaint =
            (answer.rc != 0).then(|| format!("crm_mon ended with {}: {}", answer.rc, answer.err.trim()));
        Self { elements: elements(&answer.out), complaint }
    }

    /// The name of the DC, if there is one with quorum.
    #[must_use]
    pub fn dc(&self) -> Option<String> {
        let dc = self.elements.iter().find(|element| element.name == "current_dc")?;
        (dc.is("present") && dc.is("with_quorum")).then(|| dc.get("name").to_owned())
    }

    /// A quorate cluster in which all of `nodes` are clean members.
    #[must_use]
    pub fn settled(&self, nodes: &[&str]) -> bool {
        self.dc().is_some() && nodes.iter().all(|node| self.is_online(node))
    }

    /// Whether the node is a clean member.
    #[must_use]
    pub fn is_online(&self, node: &str) -> bool {
        let clean =
            |element: &Element| element.is("online") && !element.is("pending") && !element.is("unclean");
        self.node(node).is_some_and(clean)
    }

    /// Whether the cluster has noticed that the node is gone; fenced or not.
    #[must_use]
    pub fn is_lost(&self, node: &str) -> bool {
        self.node(node).is_some_and(|element| !element.is("online") || element.is("unclean"))
    }

    /// Whether the cluster knows that it has no connection to a compute host: it is lost, or its connection does not stand. While that is
    /// only being started the host counts as online.
    #[must_use]
    pub fn misses(&self, host: &str) -> bool {
        let mut connections = self.elements.iter().filter(|e| e.name == "resource" && e.get("id") == host);
        let stands = |connection: &Element| connection.get("role") == "Started" && !connection.is("failed");
        self.is_lost(host) || connections.any(|connection| !stands(connection))
    }

    fn node(&self, name: &str) -> Option<&Element> {
        let nodes = self.elements.iter().filter(|element| element.name == "node");
        nodes.filter(|element| !element.get("type").is_empty()).find(|element| element.get("name") == name)
    }

    /// Where a resource runs, if it does.
    #[must_use]
    pub fn location(&self, resource: &str) -> Option<String> {
        let at = self.elements.iter().position(|e| e.name == "resource" && e.get("id") == resource)?;
        let found = &self.elements[at];
        let host =
            self.elements.get(at + 1).filter(|next| next.name == "node" && next.depth > found.depth)?;
        (found.get("role") == "Started" && !found.is("failed")).then(|| host.get("name").to_owned())
    }

    /// How often a resource has failed anywhere, and what it said of it.
    #[must_use]
    pub fn failures(&self, resource: &str) -> Vec<String> {
        let failed = self.elements.iter().filter(|element| element.name == "failure");
        let of = failed.filter(|element| element.get("op_key").starts_with(&format!("{resource}_")));
        of.map(|element| format!("{}: {}", element.get("op_key"), element.get("exitreason"))).collect()
    }
}

impl fmt::Display for View {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dc = self.dc();
        write!(out, "DC {}", dc.as_deref().unwrap_or("none"))?;
        if let Some(complaint) = &self.complaint {
            write!(out, "; {complaint}")?;
        }
        for node in self.elements.iter().filter(|e| e.name == "node" && !e.get("type").is_empty()) {
            let states = ["online", "pending", "unclean"].into_iter().filter(|state| node.is(state));
            write!(out, "; {} {}", node.get("name"), states.collect::<Vec<_>>().join(" "))?;
        }
        for failure in self.elements.iter().filter(|element| element.name == "failure") {
            write!(out, "; failed {} {}", failure.get("op_key"), failure.get("exitreason"))?;
        }
        Ok(())
    }
}

/// Reads the output of `stonith_admin --history --verbose --output-as=xml`.
pub(super) fn fencings(xml: &str) -> Vec<Fencing> {
    let events = elements(xml).into_iter().filter(|element| element.name == "fence_event");
    let text = |element: &Element, name: &str| element.get(name).to_owned();
    events
        .map(|event| Fencing {
            action: text(&event, "action"),
            status: text(&event, "status"),
            delegate: text(&event, "delegate"),
            client: text(&event, "client"),
        })
        .collect()
}
