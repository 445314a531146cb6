//! What operators decided that is in force, in the policy's words.

use std::collections::HashMap;

use journal::{Done, Journal};
use marks::register::{About, Cause, Decision, Scope};
use marks::time::Timestamp;

use crate::base::Base;
use crate::config::Settings;
use crate::policy::hold;
use crate::policy::state::{Order, Whom};

/// What operators decided.
#[derive(Debug, Default)]
pub(super) struct Orders {
    pub(super) maintenance: Vec<Order>,
    pub(super) pauses: Vec<Order>,
    /// When each group was released last, by its index.
    pub(super) released: HashMap<usize, Timestamp>,
    /// A sentence for each decision about a group that is not configured: it holds every host.
    pub(super) strays: Vec<String>,
    /// Since when a part of the register is missing, which may have more of them.
    pub(super) partial_since: Option<Timestamp>,
}

impl Orders {
    pub(super) fn read(
        journal: &Journal,
        (base, settings): (&Base, &Settings),
        now: Timestamp,
    ) -> Done<Self> {
        let found = journal.decisions_in_force(now)?;
        base.damages.report(&found.damaged);
        let started = *base.started();
        let partial_since = base.seen().partial_after.map(|after| started + after);
        let mut orders = Self { partial_since, ..Self::default() };
        found.sound.iter().for_each(|decision| orders.add(settings, decision));
        Ok(orders)
    }

    fn add(&mut self, settings: &Settings, decision: &Decision) {
        match &decision.about {
            About::Pause { scope, until } => {
                let order = self.order(settings, decision, scope, *until);
                self.pauses.extend(order);
            }
            About::Maintenance { scope, until } => {
                let order = self.order(settings, decision, scope, Some(*until));
                self.maintenance.extend(order);
            }
            About::ReleaseGroup(name) => {
                if let Some(index) = index_of(settings, name) {
                    let at = self.released.entry(index).or_insert(decision.at);
                    *at = (*at).max(decision.at);
                }
            }
            About::Release(_) => {}
        }
    }

    /// A group that is not configured here may have another name now, or be in another controller's configuration. Its hosts are
    /// not known, so an order about it holds every host.
    fn order(
        &mut self,
        settings: &Settings,
        decision: &Decision,
        scope: &Scope,
        until: Option<Timestamp>,
    ) -> Option<Order> {
        let why = hold::of_decision(decision)?;
        let (whom, why) = match scope {
            Scope::All => (Whom::All, why),
            Scope::Host(host) => (Whom::Host(host.clone()), why),
            Scope::Group(name) => match index_of(settings, name) {
                Some(index) => (Whom::Group(index), why),
                None => {
                    self.strays.push(hold::of_stray(&why, decision, name));
                    (Whom::All, format!("{why}{}", hold::STRAY))
                }
            },
        };
        let cause = Cause { scope: Some(scope.clone()), decision: Some(decision.id) };
        Some(Order { whom, until, why: why.into(), cause })
    }

    /// Whether there is none that holds anything.
    pub(super) fn is_empty(&self) -> bool {
        self.maintenance.is_empty() && self.pauses.is_empty() && self.partial_since.is_none()
    }
}

fn index_of(settings: &Settings, name: &str) -> Option<usize> {
    settings.groups.iter().position(|group| group.name == name)
}
