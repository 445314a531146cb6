//! What the engine, the attempts and the control socket share.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use journal::Damage;
use marks::host::HostName;
use marks::id::MarkId;
use marks::mark::MarkRow;
use marks::returning::Look;
use marks::time::Timestamp;
use pacemaker::cib::Cib;
use tokio::sync::{Notify, watch};
use tracing::{error, warn};

use crate::cluster::{Cluster, Seen};
use crate::config::{Attributes, Group, Members, Route, Settings};
use crate::control::api::{Kind, Reason};
use crate::delivery::lane::Lane;
use crate::delivery::trouble::Troubles;
use crate::drivers::Step;
use crate::health::Health;
use crate::intake::account::{self, Account};
use crate::intake::files;
use crate::listen::Unserved;
use crate::metrics::{Figures, Metrics};
use crate::probes::Verdict;
use crate::reload::Reloads;
use crate::steer::Steering;
use crate::store::Store;
use crate::stranded;
use crate::supervisor::Supervisor;

/// The daemon's state, apart from the journal.
pub struct Shared {
    settings: watch::Sender<Arc<Settings>>,
    /// The journal.
    pub store: Store,
    /// The cluster; none where `register = "none"`.
    pub cluster: Option<Cluster>,
    /// The controller that this daemon runs on.
    pub controller: String,
    /// The directory of evidence.
    pub evidence: PathBuf,
    /// Says that something was changed from here.
    pub poke: Notify,
    /// Says that the engine has looked at everything once more.
    pub looked: Notify,
    /// Whether the daemon is well, for `/health`.
    pub health: Health,
    /// Who is told that the engine gets on, and since when it does not.
    pub supervisor: Supervisor,
    /// Which of our own endpoints are not served at the moment.
    pub unserved: Unserved,
    /// Says the same to whoever counts what there is.
    pub passed: Notify,
    started: Mutex<Timestamp>,
    figures: Mutex<Arc<Figures>>,
    metrics: Metrics,
    troubles: Mutex<Troubles>,
    journal_trouble: Mutex<Option<String>>,
    api_trouble: Mutex<Option<String>>,
    reload_trouble: Mutex<Option<String>>,
    stranded: Mutex<BTreeMap<String, usize>>,
    strays: Mutex<Vec<String>>,
    unproven: Mutex<BTreeSet<MarkId>>,
    /// The new configuration that the engine is to take up between two passes.
    pub reloads: Reloads,
    lanes: Mutex<HashMap<String, Lane>>,
    reported: Mutex<HashSet<Damage>>,
    /// Those of them that were not damaged any more when the journal was counted last.
    mended: Mutex<HashSet<Damage>>,
    /// Hosts of which it was said that they are in more than one group.
    grouped_twice: Mutex<HashSet<HostName>>,
    seen: Mutex<Seen>,
    steering: Mutex<Steering>,
    verdicts: Mutex<HashMap<MarkId, Verdict>>,
    account: Mutex<Account>,
}

impl Shared {
    /// New state; nothing is wrong yet.
    pub fn new(settings: Settings, store: Store, cluster: Option<Cluster>) -> Self {
        Self {
            evidence: files::directory_of(&settings.store.path),
            settings: watch::Sender::new(Arc::new(settings)),
            store,
            cluster,
            controller: controller(),
            poke: Notify::new(),
            looked: Notify::new(),
            health: Health::default(),
            supervisor: Supervisor::of_environment(),
            unserved: Unserved::default(),
            passed: Notify::new(),
            started: Mutex::new(Timestamp::now()),
            figures: Mutex::default(),
            metrics: Metrics::default(),
            troubles: Mutex::default(),
            journal_trouble: Mutex::default(),
            api_trouble: Mutex::default(),
            reload_trouble: Mutex::default(),
            stranded: Mutex::default(),
            strays: Mutex::default(),
            unproven: Mutex::default(),
            reloads: Reloads::default(),
            lanes: Mutex::default(),
            reported: Mutex::default(),
            mended: Mutex::default(),
            grouped_twice: Mutex::default(),
            seen: Mutex::default(),
            steering: Mutex::default(),
            verdicts: Mutex::default(),
            account: Mutex::default(),
        }
    }

    /// The configuration as it is now. Another one may be in its place at the next call: what belongs together is taken from
    /// one call.
    pub fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.borrow())
    }

    /// The configuration as it is at each time, for those who have to hear of a new one.
    pub fn follow_settings(&self) -> watch::Receiver<Arc<Settings>> {
        self.settings.subscribe()
    }

    /// Puts another configuration in the place of the one there is. Only as work of the journal's thread: what runs there
    /// sees one of the two from its beginning to its end.
    pub fn put_settings(&self, settings: Arc<Settings>) {
        self.settings.send_replace(settings);
    }

    /// What the journal held when it was counted last: a second ago, or longer where it is large or where nothing has changed.
    pub fn figures(&self) -> Arc<Figures> {
        Arc::clone(&self.figures.lock().expect("a panic anywhere ends the whole daemon"))
    }

    /// It was counted anew.
    pub fn put_figures(&self, figures: Figures) {
        *self.figures.lock().expect("a panic anywhere ends the whole daemon") = Arc::new(figures);
    }

    /// What is counted while the daemon runs.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Since when this daemon has been there, by the clock as it goes now.
    pub fn started(&self) -> MutexGuard<'_, Timestamp> {
        self.started.lock().expect("a panic anywhere ends the whole daemon")
    }

    /// What was seen of the cluster.
    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().expect("a panic anywhere ends the whole daemon")
    }

    /// The policy's plan, as the journal's thread made it last.
    pub fn steering(&self) -> MutexGuard<'_, Steering> {
        self.steering.lock().expect("a panic anywhere ends the whole daemon")
    }

    /// What probes have said since the policy looked last.
    pub fn verdicts(&self) -> MutexGuard<'_, HashMap<MarkId, Verdict>> {
        self.verdicts.lock().expect("a panic anywhere ends the whole daemon")
    }

    /// Which fencings and sightings have an end that can be shown.
    pub fn account(&self) -> MutexGuard<'_, Account> {
        self.account.lock().expect("a panic anywhere ends the whole daemon")
    }

    /// The newest CIB that could be read.
    pub fn cib(&self) -> Option<Arc<Cib>> {
        self.seen().cib.clone()
    }

    /// Who is a member of the cluster by the last look, where that could read the CIB.
    pub fn members(&self, now: Timestamp) -> Option<Arc<Look>> {
        self.seen().view.as_ref()?.members(now).map(Arc::new)
    }

    /// Whether an alerter on another controller may have had a mark: one that this daemon has not made itself.
    pub fn was_elsewhere(&self, row: &MarkRow) -> bool {
        self.cluster.is_some() && (row.made_by != self.controller || row.made_at < *self.started())
    }

    /// The routes in trouble.
    pub fn troubles(&self) -> MutexGuard<'_, Troubles> {
        self.troubles.lock().expect("a panic anywhere ends the whole daemon")
    }

    /// Why the daemon works, but not well; one sentence each. Answered from memory.
    pub fn reasons(&self, now: Timestamp) -> Vec<String> {
        self.named_reasons(now).into_iter().map(|reason| reason.message).collect()
    }

    /// The same with what each is about, for whoever has to say how bad it is and what to do.
    pub fn named_reasons(&self, now: Timestamp) -> Vec<Reason> {
        // Of a route that is not configured any more another sentence speaks.
        // A return keeps no mark open, and a living host down.
        let counts = |route: &Route| route.required || route.step == Step::Return;
        let is_required = |name: &str| self.route(name).is_some_and(|route| counts(&route));
        let routes = self.troubles().lasting(now, self.settings().degraded_after, is_required);
        let mut reasons: Vec<Reason> = routes.into_iter().map(|why| Reason::of(Kind::Route, why)).collect();
        reasons.extend(self.journal_trouble().clone().map(|why| Reason::of(Kind::Journal, why)));
        reasons.extend(self.api_trouble().clone().map(|why| Reason::of(Kind::Unserved, why)));
        reasons.extend(self.unserved.reasons().into_iter().map(|why| Reason::of(Kind::Unserved, why)));
        reasons.extend(self.reload_trouble().clone().map(|why| Reason::of(Kind::Reload, why)));
        let stranded = self.stranded();
        reasons.extend(stranded.iter().map(|(route, marks)| Reason {
            route: Some(route.clone()),
            ..Reason::of(Kind::Stranded, stranded::sentence(route, *marks))
        }));
        reasons.extend(self.strays().iter().map(|why| Reason::of(Kind::UnknownGroup, why.clone())));
        reasons.extend(account::sentence(self).map(|why| Reason::of(Kind::Unaccounted, why)));
        reasons.extend(
            self.seen().reasons().into_iter().map(|(matter, why)| Reason::of(Kind::of_fault(matter), why)),
        );
        reasons
    }

    /// Why the journal cannot be written at the moment; a passing fault.
    pub fn journal_trouble(&self) -> MutexGuard<'_, Option<String>> {
        self.journal_trouble.lock().expect("a panic anywhere ends the whole daemon")
    }

    /// Why the API is not served at its address.
    pub fn api_trouble(&self) -> MutexGuard<'_, Option<String>> {
        self.api_trouble.lock().expect("a panic anywhere ends the whole daemon")
    }

    /// Why the configuration that stands in the files is not the one in force.
    pub fn reload_trouble(&self) -> MutexGuard<'_, Option<String>> {
        self.reload_trouble.lock().expect("a panic anywhere ends the whole daemon")
    }

    /// Routes that are not configured any more, each with how many marks wait for it.
    pub fn stranded(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        self.stranded.lock().expect("a panic anywhere ends the whole daemon")
    }

    /// Operators' decisions about groups that are not configured, a sentence each: they hold every host.
    pub fn strays(&self) -> MutexGuard<'_, Vec<String>> {
        self.strays.lock().expect("a panic anywhere ends the whole daemon")
    }

    /// These are all; each that is new is said.
    pub fn put_strays(&self, strays: &[String]) {
        let mut known = self.strays();
        strays.iter().filter(|stray| !known.contains(stray)).for_each(|stray| warn!("{stray}"));
        strays.clone_into(&mut known);
    }

    /// Marks of which it was said that Pacemaker has not confirmed them.
    pub fn unproven(&self) -> MutexGuard<'_, BTreeSet<MarkId>> {
        self.unproven.lock().expect("a panic anywhere ends the whole daemon")
    }

    /// The routes' lanes by the routes' names; empty until the engine knows what a former daemon left.
    pub fn lanes(&self) -> MutexGuard<'_, HashMap<String, Lane>> {
        self.lanes.lock().expect("a panic anywhere ends the whole daemon")
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

    /// Whether it is known which group a host is in: groups by attribute wait for the first look at the cluster.
    pub fn knows_groups(&self) -> bool {
        let by_attribute = |group: &Group| matches!(group.members, Members::Attribute { .. });
        self.cluster.is_none() || self.cib().is_some() || !self.settings().groups.iter().any(by_attribute)
    }

    /// Says once of a host that it is in more than one group: the first of these counts.
    pub fn report_groups(&self, node: &HostName, attribute: Attributes<'_>) {
        let settings = self.settings();
        let groups: Vec<&str> =
            settings.groups_of(node, attribute).iter().map(|group| group.name.as_str()).collect();
        let mut reported = self.grouped_twice.lock().expect("a panic anywhere ends the whole daemon");
        if groups.len() > 1 && reported.insert(node.clone()) {
            warn!(
                "{node} is in more than one group ({}), and the first of these counts: let it be in one of them",
                groups.join(", ")
            );
        }
    }

    /// The damaged rows of a table, as far as this daemon has met them and nobody has mended them, in the order of their keys.
    pub fn damage_of(&self, table: &str) -> Vec<Damage> {
        let mended = self.mended.lock().expect("a panic anywhere ends the whole daemon");
        let mut found = self.known_damage();
        found.retain(|damage| damage.table == table && !mended.contains(damage));
        found.sort_by(|a, b| a.key.cmp(&b.key));
        found
    }

    /// Every damaged row that this daemon has met, mended or not.
    pub fn known_damage(&self) -> Vec<Damage> {
        let reported = self.reported.lock().expect("a panic anywhere ends the whole daemon");
        reported.iter().cloned().collect()
    }

    /// Of the known damaged rows these still are.
    pub fn put_damage(&self, known: &[Damage], still: &[Damage]) {
        let still: HashSet<&Damage> = still.iter().collect();
        let mended = known.iter().filter(|damage| !still.contains(damage)).cloned().collect();
        *self.mended.lock().expect("a panic anywhere ends the whole daemon") = mended;
    }

    /// How many damaged rows this daemon has met that nobody has mended.
    pub fn damaged(&self) -> usize {
        let mended = self.mended.lock().expect("a panic anywhere ends the whole daemon").len();
        self.known_damage().len().saturating_sub(mended)
    }

    /// Says once of each damaged row that it is damaged.
    pub fn report_damage(&self, damaged: &[Damage]) {
        let mut reported = self.reported.lock().expect("a panic anywhere ends the whole daemon");
        for damage in damaged.iter().filter(|damage| reported.insert((*damage).clone())) {
            let mark = Some(damage.id()).filter(|id| MarkId::parse(id).is_ok());
            error!(
                mark,
                "the {} row {} is damaged; it is not sent and not dropped: look at `nova-host-alerter list`",
                damage.table,
                damage.key
            );
        }
    }
}

fn controller() -> String {
    nix::unistd::gethostname()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_else(|_| "unknown".to_owned())
}
