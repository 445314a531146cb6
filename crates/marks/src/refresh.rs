//! What a receiver that forgets is sent again, after it has acknowledged it. One rule, on typed state, decides it.

use std::time::Duration;

use crate::delivery::Delivery;
use crate::mark::{MarkRow, Settlement};
use crate::returning::elsewhere;
use crate::time::Timestamp;

/// How often that is done, and for how long. Nothing waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refresh {
    /// The time between two rounds.
    pub every: Duration,
    /// So long after the failure, while the host is not back.
    pub failure: Duration,
    /// So long after this alerter had the return acknowledged: its bytes. A failure that was delayed in the network must not
    /// stay the last that arrives.
    pub back: Duration,
}

/// What is known of a mark on a route.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// The mark.
    pub mark: &'a MarkRow,
    /// The delivery of its failure; `None` if there is none, or its row is damaged.
    pub failure: Option<&'a Delivery>,
    /// The delivery of its return, if there is one.
    pub back: Option<&'a Delivery>,
    /// Where the route leads now.
    pub target: &'a str,
}

impl<'a> Known<'a> {
    /// What is sent again now. Between the first word of a return and its acknowledgement that is nothing.
    pub fn due(&self, refresh: &Refresh, now: Timestamp) -> Option<&'a Delivery> {
        let failure = self.failure.filter(|failure| self.has(failure))?;
        let is_dismissed = matches!(self.mark.settled, Some((Settlement::Dismissed, _)));
        match self.back {
            Some(back) => {
                let ended = back.ended_at.filter(|_| back.is_taken_here() && self.has(back))?;
                (now.since(ended) < refresh.back).then_some(back)
            }
            None if self.mark.returned_at.is_some() || is_dismissed => None,
            None => (now.since(failure.failure_time) < refresh.failure).then_some(failure),
        }
    }

    /// Whether the place where the route leads now has acknowledged a delivery.
    fn has(&self, delivery: &Delivery) -> bool {
        delivery.is_taken() && elsewhere(delivery, self.target).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::tests::delivery;
    use crate::delivery::{Attempt, State, TAKEN};
    use crate::mark::tests::row;

    const REFRESH: Refresh = Refresh {
        every: Duration::from_secs(60),
        failure: Duration::from_secs(30 * 86_400),
        back: Duration::from_secs(600),
    };

    fn now() -> Timestamp {
        row().failure_time + Duration::from_secs(3600)
    }

    /// Acknowledged a moment ago.
    fn taken(route: &str) -> Delivery {
        let last = Some(Attempt { at: now(), kind: TAKEN[0].to_owned(), detail: String::new() });
        let (state, ended_at) = (State::Acknowledged, Some(now()));
        Delivery { state, last, ended_at, failure_time: row().failure_time, ..delivery(route) }
    }

    /// The route of what is due.
    fn due(
        mark: &MarkRow,
        failure: Option<&Delivery>,
        back: Option<&Delivery>,
        at: Timestamp,
    ) -> Option<String> {
        let known = Known { mark, failure, back, target: "here" };
        known.due(&REFRESH, at).map(|delivery| delivery.route.clone())
    }

    fn failed() -> Option<String> {
        Some("alerts".to_owned())
    }

    /// The broken variant sends again whatever has ended.
    #[test]
    fn what_the_route_has_acknowledged_is_sent_again() {
        let sent = taken("alerts");
        assert_eq!(due(&row(), Some(&sent), None, now()), failed());
        let elsewhere = Attempt { kind: TAKEN[1].to_owned(), ..sent.last.clone().unwrap() };
        let by_another_alerter = Delivery { last: Some(elsewhere), ..sent.clone() };
        assert_eq!(due(&row(), Some(&by_another_alerter), None, now()), failed());
        let of_the_mark = Attempt { kind: "settled-elsewhere".to_owned(), ..sent.last.clone().unwrap() };
        for other in [
            Delivery { last: Some(of_the_mark), ..sent.clone() },
            Delivery { state: State::Pending, ..sent.clone() },
            Delivery { state: State::Dismissed, ..sent.clone() },
        ] {
            assert_eq!(due(&row(), Some(&other), None, now()), None, "{other:?}");
        }
        assert_eq!(due(&row(), None, None, now()), None, "a damaged row");
        let careless = |delivery: &Delivery| delivery.state.is_final();
        assert!(careless(&Delivery { state: State::Dismissed, ..sent }));
    }

    #[test]
    fn a_failure_is_sent_again_for_thirty_days() {
        let sent = taken("alerts");
        let end = row().failure_time + REFRESH.failure;
        let millisecond = Duration::from_millis(1);
        assert_eq!(due(&row(), Some(&sent), None, end - millisecond), failed());
        assert_eq!(due(&row(), Some(&sent), None, end), None);
    }

    /// The broken variant goes by the return's delivery alone: it would raise an alert of a host that is back.
    #[test]
    fn nothing_is_sent_between_the_return_and_its_acknowledgement() {
        let sent = taken("alerts");
        let back = MarkRow { returned_at: Some(now()), ..row() };
        assert_eq!(due(&back, Some(&sent), None, now()), None);
        let careless = Known { mark: &row(), failure: Some(&sent), back: None, target: "here" };
        assert!(careless.due(&REFRESH, now()).is_some());
        for state in [State::Pending, State::InFlight, State::Held, State::Parked, State::Dismissed] {
            let open = Delivery { state, ..taken("alerts.return") };
            for mark in [&row(), &back] {
                assert_eq!(due(mark, Some(&sent), Some(&open), now()), None, "{state:?}");
            }
        }
    }

    /// The broken variant goes on with the failure.
    #[test]
    fn a_return_is_sent_again_for_ten_minutes() {
        let (sent, over) = (taken("alerts"), taken("alerts.return"));
        let back = MarkRow { returned_at: Some(now()), ..row() };
        let end = now() + REFRESH.back;
        let of_return = Some("alerts.return".to_owned());
        assert_eq!(due(&back, Some(&sent), Some(&over), now()), of_return);
        assert_eq!(due(&back, Some(&sent), Some(&over), end - Duration::from_millis(1)), of_return);
        assert_eq!(due(&back, Some(&sent), Some(&over), end), None);
        let last = over.last.clone().map(|last| Attempt { kind: TAKEN[1].to_owned(), ..last });
        let by_another = Delivery { last, ..over.clone() };
        assert_eq!(
            due(&back, Some(&sent), Some(&by_another), now()),
            None,
            "an operator may have ended it there"
        );
        assert_eq!(due(&row(), Some(&sent), None, end), failed());
    }

    #[test]
    fn what_an_operator_has_ended_is_not_sent_again() {
        let sent = taken("alerts");
        for (how, expected) in [(Settlement::Dismissed, None), (Settlement::Acknowledged, failed())] {
            let ended = MarkRow { settled: Some((how, now())), ..row() };
            assert_eq!(due(&ended, Some(&sent), None, now()), expected, "{how:?}");
        }
    }

    /// The broken variant sends it to wherever the route leads now, which gets no return of it.
    #[test]
    fn it_goes_to_no_other_place() {
        let mut sent = taken("alerts");
        for (targets, expected) in [(["there", "here"], failed()), (["here", "there"], None)] {
            sent.arrivals.targets = targets.map(str::to_owned).to_vec();
            assert_eq!(due(&row(), Some(&sent), None, now()), expected, "{targets:?}");
        }
    }
}
