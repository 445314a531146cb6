//! The figures of each group: how many hosts it has, how many are down, in flight and held, and how many more may fail.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use journal::{Done, Journal};
use marks::host::HostName;
use marks::id::MarkId;
use marks::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::inventory::Inventory;
use super::known::Known;
use super::orders::Orders;
use super::steer;
use super::steering::Policy;
use crate::config::Settings;
use crate::config::rules::Limit;
use crate::policy::state::{GroupState, State};

/// One group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupStatus {
    /// Its name.
    pub name: String,
    /// How many hosts it has, without those that are skipped or in maintenance.
    pub size: usize,
    /// How many of its marks are open.
    pub marked: usize,
    /// How many of its hosts count as down for its limit; 0 without a limit.
    pub unhealthy: usize,
    /// Of how many marks an attempt is under way.
    pub in_flight: usize,
    /// How many marks each reason holds, by the reason that is shown.
    pub held: BTreeMap<String, usize>,
    /// The limit, for people.
    pub limit: String,
    /// How many more hosts may fail before marks are held; absent without a limit.
    pub allowed: Option<usize>,
    /// Since when a storm holds; absent without one.
    pub storm_since: Option<Timestamp>,
}

/// Every group, in the order of the configuration.
///
/// # Errors
/// As any read.
pub fn groups(journal: &Journal, policy: Policy<'_>, now: Timestamp) -> Done<Vec<GroupStatus>> {
    let in_flight = journal.marks_in_flight()?;
    if let Some(known) = &policy.memory.steering().known {
        return Ok(known.groups(&in_flight));
    }
    // There is no plan, since nothing can hold a mark: count for this answer alone.
    let mut inventory = Inventory::default();
    let settings = policy.base.settings();
    inventory.renew(policy.base, &settings);
    let orders = Orders::read(journal, (policy.base, &settings), now)?;
    let (mut known, _) = steer::begin(journal, policy, (&inventory, settings, orders), now)?;
    known.state.pass_to(now);
    Ok(known.groups(&in_flight))
}

/// What is counted of a group now and then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupFigures {
    /// Its name.
    pub name: String,
    /// How many hosts it has, without those that are skipped or in maintenance.
    pub hosts: u64,
    /// How many of them count as down for its limit; 0 without a limit.
    pub down: u64,
    /// How many marks of its hosts are open.
    pub marks: u64,
    /// Since when a storm holds.
    pub storm_since: Option<Timestamp>,
}

/// Which host is in which group, as known at the last count.
#[derive(Default)]
pub struct Groups {
    inventory: Inventory,
    settings: Option<Arc<Settings>>,
}

impl Groups {
    /// Counts. It may wait for the journal's thread, so it needs a thread of its own.
    ///
    /// # Errors
    /// As any read.
    pub fn count(&mut self, policy: Policy<'_>, journal: &Journal) -> Done<Vec<GroupFigures>> {
        let settings = policy.base.settings();
        if self.settings.as_ref().is_none_or(|known| !Arc::ptr_eq(known, &settings)) {
            *self = Self { inventory: Inventory::default(), settings: Some(Arc::clone(&settings)) };
        }
        self.inventory.renew(policy.base, &settings);
        let mut marks = vec![0; settings.groups.len()];
        journal.nodes_with_open_marks(|node, count| {
            if let Ok(node) = HostName::parse(node) {
                marks[self.inventory.group_of(&settings, &node)] += count;
            }
        })?;
        let hosts = self.inventory.sizes(settings.groups.len(), &State::new(Vec::new()));
        let groups = settings.groups.iter().zip(hosts).zip(marks);
        let figures = groups.map(|((group, hosts), marks)| GroupFigures {
            name: group.name.clone(),
            hosts: count(hosts),
            down: 0,
            marks,
            storm_since: None,
        });
        let mut figures: Vec<GroupFigures> = figures.collect();
        let steering = policy.memory.steering();
        let known = steering.known.iter().flat_map(|known| known.state.groups());
        for (group, figures) in known.zip(&mut figures).filter(|(group, figures)| group.name == figures.name)
        {
            (figures.hosts, figures.down) = (count(group.size), count(group.unhealthy()));
            figures.storm_since = group.storm().since();
        }
        Ok(figures)
    }
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

impl Known {
    fn groups(&self, in_flight: &HashSet<MarkId>) -> Vec<GroupStatus> {
        let all = self.state.groups().iter().enumerate();
        all.map(|(index, group)| {
            let limit = self.settings.groups[index].limit_shown();
            self.group(index, group, in_flight, limit)
        })
        .collect()
    }

    fn group(
        &self,
        index: usize,
        group: &GroupState,
        in_flight: &HashSet<MarkId>,
        limit: String,
    ) -> GroupStatus {
        let mut held = BTreeMap::new();
        for subject in self.state.open_of(index) {
            if let Some(first) = self.planner.holds_of(subject.mark).first() {
                *held.entry(first.hold.as_str().to_owned()).or_default() += 1;
            }
        }
        let unhealthy = group.unhealthy();
        GroupStatus {
            name: group.name.clone(),
            size: group.size,
            marked: self.state.open_of(index).count(),
            unhealthy,
            in_flight: self.state.open_of(index).filter(|open| in_flight.contains(&open.mark)).count(),
            held,
            limit,
            allowed: most(group)
                .map(|most| if group.storm().holds() { 0 } else { most.saturating_sub(unhealthy) }),
            storm_since: group.storm().since(),
        }
    }
}

/// The most hosts that may be down.
fn most(group: &GroupState) -> Option<usize> {
    match group.rules.limit {
        Limit::None => None,
        Limit::AtMost(amount) => Some(amount.of(group.size)),
        Limit::Range { high, .. } => Some(usize::try_from(high).unwrap_or(usize::MAX)),
    }
}
