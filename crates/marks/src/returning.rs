//! When a return is sent on a route that was notified of the failure. One rule, on typed state, decides it.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::delivery::Delivery;
use crate::host::HostName;
use crate::mark::Settlement;
use crate::register::KEPT;
use crate::state::State;
use crate::time::Timestamp;

/// The word of a return that is held because its route now leads to another place.
pub const OTHER_TARGET: &str = "other-target";

/// The members of the cluster that were not fenced since, by one poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// When the poll began.
    pub at: Timestamp,
    /// The members.
    pub members: BTreeSet<HostName>,
}

/// What is known of a failure, to decide whether its route gets a return.
#[derive(Clone, Copy, Debug)]
pub struct Failure<'a> {
    /// Its delivery; `None` if its row is damaged.
    pub delivery: Option<&'a Delivery>,
    /// How its mark ended.
    pub settled: Option<(Settlement, Timestamp)>,
    /// Another alerter may have had the mark.
    pub was_elsewhere: bool,
    /// Its host was seen to come back.
    pub has_returned: bool,
    /// Its host is a member, long after its failure.
    pub is_member_for_long: bool,
}

impl Failure<'_> {
    /// Whether the route may have been notified of it, and will not be any more.
    fn may_have_arrived(&self) -> bool {
        self.delivery.is_none_or(|delivery| {
            delivery.is_taken() || delivery.arrivals.attempts > 0 || self.was_elsewhere
        })
    }

    /// A delivery that an operator ended may still be in flight: for as long as an exchange may take.
    fn is_quiet(&self, now: Timestamp, limit: Duration) -> bool {
        let is_taken = self.delivery.is_some_and(|delivery| delivery.state == State::Acknowledged);
        let ended = self.delivery.and_then(|delivery| delivery.ended_at).or(self.settled.map(|(_, at)| at));
        is_taken || ended.is_none_or(|at| at + limit <= now || at > now)
    }

    /// Whether a return is due. A host that was not seen to come back has to be a member for long, and an operator must
    /// have dismissed its mark.
    pub fn is_owed(&self, now: Timestamp, limit: Duration) -> bool {
        let is_dismissed = matches!(self.settled, Some((Settlement::Dismissed, _)));
        let is_over = self.delivery.is_none_or(|delivery| delivery.state.is_final());
        let is_back = self.has_returned || (is_dismissed && self.is_member_for_long);
        is_over && is_back && self.may_have_arrived() && self.is_quiet(now, limit)
    }
}

/// What is known of a return whose turn it is.
#[derive(Clone, Copy, Debug)]
pub struct Return<'a> {
    /// The delivery of the failure; `None` if its row is damaged.
    pub sent: Option<&'a Delivery>,
    /// Where the route leads now.
    pub target: &'a str,
    /// The host is a member now, by a poll that is younger than each of its marks.
    pub is_member: bool,
    /// The route acknowledged a later mark of the host: the return of that mark is sent.
    pub is_overtaken: bool,
    /// An operator has released it to wherever the route leads now.
    pub is_released: bool,
}

/// The decision on a return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// It is sent.
    Go,
    /// It waits until the host is a member.
    Wait,
    /// It is held: the route leads to another place than the given ones, which may have been notified.
    Hold(Vec<String>),
    /// The return of a later mark is sent instead.
    Overtaken,
}

impl Return<'_> {
    /// The decision on it now, whatever other marks of its host wait for.
    pub fn ruling(&self) -> Ruling {
        let others = self.sent.map(|sent| elsewhere(sent, self.target)).unwrap_or_default();
        match others.as_slice() {
            [_, ..] if !self.is_released => Ruling::Hold(others),
            _ if self.is_overtaken => Ruling::Overtaken,
            _ if !self.is_member => Ruling::Wait,
            _ => Ruling::Go,
        }
    }
}

/// Since when an end on the route, or the host's return, may owe a return. What ends each mark by itself is owed for as long as the
/// register may show it.
pub fn owed_since(now: Timestamp, ends_each: bool, horizon: Duration) -> Timestamp {
    now - if ends_each { KEPT } else { horizon }
}

/// The places that may have been notified, except the route's present one; none if that one acknowledged the mark.
pub fn elsewhere(sent: &Delivery, target: &str) -> Vec<String> {
    let targets = &sent.arrivals.targets;
    match targets.last() {
        Some(newest) if sent.is_taken_here() && newest == target => Vec::new(),
        _ => targets.iter().filter(|other| *other != target).cloned().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::tests::delivery;
    use crate::delivery::{Attempt, TAKEN};

    const NOW: Timestamp = Timestamp(1_000_000);
    const LIMIT: Duration = Duration::from_millis(100);

    fn of(state: State, kind: &str, attempts: u32, ended_at: Option<Timestamp>) -> Delivery {
        let last = Some(Attempt { at: NOW, kind: kind.to_owned(), detail: String::new() });
        let mut delivery = Delivery { state, last, ended_at, ..delivery("recovery") };
        delivery.arrivals.attempts = attempts;
        delivery
    }

    /// A failure whose host was seen to come back.
    fn back(delivery: &Delivery) -> Failure<'_> {
        let delivery = Some(delivery);
        let (settled, was_elsewhere) = (None, false);
        Failure { delivery, settled, was_elsewhere, has_returned: true, is_member_for_long: false }
    }

    fn is_owed(failure: Failure<'_>) -> bool {
        failure.is_owed(NOW, LIMIT)
    }

    #[test]
    fn a_return_is_owed_where_the_failure_may_have_arrived() {
        for (state, kind, attempts, owed) in [
            (State::Acknowledged, TAKEN[0], 0, true),
            (State::Acknowledged, TAKEN[1], 0, true),
            (State::Acknowledged, "settled-elsewhere", 0, false),
            (State::Dismissed, TAKEN[0], 0, false),
            (State::Dismissed, "connect", 1, true),
            (State::Pending, "connect", 1, false),
        ] {
            let sent = of(state, kind, attempts, None);
            assert_eq!(is_owed(back(&sent)), owed, "{state:?} {kind} {attempts}");
        }
        let unsent = of(State::Dismissed, "connect", 0, None);
        assert!(is_owed(Failure { was_elsewhere: true, ..back(&unsent) }));
        assert!(is_owed(Failure { delivery: None, ..back(&unsent) }), "it is unknown what was sent");
    }

    #[test]
    fn a_return_is_owed_once_what_was_sent_has_come_to_rest() {
        let ended = |state, at| is_owed(back(&of(state, TAKEN[0], 1, Some(at))));
        let millisecond = Duration::from_millis(1);
        assert!(ended(State::Dismissed, NOW - LIMIT) && ended(State::Dismissed, NOW + millisecond));
        assert!(!ended(State::Dismissed, NOW - LIMIT + millisecond) && !ended(State::Dismissed, NOW));
        assert!(ended(State::Acknowledged, NOW));
        let open_ended = of(State::Dismissed, "connect", 1, None);
        let settled = Some((Settlement::Cancelled, NOW));
        assert!(!is_owed(Failure { settled, ..back(&open_ended) }));
    }

    #[test]
    fn a_host_that_was_never_away_is_called_back_where_an_operator_says_so() {
        let sent = of(State::Acknowledged, TAKEN[0], 1, None);
        for (how, is_member_for_long, has_returned, owed) in [
            (Settlement::Dismissed, true, false, true),
            (Settlement::Dismissed, false, false, false),
            (Settlement::Acknowledged, true, false, false),
            (Settlement::Acknowledged, false, true, true),
        ] {
            let settled = Some((how, NOW));
            let failure = Failure { settled, is_member_for_long, has_returned, ..back(&sent) };
            assert_eq!(is_owed(failure), owed, "{how:?} {is_member_for_long} {has_returned}");
        }
    }

    #[test]
    fn a_return_goes_to_a_member_where_its_failure_was_sent() {
        let mut sent = of(State::Dismissed, "connect", 1, None);
        sent.arrivals.targets = vec!["a".to_owned()];
        let to = |target| Return {
            sent: Some(&sent),
            target,
            is_member: true,
            is_overtaken: false,
            is_released: false,
        };
        assert_eq!(to("a").ruling(), Ruling::Go);
        assert_eq!(Return { sent: None, ..to("b") }.ruling(), Ruling::Go);
        assert_eq!(Return { is_member: false, ..to("a") }.ruling(), Ruling::Wait);
        assert_eq!(Return { is_member: false, is_overtaken: true, ..to("a") }.ruling(), Ruling::Overtaken);
        assert_eq!(Return { is_overtaken: true, ..to("b") }.ruling(), Ruling::Hold(vec!["a".to_owned()]));
        assert_eq!(Return { is_released: true, ..to("b") }.ruling(), Ruling::Go);
    }

    #[test]
    fn the_place_that_took_it_is_the_only_one() {
        for (state, kind, target, others) in [
            (State::Acknowledged, TAKEN[0], "b", vec![]),
            (State::Acknowledged, TAKEN[0], "a", vec!["b"]),
            (State::Acknowledged, TAKEN[1], "b", vec!["a"]),
            (State::Dismissed, TAKEN[0], "b", vec!["a"]),
            (State::Dismissed, TAKEN[0], "c", vec!["a", "b"]),
        ] {
            let mut sent = of(state, kind, 1, None);
            sent.arrivals.targets = vec!["a".to_owned(), "b".to_owned()];
            assert_eq!(elsewhere(&sent, target), others, "{state:?} {kind} {target}");
        }
    }
}
