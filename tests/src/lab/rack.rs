//! All nodes of a lab with their network, shared by the test and by the power devices.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::ensure;

use super::hub::Hub;
use super::node::{self, Ended, Node};
use super::plan::NodePlan;
use super::unknown;

pub(super) struct Rack {
    /// Before the hub: nodes lose their cables while there still is a network.
    nodes: BTreeMap<String, Mutex<Node>>,
    hub: Hub,
    /// Set for ever when the lab ends: a power device may get requests until its node is gone.
    closed: AtomicBool,
}

impl Rack {
    pub(super) fn new(hub: Hub, lab: &Path, plans: &[NodePlan]) -> Self {
        let node = |plan: &NodePlan| (plan.name.clone(), Mutex::new(Node::new(plan.clone(), lab)));
        Self { nodes: plans.iter().map(node).collect(), hub, closed: AtomicBool::new(false) }
    }

    /// A panic elsewhere does not make a node unusable: it must still be torn down.
    fn node(&self, name: &str) -> anyhow::Result<MutexGuard<'_, Node>> {
        match self.nodes.get(name) {
            Some(node) => Ok(node.lock().unwrap_or_else(PoisonError::into_inner)),
            None => unknown(name),
        }
    }

    pub(super) fn is_on(&self, name: &str) -> bool {
        self.node(name).is_ok_and(|node| node.is_on())
    }

    pub(super) fn is_well(&self, name: &str) -> bool {
        self.node(name).is_ok_and(|node| node.is_well())
    }

    pub(super) fn power_on(&self, name: &str) -> anyhow::Result<()> {
        let mut node = self.node(name)?;
        ensure!(!self.closed.load(Ordering::SeqCst), "the lab is ending");
        node.power_on(&self.hub)
    }

    /// Ends every node, for good.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        for name in self.nodes.keys() {
            let _ = self.power_off(name);
        }
    }

    pub(super) fn power_off(&self, name: &str) -> anyhow::Result<()> {
        self.node(name)?.power_off(&self.hub);
        Ok(())
    }

    pub(super) fn freeze(&self, name: &str) -> anyhow::Result<()> {
        self.node(name)?.freeze()
    }

    pub(super) fn thaw(&self, name: &str) -> anyhow::Result<()> {
        self.node(name)?.thaw()
    }

    pub(super) fn processes(&self, name: &str, words: &[&str]) -> anyhow::Result<Vec<i32>> {
        self.node(name)?.processes(words)
    }

    pub(super) fn partition(&self, name: &str, cut: bool) -> anyhow::Result<()> {
        self.node(name)?.partition(&self.hub, cut)
    }

    pub(super) fn exec(&self, name: &str, command: &[&str]) -> anyhow::Result<Ended> {
        let command = self.node(name)?.entering(command)?;
        node::ended(command)
    }

    pub(super) fn entrance(&self) -> Vec<OsString> {
        self.hub.entrance()
    }

    pub(super) fn network_namespace(&self) -> Arc<File> {
        self.hub.namespace()
    }
}
