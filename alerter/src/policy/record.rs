//! What the policy writes: which marks are held and why, and which step of their chains may begin.

use std::collections::BTreeMap;
use std::time::Duration;

use journal::{Done, HeldMark, Journal};
use marks::id::MarkId;
use marks::time::Timestamp;
use tracing::warn;

use super::plan::{Changes, Planner};
use super::steering::{Policy, Steering};
use super::{Held, Hold};

/// How often all chains are checked, even if nothing has changed.
const ALL_CHAINS: Duration = Duration::from_secs(60);

/// What a former daemon held, and the plan has not decided about yet.
#[derive(Default)]
pub(super) struct Former(BTreeMap<MarkId, HeldMark>);

impl Former {
    /// As it stands in the journal.
    ///
    /// # Errors
    /// As any read.
    pub(super) fn read(journal: &Journal) -> Done<Self> {
        Ok(Self(journal.holds()?))
    }

    /// Whether a storm held.
    pub(super) fn is_stormy(&self) -> bool {
        self.0.values().any(|held| held.words.iter().any(|word| word == Hold::Storm.as_str()))
    }
}

/// Writes what is held and freed now, and frees what only a former daemon held.
///
/// # Errors
/// As any write.
pub(super) fn holds(
    journal: &mut Journal,
    former: Former,
    (planner, changes): (&Planner, &Changes),
    now: Timestamp,
) -> Done {
    let Former(former) = former;
    let is_new = |held: &HeldMark| {
        former.get(&held.mark).is_none_or(|old| HeldMark { since: held.since, ..old.clone() } != *held)
    };
    let (mut held, mut freed) = (Vec::new(), changes.freed.clone());
    for (mark, holds) in &changes.held {
        match row(*mark, holds, now) {
            Some(row) => held.extend(Some(row).filter(is_new)),
            // A mark whose only reasons are its own doubts has no row.
            None => freed.push(*mark),
        }
    }
    freed.extend(former.keys().filter(|mark| planner.holds_of(**mark).is_empty()));
    journal.hold(&held, &freed, now)
}

/// Frees every mark: there is nothing that could hold one.
///
/// # Errors
/// As any write.
pub(super) fn free_all(journal: &mut Journal, now: Timestamp) -> Done {
    let freed: Vec<MarkId> = journal.holds()?.into_keys().collect();
    journal.hold(&[], &freed, now)
}

/// The row of a mark that more than its own doubts hold.
fn row(mark: MarkId, holds: &[Held], now: Timestamp) -> Option<HeldMark> {
    let own: Vec<_> = holds.iter().filter(|held| !held.hold.is_doubt()).collect();
    let first = own.first()?;
    let words = own.iter().map(|held| held.hold.as_str().to_owned()).collect();
    let (until, why, cause) = (first.until, first.why.as_ref().to_owned(), first.cause.clone());
    Some(HeldMark { mark, words, until, why, cause, since: now })
}

/// Lets chains go on whose marks may be sent. Now and then all chains are checked, else those whose marks have changed.
///
/// # Errors
/// As any write.
pub(super) fn chains(
    journal: &mut Journal,
    policy: Policy<'_>,
    (steering, is_permitted): (&mut Steering, bool),
    now: Timestamp,
) -> Done {
    let may_go = |mark| is_permitted && steering.holds_of(mark).is_empty();
    let settings = policy.base.settings();
    let is_there = |name: &str| settings.routes.iter().any(|route| route.name.as_str() == name);
    let is_recent = |at: Timestamp| at <= now && now.since(at) < ALL_CHAINS;
    let checks_all = !steering.all_chains.is_some_and(is_recent);
    let advanced = match checks_all {
        true => journal.advance_chains(&may_go, &is_there, now)?,
        false => journal.advance_stirred(&steering.changed, &may_go, &is_there, now)?,
    };
    steering.changed.clear();
    if checks_all {
        steering.all_chains = Some(now);
    }
    for step in &advanced.escalated {
        warn!(mark = %step.mark.id, host = %step.mark.node, route = %step.delivery.route, "the mark of {} goes on to route {}: the step before did not acknowledge it", step.mark.node, step.delivery.route);
    }
    for step in &advanced.exhausted {
        warn!(mark = %step.mark.id, host = %step.mark.node, route = %step.delivery.route, "no step of the chain acknowledged the mark of {}: route {} is retried", step.mark.node, step.delivery.route);
    }
    steering.step_ends = journal.next_step(now)?;
    Ok(())
}
