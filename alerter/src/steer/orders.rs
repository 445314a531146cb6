//! What operators decided that is in force, in the policy's words.

use std::collections::HashMap;
use std::time::Duration;

use marks::journal::{Journal, JournalError};
use marks::register::{About, Decision, Scope};
use marks::time::Timestamp;

use crate::config::Settings;
use crate::policy::state::{Order, Whom};
use crate::policy::why;
use crate::shared::Shared;

/// Controllers' clocks may differ by so much.
const SKEW: Duration = Duration::from_secs(60);

/// What operators decided.
#[derive(Debug, Default)]
pub(super) struct Orders {
    pub(super) maintenance: Vec<Order>,
    pub(super) pauses: Vec<Order>,
    /// When each group was released last, by its index.
    pub(super) released: HashMap<usize, Timestamp>,
}

impl Orders {
    pub(super) fn read(
        journal: &Journal,
        (shared, settings): (&Shared, &Settings),
        now: Timestamp,
    ) -> Result<Self, JournalError> {
        let found = journal.decisions_in_force(now)?;
        shared.report_damage(&found.damaged);
        let mut orders = Self::default();
        found.sound.iter().for_each(|decision| orders.add(settings, decision, now));
        Ok(orders)
    }

    fn add(&mut self, settings: &Settings, decision: &Decision, now: Timestamp) {
        match &decision.about {
            About::Pause { scope, until } => {
                self.pauses.extend(order(settings, decision, scope, *until));
            }
            About::Maintenance { scope, until } => {
                self.maintenance.extend(order(settings, decision, scope, Some(*until)));
            }
            // One that is dated later than now would release what nobody has seen yet.
            About::ReleaseGroup(_) if decision.at > now + SKEW => {}
            About::ReleaseGroup(name) => {
                if let Some(index) = index_of(settings, name) {
                    let at = self.released.entry(index).or_insert(decision.at);
                    *at = (*at).max(decision.at);
                }
            }
            About::Release(_) => {}
        }
    }

    /// Whether there is none that holds anything.
    pub(super) fn is_empty(&self) -> bool {
        self.maintenance.is_empty() && self.pauses.is_empty()
    }
}

/// None for a group that is not configured any more: its hosts are in others.
fn order(settings: &Settings, decision: &Decision, scope: &Scope, until: Option<Timestamp>) -> Option<Order> {
    let whom = match scope {
        Scope::All => Whom::All,
        Scope::Group(name) => Whom::Group(index_of(settings, name)?),
        Scope::Host(host) => Whom::Host(host.clone()),
    };
    Some(Order { whom, until, why: why::of_decision(decision)?.into() })
}

fn index_of(settings: &Settings, name: &str) -> Option<usize> {
    settings.groups.iter().position(|group| group.name == name)
}
