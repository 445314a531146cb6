//! A route's outbox: its endpoint, and the deliveries whose attempts have begun in the journal. Pure: the times are arguments.
//!
//! For an endpoint that works well the next exchanges are ready, so that none waits for the disk. A delivery that has stood here too
//! long is taken back and not sent: it may not be allowed any more.

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use journal::{Capacity, DueDelivery};
use marks::id::MarkId;

use super::endpoint::Endpoint;
use crate::config::Route;
use crate::moment::Moment;

/// So long may a delivery stand here at most.
pub const FRESH: Duration = Duration::from_millis(500);

/// A delivery whose attempt has begun in the journal.
#[derive(Clone, Debug)]
struct Begun {
    due: DueDelivery,
    at: Moment,
    /// How long it may be sent from then on.
    for_as_long: Duration,
}

impl Begun {
    fn is_fresh(&self, now: Moment) -> bool {
        now.since(self.at) < self.for_as_long
    }
}

/// One route's outbox.
#[derive(Clone, Debug)]
pub struct Outbox {
    /// Where it leads.
    pub endpoint: Endpoint,
    begun: VecDeque<Begun>,
    /// The marks whose exchanges are under way.
    out: BTreeSet<MarkId>,
    /// The journal may have more that is due.
    more: bool,
    /// The marks that an operator wants to be sent first.
    wanted: VecDeque<MarkId>,
}

impl Outbox {
    /// An empty outbox.
    pub fn new(endpoint: Endpoint) -> Self {
        Self { endpoint, begun: VecDeque::new(), out: BTreeSet::new(), more: false, wanted: VecDeque::new() }
    }

    /// How many more attempts may begin in the journal.
    pub fn free(&self, now: Instant) -> usize {
        (self.endpoint.free(now) + self.endpoint.ahead()).saturating_sub(self.begun.len())
    }

    /// Its next attempt goes first.
    pub fn want(&mut self, mark: MarkId) {
        self.wanted.push_back(mark);
    }

    /// What the journal is asked for: as many as there is capacity for. Retries are never prepared ahead, and leave a place for marks
    /// that the endpoint has not answered yet.
    pub fn ask(&mut self, route: &Route, now: Instant) -> Capacity {
        let places = self.free(now);
        let again = self.endpoint.free_again(now).saturating_sub(self.begun.len());
        let first = if places > 0 { self.wanted.pop_front() } else { None };
        let (terms, target) = (route.terms.clone(), route.driver.target());
        Capacity {
            route: route.name.as_str().to_owned(),
            places,
            again,
            first,
            terms,
            target,
            membership: None,
        }
    }

    /// Takes up what has begun in the journal, of `free` places. It may be sent for at most `left`.
    pub fn take_up(&mut self, begun: Vec<DueDelivery>, free: usize, left: Duration, at: Moment) {
        self.more = begun.len() >= free;
        let for_as_long = FRESH.min(left);
        self.begun.extend(begun.into_iter().map(|due| Begun { due, at, for_as_long }));
    }

    /// The next delivery, if an exchange may begin now; it counts as begun.
    pub fn next(&mut self, now: Moment) -> Option<DueDelivery> {
        let may = self.endpoint.free(now.instant) > 0 && self.begun.front()?.is_fresh(now);
        let begun = may.then(|| self.begun.pop_front())??;
        self.endpoint.begin();
        self.out.insert(begun.due.mark.id);
        Some(begun.due)
    }

    /// An exchange that [`Outbox::next`] began is over; what it shows about the endpoint is noted there.
    pub fn ended(&mut self, mark: MarkId) {
        self.out.remove(&mark);
    }

    /// What came of a bare connection that began then. Where it could be made, a mark goes at once.
    pub fn knocked(&mut self, began: Instant, connects: bool, now: Instant) {
        self.endpoint.knocked(began, connects, now);
        self.more |= connects;
    }

    /// The marks that are being sent here, or will be at once. A receiver may confirm or refuse one by a callback, so that the journal's
    /// attempt ends before the exchange does.
    pub fn under_way(&self) -> impl Iterator<Item = MarkId> {
        self.out.iter().copied().chain(self.begun.iter().map(|begun| begun.due.mark.id))
    }

    /// Whether more should begin in the journal before the places are empty.
    pub fn is_running_dry(&self, now: Instant) -> bool {
        self.more && self.free(now) > self.begun.len()
    }

    /// Removes what must not be sent any more: what has stood here too long, or everything if the endpoint is in trouble.
    pub fn remove_stale(&mut self, now: Moment) -> Vec<DueDelivery> {
        if !self.endpoint.is_closed() {
            return self.remove_all();
        }
        let stale = self.begun.iter().take_while(|begun| !begun.is_fresh(now)).count();
        self.begun.drain(..stale).map(|begun| begun.due).collect()
    }

    /// Removes everything that was not sent.
    pub fn remove_all(&mut self) -> Vec<DueDelivery> {
        self.begun.drain(..).map(|begun| begun.due).collect()
    }

    /// How long until something here is stale.
    pub fn stays_fresh(&self, now: Moment) -> Option<Duration> {
        let first = self.begun.front()?;
        Some(first.for_as_long.saturating_sub(now.since(first.at)))
    }
}

#[cfg(test)]
mod tests {
    use marks::delivery::{Delivery, State};
    use marks::host::HostName;

    use marks::time::Timestamp;

    use super::super::endpoint::Sign;
    use super::*;

    const LIMIT: usize = 4;
    const QUICK: Duration = Duration::from_millis(10);

    fn host() -> HostName {
        HostName::parse("compute1").unwrap()
    }

    fn due() -> DueDelivery {
        let now = Timestamp(0);
        let mark = samples::mark_of("compute1", now);
        let delivery =
            Delivery { state: State::InFlight, attempts: 1, ..samples::delivery(&mark, "recovery") };
        DueDelivery { mark, delivery }
    }

    /// An outbox that was filled at `now`; its endpoint has shown that it is well.
    fn filled(now: Moment) -> Outbox {
        let mut endpoint = Endpoint::new(LIMIT);
        endpoint.begin();
        endpoint.took(QUICK);
        endpoint.end(&host(), &Sign::Takes, None, now.instant, 0.5);
        let mut outbox = Outbox::new(endpoint);
        let free = outbox.free(now.instant);
        outbox.take_up((0..free).map(|_| due()).collect(), free, Duration::MAX, now);
        outbox
    }

    fn later(now: Moment, time: Duration) -> Moment {
        Moment { instant: now.instant + time, wall: now.wall + time }
    }

    #[test]
    fn an_endpoint_that_is_well_has_the_next_exchanges_at_hand() {
        let now = Moment::now();
        let mut outbox = filled(now);
        assert_eq!((outbox.begun.len(), outbox.free(now.instant)), (2 * LIMIT, 0));
        assert_eq!(std::iter::from_fn(|| outbox.next(now)).count(), LIMIT, "no more than it may have");
        assert!(!outbox.is_running_dry(now.instant));
        outbox.endpoint.end(&host(), &Sign::Takes, None, now.instant, 0.5);
        assert!(outbox.next(now).is_some() && outbox.next(now).is_none());
        assert!(!outbox.is_running_dry(now.instant));
        for _ in 0..2 {
            outbox.endpoint.end(&host(), &Sign::Takes, None, now.instant, 0.5);
            assert!(outbox.next(now).is_some());
        }
        assert!(outbox.is_running_dry(now.instant), "less than half is left");
    }

    /// The broken variant of the outbox above: an endpoint that is not known to be quick has nothing at hand.
    #[test]
    fn a_slow_endpoint_has_nothing_at_hand() {
        let now = Moment::now();
        assert_eq!(Outbox::new(Endpoint::new(LIMIT)).free(now.instant), LIMIT);
        let mut outbox = filled(now);
        outbox.remove_all();
        outbox.endpoint.took(Duration::from_secs(1));
        assert_eq!(outbox.free(now.instant), LIMIT);
    }

    #[test]
    fn what_has_stood_for_long_is_not_sent_by_either_clock() {
        let now = Moment::now();
        for late in [
            later(now, FRESH),
            Moment { wall: now.wall + FRESH, ..now },
            Moment { instant: now.instant + FRESH, ..now },
        ] {
            let mut outbox = filled(now);
            assert!(outbox.next(late).is_none());
            assert_eq!(outbox.remove_stale(late).len(), 2 * LIMIT);
        }
        let mut outbox = filled(now);
        let just = later(now, FRESH - Duration::from_millis(1));
        assert!(outbox.remove_stale(just).is_empty() && outbox.next(just).is_some());
        assert_eq!(outbox.stays_fresh(just), Some(Duration::from_millis(1)));
    }
}
