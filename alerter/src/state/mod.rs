//! The daemon's state apart from the journal: what each part remembers, in one place for the parts that show it.

pub mod counters;
pub mod reloads;
pub mod supervisor;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use journal::{Done, JournalError};
use marks::id::MarkId;
use marks::time::Timestamp;
use pacemaker::cib::Cib;
use tokio::sync::Notify;

use crate::base::Base;
use crate::config::{HostRules, Route, Settings};
use crate::delivery::{RouteStates, Sending};
use crate::health::{Health, SLOW, STUCK};
use crate::intake::account::{self, Accounts};
use crate::intake::{coverage, roll};
use crate::listen::Unserved;
use crate::lock::lock;
use crate::policy::groups::GroupFigures;
use crate::policy::steering::{Policy, PolicyMemory};
use crate::problem::{self, NotInForce, Place, Problem, RouteSight, Sight};
use crate::state::counters::Metrics;
use crate::state::reloads::Reloads;
use crate::state::supervisor::Supervisor;
use drivers::Step;

/// What was counted last.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// In the journal.
    pub journal: journal::Figures,
    /// In the groups, in the order of the configuration.
    pub groups: Vec<GroupFigures>,
}

/// The state.
pub struct Shared {
    /// What all parts share.
    pub base: Arc<Base>,
    /// What is known of the routes.
    pub routes: Arc<RouteStates>,
    /// What the policy remembers.
    pub policy: PolicyMemory,
    /// The account of fencings and sightings.
    pub accounts: Accounts,
    /// Wakes the engine: something was changed from here.
    pub poke: Notify,
    /// Wakes the counting: the engine has done a pass.
    pub passed: Notify,
    /// The checks of `/health`.
    pub health: Arc<Health>,
    /// The service manager, and how long the engine has made no progress.
    pub supervisor: Supervisor,
    /// Which of the alerter's own addresses are not served at the moment.
    pub unserved: Unserved,
    /// The new configuration that the engine has to put in force between two passes.
    pub reloads: Reloads,
    /// What is counted while the daemon runs.
    pub metrics: Metrics,
    figures: Mutex<Arc<Figures>>,
    journal_trouble: Mutex<Option<(Instant, String)>>,
    reload_trouble: Mutex<Option<NotInForce>>,
    unproven: Mutex<BTreeSet<MarkId>>,
}

impl Shared {
    /// New state; nothing is wrong yet.
    pub fn new(base: Base) -> Self {
        Self {
            base: Arc::new(base),
            routes: Arc::default(),
            policy: PolicyMemory::default(),
            accounts: Accounts::default(),
            poke: Notify::new(),
            passed: Notify::new(),
            health: Arc::default(),
            supervisor: Supervisor::of_environment(),
            unserved: Unserved::default(),
            reloads: Reloads::default(),
            metrics: Metrics::default(),
            figures: Mutex::default(),
            journal_trouble: Mutex::default(),
            reload_trouble: Mutex::default(),
            unproven: Mutex::default(),
        }
    }

    /// The policy with what it goes by.
    pub fn policy(&self) -> Policy<'_> {
        Policy { base: &self.base, routes: &self.routes, memory: &self.policy }
    }

    /// What attempts go by.
    pub fn sending(&self) -> Sending {
        Sending { base: Arc::clone(&self.base), routes: Arc::clone(&self.routes) }
    }

    /// The CIB as it is now, for a question that must not be answered by an old one; none where there is no cluster, or it cannot be read.
    pub async fn cib_now(&self) -> Option<Arc<Cib>> {
        let come = self.base.looks.seen_again();
        self.poke.notify_one();
        let is_new = self.base.cluster.is_some() && come.await;
        self.base.seen().view.as_ref().filter(|_| is_new)?.cib.as_ref().ok().cloned()
    }

    /// Whether the register was not read since this start: what is not found in the journal may stand there.
    pub fn is_register_unread(&self) -> bool {
        self.base.cluster.is_some() && self.base.seen().register.is_none()
    }

    /// Waits for the first reading of the register, for some seconds at most.
    pub async fn first_reading(&self) {
        let come = self.base.looks.seen_again();
        if self.is_register_unread() {
            come.await;
        }
    }

    /// Waits until everything in this journal was read in the register; false where that takes too long.
    pub async fn is_known_elsewhere(&self) -> bool {
        let come = self.base.looks.whole_again();
        self.poke.notify_one();
        self.base.cluster.is_none() || come.await
    }

    /// What was held or ended may have been the last delivery of a route in trouble.
    ///
    /// # Errors
    /// As any read.
    pub async fn forget_troubles(&self) -> Done {
        let waiting = self.base.store.run(|journal| journal.waiting()).await?;
        self.routes.troubles().keep_only(|route| waiting.contains_key(route));
        Ok(())
    }

    /// What the journal held when it was counted last: a second ago, or longer where it is large or where nothing has changed.
    pub fn figures(&self) -> Arc<Figures> {
        Arc::clone(&lock(&self.figures))
    }

    /// It was counted again.
    pub fn put_figures(&self, figures: Figures) {
        *lock(&self.figures) = Arc::new(figures);
    }

    /// What is wrong, as far as it is in memory.
    pub fn problems(&self, now: Timestamp) -> Vec<Problem> {
        problem::problems(&self.sight(now))
    }

    /// Why the daemon is degraded; one sentence each.
    pub fn reasons(&self, now: Timestamp) -> Vec<String> {
        self.reasons_of(&self.problems(now), now)
    }

    /// The same, where these are its problems.
    pub fn reasons_of(&self, problems: &[Problem], now: Timestamp) -> Vec<String> {
        let (figures, damaged) = (self.figures(), self.base.damages.count());
        let limit = self.base.settings().degraded_after;
        let own = problems.iter().filter(|one| one.degrades).map(|one| one.what.clone());
        own.chain(problem::reasons_of_marks(&figures.journal, damaged, limit, now)).collect()
    }

    /// What is wrong with the cluster; none where there is none to ask.
    pub fn cluster_problems(&self, now: Timestamp) -> Vec<Problem> {
        let hosts = &self.base.settings().hosts;
        self.base.cluster.iter().flat_map(|_| problem::of_cluster(&self.cluster_sight(hosts), now)).collect()
    }

    /// All that is seen at this moment, without reading the journal. No two locks are held at once.
    pub fn sight(&self, now: Timestamp) -> Sight {
        let settings = self.base.settings();
        let journal = self.journal_sentence();
        let reload = self.reload_trouble().clone();
        let stranded = self.routes.stranded().clone();
        let unknown_groups = self.policy.strays().clone();
        Sight {
            now,
            place: place(&settings),
            degraded_after: settings.degraded_after,
            stalled: self.supervisor.wedged(),
            journal,
            unserved: self.unserved.reasons(),
            reload,
            routes: settings.routes.iter().map(|route| self.route_sight(route, now)).collect(),
            stranded,
            unknown_groups,
            unaccounted: account::unaccounted(&self.base, &self.accounts, Instant::now()),
            cluster: self.base.cluster.as_ref().map(|_| self.cluster_sight(&settings.hosts)),
        }
    }

    fn route_sight(&self, route: &Route, now: Timestamp) -> RouteSight {
        let name = route.name.as_str();
        let trouble = self.routes.troubles().of(name).cloned();
        let (waits, is_parked) = self.routes.outboxes().get(name).map_or((None, false), |outbox| {
            (outbox.endpoint.waits(Instant::now()), outbox.endpoint.is_parked())
        });
        let about = route.driver.about();
        RouteSight {
            name: name.to_owned(),
            driver: about.kind,
            endpoint: about.endpoint.clone(),
            usually_away: about.usually_away,
            limit: about.limit,
            required: route.required,
            // A return that fails keeps no mark open, but a living host down.
            degrades: route.required || route.step == Step::Return,
            secret: about.secret_file.as_ref().map(|file| file.display().to_string()),
            trouble,
            is_parked,
            waits_until: waits.map(|rest| now + rest),
            waiting: None,
        }
    }

    fn cluster_sight(&self, rules: &HostRules) -> problem::Cluster {
        let seen = self.base.seen();
        let guests = seen.cib.as_ref().map(|cib| roll::guests(rules, cib)).unwrap_or_default();
        let guests = guests.into_iter().filter_map(|guest| Some((guest.host?, guest.why.detail)));
        problem::Cluster {
            is_permitted: seen.view.as_ref().is_some_and(|view| view.permits().is_ok()),
            faults: seen.faults(),
            missed: seen.missed(),
            guests: guests.collect(),
            marks: seen.cib.as_ref().map(|cib| cib.mark_faults()).unwrap_or_default(),
            unhealthy: seen.cib.as_ref().map(|cib| cib.unhealthy()).unwrap_or_default(),
            age: seen.age(),
            entries: seen.register.as_ref().map_or(0, |entries| entries.sound.len()),
            longest_answer: seen.view.as_ref().and_then(|view| view.kept.longest_answer),
        }
    }

    /// Since when the journal cannot be written, and why; a passing fault.
    pub fn journal_trouble(&self) -> MutexGuard<'_, Option<(Instant, String)>> {
        lock(&self.journal_trouble)
    }

    /// How long the journal could not be written although something was to be, and why.
    fn unwritten(&self) -> Option<(Duration, String)> {
        let busy = self.base.store.busy_for().filter(|time| *time > SLOW);
        let hung =
            |time| (time, JournalError::Hung { path: self.base.settings().store.path.clone() }.to_string());
        let trouble = self.journal_trouble().clone().map(|(since, why)| (since.elapsed(), why));
        trouble.or_else(|| busy.map(hung))
    }

    /// Whether another controller could do what this one cannot, for want of a disk: the monitor fails then.
    pub fn is_better_elsewhere(&self) -> bool {
        self.unwritten().is_some_and(|(time, _)| time > STUCK) && self.has_another_controller()
    }

    fn has_another_controller(&self) -> bool {
        self.base.cib().is_some_and(|cib| {
            let hosts = coverage::own_hosts(&self.base.settings().hosts, &cib);
            cib.has_other_controller_online(&self.base.controller, &hosts)
        })
    }

    fn journal_sentence(&self) -> Option<String> {
        let (time, why) = self.unwritten()?;
        let where_to = match self.has_another_controller() {
            _ if time <= STUCK || self.base.cluster.is_none() => "",
            true => "; Pacemaker is to move the alerter to another controller",
            false => "; no other controller is online to run the alerter",
        };
        Some(format!("{why}{where_to}"))
    }

    /// Why the configuration in the files is not in force.
    pub fn reload_trouble(&self) -> MutexGuard<'_, Option<NotInForce>> {
        lock(&self.reload_trouble)
    }

    /// Marks that were logged as not confirmed by Pacemaker.
    pub fn unproven(&self) -> MutexGuard<'_, BTreeSet<MarkId>> {
        lock(&self.unproven)
    }
}

/// Where an operator has to go on a controller with this configuration.
pub fn place(settings: &Settings) -> Place {
    let store = &settings.store.path;
    Place {
        file: settings.file.display().to_string(),
        directory: store.parent().unwrap_or(store).display().to_string(),
        log: settings.log.to.how_to_read(),
    }
}
