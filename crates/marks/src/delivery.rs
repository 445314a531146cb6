//! A delivery: one mark on its way to one route, with the closed table of its states.

use serde::Serialize;

use crate::chain::{CHAIN, Seen, Step};
use crate::id::MarkId;
use crate::mark::Settlement;
pub use crate::state::State;
use crate::time::Timestamp;

/// The suffix of a route's name for deliveries that report a host's return.
pub const RETURN: &str = ".return";

/// The words of attempts after which a route has a mark; otherwise only the whole mark is known to be acknowledged.
pub const TAKEN: [&str; 2] = ["acknowledged", "acknowledged-elsewhere"];

/// The word of an attempt after which the receiver has accepted the message and confirms the mark later. The route works
/// then.
pub const ACCEPTED: &str = "accepted";
/// The word for a receiver that accepted the message again, but did not confirm it within the time of the first attempt:
/// an operator must check it, and nothing waits for it any more.
pub const NOT_CONFIRMED: &str = "not-confirmed";

/// Where attempts may have arrived: each attempt counts from its beginning, unless it surely arrived nowhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrivals {
    /// How many.
    pub attempts: u32,
    /// The targets, in the words of the route's driver, each once; the newest is the last.
    pub targets: Vec<String>,
}

impl Arrivals {
    /// An attempt begins; its outcome is unknown until it has ended.
    pub fn begin(&mut self, target: &str) {
        self.attempts = self.attempts.saturating_add(1);
        self.targets.retain(|known| known != target);
        self.targets.push(target.to_owned());
    }

    /// One of them arrived nowhere.
    pub fn take_back(&mut self) {
        self.attempts = self.attempts.saturating_sub(1);
        if self.attempts == 0 {
            self.targets.clear();
        }
    }
}

/// One mark's way to one route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The mark.
    pub mark: MarkId,
    /// The route's name.
    pub route: String,
    /// Whether the mark stays open until this route has it; as configured when the delivery was made.
    pub required: bool,
    /// Its step, if it belongs to its mark's chain.
    pub chain: Option<Step>,
    /// When its host failed: marks are sent in this order.
    pub failure_time: Timestamp,
    /// Its state.
    pub state: State,
    /// The exact bytes that are sent: made once, the same at every attempt.
    pub body: Vec<u8>,
    /// Attempts begun.
    pub attempts: u32,
    /// Attempts that may have arrived.
    pub ambiguous: u32,
    /// Where attempts may have arrived.
    pub arrivals: Arrivals,
    /// When an operator released it, whatever the route's terms were then.
    pub released_at: Option<Timestamp>,
    /// When the next attempt is due.
    pub next_due: Timestamp,
    /// The outcome of the newest attempt, if any.
    pub last: Option<Attempt>,
    /// The receiver's reference, if it gave one.
    pub reference: Option<String>,
    /// When it reached a final state.
    pub ended_at: Option<Timestamp>,
}

impl Delivery {
    /// Whether its mark cannot be acknowledged without it.
    pub fn has_to(&self) -> bool {
        self.required && self.chain.is_none()
    }

    /// Whether its route has acknowledged it, to whichever alerter.
    pub fn is_taken(&self) -> bool {
        let last = self.last.as_ref().map(|last| last.kind.as_str());
        self.state == State::Acknowledged && last.is_some_and(|kind| TAKEN.contains(&kind))
    }

    /// Whether its route has acknowledged it to this alerter. What another one ended may be an operator's end.
    pub fn is_taken_here(&self) -> bool {
        self.is_taken() && self.last.as_ref().is_some_and(|last| last.kind == TAKEN[0])
    }

    /// Whether it reports a return: no end of its mark ends it.
    pub fn is_return(&self) -> bool {
        self.route.ends_with(RETURN)
    }

    /// Whether its endpoint has rejected this very mark: it is parked with a time of its own. A refused one is parked and
    /// due at once.
    pub fn is_rejected(&self) -> bool {
        self.state == State::Parked && self.has_own_wait()
    }

    /// Whether its last answer put off this very mark; not if nothing could be reached, or the route refused.
    fn has_own_wait(&self) -> bool {
        self.last.as_ref().is_some_and(|last| self.next_due > last.at)
    }

    /// Whether it is held because it is another step's turn in its mark's chain: only the chain releases it, and no
    /// operator needs to see it.
    pub fn waits_in_chain(&self) -> bool {
        let is_chains = self.last.as_ref().is_some_and(|last| last.kind == CHAIN);
        self.chain.is_some() && self.state == State::Held && is_chains
    }

    /// The chain's view of it. `is_there` says whether its route is configured.
    pub fn seen(&self, is_there: bool) -> Option<Seen> {
        let waits = self.waits_in_chain();
        self.chain.map(|step| Seen { step, state: self.state, waits, is_there })
    }
}

impl State {
    /// The word for a whole mark. A settled mark has the word of its end. An open mark has the first of these that is
    /// true: one of its deliveries is `quarantined`; it is `held`, by the policy, by a doubt or by a route's terms
    /// (`is_held` covers the first two; waiting for another step of its chain is no hold); one is `parked`; one is
    /// `in-flight`; else `pending`.
    pub fn of_mark(settled: Option<Settlement>, is_held: bool, deliveries: &[Delivery]) -> Self {
        match settled {
            Some(how) => Self::at_the_end(how, true),
            None => {
                let deliveries = deliveries.iter();
                Self::of_open(is_held, deliveries.map(|delivery| (delivery.state, delivery.waits_in_chain())))
            }
        }
    }
}

/// The outcome of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Attempt {
    /// When it ended.
    pub at: Timestamp,
    /// A machine word, such as `connect` or `acknowledged`.
    pub kind: String,
    /// One sentence for people.
    pub detail: String,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    pub(crate) fn delivery(route: &str) -> Delivery {
        Delivery {
            mark: crate::id::FencingId::generate().into(),
            route: route.to_owned(),
            required: true,
            chain: None,
            failure_time: NOW,
            state: State::Pending,
            body: Vec::new(),
            attempts: 0,
            ambiguous: 0,
            arrivals: Arrivals::default(),
            released_at: None,
            next_due: NOW,
            last: None,
            reference: None,
            ended_at: None,
        }
    }

    /// The broken variants count a target twice, or lose where an attempt may have arrived.
    #[test]
    fn where_attempts_may_have_arrived_is_known_until_none_can_have() {
        let mut arrivals = Arrivals::default();
        ["a", "b", "a"].iter().for_each(|target| arrivals.begin(target));
        assert_eq!((arrivals.attempts, arrivals.targets.join(" ").as_str()), (3, "b a"));
        arrivals.take_back();
        arrivals.take_back();
        assert_eq!((arrivals.attempts, arrivals.targets.len()), (1, 2));
        arrivals.take_back();
        assert_eq!(arrivals, Arrivals::default());
    }

    #[test]
    fn a_route_of_its_own_has_to_take_a_mark_and_a_step_of_a_chain_has_not() {
        let link = crate::chain::Link { step: 1, timeout: std::time::Duration::ZERO };
        let of = |required, chain| Delivery { required, chain, ..delivery("recovery") }.has_to();
        assert!(of(true, None));
        assert!(!of(false, None) && !of(true, Some(Step::new(link))) && !of(false, Some(Step::new(link))));
    }

    /// The broken variants take a hold by a route's terms, or one outside of chains, for a step whose turn it is not.
    #[test]
    fn a_step_waits_that_its_chain_holds() {
        let link = crate::chain::Link { step: 1, timeout: std::time::Duration::ZERO };
        let of = |in_chain: bool, state, kind: &str| {
            let last = Some(Attempt { at: NOW, kind: kind.to_owned(), detail: String::new() });
            let chain = in_chain.then(|| Step::new(link));
            Delivery { chain, state, last, ..delivery("recovery") }
        };
        assert!(of(true, State::Held, CHAIN).waits_in_chain());
        for other in
            [(false, State::Held, CHAIN), (true, State::Pending, CHAIN), (true, State::Held, "stale")]
        {
            assert!(!of(other.0, other.1, other.2).waits_in_chain(), "{other:?}");
        }
        let step = Step::new(link);
        let seen = Seen { step, state: State::Held, waits: true, is_there: false };
        assert_eq!(of(true, State::Held, CHAIN).seen(false), Some(seen));
        assert_eq!(of(false, State::Held, CHAIN).seen(true), None);
    }

    /// The broken variants take a refused mark, or one that waits for its next attempt, for a rejected one.
    #[test]
    fn a_mark_is_rejected_that_is_parked_with_a_time_of_its_own() {
        let is = |state, next_due| {
            let last = Attempt { at: NOW, kind: "rejected".to_owned(), detail: "no".to_owned() };
            Delivery { state, next_due, last: Some(last), ..delivery("recovery") }.is_rejected()
        };
        let later = NOW + std::time::Duration::from_secs(1);
        assert!(is(State::Parked, later));
        assert!(!is(State::Parked, NOW) && !is(State::Pending, later) && !is(State::Pending, NOW));
        assert!(!Delivery { state: State::Parked, ..delivery("recovery") }.is_rejected(), "nobody was asked");
    }

    /// S2-23: no caller can set an arbitrary state.
    #[test]
    fn no_way_leads_out_of_a_final_state() {
        for from in State::ALL.into_iter().filter(|s| s.is_final()) {
            assert!(State::ALL.into_iter().all(|to| !from.may_become(to)), "{from:?}");
        }
    }

    #[test]
    fn only_an_attempt_under_way_can_be_acknowledged() {
        let into_ack: Vec<State> =
            State::ALL.into_iter().filter(|s| s.may_become(State::Acknowledged)).collect();
        assert_eq!(into_ack, [State::InFlight]);
    }

    #[test]
    fn another_controller_ends_what_is_open_and_nothing_else() {
        for from in State::ALL {
            let into: Vec<State> = State::ALL.into_iter().filter(|to| from.may_end_elsewhere(*to)).collect();
            let wanted: &[State] = match from {
                State::Quarantined => &[State::Dismissed],
                _ if from.is_final() => &[],
                _ => &[State::Acknowledged, State::Dismissed, State::Cancelled],
            };
            assert_eq!(into, wanted, "{from:?}");
        }
    }

    /// The broken variant checks in-flight deliveries first: the word of a parked mark would change with each attempt.
    #[test]
    fn an_open_mark_is_what_needs_somebody_most() {
        use State::{Held, InFlight, Parked, Pending, Quarantined};
        let of =
            |is_held, states: &[State]| State::of_open(is_held, states.iter().map(|state| (*state, false)));
        assert_eq!(of(false, &[InFlight, Parked]), Parked);
        assert_eq!(of(false, &[InFlight, Pending]), InFlight);
        assert_eq!([of(true, &[Parked]), of(false, &[Parked, Held]), of(true, &[])], [Held; 3]);
        assert_eq!(of(true, &[Held, Quarantined]), Quarantined);
        assert_eq!([of(false, &[]), of(false, &[State::Acknowledged])], [Pending; 2]);
        assert_eq!(State::of_open(false, [(Held, true), (InFlight, false)]), InFlight, "another step's turn");
    }

    /// An acknowledgement to another alerter says nothing of a route that is not required.
    #[test]
    fn what_ended_elsewhere_was_acknowledged_where_it_had_to_be() {
        let ends = |how| [true, false].map(|has_to| State::at_the_end(how, has_to));
        assert_eq!(ends(Settlement::Acknowledged), [State::Acknowledged, State::Cancelled]);
        assert_eq!(ends(Settlement::Dismissed), [State::Dismissed; 2]);
        assert_eq!([ends(Settlement::Cancelled), ends(Settlement::Expired)], [[State::Cancelled; 2]; 2]);
    }
}
