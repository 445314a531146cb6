//! Indices into a CIB by name: a caller that asks about every host must not scan all entries each time.

use std::collections::HashMap;

use super::{NodeState, Resource};
use crate::cib::operations::History;

/// The indices of named entries, in the order of the document. Names of hosts may differ in case alone.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Index {
    templates: HashMap<String, usize>,
    resources: HashMap<String, Vec<usize>>,
    /// The first state of each node counts.
    states: HashMap<String, usize>,
    histories: HashMap<String, Vec<usize>>,
}

impl Index {
    pub(super) fn new(resources: &[Resource], states: &[NodeState], histories: &[History]) -> Self {
        let mut index = Self::default();
        for (at, resource) in resources.iter().enumerate() {
            if resource.is_template {
                index.templates.entry(resource.id.clone()).or_insert(at);
            }
            index.resources.entry(lower(&resource.id)).or_default().push(at);
        }
        for (at, state) in states.iter().enumerate() {
            index.states.entry(lower(state.known_as())).or_insert(at);
        }
        for (at, history) in histories.iter().enumerate() {
            index.histories.entry(lower(&history.resource)).or_default().push(at);
        }
        index
    }

    /// By its id, exactly.
    pub(super) fn template(&self, id: &str) -> Option<usize> {
        self.templates.get(id).copied()
    }

    pub(super) fn resources(&self, id: &str) -> &[usize] {
        self.resources.get(&lower(id)).map_or(&[], Vec::as_slice)
    }

    pub(super) fn state(&self, name: &str) -> Option<usize> {
        self.states.get(&lower(name)).copied()
    }

    pub(super) fn histories(&self, resource: &str) -> &[usize] {
        self.histories.get(&lower(resource)).map_or(&[], Vec::as_slice)
    }
}

fn lower(name: &str) -> String {
    name.to_ascii_lowercase()
}
