//! What the policy remembers, and what other parts ask it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use drivers::Named;
use journal::{Done, Journal};
use marks::id::MarkId;
use marks::time::Timestamp;
use tracing::warn;

use super::inventory::Inventory;
use super::known::{Known, Probed};
use super::state::{State, Subject};
use super::{Held, Hold};
use crate::base::Base;
use crate::config::Settings;
use crate::delivery::RouteStates;
use crate::lock::lock;
use crate::probes::{Conclusion, Confirm};

/// What the policy remembers.
#[derive(Default)]
pub struct PolicyMemory {
    steering: Mutex<Steering>,
    conclusions: Mutex<HashMap<MarkId, Conclusion>>,
    strays: Mutex<Vec<String>>,
}

impl PolicyMemory {
    /// The plan, as the journal's thread made it last.
    pub fn steering(&self) -> MutexGuard<'_, Steering> {
        lock(&self.steering)
    }

    /// What probes have said since the last plan.
    pub fn conclusions(&self) -> MutexGuard<'_, HashMap<MarkId, Conclusion>> {
        lock(&self.conclusions)
    }

    /// A sentence for each operator's decision about a group that is not configured: it holds every host.
    pub fn strays(&self) -> MutexGuard<'_, Vec<String>> {
        lock(&self.strays)
    }

    /// Replaces them, and logs each that is new.
    pub(super) fn put_strays(&self, strays: &[String]) {
        let mut known = self.strays();
        strays.iter().filter(|stray| !known.contains(stray)).for_each(|stray| warn!("{stray}"));
        strays.clone_into(&mut known);
    }
}

/// The policy with what it goes by.
#[derive(Clone, Copy)]
pub struct Policy<'a> {
    /// The configuration, and what is seen of the cluster.
    pub base: &'a Base,
    /// What is being sent.
    pub routes: &'a RouteStates,
    /// What it remembers.
    pub memory: &'a PolicyMemory,
}

/// What is known, and up to where.
#[derive(Default)]
pub struct Steering {
    pub(super) inventory: Inventory,
    /// None while nothing can hold a mark, and where it has to be read again.
    pub(super) known: Option<Known>,
    /// The configuration of the last plan.
    settings: Option<Arc<Settings>>,
    /// What operators decided is known up to here; none where there is no plan.
    pub(super) decided: Option<i64>,
    /// When the time of a chain's step is over.
    pub(super) step_ends: Option<Timestamp>,
    /// When all chains were checked; none after a start.
    pub(super) all_chains: Option<Timestamp>,
    /// The marks that are held or freed since chains were checked.
    pub(super) changed: Vec<MarkId>,
}

impl Steering {
    /// When something changes by itself.
    pub fn next(&self) -> Option<Timestamp> {
        self.known.as_ref().and_then(|known| known.next).into_iter().chain(self.step_ends).min()
    }

    /// Why the policy holds a mark; nothing where it does not.
    pub fn holds_of(&self, mark: MarkId) -> &[Held] {
        self.known.as_ref().map_or(&[], |known| known.planner.holds_of(mark))
    }

    /// Whether the configuration is that of the last plan.
    fn is_of(&self, settings: &Arc<Settings>) -> bool {
        self.settings.as_ref().is_some_and(|known| Arc::ptr_eq(known, settings))
    }

    /// After a reload. Where groups or hosts have changed, everything is read again, as at a start; findings of probes that are the
    /// same are kept. Gives these.
    pub(super) fn renew(&mut self, settings: &Arc<Settings>) -> Probed {
        if self.is_of(settings) {
            return Probed::new();
        }
        self.settings = Some(Arc::clone(settings));
        (self.decided, self.all_chains) = (None, None);
        match &mut self.known {
            Some(known) if known.is_of(settings) => {
                known.settings = Arc::clone(settings);
                Probed::new()
            }
            _ => self.known.take().map(|known| known.probed(settings)).unwrap_or_default(),
        }
    }

    /// Whether nothing can have changed except in the cluster, which is polled separately.
    pub(super) fn is_current(&self, journal: &Journal, policy: Policy<'_>, now: Timestamp) -> Done<bool> {
        if !self.is_of(&policy.base.settings()) || self.decided != Some(journal.decisions_version()?) {
            return Ok(false);
        }
        let Some(known) = &self.known else { return Ok(true) };
        let is_early = known.next.is_none_or(|next| now < next);
        let is_by_clock = known.is_by_clock(*policy.base.started());
        let is_quiet = is_early && is_by_clock && policy.memory.conclusions().is_empty();
        Ok(is_quiet && journal.newest_history()? == known.seen)
    }

    /// What the plan knows of a mark's probes.
    pub fn probe_of(&self, mark: MarkId) -> Option<&Conclusion> {
        Some(&self.known.as_ref()?.state.subject(mark)?.probe)
    }

    /// What is known of the groups; none while nothing can hold a mark.
    pub fn state(&self) -> Option<&State> {
        Some(&self.known.as_ref()?.state)
    }

    /// The storms that hold, a sentence each.
    pub fn stormy(&self) -> Vec<String> {
        let groups = self.state().map_or(&[][..], State::groups);
        let stormy = groups.iter().filter(|group| group.storm().holds());
        stormy.map(|group| group.storm_sentence().to_owned()).collect()
    }

    /// Whether there is a group that is sent a few at a time.
    pub fn is_limited(&self) -> bool {
        self.known.as_ref().is_some_and(Known::is_limited)
    }

    /// Marks that wait for the probes of their groups, each with its host and its probes, in the order in which they are sent. A mark
    /// without a full name waits for that first.
    pub fn to_probe(&self) -> Vec<(MarkId, Named, Confirm)> {
        let Some(known) = &self.known else { return Vec::new() };
        let groups = known.state.groups().iter().enumerate().filter(|(_, group)| group.probes);
        let open = groups.flat_map(|(index, _)| known.state.open_of(index));
        let waits = |subject: &&Subject| {
            let first = known.planner.holds_of(subject.mark).first();
            first.is_some_and(|held| held.hold == Hold::Confirm)
        };
        let question = |subject: &Subject| {
            let confirm = known.settings.groups[subject.group].confirm.clone()?;
            let host = Named { node: subject.host.clone(), fqdn: subject.fqdn.clone()? };
            Some((subject.mark, host, confirm))
        };
        open.filter(waits).filter_map(question).collect()
    }
}
