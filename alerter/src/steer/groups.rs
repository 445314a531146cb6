//! What `status` says of each group: how many hosts it has, how many are down, told, held, and may be told now.

use std::collections::{BTreeMap, HashSet};

use marks::delivery::State as Sent;
use marks::id::MarkId;
use marks::journal::{Journal, JournalError};
use marks::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::Plan;
use super::roster::Roster;
use crate::policy::rules::Limit;
use crate::policy::state::GroupState;
use crate::shared::Shared;

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
    /// How many marks each reason holds that is shown.
    pub held: BTreeMap<String, usize>,
    /// The limit, for people.
    pub limit: String,
    /// How many more hosts may fail before telling is held; absent without a limit.
    pub allowed: Option<usize>,
    /// Milliseconds since the epoch since when a storm holds; absent without one.
    pub storm_since: Option<i64>,
}

/// Every group, in the order of the configuration.
///
/// # Errors
/// As any read.
pub fn groups(journal: &Journal, shared: &Shared, now: Timestamp) -> Result<Vec<GroupStatus>, JournalError> {
    let open = journal.open_deliveries()?.sound;
    let in_flight = open.iter().filter(|delivery| delivery.state == Sent::InFlight);
    let in_flight: HashSet<MarkId> = in_flight.map(|delivery| delivery.mark).collect();
    if let Some(plan) = &shared.steering().plan {
        return Ok(plan.groups(shared, &in_flight));
    }
    // Nothing can hold anything: it is counted for this answer alone.
    let mut roster = Roster::default();
    roster.look(shared);
    let mut plan = Plan::begin(journal, shared, &roster, now)?;
    plan.state.pass_to(now);
    Ok(plan.groups(shared, &in_flight))
}

impl Plan {
    fn groups(&self, shared: &Shared, in_flight: &HashSet<MarkId>) -> Vec<GroupStatus> {
        let all = self.state.groups().iter().enumerate();
        all.map(|(index, group)| {
            let limit = shared.settings().groups[index].limit_shown();
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
            storm_since: group.storm().since().map(|at| at.0),
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
