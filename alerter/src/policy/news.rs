//! Reads what the plan goes by: from the journal, and from what is being sent.

use std::collections::HashSet;

use journal::{Capacity, Done, Journal, RegisterWait};
use marks::id::MarkId;
use marks::time::Timestamp;

use super::known::News;
use super::state::{Stage, Subject};
use super::steering::Policy;
use crate::config::rules::Rules;
use crate::config::{Group, Settings};

impl News {
    /// Every mark that may still hold another.
    ///
    /// # Errors
    /// As any read.
    pub(super) fn all(
        journal: &Journal,
        policy: Policy<'_>,
        (settings, is_limited): (&Settings, bool),
        now: Timestamp,
    ) -> Done<Self> {
        let of_use = |rules: &Rules| rules.max_hold.max(rules.cooldown + rules.healthy_delay);
        let longest = settings.groups.iter().map(|group: &Group| of_use(&group.rules)).max();
        let rows = journal.marks_that_count(now - longest.unwrap_or_default())?;
        policy.base.damages.report(&rows.damaged);
        let busy = busy(journal, policy, is_limited, now)?;
        Ok(Self { marks: rows.sound, released: journal.released_marks()?, busy })
    }

    /// What has changed since then. What is being sent is read first: a mark that the receiver confirms meanwhile may still be on
    /// its way.
    ///
    /// # Errors
    /// As any read.
    pub(super) fn since(
        seen: i64,
        journal: &Journal,
        policy: Policy<'_>,
        is_limited: bool,
        now: Timestamp,
    ) -> Done<Self> {
        let busy = busy(journal, policy, is_limited, now)?;
        let (touched, _) = journal.touched_since(seen)?;
        if touched.is_empty() {
            return Ok(Self { marks: Vec::new(), released: HashSet::new(), busy });
        }
        let mut marks = Vec::new();
        for mark in touched {
            match journal.find_mark(mark)? {
                Some(Ok(row)) => marks.push(row),
                Some(Err(damage)) => policy.base.damages.report(&[damage]),
                None => {}
            }
        }
        Ok(Self { marks, released: journal.released_marks()?, busy })
    }
}

/// The marks that are being sent: as the journal says, and what is on its way all the same. None where no group
/// is limited.
///
/// # Errors
/// As any read.
pub(super) fn busy(
    journal: &Journal,
    policy: Policy<'_>,
    is_limited: bool,
    now: Timestamp,
) -> Done<HashSet<MarkId>> {
    if !is_limited {
        return Ok(HashSet::new());
    }
    let mut busy = journal.busy_marks(now)?;
    let outboxes = policy.routes.outboxes();
    let own = outboxes.iter().filter(|(route, _)| !route.contains('.'));
    let sent = own.flat_map(|(_, outbox)| outbox.under_way());
    busy.extend(sent);
    Ok(busy)
}

/// Whether an attempt for a mark could begin, and on which terms.
///
/// # Errors
/// As any read.
pub(super) fn stage(
    journal: &Journal,
    subject: &Subject,
    (capacity, wait, takes): (&[Capacity], Option<RegisterWait>, &HashSet<String>),
    now: Timestamp,
) -> Done<Stage> {
    let due = journal.due_on(subject.mark, capacity, wait, now)?;
    let is_ready = due.iter().any(|(route, tried)| tried.is_none() && takes.contains(*route));
    // A mark that was never tried at an endpoint in trouble is due since its host failed.
    let since = due.iter().map(|(_, tried)| tried.unwrap_or(subject.failed_at)).min();
    Ok(match since {
        _ if is_ready => Stage::Ready,
        Some(since) => Stage::Blocked(since),
        None => Stage::Waiting,
    })
}

/// The routes whose endpoints take marks, as far as is known.
pub(super) fn routes_that_take(policy: Policy<'_>) -> HashSet<String> {
    let outboxes = policy.routes.outboxes();
    let is_open = |name: &str| outboxes.get(name).is_none_or(|outbox| outbox.endpoint.is_closed());
    let settings = policy.base.settings();
    let routes = settings.own_routes().map(|route| route.name.as_str());
    routes.filter(|name| is_open(name)).map(str::to_owned).collect()
}
