//! What the engine, the attempts and the control socket share.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard};

use marks::journal::Damage;
use marks::time::Timestamp;
use tokio::sync::Notify;
use tracing::error;

use crate::config::{Route, Settings};
use crate::delivery::trouble::Troubles;
use crate::store::Store;

/// The daemon's state, apart from the journal.
pub struct Shared {
    /// The configuration, fixed for the life of the daemon.
    pub settings: Settings,
    /// The journal.
    pub store: Store,
    /// Says that something was changed from here.
    pub poke: Notify,
    troubles: Mutex<Troubles>,
    journal_trouble: Mutex<Option<String>>,
    reported: Mutex<HashSet<Damage>>,
}

impl Shared {
    /// New state; nothing is wrong yet.
    pub fn new(settings: Settings, store: Store) -> Self {
        Self {
            settings,
            store,
            poke: Notify::new(),
            troubles: Mutex::default(),
            journal_trouble: Mutex::default(),
            reported: Mutex::default(),
        }
    }

    /// The routes in trouble.
    pub fn troubles(&self) -> MutexGuard<'_, Troubles> {
        self.troubles.lock().expect("a panic anywhere ends the whole daemon")
    }

    /// Why the daemon works, but not well; one sentence each. Answered from memory.
    pub fn reasons(&self, now: Timestamp) -> Vec<String> {
        let mut reasons = self.troubles().lasting(now, self.settings.degraded_after);
        reasons.extend(self.journal_trouble().clone());
        reasons
    }

    /// Why the journal cannot be written at the moment; a passing fault.
    pub fn journal_trouble(&self) -> MutexGuard<'_, Option<String>> {
        self.journal_trouble.lock().expect("a panic anywhere ends the whole daemon")
    }

    /// A configured route.
    pub fn route(&self, name: &str) -> Option<&Route> {
        self.settings.routes.iter().find(|route| route.name.as_str() == name)
    }

    /// Says once of each damaged row that it is damaged.
    pub fn report_damage(&self, damaged: &[Damage]) {
        let mut reported = self.reported.lock().expect("a panic anywhere ends the whole daemon");
        for damage in damaged.iter().filter(|damage| reported.insert((*damage).clone())) {
            error!(
                "the {} row {} is damaged; it is not sent and not dropped: look at it with `nova-host-alerter show`",
                damage.table, damage.key
            );
        }
    }
}
