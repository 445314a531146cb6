//! What every part of the daemon stands on: the configuration in force, the journal, and what is seen of the cluster.

pub mod looks;
pub mod store;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use marks::host::HostName;
use marks::mark::MarkRow;
use marks::returning::Membership;
use marks::time::Timestamp;
use pacemaker::cib::Cib;
use tokio::sync::watch;
use tracing::warn;

use crate::base::looks::Looks;
use crate::base::store::{Damages, Store};
use crate::cluster::{Cluster, Seen};
use crate::config::{Attributes, Group, Members, Route, Settings};
use crate::lock::lock;

/// What every part of the daemon shares.
pub struct Base {
    settings: watch::Sender<Arc<Settings>>,
    /// The journal.
    pub store: Store,
    /// The damaged rows of the journal that this daemon has met.
    pub damages: Damages,
    /// The cluster; none where `register = "none"`.
    pub cluster: Option<Cluster>,
    /// The controller that this daemon runs on.
    pub controller: String,
    /// The directory of evidence.
    pub evidence: PathBuf,
    started: Mutex<Timestamp>,
    seen: Mutex<Seen>,
    /// When that was.
    pub looks: Looks,
    /// Hosts that were reported to be in more than one group.
    grouped_twice: Mutex<HashSet<HostName>>,
}

impl Base {
    /// A new one; nothing was seen yet.
    pub fn new(settings: Settings, store: Store, cluster: Option<Cluster>) -> Self {
        Self {
            evidence: evidence_of(&settings.store.path),
            settings: watch::Sender::new(Arc::new(settings)),
            store,
            damages: Damages::default(),
            cluster,
            controller: controller(),
            started: Mutex::new(Timestamp::now()),
            seen: Mutex::default(),
            looks: Looks::default(),
            grouped_twice: Mutex::default(),
        }
    }

    /// The configuration as it is now. The next call may give another one, so values that belong together must come from one call.
    pub fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.borrow())
    }

    /// Follows the configuration, for parts that have to act on a new one.
    pub fn follow_settings(&self) -> watch::Receiver<Arc<Settings>> {
        self.settings.subscribe()
    }

    /// Replaces the configuration. Only as work of the journal's thread: other work there sees one of the two throughout.
    pub fn put_settings(&self, settings: Arc<Settings>) {
        self.settings.send_replace(settings);
    }

    /// When this daemon started, corrected for changes of the clock since.
    pub fn started(&self) -> MutexGuard<'_, Timestamp> {
        lock(&self.started)
    }

    /// What was seen of the cluster.
    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        lock(&self.seen)
    }

    /// The newest CIB that could be read.
    pub fn cib(&self) -> Option<Arc<Cib>> {
        self.seen().cib.clone()
    }

    /// Who is a member of the cluster by the last poll, if it could read the CIB.
    pub fn members(&self, now: Timestamp) -> Option<Arc<Membership>> {
        self.seen().view.as_ref()?.members(now).map(Arc::new)
    }

    /// Whether an alerter on another controller may have had a mark: this daemon has not made it itself.
    pub fn was_elsewhere(&self, row: &MarkRow) -> bool {
        self.cluster.is_some() && (row.made_by != self.controller || row.made_at < *self.started())
    }

    /// A configured route.
    pub fn route(&self, name: &str) -> Option<Arc<Route>> {
        self.settings().routes.iter().find(|route| route.name.as_str() == name).cloned()
    }

    /// What the newest CIB says of a node's permanent attributes.
    pub fn attributes(&self) -> impl Fn(&HostName, &str) -> Option<String> + use<> {
        let cib = self.cib();
        move |node, name| cib.as_ref()?.node_attribute(node, name).map(str::to_owned)
    }

    /// Whether it is known which group a host is in: groups by attribute wait for the first poll of the cluster.
    pub fn knows_groups(&self) -> bool {
        let by_attribute = |group: &Group| matches!(group.members, Members::Attribute { .. });
        self.cluster.is_none() || self.cib().is_some() || !self.settings().groups.iter().any(by_attribute)
    }

    /// Logs once that a host is in more than one group: the first of these counts.
    pub fn report_groups(&self, node: &HostName, attribute: Attributes<'_>) {
        let settings = self.settings();
        let groups: Vec<&str> =
            settings.groups_of(node, attribute).iter().map(|group| group.name.as_str()).collect();
        let mut reported = lock(&self.grouped_twice);
        if groups.len() > 1 && reported.insert(node.clone()) {
            warn!(
                "{node} is in more than one group ({}), and the first of these counts: leave it in one of them",
                groups.join(", ")
            );
        }
    }
}

/// Where the evidence of a journal lies.
pub fn evidence_of(journal: &Path) -> PathBuf {
    journal.with_file_name("evidence")
}

/// This controller, as its alerter calls it.
pub(crate) fn controller() -> String {
    nix::unistd::gethostname()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_else(|_| "unknown".to_owned())
}
