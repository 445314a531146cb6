//! An alerter of the simulator: the real journal, intake, policy, outboxes and register's upkeep in the engine's order, at
//! virtual time. Only the exchanges themselves are the model's.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use alerter::base::Base;
use alerter::base::store::Store;
use alerter::cluster::{Cluster, Kept, View};
use alerter::config;
use alerter::delivery::endpoint::Endpoint;
use alerter::delivery::outbox::{FRESH, Outbox};
use alerter::delivery::trouble::Troubles;
use alerter::delivery::{endpoint, of_this_host, sign_of};
use alerter::intake::upkeep::Upkeep;
use alerter::intake::{apply, start};
use alerter::moment::Moment;
use alerter::policy::steer;
use alerter::probes::Conclusion;
use alerter::state::Shared;
use drivers::{Failure, Kind, Outcome, Peer, Step};
use fastrand::Rng;
use journal::{Capacity, DueDelivery, Ended, Journal, JournalError, RegisterWait, Role, Tried, Verdict};
use marks::delivery::{ACCEPTED, State};
use marks::id::MarkId;

use marks::register::{Entries, Entry, Register};
use marks::time::{Boot, CLOCK_SKEW, Timestamp};
use pacemaker::register::Tools;

use super::audit::Audit;
use super::story::Cut;
use super::world::{Attempt, CONTROLLERS, Mood, World};
use crate::site::Plain;

/// How long a mark waits for the register.
const PATIENCE: Duration = Duration::from_secs(60);
/// The engine polls the cluster so often, in milliseconds; nothing comes of most polls.
const POLL: u64 = 2_000;
/// What is fenced is judged again when evidence alone makes a mark, by the CIB and by the history.
const GRACES: [u64; 2] = [11_000, 22_000];
/// How long a receiver that confirms later may take.
const WITHIN: Duration = Duration::from_secs(300);
/// A host that was found up is probed again after so many milliseconds.
const AGAIN: u64 = 60_000;
/// The time limit of an exchange, in milliseconds.
const LIMIT: u64 = 10_000;

/// Routes that send and, where their address says so, go on behind an acknowledgement.
static KINDS: [Kind; 1] = [Kind {
    word: "http",
    configure: |table| {
        let goes_on = table.text("url", |url| Ok(url.ends_with("/on")));
        let steps: &[Step] = if goes_on.unwrap_or_default() { &[Step::Return] } else { &[] };
        Some(Arc::new(Plain::with(steps, Duration::from_millis(LIMIT), false)))
    },
}];

/// How the model is broken, for the tests of the audit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Broken {
    #[default]
    Not,
    /// While a storm holds, nothing is taken in: neither returns nor ends.
    BlocksClearing,
    /// Where one mark is refused or damaged, the pass ends there and nobody else is notified.
    StopsAtFirstError,
    /// All of a group are sent at once.
    DoesNotCount,
    /// What is held is sent all the same.
    IgnoresHolds,
    /// What another controller wrote counts for nothing where its time lies ahead of this controller's clock.
    VoidsWhatLiesAhead,
    /// A register of which a part is missing counts as whole.
    MissesNothing,
    /// What no key seals counts like everything else.
    BelievesEverybody,
    /// The monitor never fails for want of a disk.
    StaysAtItsDisk,
}

/// An exchange under way.
struct Flight {
    ends: u64,
    began: u64,
    due: DueDelivery,
    outcome: Outcome,
}

/// What a receiver is to confirm, by the world's clock.
pub(super) struct Callback {
    pub(super) at: u64,
    pub(super) route: String,
    pub(super) mark: MarkId,
}

/// What probes said of a mark's host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Up,
    Down,
}

/// One daemon.
pub(super) struct Daemon {
    pub(super) controller: usize,
    pub(super) journal: Journal,
    pub(super) shared: Arc<Shared>,
    broken: Broken,
    upkeep: Upkeep,
    /// When the cluster is polled, and when the engine only wakes.
    polls: BTreeSet<u64>,
    wakes: BTreeSet<u64>,
    upkeep_at: Option<u64>,
    flights: Vec<Flight>,
    /// Answers that are not on record.
    answers: Vec<Ended>,
    /// Begun in the journal and not ended there.
    pub(super) under_way: BTreeSet<(MarkId, String)>,
    pub(super) probed: BTreeMap<MarkId, Found>,
    asked: BTreeMap<MarkId, u64>,
    pub(super) callbacks: Vec<Callback>,
    clocks: Moment,
    history_read: usize,
    /// Milliseconds since the story began.
    pub(super) began: u64,
    /// Since when nothing could be written, in the same.
    pub(super) trouble: Option<u64>,
    /// The work of the last pass is still to be done.
    wants_poll: bool,
    /// Begun in the journal, not sent, and to be taken back.
    unsent: Vec<DueDelivery>,
}

impl Daemon {
    /// What `run` does before its first poll.
    pub(super) fn start(world: &mut World, controller: usize, broken: Broken) -> Self {
        world.clock.active = controller;
        let open = || Journal::open(&world.journal(controller), Role::Alerter).unwrap();
        let (store, _thread) = Store::start(open()).unwrap();
        let settings = config::load_with(&world.settings(controller), &KINDS).unwrap();
        let cluster = Cluster::start(Register::Attrd, Tools::default(), PathBuf::new()).unwrap();
        let mut base = Base::new(settings, store, cluster);
        base.controller = CONTROLLERS[controller].to_owned();
        let shared = Shared::new(base);
        let (mut journal, shared, clocks) = (open(), Arc::new(shared), world.clock.moment());
        let now = clocks.wall;
        *shared.base.started() = now;
        start::recover(&mut journal, now).unwrap();
        journal.mind_the_clock(&world.clock.boot(), now).unwrap();
        let tried = journal.tried().unwrap();
        *shared.routes.outboxes() = outboxes(&shared, &tried, clocks);
        *shared.routes.troubles() = Troubles::from_former(tried);
        let mut daemon = Self {
            controller,
            journal,
            shared,
            broken,
            upkeep: Upkeep::default(),
            polls: BTreeSet::new(),
            wakes: BTreeSet::new(),
            upkeep_at: None,
            flights: Vec::new(),
            answers: Vec::new(),
            under_way: BTreeSet::new(),
            probed: BTreeMap::new(),
            asked: BTreeMap::new(),
            callbacks: Vec::new(),
            clocks,
            history_read: usize::MAX,
            began: world.clock.now,
            trouble: None,
            wants_poll: false,
            unsent: Vec::new(),
        };
        daemon.poll_soon(world.clock.now);
        daemon
    }

    /// Something in the cluster may have changed.
    pub(super) fn poll_soon(&mut self, now: u64) {
        self.polls.extend([now, now + GRACES[0], now + GRACES[1]]);
    }

    /// A pass has failed: the next one comes a second later.
    pub(super) fn cannot_write(&mut self, now: u64) {
        self.trouble.get_or_insert(now);
        self.polls.insert(now + 1_000);
        self.wants_poll = true;
    }

    /// Whether its monitor fails for want of a disk: the daemon's own rule, by a clock that cannot be moved.
    pub(super) fn is_better_elsewhere(&self, now: u64) -> bool {
        let Some(since) = self.trouble.filter(|_| self.broken != Broken::StaysAtItsDisk) else {
            return false;
        };
        let since = Instant::now() - Duration::from_millis(now - since);
        *self.shared.journal_trouble() = Some((since, "it is full".to_owned()));
        self.shared.is_better_elsewhere()
    }

    /// One pass of the engine. Gives where it was killed.
    pub(super) fn pass(
        &mut self,
        world: &mut World,
        audit: &mut Audit,
        rng: &mut Rng,
        cut: Option<Cut>,
    ) -> Result<(), Cut> {
        let now = world.clock.moment();
        self.mind_the_clock(now, &world.clock.boot())?;
        self.gather(world, rng, now);
        if !self.answers.is_empty() {
            stop_at(cut, Cut::BeforeRecord)?;
        }
        self.take_back(now)?;
        if self.is_time_to_poll(world.clock.now) {
            self.take_in(world, now)?;
            stop_at(cut, Cut::BeforePolicy)?;
            written(steer::steer(&mut self.journal, self.shared.policy(), now.wall))?;
            stop_at(cut, Cut::BeforeRegister)?;
            self.keep_up(world, now.wall)?;
        } else if self.upkeep_at.is_some_and(|at| at <= world.clock.now) {
            self.keep_up(world, now.wall)?;
        }
        self.probe(world, rng);
        self.dispatch(world, audit, rng, (now, cut))?;
        self.ask_hosts(world, rng);
        Ok(())
    }

    fn is_time_to_poll(&mut self, now: u64) -> bool {
        let before = self.polls.len();
        self.polls.retain(|at| *at > now);
        self.wakes.retain(|at| *at > now);
        std::mem::take(&mut self.wants_poll) || self.polls.len() < before
    }

    /// As the engine does where the clock was set.
    fn mind_the_clock(&mut self, now: Moment, boot: &Boot) -> Result<(), Cut> {
        let set = now.set_since(self.clocks).unwrap_or_default();
        if set < 0 {
            written(self.journal.put_off_no_longer_than(now.wall + endpoint::CAP))?;
        }
        if set != 0 {
            written(self.journal.mind_the_clock(boot, now.wall))?;
        }
        let mut started = self.shared.base.started();
        *started = Timestamp(started.0.saturating_add(set));
        self.clocks = now;
        Ok(())
    }

    fn take_in(&mut self, world: &mut World, now: Moment) -> Result<(), Cut> {
        if self.broken == Broken::BlocksClearing && self.is_stormy() {
            return Ok(());
        }
        let is_recent = world.clock.now.saturating_sub(world.fenced.max(self.began)) < 60_000;
        let with_history = is_recent || self.history_read != world.history.len() || self.trouble.is_some();
        self.poll(world, now, with_history)?;
        if std::mem::take(&mut self.shared.base.seen().history_wanted) && !with_history {
            self.poll(world, now, true)?;
        }
        Ok(())
    }

    fn is_stormy(&self) -> bool {
        let holds = self.journal.holds().unwrap();
        holds.values().any(|held| held.words.iter().any(|word| word == "storm"))
    }

    fn poll(&mut self, world: &mut World, now: Moment, with_history: bool) -> Result<(), Cut> {
        let view = Arc::new(View {
            taken: now.instant,
            quorum: Ok(true),
            entries: Ok(self.entries(world)),
            known: None,
            kept: Kept::default(),
            cib: Ok(world.cib()),
            history: with_history.then(|| Ok(world.history())),
        });
        if with_history {
            self.history_read = world.history.len();
        }
        // It asks for news every other second, which is not played: the cluster was as it is until this moment.
        if self.shared.base.seen().has_passed() && self.trouble.is_none() {
            let before = Duration::from_secs(1);
            let asked = Moment { instant: now.instant - before, wall: now.wall - before };
            self.shared.base.seen().note_no_news(true, asked);
        }
        self.shared.base.seen().note(&view);
        let known = (&*self.shared.base, &self.shared.accounts);
        written(apply::take_in_at(&mut self.journal, known, Some(&view), now))
    }

    fn entries(&self, world: &World) -> Entries {
        let mut entries = world.entries();
        if self.broken == Broken::VoidsWhatLiesAhead {
            let latest = world.clock.wall() + CLOCK_SKEW;
            entries.sound.retain(|_, entry| entry.at() <= latest);
        }
        if self.broken == Broken::BelievesEverybody {
            entries.sealed.extend(std::mem::take(&mut entries.unsealed).into_keys());
        }
        entries.is_partial &= self.broken != Broken::MissesNothing;
        entries
    }

    /// Writes what the register lacks.
    fn keep_up(&mut self, world: &mut World, now: Timestamp) -> Result<(), Cut> {
        let entries = world.entries();
        let found = (Register::Attrd, &entries);
        let wanted = written(self.upkeep.wanted(&mut self.journal, &self.shared.base, found, now))?;
        self.upkeep_at = None;
        let mut new = Vec::new();
        for entry in wanted.unwrap_or_default() {
            let key = entry.key();
            let is_there = entries.sound.contains_key(&key) && !entries.unsealed.contains_key(&key);
            if !is_there {
                world.publish(entry);
            }
            if !is_there || (matches!(key, marks::register::Key::Mark(_)) && !self.is_published(&key)) {
                new.push(key.to_string());
            }
        }
        match new.as_slice() {
            [] => Ok(()),
            new => written(self.journal.note_published(Register::Attrd, new)),
        }
    }

    fn is_published(&self, key: &marks::register::Key) -> bool {
        self.journal.is_published(Register::Attrd, &key.to_string()).unwrap()
    }

    /// Takes up what has ended: what it says of the endpoint, and of the mark.
    fn gather(&mut self, world: &mut World, rng: &mut Rng, now: Moment) {
        let mut ended: Vec<Flight> = Vec::new();
        for flight in std::mem::take(&mut self.flights) {
            if flight.ends <= world.clock.now { ended.push(flight) } else { self.flights.push(flight) }
        }
        for flight in ended {
            let took = Duration::from_millis(world.clock.now - flight.began);
            let outcome = of_this_host(&self.shared.sending(), &flight.due, flight.outcome);
            let flight = Flight { outcome, ..flight };
            self.note(&flight, took, now, rng.f64());
            let verdict = self.judge(&flight, now.wall, rng.f64());
            let (mark, route) = (flight.due.mark.id, flight.due.delivery.route.clone());
            self.answers.push(Ended { mark, route, verdict, at: now.wall });
        }
    }

    /// As `delivery` notes what an exchange says of its endpoint.
    fn note(&self, flight: &Flight, took: Duration, now: Moment, random: f64) {
        let mut outboxes = self.shared.routes.outboxes();
        if let Some(outbox) = outboxes.get_mut(&flight.due.delivery.route) {
            outbox.ended(flight.due.mark.id);
            outbox.endpoint.took(took);
            let sign = sign_of(&flight.outcome);
            outbox.endpoint.end(&flight.due.mark.node, &sign, None, now.instant, random);
        }
    }

    /// As `delivery` turns an outcome into what is written down.
    fn judge(&self, flight: &Flight, now: Timestamp, random: f64) -> Verdict {
        let (route, delivery) = (&flight.due.delivery.route, &flight.due.delivery);
        let again = |state, ambiguous, failure: &Failure, wait: Duration| {
            let routes = &self.shared.routes;
            match &flight.outcome {
                Outcome::Rejected(_) => drop(routes.troubles().rejected(route, &flight.due.mark.node)),
                _ => drop(routes.troubles().failed(
                    route,
                    (failure.kind, &failure.detail),
                    Duration::ZERO,
                    now,
                )),
            }
            let (kind, detail) = (failure.kind.to_owned(), failure.detail.clone());
            Verdict::Again { state, ambiguous, kind, detail, next_due: now + wait }
        };
        let jittered = endpoint::wait(delivery.attempts, random, None);
        match &flight.outcome {
            Outcome::Accepted { within } => {
                self.shared.routes.troubles().accepted(route);
                let (kind, detail) = (ACCEPTED.to_owned(), "accepted".to_owned());
                let next_due = now + *within;
                Verdict::Again { state: State::Pending, ambiguous: false, kind, detail, next_due }
            }
            Outcome::Unreachable(failure) => again(State::Pending, false, failure, Duration::ZERO),
            Outcome::Retry(failure) => again(State::Pending, false, failure, jittered),
            Outcome::Unknown(failure) => again(State::Pending, true, failure, jittered),
            Outcome::Refused(failure) => again(State::Parked, false, failure, Duration::ZERO),
            Outcome::Rejected(failure) => {
                let last = delivery.last.as_ref().filter(|last| last.kind == failure.kind);
                let before = last.map(|last| delivery.next_due.since(last.at)).unwrap_or_default();
                again(State::Parked, false, failure, endpoint::slow(before, random))
            }
            _ => {
                self.shared.routes.troubles().accepted(route);
                Verdict::Acknowledged { reference: None, detail: "taken".into() }
            }
        }
    }

    /// What stands in an outbox for too long begins again.
    fn take_back(&mut self, now: Moment) -> Result<(), Cut> {
        for outbox in self.shared.routes.outboxes().values_mut() {
            self.unsent.extend(outbox.remove_stale(now));
        }
        let keys: Vec<(MarkId, &str)> =
            self.unsent.iter().map(|due| (due.mark.id, due.delivery.route.as_str())).collect();
        written(self.journal.take_back(&keys, now.wall))?;
        for due in self.unsent.drain(..) {
            self.under_way.remove(&(due.mark.id, due.delivery.route));
        }
        Ok(())
    }

    /// Puts answers on record, begins what is due and sends it.
    fn dispatch(
        &mut self,
        world: &mut World,
        audit: &mut Audit,
        rng: &mut Rng,
        (now, cut): (Moment, Option<Cut>),
    ) -> Result<(), Cut> {
        let ended = self.answers.clone();
        let capacity = self.capacity(now);
        let wait = Some(RegisterWait {
            register: Register::Attrd,
            waited_since: now.wall - PATIENCE,
            own_since: None,
        });
        let comes_first = self.shared.policy.steering().is_limited();
        let (first, then): (&[Ended], &[Ended]) = if comes_first { (&ended, &[]) } else { (&[], &ended) };
        let mut dispatched = written(self.journal.dispatch(first, &[], wait, now.wall))?;
        written(steer::keep_up(&mut self.journal, self.shared.policy(), (&capacity, wait), now.wall))?;
        audit.check(world, self);
        self.break_holds(now.wall);
        dispatched.add(written(self.journal.dispatch(then, &capacity, wait, now.wall))?);
        self.answers.clear();
        self.shared.base.damages.report(&dispatched.damaged);
        for Ended { mark, route, .. } in ended.iter() {
            audit.ended(world, *mark, route);
            self.under_way.remove(&(*mark, route.clone()));
        }
        for due in &dispatched.begun {
            self.under_way.insert((due.mark.id, due.delivery.route.clone()));
            audit.begun(world, self, due);
        }
        audit.count(world, self);
        dispatched.kept.iter().for_each(|due| audit.kept(world, due));
        if !dispatched.kept.is_empty() {
            let waiting = self.journal.waiting().unwrap();
            self.shared.routes.troubles().keep_only(|route| waiting.contains_key(route));
            self.wakes.insert(world.clock.now);
        }
        if !ended.is_empty() || !dispatched.begun.is_empty() {
            self.upkeep_at = Some(world.clock.now + 100);
            self.wakes.insert(world.clock.now + POLL);
        }
        let has_begun = !dispatched.begun.is_empty();
        self.take_up(dispatched.begun, &capacity, now);
        if has_begun {
            stop_at(cut, Cut::BeforeSending)?;
        }
        let sent = self.send(world, audit, rng, now);
        self.knock(world, now.instant);
        if sent > 0 {
            stop_at(cut, Cut::Sent)?;
        }
        Ok(())
    }

    /// Asks endpoints that are away.
    fn knock(&mut self, world: &World, now: Instant) {
        for (route, _) in self.shared.routes.knocks(now) {
            let receiver = &world.receivers[route.split('.').next().unwrap()];
            let connects = !matches!(receiver.mood, Mood::Refuses);
            self.shared.routes.outboxes().get_mut(&route).unwrap().knocked(now, connects, now);
            self.wakes.extend(connects.then_some(world.clock.now + 1));
        }
    }

    /// The broken variants that send what the policy holds.
    fn break_holds(&mut self, now: Timestamp) {
        let is_freed = |words: &[String]| match self.broken {
            Broken::DoesNotCount => words == ["max-in-flight"],
            Broken::IgnoresHolds => true,
            _ => false,
        };
        if !matches!(self.broken, Broken::DoesNotCount | Broken::IgnoresHolds) {
            return;
        }
        let holds = self.journal.holds().unwrap();
        let freed: Vec<MarkId> =
            holds.values().filter(|held| is_freed(&held.words)).map(|held| held.mark).collect();
        self.journal.hold(&[], &freed, now).unwrap();
    }

    fn capacity(&self, now: Moment) -> Vec<Capacity> {
        let stops = self.broken == Broken::StopsAtFirstError && self.has_error();
        let members = self.shared.base.members(now.wall);
        let mut outboxes = self.shared.routes.outboxes();
        let capacity = |route: &Arc<config::Route>| {
            let capacity = outboxes.get_mut(route.name.as_str())?.ask(route, now.instant);
            let capacity = Capacity { membership: members.clone(), ..capacity };
            Some(if stops { Capacity { places: 0, ..capacity } } else { capacity })
        };
        self.shared.base.settings().routes.iter().filter_map(capacity).collect()
    }

    fn has_error(&self) -> bool {
        let open = self.journal.open_deliveries().unwrap();
        !open.damaged.is_empty() || open.sound.iter().any(|delivery| delivery.state == State::Parked)
    }

    fn take_up(&self, mut begun: Vec<DueDelivery>, asked: &[Capacity], now: Moment) {
        let mut outboxes = self.shared.routes.outboxes();
        for Capacity { route, places, .. } in asked {
            let own = begun.extract_if(.., |due| due.delivery.route == *route).collect();
            if let Some(outbox) = outboxes.get_mut(route) {
                outbox.take_up(own, *places, FRESH, now);
            }
        }
    }

    fn send(&mut self, world: &mut World, audit: &mut Audit, rng: &mut Rng, now: Moment) -> usize {
        let names: BTreeSet<String> = self.shared.routes.outboxes().keys().cloned().collect();
        let mut count = 0;
        for name in names {
            loop {
                let next = self.shared.routes.outboxes().get_mut(&name).and_then(|outbox| outbox.next(now));
                let Some(due) = next else { break };
                let (outcome, takes) = self.arrive(world, audit, rng, &due);
                let began = world.clock.now;
                self.flights.push(Flight { ends: began + takes, began, due, outcome });
                count += 1;
            }
        }
        count
    }

    /// The bytes reach the receiver, or do not; gives what comes of it and after how many milliseconds.
    fn arrive(
        &mut self,
        world: &mut World,
        audit: &mut Audit,
        rng: &mut Rng,
        due: &DueDelivery,
    ) -> (Outcome, u64) {
        let (mark, at) = (due.mark.id, world.clock.now);
        let route = due.delivery.route.split('.').next().unwrap().to_owned();
        let receiver = world.receivers.get_mut(&route).unwrap();
        let takes = rng.u64(1..=receiver.pace);
        let failure = |kind| Failure::new(kind, kind);
        let arrives = match receiver.mood {
            Mood::Refuses => {
                let peer = Some(Peer(route, 80));
                return (Outcome::Unreachable(failure("connect").of_peer(peer)), 1);
            }
            Mood::Busy => return (Outcome::Retry(failure("http-503")), takes),
            Mood::Denies => return (Outcome::Refused(failure("http-401")), takes),
            Mood::TimesOut if rng.bool() => return (Outcome::Unknown(failure("timed-out")), LIMIT),
            Mood::TimesOut => false,
            Mood::Takes => true,
        };
        if due.delivery.is_return() {
            audit.step(world, due);
            let receiver = world.receivers.get_mut(&route).unwrap();
            let is_own = receiver.down.get(&due.mark.node) == Some(&mark);
            if due.delivery.is_return() && is_own {
                receiver.down.remove(&due.mark.node);
            }
            return match arrives {
                true => (Outcome::Acknowledged { reference: None }, takes),
                false => (Outcome::Unknown(failure("timed-out")), LIMIT),
            };
        }
        if receiver.rejects.contains(&due.mark.node) {
            return (Outcome::Rejected(failure("http-422")), takes);
        }
        receiver.got.insert(mark);
        receiver.down.insert(due.mark.node.clone(), mark);
        receiver.notified.entry(due.mark.node.clone()).or_insert(at);
        let attempt = Attempt { mark, node: due.mark.node.clone(), body: due.delivery.body.clone() };
        if !receiver.confirms_later {
            receiver.has.insert(mark);
        }
        let later = receiver.confirms_later;
        audit.arrived(world, &route, attempt);
        if later {
            // Now and then it comes too late, and the mark is sent once more.
            let wait = if rng.u8(..4) == 0 { rng.u64(300_000..600_000) } else { rng.u64(500..60_000) };
            self.callbacks.push(Callback { at: at + wait, route, mark });
        }
        match (arrives, later) {
            (false, _) => (Outcome::Unknown(failure("timed-out")), LIMIT),
            (true, true) => (Outcome::Accepted { within: WITHIN }, takes),
            (true, false) => (Outcome::Acknowledged { reference: None }, takes),
        }
    }

    /// Gives the policy what probes say.
    fn probe(&mut self, world: &World, rng: &mut Rng) {
        let due: Vec<MarkId> =
            self.asked.iter().filter(|(_, at)| **at <= world.clock.now).map(|(mark, _)| *mark).collect();
        for mark in due {
            self.asked.remove(&mark);
            let Ok(Some(row)) = self.journal.mark(mark) else { continue };
            let is_up = world.hosts[world.index_of[&row.node]].is_up || rng.u8(..10) == 0;
            let (found, said) = match is_up {
                true => (Found::Up, Conclusion::Healthy("exec.bmc answers".into())),
                false => (Found::Down, Conclusion::Confirmed),
            };
            self.probed.insert(mark, found);
            self.shared.policy.conclusions().insert(mark, said);
        }
    }

    /// Probes the hosts whose marks wait for that, and no others.
    fn ask_hosts(&mut self, world: &World, rng: &mut Rng) {
        let wanted: BTreeSet<MarkId> =
            self.shared.policy.steering().to_probe().into_iter().map(|(mark, ..)| mark).collect();
        self.asked.retain(|mark, _| wanted.contains(mark));
        for mark in wanted {
            let wait = if self.probed.get(&mark) == Some(&Found::Up) { AGAIN } else { rng.u64(500..15_000) };
            self.asked.entry(mark).or_insert(world.clock.now + wait);
        }
    }

    /// When there is a reason for another pass.
    pub(super) fn next(&self, world: &World) -> Option<u64> {
        self.reasons(world).into_iter().filter_map(|(_, at)| at).min()
    }

    /// What it waits for.
    pub(super) fn reasons(&self, world: &World) -> [(&'static str, Option<u64>); 9] {
        let (now, clock) = (world.clock.moment(), &world.clock);
        let due = self.journal.next_due(now.wall, &self.capacity(now)).unwrap();
        // A pass that could not write is made again at a poll.
        let planned = self.shared.policy.steering().next().filter(|_| self.trouble.is_none());
        let outboxes = self.shared.routes.outboxes();
        let rest = outboxes.values().filter_map(|outbox| outbox.endpoint.rest(now.instant)).min();
        let stale = outboxes.values().filter_map(|outbox| outbox.stays_fresh(now)).min();
        let after = |rest: Option<Duration>| rest.map(|rest| clock.when_instant(now.instant + rest));
        [
            ("due", due.map(|at| clock.when(at))),
            ("planned", planned.map(|at| clock.when(at))),
            ("probe", after(rest)),
            ("stale", after(stale)),
            ("answer", self.flights.iter().map(|flight| flight.ends).min()),
            ("poll", self.polls.first().copied()),
            ("wake", self.wakes.first().copied()),
            ("asked", self.asked.values().min().copied()),
            ("upkeep", self.upkeep_at),
        ]
    }

    /// The entry of an acknowledgement stands in the register for all to see.
    pub(super) fn is_known_to_all(world: &World, mark: MarkId, route: &str) -> bool {
        let key = marks::register::Key::Acknowledged(mark, route.to_owned());
        !world.is_missing(&key) && matches!(world.register.get(&key), Some(Entry::Acknowledged(_)))
    }
}

fn written<T>(done: Result<T, JournalError>) -> Result<T, Cut> {
    done.map_err(|_| Cut::Unwritten)
}

fn stop_at(cut: Option<Cut>, here: Cut) -> Result<(), Cut> {
    if cut == Some(here) { Err(here) } else { Ok(()) }
}

/// As the engine makes them.
fn outboxes(shared: &Shared, tried: &[Tried], now: Moment) -> HashMap<String, Outbox> {
    let limit = shared.base.settings().max_in_flight;
    let new = |route: &Arc<config::Route>| {
        let name = route.name.as_str().to_owned();
        let endpoint = match tried.iter().find(|tried| tried.route == name) {
            None => Endpoint::new(limit),
            Some(tried) => {
                let wait = endpoint::FLOOR.saturating_sub(now.wall.since(tried.last.at));
                Endpoint::in_trouble(limit, now.instant + wait)
            }
        };
        (name, Outbox::new(endpoint))
    };
    shared.base.settings().routes.iter().map(new).collect()
}
