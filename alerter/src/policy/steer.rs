//! Steers delivery by the policy: reads what has changed, decides, and writes what is held. Everything that makes a mark is
//! followed by this before anything is sent.

use std::sync::Arc;
use std::time::Duration;

use journal::{Capacity, Done, Journal, RegisterWait};
use marks::time::Timestamp;

use super::inventory::Inventory;
use super::known::{Known, News};
use super::news;
use super::orders::Orders;
use super::record::{self, Former};
use super::state::Subject;
use super::steering::{Policy, Steering};
use crate::config::rules::Rules;
use crate::config::{Group, Settings};

/// So long after a start marks wait for the first CIB.
const FIRST_CIB: Duration = Duration::from_secs(60);

/// As [`steer`], if anything may have changed since. Then what only matters while marks may be sent: chains go on, and limited
/// groups admit their first marks. It comes before what is due is read, with the same capacity.
///
/// # Errors
/// As [`steer`].
pub fn keep_up(
    journal: &mut Journal,
    policy: Policy<'_>,
    capacity: (&[Capacity], Option<RegisterWait>),
    now: Timestamp,
) -> Done {
    let is_current = policy.memory.steering().is_current(journal, policy, now)?;
    if !is_current {
        steer(journal, policy, now)?;
    }
    let steering = &mut *policy.memory.steering();
    record::chains(journal, policy, (steering, true), now)?;
    admit(journal, policy, (steering, capacity), now)
}

/// Brings the plan up to date and writes what has changed.
///
/// # Errors
/// As any write. After an error nothing may be sent; everything is read again the next time.
pub fn steer(journal: &mut Journal, policy: Policy<'_>, now: Timestamp) -> Done {
    // Before the first CIB the groups are not known: what was held stays so, and the engine sends nothing.
    if waits_for_cib(policy, now) { Ok(()) } else { plan(journal, policy, now) }
}

/// While nothing may be sent the clocks of all chains stand.
///
/// # Errors
/// As any write.
pub fn stop_chains(journal: &mut Journal, policy: Policy<'_>, now: Timestamp) -> Done {
    let steering = &mut *policy.memory.steering();
    steering.all_chains = None;
    record::chains(journal, policy, (steering, false), now)?;
    steering.all_chains = None;
    Ok(())
}

/// Whether marks still wait for the first CIB. They do not wait forever: a CIB that never comes must not lose them.
pub fn waits_for_cib(policy: Policy<'_>, now: Timestamp) -> bool {
    policy.base.cluster.is_some()
        && policy.base.cib().is_none()
        && now.since(*policy.base.started()) < FIRST_CIB
}

fn plan(journal: &mut Journal, policy: Policy<'_>, now: Timestamp) -> Done {
    let steering = &mut *policy.memory.steering();
    let settings = policy.base.settings();
    let probed = steering.renew(&settings);
    let (version, has_begun) = (journal.decisions_version()?, steering.decided.take().is_some());
    let orders = Orders::read(journal, (policy.base, &settings), now)?;
    policy.memory.put_strays(&orders.strays);
    let is_new = steering.inventory.renew(policy.base, &settings);
    let known = steering.known.take();
    if is_needed(&settings, &orders, &steering.inventory) {
        let (mut known, former) = match known {
            Some(mut known) => {
                known.mind_the_clock(*policy.base.started(), now);
                let news = News::since(known.seen, journal, policy, known.is_limited(), now)?;
                known.take_up((&steering.inventory, is_new), orders, news, now);
                (known, Former::default())
            }
            None => {
                steering.all_chains = None;
                let (mut known, former) =
                    begin(journal, policy, (&steering.inventory, settings, orders), now)?;
                known.take_over(probed);
                (known, former)
            }
        };
        known.take_conclusions(policy.memory.conclusions().drain());
        decide(journal, steering, (known, former), now)?;
    } else if known.is_some() || !has_begun {
        steering.all_chains = None;
        record::free_all(journal, now)?;
    }
    steering.decided = Some(version);
    Ok(())
}

/// Reads everything, as a daemon that starts; with it what a former one held.
///
/// # Errors
/// As any read.
pub(super) fn begin(
    journal: &Journal,
    policy: Policy<'_>,
    (inventory, settings, orders): (&Inventory, Arc<Settings>, Orders),
    now: Timestamp,
) -> Done<(Known, Former)> {
    let former = Former::read(journal)?;
    let here = (policy.base.controller.clone(), *policy.base.started());
    let mut known = Known::new(Arc::clone(&settings), former.is_stormy(), here);
    let news = News::all(journal, policy, (&settings, known.is_limited()), now)?;
    known.take_up((inventory, true), orders, news, now);
    Ok((known, former))
}

/// Admits the first marks of groups that are sent a few at a time.
fn admit(
    journal: &mut Journal,
    policy: Policy<'_>,
    (steering, (capacity, wait)): (&mut Steering, (&[Capacity], Option<RegisterWait>)),
    now: Timestamp,
) -> Done {
    let Some(mut known) = steering.known.take_if(|known| known.is_limited()) else { return Ok(()) };
    let decided = steering.decided.take();
    let (busy, takes) = (news::busy(journal, policy, true, now)?, news::routes_that_take(policy));
    let ask = |subject: &Subject| news::stage(journal, subject, (capacity, wait, &takes), now);
    known.take_stages(busy, ask, now)?;
    decide(journal, steering, (known, Former::default()), now)?;
    steering.decided = decided;
    Ok(())
}

/// Decides, and writes what has changed. What cannot be written is forgotten, and read again from the journal.
fn decide(
    journal: &mut Journal,
    steering: &mut Steering,
    (mut known, former): (Known, Former),
    now: Timestamp,
) -> Done {
    let changes = known.decide(now);
    record::holds(journal, former, (&known.planner, &changes), now)?;
    known.seen = journal.newest_history()?;
    steering.changed.extend(changes.held.iter().map(|(mark, _)| *mark).chain(changes.freed));
    steering.known = Some(known);
    Ok(())
}

/// Whether anything can hold a mark. If nothing can, no mark is read.
fn is_needed(settings: &Settings, orders: &Orders, inventory: &Inventory) -> bool {
    let asks = |group: &Group| group.rules != Rules::default() || group.confirm.is_some();
    settings.groups.iter().any(asks) || !orders.is_empty() || !inventory.skipped.is_empty()
}
