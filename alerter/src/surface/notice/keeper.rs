//! Since when conditions hold, as far as this daemon has seen it, and which often pass by themselves and so are not notified at once.
//! Pure: the time is an argument.

use std::collections::BTreeMap;
use std::time::Duration;

use marks::time::Timestamp;

use super::condition::{Conditions, Key};
use crate::problem::Condition;

/// One failed poll, or a moment without quorum while a controller is lost, must not wake anybody.
pub(super) const FLEETING: Duration = Duration::from_secs(10);

/// What was seen at the last poll.
#[derive(Debug, Default)]
pub(super) struct Keeper {
    since: BTreeMap<Key, Timestamp>,
    last: Option<Timestamp>,
}

impl Keeper {
    /// Gives each condition the time since when it holds, and holds young ones back that may pass by themselves. Gives also how long
    /// until the first of these is old enough.
    pub(super) fn keep(&mut self, mut found: Conditions, now: Timestamp) -> (Conditions, Option<Duration>) {
        let last = self.last.unwrap_or(Timestamp(i64::MIN));
        for (key, condition) in &mut found.holds {
            // A condition that is new since the last poll is no older than that poll: it has begun again.
            let known = self.since.get(key).copied();
            condition.since = known.unwrap_or_else(|| condition.since.max(last)).min(now);
        }
        self.since.retain(|key, _| found.may_hold(key));
        let holding = found.holds.iter().map(|(key, condition)| (key.clone(), condition.since));
        self.since.extend(holding);
        self.last = Some(now);
        let rest = hold_back(&mut found, now);
        (found, rest)
    }
}

fn hold_back(found: &mut Conditions, now: Timestamp) -> Option<Duration> {
    let is_fleeting =
        |key: &Key| matches!(key.what, Condition::Cluster | Condition::Journal | Condition::Alerter);
    let age = |since: Timestamp| now.since(since);
    let young: Vec<(Key, Duration)> = found
        .holds
        .iter()
        .filter(|(key, condition)| is_fleeting(key) && age(condition.since) < FLEETING)
        .map(|(key, condition)| (key.clone(), FLEETING - age(condition.since)))
        .collect();
    for (key, _) in &young {
        found.holds.remove(key);
        found.open.insert(key.clone());
    }
    young.into_iter().map(|(_, rest)| rest).min()
}

#[cfg(test)]
mod tests {
    use super::super::condition::{About, Current};
    use super::*;

    fn found(what: Condition, since: i64) -> Conditions {
        let since = Timestamp::from_seconds(since);
        let condition = Current { since, about: About::default(), message: String::new() };
        let holds = [(Key::new(what, "x"), condition)].into();
        Conditions { holds, ..Conditions::default() }
    }

    fn since(keeper: &mut Keeper, found: Conditions, now: i64) -> Option<i64> {
        let (found, _) = keeper.keep(found, Timestamp::from_seconds(now));
        found.holds.values().next().map(|condition| condition.since.seconds())
    }

    #[test]
    fn a_condition_holds_since_it_was_first_seen_and_again_after_it_has_passed() {
        let mut keeper = Keeper::default();
        assert_eq!(since(&mut keeper, found(Condition::Held, 3), 100), Some(3), "from before this daemon");
        assert_eq!(since(&mut keeper, found(Condition::Held, 50), 101), Some(3));
        assert_eq!(since(&mut keeper, Conditions::default(), 102), None);
        assert_eq!(since(&mut keeper, found(Condition::Held, 3), 103), Some(102), "another time");
        assert_eq!(since(&mut keeper, found(Condition::Held, 999), 104), Some(102));
        let mut ahead = Keeper::default();
        assert_eq!(
            since(&mut ahead, found(Condition::Held, 999), 5),
            Some(5),
            "by a clock that was set back"
        );
    }

    /// The broken variant is a condition that does not pass by itself: it is notified at once.
    #[test]
    fn what_may_pass_by_itself_is_notified_when_it_has_lasted() {
        for what in [Condition::Cluster, Condition::Journal, Condition::Alerter] {
            let mut keeper = Keeper::default();
            let at = |keeper: &mut Keeper, now| {
                let (found, rest) = keeper.keep(found(what, now), Timestamp::from_seconds(now));
                (found.holds.len(), found.open.len(), rest)
            };
            assert_eq!(at(&mut keeper, 0), (0, 1, Some(FLEETING)));
            assert_eq!(at(&mut keeper, 9), (0, 1, Some(Duration::from_secs(1))));
            assert_eq!(at(&mut keeper, 10), (1, 0, None));
            keeper.keep(Conditions::default(), Timestamp::from_seconds(11));
            assert_eq!(at(&mut keeper, 12), (0, 1, Some(FLEETING)), "it has passed in between");
        }
        let (found, rest) = Keeper::default().keep(found(Condition::Held, 7), Timestamp::from_seconds(7));
        assert_eq!((found.holds.len(), rest), (1, None));
    }

    /// The history is not asked at each poll.
    #[test]
    fn what_is_not_seen_for_a_while_keeps_its_time() {
        let mut keeper = Keeper::default();
        since(&mut keeper, found(Condition::Cluster, 0), 0);
        let open = [Key::new(Condition::Cluster, "x")].into();
        since(&mut keeper, Conditions { open, ..Conditions::default() }, 5);
        assert_eq!(since(&mut keeper, found(Condition::Cluster, 10), 10), Some(0));
    }
}
