//! The daemon's state apart from the journal: what each part of it remembers, in one place for those who show it.

pub mod counters;
pub mod reloads;
pub mod supervisor;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use marks::id::MarkId;
use marks::time::Timestamp;
use tokio::sync::Notify;

use crate::base::Base;
use crate::config::Route;
use crate::delivery::{RouteStates, Sending, stranded};
use crate::health::Health;
use crate::intake::account::{self, Accounts};
use crate::listen::Unserved;
use crate::lock::lock;
use crate::policy::groups::GroupFigures;
use crate::policy::steer::{Policy, PolicyMemory};
use crate::problem::{Kind, Reason};
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
    /// What every part stands on.
    pub base: Arc<Base>,
    /// What is known of the routes.
    pub routes: Arc<RouteStates>,
    /// What the policy remembers.
    pub policy: PolicyMemory,
    /// Which fencings and sightings have an end that can be shown.
    pub accounts: Accounts,
    /// Says that something was changed from here.
    pub poke: Notify,
    /// Says that the engine has looked at everything once more.
    pub looked: Notify,
    /// Says the same to whoever counts what there is.
    pub passed: Notify,
    /// Whether the daemon is well, for `/health`.
    pub health: Arc<Health>,
    /// Who is told that the engine gets on, and since when it does not.
    pub supervisor: Supervisor,
    /// Which of our own endpoints are not served at the moment.
    pub unserved: Unserved,
    /// The new configuration that the engine is to take up between two passes.
    pub reloads: Reloads,
    /// What is counted while the daemon runs.
    pub metrics: Metrics,
    figures: Mutex<Arc<Figures>>,
    journal_trouble: Mutex<Option<String>>,
    api_trouble: Mutex<Option<String>>,
    reload_trouble: Mutex<Option<String>>,
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
            looked: Notify::new(),
            passed: Notify::new(),
            health: Arc::default(),
            supervisor: Supervisor::of_environment(),
            unserved: Unserved::default(),
            reloads: Reloads::default(),
            metrics: Metrics::default(),
            figures: Mutex::default(),
            journal_trouble: Mutex::default(),
            api_trouble: Mutex::default(),
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

    /// What the journal held when it was counted last: a second ago, or longer where it is large or where nothing has changed.
    pub fn figures(&self) -> Arc<Figures> {
        Arc::clone(&lock(&self.figures))
    }

    /// It was counted anew.
    pub fn put_figures(&self, figures: Figures) {
        *lock(&self.figures) = Arc::new(figures);
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
        let is_required = |name: &str| self.base.route(name).is_some_and(|route| counts(&route));
        let routes = self.routes.troubles().lasting(now, self.base.settings().degraded_after, is_required);
        let mut reasons: Vec<Reason> = routes.into_iter().map(|why| Reason::of(Kind::Route, why)).collect();
        reasons.extend(self.journal_trouble().clone().map(|why| Reason::of(Kind::Journal, why)));
        reasons.extend(self.api_trouble().clone().map(|why| Reason::of(Kind::Unserved, why)));
        reasons.extend(self.unserved.reasons().into_iter().map(|why| Reason::of(Kind::Unserved, why)));
        reasons.extend(self.reload_trouble().clone().map(|why| Reason::of(Kind::Reload, why)));
        reasons.extend(self.routes.stranded().iter().map(|(route, marks)| Reason {
            route: Some(route.clone()),
            ..Reason::of(Kind::Stranded, stranded::sentence(route, *marks))
        }));
        reasons.extend(self.policy.strays().iter().map(|why| Reason::of(Kind::UnknownGroup, why.clone())));
        let unaccounted = account::sentence(&self.base, &self.accounts);
        reasons.extend(unaccounted.map(|why| Reason::of(Kind::Unaccounted, why)));
        let cluster = self.base.seen().reasons().into_iter();
        reasons.extend(cluster.map(|(matter, why)| Reason::of(Kind::of_fault(matter), why)));
        reasons
    }

    /// Why the journal cannot be written at the moment; a passing fault.
    pub fn journal_trouble(&self) -> MutexGuard<'_, Option<String>> {
        lock(&self.journal_trouble)
    }

    /// Why the API is not served at its address.
    pub fn api_trouble(&self) -> MutexGuard<'_, Option<String>> {
        lock(&self.api_trouble)
    }

    /// Why the configuration that stands in the files is not the one in force.
    pub fn reload_trouble(&self) -> MutexGuard<'_, Option<String>> {
        lock(&self.reload_trouble)
    }

    /// Marks of which it was said that Pacemaker has not confirmed them.
    pub fn unproven(&self) -> MutexGuard<'_, BTreeSet<MarkId>> {
        lock(&self.unproven)
    }
}
