//! Whether a route's endpoint may be asked now, and by how many exchanges at once (design, section 7). Pure: the time and
//! the random number are arguments.
//!
//! Retry state belongs to the endpoint: however many marks wait, one that is down gets a single attempt now and then, and
//! one that has recovered gets a few at once, then more and more.

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use marks::host::HostName;

/// So many exchanges in a row without a usable answer open the breaker.
const STREAK: usize = 3;
/// So do half of the last so many.
const MEMORY: usize = 10;
/// At least so many exchanges may be under way: if one hangs, another host need not wait for its end.
const FEWEST: usize = 2;
/// For an endpoint that answers within this time the next exchanges are prepared ahead.
const QUICK: Duration = Duration::from_millis(250);

/// What an exchange shows about the endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// It accepts marks.
    Takes,
    /// It accepts marks, but not this one.
    Rejects,
    /// It cannot be reached.
    Unreachable,
    /// It answers that it cannot now, or gives no understandable answer in time.
    Busy,
    /// It answers that it gets too many requests.
    Throttles,
    /// It answers that it accepts no mark until somebody changes something.
    Refuses,
}

impl Sign {
    /// Whether it shows that the endpoint works.
    fn is_well(self) -> bool {
        matches!(self, Self::Takes | Self::Rejects)
    }
}

/// What an exchange has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It gets only a probe now and then.
    Opened,
    /// The same, until somebody changes something.
    Parked,
    /// It accepts marks again.
    Recovered,
}

/// The breaker: one that is closed lets exchanges through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Breaker {
    Closed,
    Open(Open),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Open {
    /// From then on a single exchange may begin.
    probe_at: Instant,
    /// How many in a row failed.
    failures: u32,
    is_parked: bool,
    /// The probe is under way: the breaker is half-open.
    is_half: bool,
}

/// One endpoint.
#[derive(Clone, Debug)]
pub struct Endpoint {
    limit: usize,
    breaker: Breaker,
    /// How many exchanges may be under way.
    window: usize,
    /// How many succeeded since the window has its width.
    taken: usize,
    under_way: usize,
    /// Whether each of the last exchanges failed.
    memory: VecDeque<bool>,
    /// The hosts that it refused since it last accepted a mark.
    refused: BTreeSet<HostName>,
    /// The hosts that it had refused when it accepted another host's mark: a refusal of these is about the host.
    singled_out: BTreeSet<HostName>,
    /// Whether the last exchange was a quick one.
    is_quick: bool,
}

impl Endpoint {
    /// An endpoint without known trouble. `limit` is `max-in-flight`.
    pub fn new(limit: usize) -> Self {
        Self {
            limit: limit.max(1),
            breaker: Breaker::Closed,
            window: limit.max(1),
            taken: 0,
            under_way: 0,
            memory: VecDeque::with_capacity(MEMORY),
            refused: BTreeSet::new(),
            singled_out: BTreeSet::new(),
            is_quick: false,
        }
    }

    /// An endpoint that did not accept what an older daemon sent: its first exchange is a probe, at `probe_at`.
    pub fn in_trouble(limit: usize, probe_at: Instant) -> Self {
        let open = Open { probe_at, failures: 1, is_parked: false, is_half: false };
        Self { breaker: Breaker::Open(open), ..Self::new(limit) }
    }

    /// Changes `max-in-flight`; what is known of the endpoint stays.
    pub fn set_limit(&mut self, limit: usize) {
        let (was_full, limit) = (self.window >= self.limit, limit.max(1));
        self.window = if was_full { limit } else { self.window.min(limit) };
        self.limit = limit;
    }

    /// How many exchanges may begin now.
    pub fn free(&self, now: Instant) -> usize {
        match self.breaker {
            Breaker::Closed => self.window.saturating_sub(self.under_way),
            Breaker::Open(open) => {
                usize::from(self.under_way == 0 && (now >= open.probe_at || self.asks_another()))
            }
        }
    }

    /// How many of these may be retries: one place is always left for a mark that it has not answered yet.
    pub fn free_again(&self, now: Instant) -> usize {
        let free = self.free(now);
        match self.breaker {
            Breaker::Closed if self.under_way == 0 => free.saturating_sub(1).max(free.min(1)),
            Breaker::Closed => free.saturating_sub(1),
            Breaker::Open(open) => {
                if now >= open.probe_at {
                    free
                } else {
                    0
                }
            }
        }
    }

    /// It has refused only one host: the mark of another host is tried at once, to see whether the refusal is about this host.
    fn asks_another(&self) -> bool {
        self.is_parked() && self.refused.len() == 1
    }

    /// Whether its refusal is about this host alone: it has accepted another host's mark since it refused this one's.
    pub fn refuses_only(&self, host: &HostName) -> bool {
        self.is_closed() && self.singled_out.contains(host)
    }

    /// How many more exchanges may be prepared, so that no place waits for the disk; none if it is slow or failed of late.
    pub fn ahead(&self) -> usize {
        let is_well = self.is_closed() && self.window == self.limit && !self.memory.contains(&true);
        if is_well && self.is_quick { self.limit } else { 0 }
    }

    /// Whether it is expected to accept marks.
    pub fn is_closed(&self) -> bool {
        self.breaker == Breaker::Closed
    }

    /// How long the exchange took that ends next.
    pub fn took(&mut self, time: Duration) {
        self.is_quick = time <= QUICK;
    }

    /// How long it is to be left alone, if that is the only obstacle.
    pub fn rest(&self, now: Instant) -> Option<Duration> {
        match self.breaker {
            Breaker::Open(open) if self.under_way == 0 && now < open.probe_at => Some(open.probe_at - now),
            _ => None,
        }
    }

    /// Whether it refuses every mark until somebody changes something.
    pub fn is_parked(&self) -> bool {
        matches!(self.breaker, Breaker::Open(open) if open.is_parked)
    }

    /// The next probe is due at once.
    pub fn probe(&mut self, now: Instant) {
        if let Breaker::Open(open) = &mut self.breaker {
            open.probe_at = open.probe_at.min(now);
        }
    }

    /// An exchange begins.
    pub fn begin(&mut self) {
        self.under_way += 1;
        if let Breaker::Open(open) = &mut self.breaker {
            open.is_half = true;
        }
    }

    /// An exchange about a host has ended. `wish` is how long the endpoint asked to be left alone; `random` lies in `0.0..1.0`.
    pub fn end(
        &mut self,
        host: &HostName,
        sign: Sign,
        wish: Option<Duration>,
        now: Instant,
        random: f64,
    ) -> Option<Change> {
        self.under_way = self.under_way.saturating_sub(1);
        self.note(host, sign);
        match self.breaker {
            Breaker::Closed if self.is_enough(sign) => Some(self.open(sign, 1, (now, wish, random))),
            Breaker::Closed => None,
            // It began before the breaker opened, so it shows nothing new; except a success while the endpoint is parked.
            Breaker::Open(open) if !(open.is_half || (open.is_parked && sign.is_well())) => None,
            Breaker::Open(_) if sign.is_well() => {
                self.close();
                Some(Change::Recovered)
            }
            // The other host's mark was refused too: the endpoint refuses all, and the probe stays where it was.
            Breaker::Open(open) if sign == Sign::Refuses && open.is_parked && now < open.probe_at => {
                self.breaker = Breaker::Open(Open { is_half: false, ..open });
                None
            }
            Breaker::Open(open) => {
                let failures = open.failures.saturating_add(1);
                let change = self.open(sign, failures, (now, wish, random));
                (change == Change::Parked && !open.is_parked).then_some(change)
            }
        }
    }

    /// What is remembered of the last exchanges.
    fn note(&mut self, host: &HostName, sign: Sign) {
        let has_failed = matches!(sign, Sign::Busy | Sign::Throttles);
        if self.memory.len() == MEMORY {
            self.memory.pop_front();
        }
        self.memory.push_back(has_failed);
        match sign {
            Sign::Takes | Sign::Rejects => {
                // A host stays singled out until one of its marks is accepted.
                let is_its_own = sign == Sign::Rejects && self.singled_out.contains(host);
                self.singled_out.append(&mut self.refused);
                if !is_its_own {
                    self.singled_out.remove(host);
                }
                self.grow();
            }
            Sign::Refuses => drop(self.refused.insert(host.clone())),
            _ if has_failed => (self.window, self.taken) = ((self.window / 2).max(self.fewest()), 0),
            _ => {}
        }
    }

    /// Widens the window by one for every window of successes.
    fn grow(&mut self) {
        self.taken += 1;
        if self.taken >= self.window {
            (self.window, self.taken) = ((self.window + 1).min(self.limit), 0);
        }
    }

    fn fewest(&self) -> usize {
        FEWEST.min(self.limit)
    }

    /// Whether a closed breaker opens.
    fn is_enough(&self, sign: Sign) -> bool {
        let in_a_row = self.memory.iter().rev().take_while(|failed| **failed).count();
        let half =
            self.memory.len() == MEMORY && self.memory.iter().filter(|failed| **failed).count() * 2 >= MEMORY;
        match sign {
            Sign::Takes | Sign::Rejects => false,
            Sign::Unreachable | Sign::Throttles | Sign::Refuses => true,
            Sign::Busy => in_a_row >= STREAK || half,
        }
    }

    fn open(
        &mut self,
        sign: Sign,
        failures: u32,
        (now, wish, random): (Instant, Option<Duration>, f64),
    ) -> Change {
        let (wait, is_parked) = match sign {
            Sign::Refuses => (wish.unwrap_or_else(|| parked(failures)), true),
            _ => (wait(failures, random, wish), false),
        };
        self.breaker = Breaker::Open(Open { probe_at: now + wait, failures, is_parked, is_half: false });
        if is_parked { Change::Parked } else { Change::Opened }
    }

    /// Few exchanges at a time to begin with.
    fn close(&mut self) {
        self.breaker = Breaker::Closed;
        (self.window, self.taken) = (self.fewest(), 0);
        self.memory.clear();
    }
}

/// No endpoint is asked more often than this for one mark.
pub const FLOOR: Duration = Duration::from_secs(1);
/// A recovered endpoint is noticed within this time: a longer wait would prolong the outage of the host's instances.
pub const CAP: Duration = Duration::from_secs(30);
/// How often a recovery controller is asked about its work, if its driver gives no other time.
pub const POLL: Duration = Duration::from_secs(10);
/// The longest `Retry-After` that is honoured.
pub const LONGEST_ASKED: Duration = Duration::from_secs(900);

/// An endpoint that refuses is asked again after this time,
pub const PARKED: Duration = Duration::from_secs(60);
/// and after twice as long each time, up to this.
pub const PARKED_CAP: Duration = Duration::from_secs(900);
/// A mark that its endpoint rejects is tried again after this time,
pub const SLOW: Duration = Duration::from_secs(300);
/// and after twice as long each time, up to this.
pub const SLOW_CAP: Duration = journal::SLOWEST;

/// The wait of an endpoint that refused `failures` times in a row.
pub fn parked(failures: u32) -> Duration {
    PARKED.saturating_mul(2u32.saturating_pow(failures.saturating_sub(1))).min(PARKED_CAP)
}

/// The wait of a mark that its endpoint rejected, after a last wait of `before`: up to a quarter less than twice that, so that many
/// of them do not come at once.
///
/// `random` lies in `0.0..1.0`.
pub fn slow(before: Duration, random: f64) -> Duration {
    let window = before.saturating_mul(2).clamp(SLOW, SLOW_CAP);
    window.mul_f64(1.0 - random.clamp(0.0, 1.0) / 4.0)
}

/// The wait after attempt number `attempts` failed: full jitter over a window that doubles up to [`CAP`], at least
/// [`FLOOR`], and at least what the receiver asked for.
///
/// `random` lies in `0.0..1.0`.
pub fn wait(attempts: u32, random: f64, asked: Option<Duration>) -> Duration {
    let window = 2f64.powi(attempts.min(16).cast_signed()).min(CAP.as_secs_f64());
    let jittered = Duration::from_secs_f64(window * random.clamp(0.0, 1.0));
    jittered.max(FLOOR).max(asked.unwrap_or_default().min(LONGEST_ASKED))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMIT: usize = 8;
    const SECOND: Duration = Duration::from_secs(1);

    fn host(name: &str) -> HostName {
        HostName::parse(name).unwrap()
    }

    /// How many probes in a row failed.
    fn failures(endpoint: &Endpoint) -> u32 {
        match endpoint.breaker {
            Breaker::Closed => 0,
            Breaker::Open(open) => open.failures,
        }
    }

    fn healthy() -> Endpoint {
        Endpoint::new(LIMIT)
    }

    fn once(endpoint: &mut Endpoint, sign: Sign, now: Instant) -> Option<Change> {
        once_of(endpoint, "compute1", sign, now)
    }

    fn once_of(endpoint: &mut Endpoint, name: &str, sign: Sign, now: Instant) -> Option<Change> {
        endpoint.begin();
        endpoint.end(&host(name), sign, None, now, 0.5)
    }

    #[test]
    fn what_a_former_daemon_found_in_trouble_is_probed_and_gets_more_as_they_are_taken() {
        let now = Instant::now();
        let mut endpoint = Endpoint::in_trouble(LIMIT, now + SECOND);
        assert_eq!((endpoint.free(now), endpoint.rest(now)), (0, Some(SECOND)));
        let now = now + SECOND;
        assert_eq!((endpoint.free(now), endpoint.rest(now)), (1, None));
        endpoint.begin();
        assert_eq!(endpoint.free(now), 0, "one probe at a time");
        assert_eq!(endpoint.end(&host("compute1"), Sign::Takes, None, now, 0.5), Some(Change::Recovered));
        let mut windows = vec![endpoint.free(now)];
        for _ in 0..100 {
            once(&mut endpoint, Sign::Takes, now);
            windows.push(endpoint.free(now));
        }
        windows.dedup();
        assert_eq!(windows, (FEWEST..=LIMIT).collect::<Vec<_>>());
    }

    /// One exchange hangs; the next host's has its place all the same.
    #[test]
    fn there_is_always_room_beside_one_that_hangs() {
        let now = Instant::now();
        let mut endpoint = healthy();
        for sign in [Sign::Busy, Sign::Takes].into_iter().cycle().take(MEMORY - 2) {
            once(&mut endpoint, sign, now);
            endpoint.begin();
            assert!(endpoint.free(now) > 0);
            endpoint.under_way = 0;
        }
    }

    #[test]
    fn one_that_cannot_be_reached_is_probed_and_no_more() {
        let mut now = Instant::now();
        let mut endpoint = healthy();
        (0..LIMIT).for_each(|_| endpoint.begin());
        assert_eq!(endpoint.end(&host("compute1"), Sign::Unreachable, None, now, 0.5), Some(Change::Opened));
        for _ in 1..LIMIT {
            assert_eq!(
                endpoint.end(&host("compute1"), Sign::Unreachable, None, now, 0.5),
                None,
                "they were under way"
            );
        }
        assert_eq!(failures(&endpoint), 1);
        for count in 2..50 {
            assert_eq!(endpoint.free(now), 0);
            now += endpoint.rest(now).unwrap();
            assert_eq!(once(&mut endpoint, Sign::Unreachable, now), None, "that is no news");
            assert_eq!(failures(&endpoint), count);
            assert!((FLOOR..=CAP).contains(&endpoint.rest(now).unwrap()));
        }
        now += endpoint.rest(now).unwrap();
        assert_eq!(once(&mut endpoint, Sign::Takes, now), Some(Change::Recovered));
        assert_eq!(endpoint.free(now), FEWEST, "and slowly");
    }

    #[test]
    fn one_that_refuses_is_parked_once_and_probed_slowly() {
        for (wish, longest) in [(None, PARKED_CAP), (Some(60 * SECOND), 60 * SECOND)] {
            let mut now = Instant::now();
            let mut endpoint = healthy();
            let mut refuse = |now| {
                endpoint.begin();
                let change = endpoint.end(&host("compute1"), Sign::Refuses, wish, now, 0.5);
                (change, endpoint.rest(now).unwrap())
            };
            let (change, mut rest) = refuse(now);
            assert_eq!((change, rest), (Some(Change::Parked), PARKED));
            for _ in 0..20 {
                now += rest;
                let (change, next) = refuse(now);
                assert!(change.is_none() && rest <= next && next <= longest);
                rest = next;
            }
            assert_eq!(rest, longest);
            assert_eq!(once(&mut endpoint, Sign::Takes, now + rest), Some(Change::Recovered));
        }
    }

    /// What the messages of ever so many hosts come to says nothing of the endpoint while it answers each.
    #[test]
    fn one_of_its_places_is_always_for_a_mark_that_it_has_not_answered() {
        let now = Instant::now();
        let mut endpoint = healthy();
        for under_way in 0..LIMIT {
            let again = (LIMIT - under_way).saturating_sub(1);
            assert_eq!((endpoint.free(now), endpoint.free_again(now)), (LIMIT - under_way, again));
            endpoint.begin();
        }
        let mut alone = Endpoint::new(1);
        assert_eq!(
            alone.free_again(now),
            1,
            "where there is one place, it has the turn when nobody else does"
        );
        alone.begin();
        assert_eq!(alone.free_again(now), 0);
    }

    /// The broken variant waits for the probe, however many other hosts are to be notified.
    #[test]
    fn what_one_host_is_refused_is_asked_with_another_at_once() {
        let now = Instant::now();
        let mut endpoint = healthy();
        assert_eq!(once(&mut endpoint, Sign::Refuses, now), Some(Change::Parked));
        assert_eq!((endpoint.free(now), endpoint.free_again(now)), (1, 0), "with none that was refused");
        assert_eq!(once_of(&mut endpoint, "compute2", Sign::Takes, now), Some(Change::Recovered));
        assert!(endpoint.refuses_only(&host("compute1")) && !endpoint.refuses_only(&host("compute2")));
        once(&mut endpoint, Sign::Takes, now);
        assert!(!endpoint.refuses_only(&host("compute1")), "it was about this host, and is over");
    }

    /// The broken variant asks with host after host, each of which has its credentials refused.
    #[test]
    fn what_two_hosts_are_refused_is_the_endpoints_fault() {
        let now = Instant::now();
        let mut endpoint = healthy();
        once(&mut endpoint, Sign::Refuses, now);
        let rest = endpoint.rest(now);
        assert_eq!(once_of(&mut endpoint, "compute2", Sign::Refuses, now), None, "that is no news");
        assert_eq!((endpoint.free(now), endpoint.rest(now), failures(&endpoint)), (0, rest, 1));
        let probe = now + rest.unwrap();
        assert_eq!((endpoint.free(probe), endpoint.free_again(probe)), (1, 1));
        assert!(!endpoint.refuses_only(&host("compute1")), "it has taken nobody since");
        assert_eq!(once(&mut endpoint, Sign::Takes, probe), Some(Change::Recovered));
    }

    fn signs() -> impl Strategy<Value = Sign> {
        prop_oneof![
            3 => Just(Sign::Takes),
            1 => Just(Sign::Unreachable),
            1 => Just(Sign::Busy),
            1 => Just(Sign::Throttles),
            1 => Just(Sign::Refuses),
        ]
    }

    proptest! {
        /// Whatever it answers: never more than the limit, never two at once while the breaker is open, and never left
        /// alone for longer than the longest pause.
        #[test]
        fn it_is_always_asked_again_and_never_by_too_many(answers in proptest::collection::vec((signs(), 1..6_u8, 0.0..1.0), 1..300)) {
            let mut now = Instant::now();
            let mut endpoint = healthy();
            let mut under_way = 0;
            for (sign, number, random) in answers {
                let free = endpoint.free(now);
                prop_assert!(under_way + free <= LIMIT);
                for _ in 0..free {
                    endpoint.begin();
                    under_way += 1;
                }
                if under_way == 0 {
                    let rest = endpoint.rest(now).expect("it waits for nothing but time");
                    prop_assert!(rest <= PARKED_CAP);
                    now += rest;
                    prop_assert_eq!(endpoint.free(now), 1);
                    endpoint.begin();
                    under_way += 1;
                }
                endpoint.end(&host(&format!("compute{number}")), sign, None, now, random);
                under_way -= 1;
            }
        }
    }

    #[test]
    fn the_window_doubles_up_to_the_cap() {
        let widest = |attempts| wait(attempts, 1.0, None).as_secs();
        assert_eq!([1, 2, 3, 4, 5, 6, 4_000_000_000].map(widest), [2, 4, 8, 16, 30, 30, 30]);
    }

    #[test]
    fn what_the_receiver_asks_is_honoured_within_reason() {
        assert_eq!(wait(1, 0.5, Some(Duration::from_secs(60))), Duration::from_secs(60));
        assert_eq!(wait(1, 0.5, Some(Duration::from_secs(1_000_000))), LONGEST_ASKED);
    }

    #[test]
    fn an_endpoint_that_refuses_is_asked_every_quarter_of_an_hour_in_the_end() {
        let minutes = |failures| parked(failures).as_secs() / 60;
        assert_eq!([1, 2, 3, 4, 5, 4_000_000_000].map(minutes), [1, 2, 4, 8, 15, 15]);
    }

    #[test]
    fn a_rejected_mark_is_tried_every_hour_in_the_end() {
        let mut wait = Duration::ZERO;
        let waits = std::iter::repeat_with(|| {
            wait = slow(wait, 0.0);
            wait.as_secs() / 60
        });
        assert_eq!(waits.take(6).collect::<Vec<_>>(), [5, 10, 20, 40, 60, 60]);
        assert_eq!(slow(Duration::MAX, 1.0), SLOW_CAP.mul_f64(0.75));
    }

    proptest! {
        #[test]
        fn no_wait_is_shorter_than_the_floor_or_longer_than_the_cap(attempts: u32, random in -1.0f64..2.0) {
            let wait = wait(attempts, random, None);
            prop_assert!((FLOOR..=CAP).contains(&wait));
        }
    }
}
