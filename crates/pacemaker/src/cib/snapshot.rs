//! The CIB as it was read in parts, and which parts are to be read next. No I/O: [`crate::snapshot`] asks.
//!
//! Pacemaker's daemon answers nothing that is longer than 128 KiB when it is packed, and a whole CIB of 500 hosts is. The
//! states of all nodes come with the version in one small answer; that also says of which controllers the operations have
//! changed since, and only what is newer is read of these. The next such answer shows whether all of it belongs together.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::operations::{History, Total};
use super::{Cib, CibError, NodeState, paths};
use crate::xml;
use marks::host::HostName;

/// The version of a CIB: all attributes of its outermost element.
type Version = Vec<(String, String)>;

/// What was read last.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The newest answer about the nodes' states; its version is that of everything if `is_whole`.
    status: Option<Status>,
    configuration: Option<(Epoch, Cib)>,
    /// By the id of each controller's state.
    controllers: BTreeMap<String, Controller>,
    /// Of the hosts' health checks those that ever failed.
    health: Vec<History>,
    /// The compute hosts that are cluster nodes.
    own: Vec<HostName>,
    cib: Option<(Version, Arc<Cib>)>,
}

/// What a change of the configuration changes.
type Epoch = [String; 3];

/// An answer to [`Snapshot::asks_status`].
#[derive(Clone, Debug, Default)]
struct Status {
    version: Version,
    cib: Cib,
    /// The nodes that have operations which count here, by the ids of their states.
    with_operations: Vec<String>,
    unchanged: Vec<String>,
    is_health_unchanged: bool,
}

/// A controller's operations.
#[derive(Clone, Debug, Default)]
struct Controller {
    name: String,
    histories: BTreeMap<String, History>,
    total: Total,
    /// Its newer operations were read, and something else has changed all the same.
    is_doubtful: bool,
}

/// What is new in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct News {
    /// The state of a node, or an operation that counts here.
    pub of_nodes: bool,
    /// Anything in the configuration.
    pub in_configuration: bool,
}

/// What is to be read next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The configuration.
    Configuration,
    /// Operations of the controller with this id; all of them, or the newer ones alone.
    Operations {
        /// The id of its state.
        id: String,
        /// What is not found again is gone.
        all: bool,
    },
    /// The health checks of hosts. Nothing else waits for them.
    Health,
}

impl Snapshot {
    /// The compute hosts that are cluster nodes: of these the operations on their own resources count. Returns whether that is
    /// new, so that everything is to be read again.
    pub fn set_own(&mut self, own: Vec<HostName>) -> bool {
        let is_new = self.own != own;
        if is_new {
            *self = Self { own, ..Self::default() };
        }
        is_new
    }

    /// The newest CIB that was read whole.
    pub fn cib(&self) -> Option<&Arc<Cib>> {
        self.cib.as_ref().map(|(_, cib)| cib)
    }

    /// The query with which each reading begins and ends, without children.
    pub fn asks_status(&self) -> String {
        let known = self.controllers.iter().map(|(id, one)| (id.as_str(), one.name.as_str(), &one.total));
        let health = self.health.iter().fold(Total::default(), |sum, one| sum.join(&one.total));
        paths::status(known, &health, &self.own)
    }

    /// Takes the answer; returns what is to be read before the next one. If that is nothing, the CIB is whole.
    ///
    /// # Errors
    /// [`CibError`]
    pub fn take_status(&mut self, answer: &str) -> Result<Vec<Wanted>, CibError> {
        let status = Status::read(answer)?;
        let wanted = self.wanted(&status);
        self.controllers.retain(|id, _| status.with_operations.contains(id));
        for id in &status.unchanged {
            self.controllers.entry(id.clone()).and_modify(|known| known.is_doubtful = false);
        }
        self.status = Some(status);
        if wanted.is_empty() {
            self.assemble();
        }
        Ok(wanted)
    }

    /// What an answer shows that is not in the CIB that was read last.
    ///
    /// # Errors
    /// [`CibError`]
    pub fn news(&self, answer: &str) -> Result<News, CibError> {
        let status = Status::read(answer)?;
        let is_gone = |id: &String| !status.with_operations.contains(id);
        let wanted = self.wanted(&status);
        let in_configuration = wanted.contains(&Wanted::Configuration);
        let operations = wanted.len() > usize::from(in_configuration) || self.controllers.keys().any(is_gone);
        let facts = |cib: &Cib| (cib.states.clone(), cib.quorum, cib.dc.clone());
        let of_nodes = operations || !self.cib().is_some_and(|cib| facts(cib) == facts(&status.cib));
        Ok(News { of_nodes, in_configuration })
    }

    fn wanted(&self, status: &Status) -> Vec<Wanted> {
        if self.cib.as_ref().is_some_and(|(version, _)| status.is_at(version)) {
            return Vec::new();
        }
        let epoch = epoch(&status.version);
        let is_current = |(of, _): &(Epoch, Cib)| *of == epoch && status.has_version();
        let is_current = self.configuration.as_ref().is_some_and(is_current);
        let configuration = (!is_current).then_some(Wanted::Configuration);
        let health = (!status.is_health_unchanged).then_some(Wanted::Health);
        configuration.into_iter().chain(self.changed(status)).chain(health).collect()
    }

    /// Of each controller whose operations have changed: what is newer, or, if that was not all of it, everything.
    fn changed(&self, status: &Status) -> Vec<Wanted> {
        let wanted = |id: &String| match self.controllers.get(id) {
            Some(_) if status.unchanged.contains(id) => None,
            known => {
                let all = known.is_none_or(|known| known.is_doubtful);
                Some(Wanted::Operations { id: id.clone(), all })
            }
        };
        status.with_operations.iter().filter_map(wanted).collect()
    }

    /// The query for that; its elements are many, so ask for [`some`] of them at a time.
    pub fn asks(&self, wanted: &Wanted) -> Option<String> {
        match wanted {
            Wanted::Configuration => Some(paths::configuration()),
            Wanted::Operations { id, all } => {
                let name = self.status.as_ref()?.name_of(id);
                let since = self.controllers.get(id).filter(|_| !all).map(Controller::newest);
                paths::operations((id, name), &self.own, since)
            }
            Wanted::Health => Some(paths::unhealthy()),
        }
    }

    /// Takes all answers to [`Self::asks`].
    pub fn take(&mut self, wanted: &Wanted, found: Cib) {
        let Some(status) = &self.status else { return };
        match wanted {
            Wanted::Configuration => self.configuration = Some((epoch(&status.version), found)),
            Wanted::Operations { id, all } => {
                let name = status.name_of(id).to_owned();
                let known = self.controllers.remove(id).filter(|_| !all).unwrap_or_default();
                self.controllers.insert(id.clone(), known.with(name, found.histories, !all));
            }
            Wanted::Health => {
                self.health = found.histories;
                self.health.retain(History::has_complained);
            }
        }
    }

    /// The CIB by the newest answer. If that answer still asked for something, the operations are as they were read before
    /// it: while much happens, no two answers may ever belong together. Connections that are a moment older than the states
    /// prove nothing that they should not. The other way round a new connection would be taken for the one that a fencing
    /// ended. Such a CIB has no version, so the next reading goes on.
    pub fn newest(&mut self) -> Option<Arc<Cib>> {
        let is_whole = |version: &Version| self.status.as_ref().is_some_and(|status| status.is_at(version));
        if !self.cib.as_ref().is_some_and(|(version, _)| is_whole(version)) {
            self.assemble();
            self.cib.as_mut()?.0.clear();
        }
        self.cib().cloned()
    }

    fn assemble(&mut self) {
        if let (Some(status), Some((version, _))) = (&self.status, &self.cib)
            && status.is_at(version)
        {
            return;
        }
        let (Some(status), Some((_, configuration))) = (&self.status, &self.configuration) else { return };
        let mut cib = configuration.clone();
        let Status { cib: states, version, .. } = status;
        (cib.quorum, cib.dc, cib.feature_set) =
            (states.quorum, states.dc.clone(), states.feature_set.clone());
        cib.states = states.states.clone();
        let of_controllers = self.controllers.values().flat_map(|one| one.histories.values());
        cib.histories = of_controllers.chain(&self.health).cloned().collect();
        let cib = cib.indexed();
        let same = self.cib.take().map(|(_, known)| known).filter(|known| **known == cib);
        self.cib = Some((version.clone(), same.unwrap_or_else(|| Arc::new(cib))));
    }
}

impl Status {
    fn read(answer: &str) -> Result<Self, CibError> {
        let mut status = Self::default();
        let mut node = String::new();
        status.cib.add(answer)?;
        xml::each(answer, |tag, around| {
            match tag.name() {
                "cib" => status.version = tag.read()?.attributes().to_vec(),
                "status" => status.is_health_unchanged = true,
                "node_state" => node = tag.read()?.own("id"),
                "lrm" => status.with_operations.push(node.clone()),
                // Below its node it is no answer to the question whether anything has changed.
                "lrm_resources" if around.len() == 1 => status.unchanged.push(node.clone()),
                _ => {}
            }
            Ok(())
        })?;
        Ok(status)
    }

    fn has_version(&self) -> bool {
        self.version.iter().any(|(name, _)| name == "epoch")
    }

    fn is_at(&self, version: &Version) -> bool {
        self.has_version() && self.version == *version
    }

    fn name_of<'a>(&'a self, id: &'a str) -> &'a str {
        self.cib.states.iter().find(|state| state.id == id).map_or(id, NodeState::known_as)
    }
}

impl Controller {
    /// The highest number of its operations, and the newest time, by its own clock.
    fn newest(&self) -> (i64, i64) {
        let all = self.histories.values().flat_map(|history| &history.operations);
        all.fold((0, 0), |(call, second), one| (call.max(one.call_id.into()), second.max(one.seconds)))
    }

    fn with(mut self, name: String, found: Vec<History>, is_doubtful: bool) -> Self {
        let named = found.into_iter().map(|history| History { node: name.clone(), ..history });
        self.histories.extend(named.map(|history| (history.resource.clone(), history)));
        self.total = self.histories.values().fold(Total::default(), |sum, one| sum.join(&one.total));
        Self { name, is_doubtful, ..self }
    }
}

fn epoch(version: &Version) -> Epoch {
    ["admin_epoch", "epoch", "cib-last-written"].map(|name| {
        version.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone()).unwrap_or_default()
    })
}
