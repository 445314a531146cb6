//! Whether a route's endpoint may be asked now, and by how many exchanges at once (design, section 7). Pure: the time and
//! the random number are arguments.
//!
//! Retry state belongs to the endpoint: however many marks wait, one that cannot be reached gets bare connections until it takes one,
//! one that answers badly gets a single attempt now and then, and one that has recovered gets a few at once, then more and more.

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use drivers::Peer;
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sign {
    /// It accepts marks.
    Takes,
    /// It accepts marks, but not this one.
    Rejects,
    /// This takes no connection: a bare one shows when that has changed.
    Away(Peer),
    /// It cannot be reached for another reason.
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
    fn is_well(&self) -> bool {
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
    /// From then on a single exchange may begin, or where the endpoint is away a bare connection.
    probe_at: Instant,
    /// How many in a row failed.
    failures: u32,
    is_parked: bool,
    /// The probe is under way: the breaker is half-open.
    is_half: bool,
    /// It took a bare connection: if a mark fails all the same, that is no reason for haste.
    is_met: bool,
}

/// One endpoint.
#[derive(Clone, Debug)]
pub struct Endpoint {
    limit: usize,
    breaker: Breaker,
    /// What takes no connection; no mark goes until it does.
    away: Option<Peer>,
    /// How many exchanges may be under way.
    window: usize,
    /// How many succeeded since the window has its width.
    taken: usize,
    under_way: usize,
    /// When the breaker opened last: what began earlier and fails shows nothing of the endpoint now.
    opened_at: Option<Instant>,
    /// How many of these are under way. Each may hang for long, and has no place in the window.
    old: usize,
    /// Whether each of the last exchanges failed.
    memory: VecDeque<bool>,
    /// When the last one that counts failed: what was under way then and fails too is the same failure.
    failed_at: Option<Instant>,
    /// How long the exchange took that ends next.
    took: Duration,
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
            away: None,
            window: limit.max(1),
            taken: 0,
            under_way: 0,
            opened_at: None,
            old: 0,
            memory: VecDeque::with_capacity(MEMORY),
            failed_at: None,
            took: Duration::ZERO,
            refused: BTreeSet::new(),
            singled_out: BTreeSet::new(),
            is_quick: false,
        }
    }

    /// An endpoint that did not accept what an older daemon sent: its first exchange is a probe, at `probe_at`.
    pub fn in_trouble(limit: usize, probe_at: Instant) -> Self {
        let open = Open { probe_at, failures: 1, is_parked: false, is_half: false, is_met: false };
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
            Breaker::Closed => {
                let places = self.window.saturating_sub(self.under_way - self.old);
                places.min(self.limit.saturating_sub(self.under_way))
            }
            Breaker::Open(open) => {
                let may = !open.is_half && self.under_way < self.limit;
                let is_due = match self.away {
                    None => now >= open.probe_at || self.asks_another(),
                    // A mark has its turn all the same: its terms are checked then, and the journal is seen to be written.
                    Some(_) => self.opened_at.is_some_and(|at| now >= at + CAP),
                };
                usize::from(may && is_due)
            }
        }
    }

    /// What is to get a bare connection now, of an endpoint that is away.
    pub fn knock(&mut self, now: Instant) -> Option<Peer> {
        match &mut self.breaker {
            Breaker::Open(open) if self.away.is_some() && now >= open.probe_at => open.probe_at = now + FLOOR,
            _ => return None,
        }
        self.away.clone()
    }

    /// A bare connection that began then could be made, or not. A mark follows it at once.
    pub fn knocked(&mut self, began: Instant, connects: bool, now: Instant) {
        match &mut self.breaker {
            Breaker::Open(open) if self.away.is_some() && self.opened_at.is_none_or(|at| began >= at) => {
                open.is_met = connects;
                if connects {
                    (self.away, open.probe_at, open.is_half) = (None, now, false);
                    (self.opened_at, self.old) = (Some(now), self.under_way);
                }
            }
            _ => {}
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
        (self.took, self.is_quick) = (time, time <= QUICK);
    }

    /// How long it is to be left alone, if that is the only obstacle.
    pub fn rest(&self, now: Instant) -> Option<Duration> {
        match self.breaker {
            Breaker::Open(open) if !open.is_half && now < open.probe_at => Some(open.probe_at - now),
            _ => None,
        }
    }

    /// How long its marks wait for it by the schedule; `None` while it is expected to accept them.
    pub fn waits(&self, now: Instant) -> Option<Duration> {
        (!self.is_closed()).then(|| self.rest(now).unwrap_or_default())
    }

    /// Whether it refuses every mark until somebody changes something.
    pub fn is_parked(&self) -> bool {
        matches!(self.breaker, Breaker::Open(open) if open.is_parked)
    }

    /// The next probe is due at once, and is a mark.
    pub fn probe(&mut self, now: Instant) {
        self.away = None;
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
        sign: &Sign,
        wish: Option<Duration>,
        now: Instant,
        random: f64,
    ) -> Option<Change> {
        self.under_way = self.under_way.saturating_sub(1);
        let began = now.checked_sub(std::mem::take(&mut self.took)).unwrap_or(now);
        let is_old = self.opened_at.is_some_and(|at| began < at);
        self.old = self.old.saturating_sub(usize::from(is_old)).min(self.under_way);
        self.note(host, sign, began, now);
        match self.breaker {
            Breaker::Closed if !is_old && self.is_enough(sign) => {
                Some(self.open(sign, 1, (now, wish, random)))
            }
            Breaker::Closed => None,
            // Only that one which refused, or was away, accepts marks is news.
            Breaker::Open(open) if !open.is_half || is_old => {
                let is_news = sign.is_well() && (open.is_parked || self.away.is_some());
                is_news.then(|| self.close())
            }
            Breaker::Open(_) if sign.is_well() => Some(self.close()),
            // The other host's mark was refused too: the endpoint refuses all, and the probe stays where it was.
            Breaker::Open(open) if *sign == Sign::Refuses && open.is_parked && now < open.probe_at => {
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

    /// What is remembered of the last exchanges. Several that fail together are one failure.
    fn note(&mut self, host: &HostName, sign: &Sign, began: Instant, now: Instant) {
        let has_failed = matches!(sign, Sign::Busy | Sign::Throttles);
        if has_failed && self.failed_at.max(self.opened_at).is_some_and(|at| began < at) {
            return;
        }
        if has_failed {
            self.failed_at = Some(now);
        }
        if self.memory.len() == MEMORY {
            self.memory.pop_front();
        }
        self.memory.push_back(has_failed);
        match sign {
            Sign::Takes | Sign::Rejects => {
                // A host stays singled out until one of its marks is accepted.
                let is_its_own = *sign == Sign::Rejects && self.singled_out.contains(host);
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
    fn is_enough(&self, sign: &Sign) -> bool {
        let in_a_row = self.memory.iter().rev().take_while(|failed| **failed).count();
        let half =
            self.memory.len() == MEMORY && self.memory.iter().filter(|failed| **failed).count() * 2 >= MEMORY;
        match sign {
            Sign::Takes | Sign::Rejects => false,
            Sign::Away(_) | Sign::Unreachable | Sign::Throttles | Sign::Refuses => true,
            Sign::Busy => in_a_row >= STREAK || half,
        }
    }

    fn open(
        &mut self,
        sign: &Sign,
        failures: u32,
        (now, wish, random): (Instant, Option<Duration>, f64),
    ) -> Change {
        let is_met = matches!(self.breaker, Breaker::Open(open) if open.is_met);
        let (wait, is_parked) = match sign {
            Sign::Refuses => (wish.unwrap_or_else(|| parked(failures)), true),
            Sign::Away(_) if !is_met => (Duration::ZERO, false),
            _ => (wait(failures, random, wish), false),
        };
        self.away = if let Sign::Away(peer) = sign { Some(peer.clone()) } else { None };
        let probe_at = now + wait;
        (self.opened_at, self.old) = (Some(now), self.under_way);
        self.breaker = Breaker::Open(Open { probe_at, failures, is_parked, is_half: false, is_met: false });
        if is_parked { Change::Parked } else { Change::Opened }
    }

    /// Few exchanges at a time to begin with.
    fn close(&mut self) -> Change {
        (self.breaker, self.away) = (Breaker::Closed, None);
        (self.window, self.taken) = (self.fewest(), 0);
        self.memory.clear();
        Change::Recovered
    }
}

/// No endpoint is asked more often than this for one mark, and one that is away is asked as often by bare connections.
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

    fn once(endpoint: &mut Endpoint, sign: &Sign, now: Instant) -> Option<Change> {
        once_of(endpoint, "compute1", sign, now)
    }

    fn once_of(endpoint: &mut Endpoint, name: &str, sign: &Sign, now: Instant) -> Option<Change> {
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
        assert_eq!(endpoint.end(&host("compute1"), &Sign::Takes, None, now, 0.5), Some(Change::Recovered));
        let mut windows = vec![endpoint.free(now)];
        for _ in 0..100 {
            once(&mut endpoint, &Sign::Takes, now);
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
            once(&mut endpoint, &sign, now);
            endpoint.begin();
            assert!(endpoint.free(now) > 0);
            endpoint.under_way = 0;
        }
    }

    #[test]
    fn one_that_cannot_be_used_is_probed_and_no_more() {
        let mut now = Instant::now();
        let mut endpoint = healthy();
        (0..LIMIT).for_each(|_| endpoint.begin());
        assert_eq!(endpoint.end(&host("compute1"), &Sign::Unreachable, None, now, 0.5), Some(Change::Opened));
        for _ in 1..LIMIT {
            assert_eq!(endpoint.end(&host("compute1"), &Sign::Unreachable, None, now, 0.5), None, "before");
        }
        assert_eq!(failures(&endpoint), 1);
        for count in 2..50 {
            assert_eq!(endpoint.free(now), 0);
            now += endpoint.rest(now).unwrap();
            assert_eq!(once(&mut endpoint, &Sign::Unreachable, now), None, "that is no news");
            assert_eq!(failures(&endpoint), count);
            assert!((FLOOR..=CAP).contains(&endpoint.rest(now).unwrap()));
        }
        now += endpoint.rest(now).unwrap();
        assert_eq!(once(&mut endpoint, &Sign::Takes, now), Some(Change::Recovered));
        assert_eq!(endpoint.free(now), FEWEST, "and slowly");
    }

    /// Exchanges and bare connections that are under way: when each began and ends, and whether it can be made.
    type UnderWay = Vec<(Duration, Duration, bool)>;

    /// An endpoint that is away until `back`, while many marks wait for it.
    struct Away {
        back: Duration,
        /// Packets vanish; else connections are refused.
        swallows: bool,
        /// It is asked by marks alone, as before.
        by_marks_alone: bool,
    }

    impl Away {
        /// When a connection that begins then is made or fails, and which of these. A lost packet is sent again after 1 s and 3 s.
        fn connects(&self, began: Duration) -> (Duration, bool) {
            let sent = [0, 1, 3].map(|second| began + Duration::from_secs(second));
            match (sent.into_iter().find(|at| *at >= self.back), self.swallows) {
                (Some(at), true) => (at + STEP, true),
                (None, true) => (began + 5 * SECOND, false),
                (_, false) => (began + STEP, began >= self.back),
            }
        }

        /// Fifty marks: how long after `back` the first and the last one arrive, and how many attempts failed.
        fn drain(&self) -> (Duration, Duration, usize) {
            let (start, mut now, mut endpoint) = (Instant::now(), Duration::ZERO, Endpoint::new(32));
            let (mut exchanges, mut knocks, mut arrived) = (UnderWay::new(), UnderWay::new(), Vec::new());
            let (mut waiting, mut failed) = (50, 0);
            while arrived.len() < 50 {
                let at = start + now;
                for (began, _, is_made) in exchanges.extract_if(.., |(_, ends, _)| *ends <= now) {
                    let away = if self.by_marks_alone { Sign::Unreachable } else { away() };
                    let sign = if is_made { Sign::Takes } else { away };
                    endpoint.took(now - began);
                    endpoint.end(&host("compute1"), &sign, None, at, 0.9);
                    (waiting, failed) = if is_made { (waiting, failed) } else { (waiting + 1, failed + 1) };
                }
                for (began, _, is_made) in knocks.extract_if(.., |(_, ends, _)| *ends <= now) {
                    endpoint.knocked(start + began, is_made, at);
                }
                for _ in 0..endpoint.free(at).min(waiting) {
                    let (ends, is_made) = self.connects(now);
                    endpoint.begin();
                    arrived.extend(is_made.then_some(ends.saturating_sub(self.back)));
                    exchanges.push((now, ends + 2 * STEP, is_made));
                    waiting -= 1;
                }
                if endpoint.knock(at).is_some() {
                    let (ends, is_made) = self.connects(now);
                    knocks.push((now, ends, is_made));
                }
                now += STEP;
            }
            arrived.sort_unstable();
            (arrived[0], arrived[49], failed)
        }
    }

    const STEP: Duration = Duration::from_millis(10);

    fn away() -> Sign {
        Sign::Away(Peer("recovery.example".to_owned(), 443))
    }

    /// Fifty hosts died and the network with them: their marks go when it is back. The broken variant asks by marks alone, less and less
    /// often.
    #[test]
    fn what_was_away_has_the_first_mark_within_two_seconds_and_the_last_within_three() {
        let mut slowest = Duration::ZERO;
        for (number, swallows) in (0..90).flat_map(|number| [(number, false), (number, true)]) {
            let back = Duration::from_millis(370) * number;
            let (first, last, failed) = Away { back, swallows, by_marks_alone: false }.drain();
            assert!(first <= 2 * SECOND && last <= 3 * SECOND, "{back:?} {swallows}: {first:?} {last:?}");
            assert!(failed <= 33, "a bare connection is no attempt: {failed}");
            slowest = slowest.max(Away { back, swallows, by_marks_alone: true }.drain().0);
        }
        assert!(slowest > 20 * SECOND, "{slowest:?}");
    }

    /// It takes connections and no mark: a balancer before nobody, TLS that hangs. The broken variant asks every second.
    #[test]
    fn one_that_takes_bare_connections_alone_is_asked_less_and_less() {
        let (mut now, mut endpoint, mut rests) = (Instant::now(), healthy(), Vec::new());
        once(&mut endpoint, &away(), now);
        for _ in 0..8 {
            let rest = endpoint.rest(now).unwrap_or_default();
            rests.push(rest.as_secs());
            now += rest;
            assert_eq!((endpoint.free(now), endpoint.knock(now).is_some()), (0, true));
            endpoint.knocked(now, true, now);
            assert_eq!((endpoint.free(now), endpoint.knock(now)), (1, None), "a mark follows");
            once(&mut endpoint, &away(), now);
        }
        assert_eq!(rests, [0, 2, 4, 8, 15, 15, 15, 15]);
        now += endpoint.rest(now).unwrap();
        endpoint.knock(now);
        endpoint.knocked(now, false, now);
        now += FLOOR;
        endpoint.knock(now);
        endpoint.knocked(now, true, now);
        once(&mut endpoint, &away(), now);
        assert!(endpoint.rest(now).is_some(), "it was met again before that mark");
        endpoint.probe(now);
        assert_eq!((endpoint.free(now), endpoint.knock(now)), (1, None), "an operator's retry is a mark");
    }

    /// A mark that was under way arrives all the same. The broken variant waits for a bare connection, and `status` says ready.
    #[test]
    fn what_is_acknowledged_meanwhile_shows_that_it_is_there() {
        let now = Instant::now();
        let mut endpoint = healthy();
        (0..2).for_each(|_| endpoint.begin());
        endpoint.end(&host("compute1"), &away(), None, now, 0.5);
        assert_eq!((endpoint.free(now), endpoint.waits(now)), (0, Some(Duration::ZERO)));
        endpoint.took(SECOND);
        let change = endpoint.end(&host("compute2"), &Sign::Takes, None, now + STEP, 0.5);
        assert_eq!((change, endpoint.waits(now)), (Some(Change::Recovered), None));
    }

    /// The broken variant counts each: what one disturbance cut off opens the breaker.
    #[test]
    fn exchanges_that_fail_together_are_one_failure() {
        let opened = |apart: bool| {
            let mut endpoint = healthy();
            (0..LIMIT).for_each(|_| endpoint.begin());
            let mut now = Instant::now() + 60 * SECOND;
            for _ in 0..LIMIT {
                now += STEP;
                endpoint.took(if apart { Duration::ZERO } else { 30 * SECOND });
                endpoint.end(&host("compute1"), &Sign::Busy, None, now, 0.5);
            }
            (!endpoint.is_closed(), endpoint.window)
        };
        assert_eq!([opened(false), opened(true)], [(false, LIMIT / 2), (true, FEWEST)]);
    }

    /// Those that hang since before keep no other mark from an endpoint that is back, and their end shows nothing of it. The broken
    /// variant waits for them, and opens the breaker again for each.
    #[test]
    fn exchanges_that_hang_since_before_hold_up_nothing() {
        let now = Instant::now();
        let mut endpoint = healthy();
        (0..5).for_each(|_| endpoint.begin());
        endpoint.end(&host("compute1"), &away(), None, now, 0.5);
        endpoint.knock(now);
        endpoint.knocked(now, true, now);
        assert_eq!(endpoint.free(now), 1);
        endpoint.begin();
        let end_old = |endpoint: &mut Endpoint, sign: Sign| {
            endpoint.took(30 * SECOND);
            assert_eq!(endpoint.end(&host("compute2"), &sign, None, now + SECOND, 0.5), None);
        };
        end_old(&mut endpoint, Sign::Busy);
        assert_eq!(endpoint.free(now), 0, "its probe is still under way");
        endpoint.took(SECOND);
        endpoint.end(&host("compute3"), &Sign::Takes, None, now + 2 * SECOND, 0.5);
        assert_eq!((endpoint.is_closed(), endpoint.under_way, endpoint.free(now)), (true, 3, FEWEST));
        end_old(&mut endpoint, away());
        end_old(&mut endpoint, Sign::Busy);
        assert_eq!((endpoint.is_closed(), endpoint.under_way, endpoint.free(now)), (true, 1, FEWEST));
        (0..2).for_each(|_| endpoint.begin());
        assert_eq!(endpoint.free(now), 0);
    }

    #[test]
    fn one_that_refuses_is_parked_once_and_probed_slowly() {
        for (wish, longest) in [(None, PARKED_CAP), (Some(60 * SECOND), 60 * SECOND)] {
            let mut now = Instant::now();
            let mut endpoint = healthy();
            let mut refuse = |now| {
                endpoint.begin();
                let change = endpoint.end(&host("compute1"), &Sign::Refuses, wish, now, 0.5);
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
            assert_eq!(once(&mut endpoint, &Sign::Takes, now + rest), Some(Change::Recovered));
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
        assert_eq!(alone.free_again(now), 1, "of one place it has the turn when nobody else does");
        alone.begin();
        assert_eq!(alone.free_again(now), 0);
    }

    /// The broken variant waits for the probe, however many other hosts are to be notified.
    #[test]
    fn what_one_host_is_refused_is_asked_with_another_at_once() {
        let now = Instant::now();
        let mut endpoint = healthy();
        assert_eq!(once(&mut endpoint, &Sign::Refuses, now), Some(Change::Parked));
        assert_eq!((endpoint.free(now), endpoint.free_again(now)), (1, 0), "with none that was refused");
        assert_eq!(once_of(&mut endpoint, "compute2", &Sign::Takes, now), Some(Change::Recovered));
        assert!(endpoint.refuses_only(&host("compute1")) && !endpoint.refuses_only(&host("compute2")));
        once(&mut endpoint, &Sign::Takes, now);
        assert!(!endpoint.refuses_only(&host("compute1")), "it was about this host, and is over");
    }

    /// The broken variant asks with host after host, each of which has its credentials refused.
    #[test]
    fn what_two_hosts_are_refused_is_the_endpoints_fault() {
        let now = Instant::now();
        let mut endpoint = healthy();
        once(&mut endpoint, &Sign::Refuses, now);
        let rest = endpoint.rest(now);
        assert_eq!(once_of(&mut endpoint, "compute2", &Sign::Refuses, now), None, "that is no news");
        assert_eq!((endpoint.free(now), endpoint.rest(now), failures(&endpoint)), (0, rest, 1));
        let probe = now + rest.unwrap();
        assert_eq!((endpoint.free(probe), endpoint.free_again(probe)), (1, 1));
        assert!(!endpoint.refuses_only(&host("compute1")), "it has taken nobody since");
        assert_eq!(once(&mut endpoint, &Sign::Takes, probe), Some(Change::Recovered));
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
                endpoint.end(&host(&format!("compute{number}")), &sign, None, now, random);
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
