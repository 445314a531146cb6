//! The simulator's alerter: the real journals, intake, policy, outboxes and register's upkeep in the engine's order, at virtual time.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use alerter::cluster::{Kept, View};
use alerter::config;
use alerter::delivery::endpoint::Endpoint;
use alerter::delivery::outbox::{FRESH, Outbox};
use alerter::delivery::trouble::Troubles;
use alerter::delivery::{endpoint, of_this_host, sign_of};
use alerter::intake::upkeep::Upkeep;
use alerter::intake::{account, apply};
use alerter::moment::Moment;
use alerter::policy::steer;
use alerter::probes::Conclusion;
use alerter::state::Shared;
use drivers::{Failure, Kind, Outcome, Peer, Step};
use journal::{
    Callback, Capacity, Dispatched, DueDelivery, Ended, Journal, JournalError, RegisterWait, Says, Tried,
    Verdict,
};
use marks::delivery::{ACCEPTED, State};
use marks::fencing::Fencing;
use marks::host::HostName;
use marks::id::{MarkId, NoteId};
use marks::mark::{MarkRow, Settlement};
use marks::register::{
    About, Decision, Ending, Entries, Entry, Key, Register, Returned, Scope, Settled, Unsealed,
};
use marks::sighting::{Sighting, Witness};
use marks::time::{Boot, CLOCK_SKEW, Timestamp};
use pacemaker::cib::Cib;
use simulator::cib::CONTROLLERS;
use simulator::{Alerter, Answer, Clock, Command, Cut, Delivery, Disk, Fake, Fenced, Forgery, Mark, Scene};
use simulator::{Status, Tells, World};

use crate::site::{self, Homes, Plain};

/// How long a mark waits for the register.
const PATIENCE: Duration = Duration::from_secs(60);
/// The engine polls the cluster so often, in milliseconds; nothing comes of most polls.
const POLL: u64 = 2_000;
/// What is fenced is judged again when evidence alone makes a mark, by the CIB and by the history.
const GRACES: [u64; 2] = [11_000, 22_000];
/// How far ahead a forged mark lies.
const TEN_YEARS: Duration = Duration::from_secs(10 * 365 * 86_400);
/// How long a receiver that confirms later may take.
const WITHIN: Duration = Duration::from_secs(300);
/// The time limit of an exchange.
const LIMIT: Duration = Duration::from_secs(10);
/// What is written of a mark, and what a full disk says to it.
const TABLES: [&str; 7] = ["fencing", "mark", "folded", "delivery", "hold", "connection", "history"];
const WRITES: [&str; 3] = ["INSERT", "UPDATE", "DELETE"];
const REFUSED: &str = "BEGIN SELECT RAISE(ABORT, 'the disk is full'); END;";

/// Routes that send and, where their address says so, go on behind an acknowledgement.
static KINDS: [Kind; 1] = [Kind {
    word: "http",
    configure: |table| {
        let goes_on = table.text("url", |url| Ok(url.ends_with("/on")));
        let steps: &[Step] = if goes_on.unwrap_or_default() { &[Step::Return] } else { &[] };
        Some(Arc::new(Plain::with(steps, LIMIT, false)))
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

/// What the controllers read of the model, as the product has it.
#[derive(Default)]
struct Reader {
    cib: Option<(Arc<str>, Arc<Cib>)>,
    /// Each key's entry, with the text that it was read from.
    known: HashMap<String, (String, Entry)>,
}

impl Reader {
    fn cib(&mut self, world: &mut World) -> Arc<Cib> {
        let xml = world.cib();
        let known = self.cib.take().filter(|(known, _)| Arc::ptr_eq(known, &xml));
        let read = || (Arc::clone(&xml), Arc::new(Cib::parse(&xml).unwrap()));
        Arc::clone(&self.cib.insert(known.unwrap_or_else(read)).1)
    }

    fn entries(&mut self, world: &World) -> Entries {
        let mut entries = Entries { is_partial: world.lacking.is_some(), ..Entries::default() };
        for (text, written) in &world.register {
            if self.known.get(text).is_none_or(|(value, _)| *value != written.value) {
                let entry = Entry::parse(Key::parse(&text[1..]).unwrap(), &written.value).unwrap();
                self.known.insert(text.clone(), (written.value.clone(), entry));
            }
            let (_, entry) = &self.known[text];
            if written.is_planted {
                entries.unsealed.insert(entry.key(), Unsealed::Unknown);
            } else if world.has_key && !written.is_missing {
                entries.sealed.insert(entry.key());
            }
            if !written.is_missing {
                entries.sound.insert(entry.key(), entry.clone());
            }
        }
        entries
    }

    /// What `fence_mark` writes now.
    fn fencing(&mut self, world: &mut World, controller: usize, fenced: &Fenced) -> Fencing {
        let cib = self.cib(world);
        Fencing {
            id: fenced.id,
            committed_at: fenced.at + Duration::from_millis(30),
            seen_by: CONTROLLERS[controller].to_owned(),
            incarnation: cib.incarnation_of(&fenced.host),
            already_down: cib.fenced_before(&fenced.host),
            ..samples::fencing(fenced.host.as_str(), fenced.at)
        }
    }
}

/// The key's text, which sorts as the key does.
fn text(key: &Key) -> String {
    let text = key.to_string();
    let rank = "fmasropw".find(&text[..1]).unwrap();
    let is_second = text.ends_with(".again") || text.ends_with(".end");
    format!("{:x}{text}", 2 * rank + usize::from(is_second))
}

fn publish(world: &mut World, entry: &Entry) {
    let tells = match entry {
        Entry::Decision(decision) => Tells::Word(decision.id),
        Entry::Ending(ending) => Tells::End(ending.id),
        Entry::Acknowledged(taken) => Tells::Taken(taken.mark, taken.route.clone()),
        _ => Tells::Other,
    };
    world.publish(text(&entry.key()), entry.value(), tells);
}

fn moment(clock: &Clock) -> Moment {
    static BASE: LazyLock<Instant> = LazyLock::new(Instant::now);
    Moment { instant: *BASE + Duration::from_millis(clock.now), wall: clock.wall() }
}

/// The active controller's boot: all have run since before the story.
fn boot(clock: &Clock) -> Boot {
    let id = CONTROLLERS[clock.active].to_owned();
    Boot { id, began: Timestamp(clock.wall().0 - clock.now.cast_signed()) }
}

/// One daemon.
struct Daemon {
    journal: Journal,
    shared: Arc<Shared>,
    broken: Broken,
    upkeep: Upkeep,
    /// When the cluster is polled, and when the engine only wakes.
    polls: BTreeSet<u64>,
    wakes: BTreeSet<u64>,
    upkeep_at: Option<u64>,
    flights: Vec<Flight>,
    /// Answers that are not on record.
    answers: Vec<Ended>,
    clocks: Moment,
    history_read: usize,
    /// The work of the last pass is still to be done.
    wants_poll: bool,
    /// Begun in the journal, not sent, and to be taken back.
    unsent: Vec<DueDelivery>,
    /// What of the history was shown.
    seen: i64,
}

impl Daemon {
    /// One pass of the engine, until it begins what is due. Gives where it was killed.
    fn pass(&mut self, scene: &mut Scene, reader: &mut Reader, cut: Option<Cut>) -> Result<(), Cut> {
        let world = &mut scene.world;
        let now = moment(&world.clock);
        self.mind_the_clock(now, &boot(&world.clock))?;
        self.gather(world, now);
        if !self.answers.is_empty() {
            stop_at(cut, Cut::BeforeRecord)?;
        }
        self.take_back(scene, now)?;
        let world = &mut scene.world;
        if self.is_time_to_poll(world.clock.now) {
            self.take_in(world, reader, now)?;
            stop_at(cut, Cut::BeforePolicy)?;
            written(steer::steer(&mut self.journal, self.shared.policy(), now.wall))?;
            stop_at(cut, Cut::BeforeRegister)?;
            self.keep_up(world, reader, now.wall)?;
        } else if self.upkeep_at.is_some_and(|at| at <= world.clock.now) {
            self.keep_up(world, reader, now.wall)?;
        }
        for (mark, is_up) in scene.probed() {
            let healthy = || Conclusion::Healthy("exec.bmc answers".into());
            let said = if is_up { healthy() } else { Conclusion::Confirmed };
            self.shared.policy.conclusions().insert(mark, said);
        }
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

    fn take_in(&mut self, world: &mut World, reader: &mut Reader, now: Moment) -> Result<(), Cut> {
        if self.broken == Broken::BlocksClearing && self.is_stormy() {
            return Ok(());
        }
        let is_recent = world.clock.now.saturating_sub(world.fenced.max(world.began)) < 60_000;
        let with_history = is_recent || self.history_read != world.history().len() || world.trouble.is_some();
        self.poll((world, reader), now, with_history)?;
        if std::mem::take(&mut self.shared.base.seen().history_wanted) && !with_history {
            self.poll((world, reader), now, true)?;
        }
        Ok(())
    }

    fn is_stormy(&self) -> bool {
        let holds = self.journal.holds().unwrap();
        holds.values().any(|held| held.words.iter().any(|word| word == "storm"))
    }

    fn poll(
        &mut self,
        (world, reader): (&mut World, &mut Reader),
        now: Moment,
        with_history: bool,
    ) -> Result<(), Cut> {
        let view = Arc::new(View {
            taken: now.instant,
            quorum: Ok(true),
            entries: Ok(self.broken(reader.entries(world), world)),
            known: None,
            kept: Kept::default(),
            cib: Ok(reader.cib(world)),
            history: with_history.then(|| Ok(world.history().map(seen).collect())),
        });
        if with_history {
            self.history_read = world.history().len();
        }
        // It asks for news every other second, which is not played: the cluster was as it is until this moment.
        if self.shared.base.seen().has_passed() && world.trouble.is_none() {
            let before = Duration::from_secs(1);
            let asked = Moment { instant: now.instant - before, wall: now.wall - before };
            self.shared.base.seen().note_no_news(true, asked);
        }
        self.shared.base.seen().note(&view);
        let known = (&*self.shared.base, &self.shared.accounts);
        written(apply::take_in_at(&mut self.journal, known, Some(&view), now))
    }

    fn broken(&self, mut entries: Entries, world: &World) -> Entries {
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
    fn keep_up(&mut self, world: &mut World, reader: &mut Reader, now: Timestamp) -> Result<(), Cut> {
        let entries = reader.entries(world);
        let found = (Register::Attrd, &entries);
        let wanted = written(self.upkeep.wanted(&mut self.journal, &self.shared.base, found, now))?;
        self.upkeep_at = None;
        let is_published = |key: &Key| self.journal.is_published(Register::Attrd, &key.to_string()).unwrap();
        let mut new = Vec::new();
        for entry in wanted.unwrap_or_default() {
            let key = entry.key();
            let is_there = entries.sound.contains_key(&key) && !entries.unsealed.contains_key(&key);
            if !is_there {
                publish(world, &entry);
            }
            if !is_there || (matches!(key, Key::Mark(_)) && !is_published(&key)) {
                new.push(key.to_string());
            }
        }
        match new.as_slice() {
            [] => Ok(()),
            new => written(self.journal.note_published(Register::Attrd, new)),
        }
    }

    /// Takes up what has ended: what it says of the endpoint, and of the mark.
    fn gather(&mut self, world: &mut World, now: Moment) {
        for flight in self.flights.extract_if(.., |flight| flight.ends <= world.clock.now).collect::<Vec<_>>()
        {
            let took = Duration::from_millis(world.clock.now - flight.began);
            let outcome = of_this_host(&self.shared.sending(), &flight.due, flight.outcome);
            let flight = Flight { outcome, ..flight };
            self.note(&flight, took, now, world.rng.f64());
            let verdict = self.judge(&flight, now.wall, world.rng.f64());
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
            let (mut troubles, says) = (routes.troubles(), (failure.kind, failure.detail.as_str()));
            match &flight.outcome {
                Outcome::Rejected(_) => drop(troubles.rejected(route, &flight.due.mark.node)),
                _ => drop(troubles.failed(route, says, Duration::ZERO, now)),
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
    fn take_back(&mut self, scene: &mut Scene, now: Moment) -> Result<(), Cut> {
        for outbox in self.shared.routes.outboxes().values_mut() {
            self.unsent.extend(outbox.remove_stale(now));
        }
        let keys: Vec<(MarkId, &str)> =
            self.unsent.iter().map(|due| (due.mark.id, due.delivery.route.as_str())).collect();
        written(self.journal.take_back(&keys, now.wall))?;
        for due in self.unsent.drain(..) {
            scene.ended(due.mark.id, &due.delivery.route);
        }
        Ok(())
    }

    /// Puts answers on record where limits want that first, and plans.
    fn plan(&mut self, now: Moment) -> Result<(Dispatched, Vec<Capacity>, bool), Cut> {
        let (capacity, wait) = (self.capacity(now), wait(now));
        let comes_first = self.shared.policy.steering().is_limited();
        let first: &[Ended] = if comes_first { &self.answers } else { &[] };
        let dispatched = written(self.journal.dispatch(first, &[], wait, now.wall))?;
        written(steer::keep_up(&mut self.journal, self.shared.policy(), (&capacity, wait), now.wall))?;
        Ok((dispatched, capacity, comes_first))
    }

    /// Puts answers on record, begins what is due and sends it.
    fn dispatch(
        &mut self,
        scene: &mut Scene,
        (mut dispatched, capacity, comes_first): (Dispatched, Vec<Capacity>, bool),
        (now, cut): (Moment, Option<Cut>),
    ) -> Result<(), Cut> {
        self.break_holds(now.wall);
        let then: &[Ended] = if comes_first { &[] } else { &self.answers };
        dispatched.add(written(self.journal.dispatch(then, &capacity, wait(now), now.wall))?);
        let ended = std::mem::take(&mut self.answers);
        self.shared.base.damages.report(&dispatched.damaged);
        for Ended { mark, route, .. } in &ended {
            scene.ended(*mark, route);
        }
        scene.begun(dispatched.begun.iter().map(shown));
        for (mark, delivery) in dispatched.kept.iter().map(shown) {
            scene.kept(&mark, &delivery);
        }
        let at = scene.world.clock.now;
        if !dispatched.kept.is_empty() {
            let waiting = self.journal.waiting().unwrap();
            self.shared.routes.troubles().keep_only(|route| waiting.contains_key(route));
            self.wakes.insert(at);
        }
        if !ended.is_empty() || !dispatched.begun.is_empty() {
            self.upkeep_at = Some(at + 100);
            self.wakes.insert(at + POLL);
        }
        let has_begun = !dispatched.begun.is_empty();
        self.take_up(dispatched.begun, &capacity, now);
        if has_begun {
            stop_at(cut, Cut::BeforeSending)?;
        }
        let sent = self.send(scene, now);
        self.knock(scene, now.instant);
        if sent > 0 {
            stop_at(cut, Cut::Sent)?;
        }
        Ok(())
    }

    /// Asks endpoints that are away.
    fn knock(&mut self, scene: &Scene, now: Instant) {
        for (route, _) in self.shared.routes.knocks(now) {
            let connects = scene.connects(&route);
            self.shared.routes.outboxes().get_mut(&route).unwrap().knocked(now, connects, now);
            self.wakes.extend(connects.then_some(scene.world.clock.now + 1));
        }
    }

    /// The broken variants that send what the policy holds.
    fn break_holds(&mut self, now: Timestamp) {
        let is_freed: fn(&[String]) -> bool = match self.broken {
            Broken::DoesNotCount => |words| words == ["max-in-flight"],
            Broken::IgnoresHolds => |_| true,
            _ => return,
        };
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

    fn send(&mut self, scene: &mut Scene, now: Moment) -> usize {
        let names: BTreeSet<String> = self.shared.routes.outboxes().keys().cloned().collect();
        let mut count = 0;
        for name in names {
            let next = || self.shared.routes.outboxes().get_mut(&name)?.next(now);
            while let Some(due) = next() {
                let (mark, delivery) = shown(&due);
                let (answer, takes) = scene.send(&mark, &delivery);
                let (outcome, began) = (outcome(answer, delivery.base()), scene.world.clock.now);
                self.flights.push(Flight { ends: began + takes, began, due, outcome });
                count += 1;
            }
        }
        count
    }
}

fn wait(now: Moment) -> Option<RegisterWait> {
    Some(RegisterWait { register: Register::Attrd, waited_since: now.wall - PATIENCE, own_since: None })
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

fn outcome(answer: Answer, route: &str) -> Outcome {
    let failure = |kind| Failure::new(kind, kind);
    match answer {
        Answer::Taken => Outcome::Acknowledged { reference: None },
        Answer::Accepted => Outcome::Accepted { within: WITHIN },
        Answer::Rejected => Outcome::Rejected(failure("http-422")),
        Answer::Refused => Outcome::Refused(failure("http-401")),
        Answer::Busy => Outcome::Retry(failure("http-503")),
        Answer::TimedOut => Outcome::Unknown(failure("timed-out")),
        Answer::Unreachable => {
            Outcome::Unreachable(failure("connect").of_peer(Some(Peer(route.to_owned(), 80))))
        }
    }
}

fn seen((node, at): (HostName, Timestamp)) -> Sighting {
    Sighting { node, witness: Witness::History, at, by_human: false }
}

fn shown(due: &DueDelivery) -> (Mark, Delivery) {
    (mark(&due.mark), delivery(&due.delivery))
}

fn mark(row: &MarkRow) -> Mark {
    Mark {
        id: row.id,
        node: row.node.clone(),
        failure_time: row.failure_time,
        made_by: row.made_by.clone(),
        made_at: row.made_at,
        standing: row.standing.as_str(),
        is_doubted: row.standing.doubt().is_some(),
        settled: row.settled.map(|(how, at)| (how.as_str(), at)),
        returned_at: row.returned_at,
        return_known_at: row.return_known_at,
    }
}

fn delivery(delivery: &marks::delivery::Delivery) -> Delivery {
    Delivery {
        route: delivery.route.clone(),
        state: delivery.state.as_str(),
        required: delivery.required,
        is_in_chain: delivery.chain.is_some(),
        waits_in_chain: delivery.waits_in_chain(),
        turn: delivery.chain.and_then(|step| step.since()),
        attempts: delivery.attempts,
        body: delivery.body.clone(),
        last: delivery.last.as_ref().map(|last| (last.kind.clone(), last.at)),
        released_at: delivery.released_at,
    }
}

/// The product on all controllers.
pub(super) struct Product {
    broken: Broken,
    homes: Homes,
    agents: Vec<Journal>,
    reader: Reader,
    daemon: Option<Daemon>,
}

impl Product {
    /// With this configuration, but for `[store]`.
    pub(super) fn new(settings: &str, broken: Broken) -> Self {
        let homes = Homes::new(settings);
        let agents = CONTROLLERS.map(|name| homes.open(name)).into();
        Self { broken, homes, agents, reader: Reader::default(), daemon: None }
    }

    fn daemon(&mut self) -> &mut Daemon {
        self.daemon.as_mut().unwrap()
    }

    fn running(&self) -> &Daemon {
        self.daemon.as_ref().unwrap()
    }

    fn turn(&mut self, scene: &mut Scene, cut: Option<Cut>) -> Result<(), Cut> {
        if scene.world.hangs() {
            return Err(Cut::Unwritten);
        }
        let (daemon, now) = (self.daemon.as_mut().unwrap(), moment(&scene.world.clock));
        daemon.pass(scene, &mut self.reader, cut)?;
        let planned = daemon.plan(now)?;
        scene.check(self);
        let daemon = self.daemon();
        daemon.dispatch(scene, planned, (now, cut))?;
        let wanted = daemon.shared.policy.steering().to_probe();
        scene.ask(wanted.into_iter().map(|(mark, host, _)| (mark, host.node)).collect());
        Ok(())
    }
}

impl Alerter for Product {
    fn off(&mut self, world: &mut World, controller: usize, fenced: &Fenced) {
        let fencing = self.reader.fencing(world, controller, fenced);
        if world.is_jammed(controller) {
            return publish(world, &Entry::Fencing(fencing));
        }
        self.agents[controller].append_fencing(&fencing).unwrap();
        self.monitor(world, controller);
    }

    fn monitor(&mut self, world: &mut World, controller: usize) {
        if world.is_jammed(controller) {
            return;
        }
        let (journal, now) = (&mut self.agents[controller], world.clock.of(controller));
        site::new_fencings(journal, now).iter().for_each(|entry| publish(world, entry));
        let register = self.reader.entries(world).believed().sound;
        site::lost_fencings(journal, now, &register).iter().for_each(|entry| publish(world, entry));
    }

    fn start(&mut self, world: &World) {
        let (name, clocks) = (CONTROLLERS[world.clock.active], moment(&world.clock));
        let (journal, shared) = site::begin((&self.homes, name), &KINDS, &boot(&world.clock), clocks.wall);
        let tried = journal.tried().unwrap();
        *shared.routes.outboxes() = outboxes(&shared, &tried, clocks);
        *shared.routes.troubles() = Troubles::from_former(tried);
        self.daemon = Some(Daemon {
            journal,
            shared,
            broken: self.broken,
            upkeep: Upkeep::default(),
            polls: BTreeSet::new(),
            wakes: BTreeSet::new(),
            upkeep_at: None,
            flights: Vec::new(),
            answers: Vec::new(),
            clocks,
            history_read: usize::MAX,
            wants_poll: false,
            unsent: Vec::new(),
            seen: 0,
        });
        self.wake(world.clock.now);
    }

    fn kill(&mut self) {
        self.daemon = None;
    }

    fn wake(&mut self, now: u64) {
        self.daemon().polls.extend([now, now + GRACES[0], now + GRACES[1]]);
    }

    /// One that has failed is made again a second later.
    fn pass(&mut self, scene: &mut Scene, cut: Option<Cut>) -> Result<(), Cut> {
        let passed = self.turn(scene, cut);
        if passed == Err(Cut::Unwritten) {
            let daemon = self.daemon();
            daemon.polls.insert(scene.world.clock.now + 1_000);
            daemon.wants_poll = true;
        }
        passed
    }

    fn reasons(&self, world: &World) -> Vec<(&'static str, u64)> {
        let (daemon, now, clock) = (self.running(), moment(&world.clock), &world.clock);
        let due = daemon.journal.next_due(now.wall, &daemon.capacity(now)).unwrap();
        // A pass that could not write is made again at a poll.
        let planned = daemon.shared.policy.steering().next().filter(|_| world.trouble.is_none());
        let outboxes = daemon.shared.routes.outboxes();
        let rest = outboxes.values().filter_map(|outbox| outbox.endpoint.rest(now.instant)).min();
        let stale = outboxes.values().filter_map(|outbox| outbox.stays_fresh(now)).min();
        let millis = |rest: Duration| u64::try_from(rest.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
        let after = |rest: Option<Duration>| rest.map(|rest| clock.now.saturating_add(millis(rest)));
        let all = [
            ("due", due.map(|at| clock.when(at))),
            ("planned", planned.map(|at| clock.when(at))),
            ("probe", after(rest)),
            ("stale", after(stale)),
            ("answer", daemon.flights.iter().map(|flight| flight.ends).min()),
            ("poll", daemon.polls.first().copied()),
            ("wake", daemon.wakes.first().copied()),
            ("upkeep", daemon.upkeep_at),
        ];
        all.into_iter().filter_map(|(why, at)| Some((why, at?))).collect()
    }

    /// The daemon's own rule, by a clock that cannot be moved.
    fn is_better_elsewhere(&self, world: &World) -> bool {
        let Some(since) = world.trouble.filter(|_| self.broken != Broken::StaysAtItsDisk) else {
            return false;
        };
        let since = Instant::now() - Duration::from_millis(world.clock.now - since);
        let shared = &self.running().shared;
        *shared.journal_trouble() = Some((since, "it is full".to_owned()));
        shared.is_better_elsewhere()
    }

    fn decide(&mut self, command: &Command, at: Timestamp) -> bool {
        let journal = &mut self.daemon().journal;
        let mut decide = |id: NoteId, about| {
            let (actor, reason) = ("alice".to_owned(), "she has one".to_owned());
            journal.decide(&Decision { id, about, at, actor, reason })
        };
        let done = match command.clone() {
            Command::Pause(id, scope, until) => decide(id, About::Pause { scope: of(scope), until }),
            Command::Maintain(id, scope, until) => decide(id, About::Maintenance { scope: of(scope), until }),
            Command::Release(id, mark) => decide(id, About::Release(mark)),
            Command::ReleaseGroup(id, name) => decide(id, About::ReleaseGroup(name)),
            Command::End(id) => {
                journal.end_decision(&Ending { id, at, actor: "alice".into(), reason: "done".into() })
            }
            Command::LetGo(mark) => {
                journal.release_held(mark, false, ("I checked", "alice"), at).map(|done| done > 0)
            }
            Command::Unmark(mark) => journal.dismiss(mark, "it lives", "alice", at),
            Command::Confirm(route, mark, refuses) => {
                let (reason, next_due) = ("no room".into(), at + Duration::from_secs(60));
                let says = match refuses {
                    true => Says::Refuses { reason, next_due },
                    false => Says::Has { reference: None, reason: None },
                };
                let (route, confirming) = (Some(route.clone()), vec![route]);
                let callback = Callback { mark, route, confirming, actor: "receiver".to_owned() };
                journal.call_back(&callback, &says, at).map(|_| true)
            }
        };
        done.unwrap()
    }

    fn disk(&mut self, controller: usize, what: Disk<'_>) {
        let (name, mut sql) = (CONTROLLERS[controller], String::new());
        match what {
            Disk::Fills(is_full) => {
                for table in TABLES {
                    let is_full = is_full();
                    for write in WRITES {
                        sql += &format!("DROP TRIGGER IF EXISTS {write}_{table};");
                        let refuse =
                            format!("CREATE TRIGGER {write}_{table} BEFORE {write} ON {table} {REFUSED}");
                        sql.extend(is_full.then_some(refuse));
                    }
                }
            }
            Disk::Damages(mark) => sql.push_str(&format!(
                "UPDATE delivery SET body = x'00' WHERE mark = '{mark}' AND state IN ('pending', 'parked')
                 AND route = (SELECT min(route) FROM delivery WHERE mark = '{mark}')"
            )),
            Disk::IsWiped => self.agents[controller] = self.homes.renewed(name),
        }
        self.homes.tamper(name, &sql);
    }

    fn forge(&mut self, world: &mut World, fake: Fake) -> (String, String) {
        let by = CONTROLLERS[2].to_owned();
        let decided = |id, about, at| {
            Entry::Decision(Decision { id, about, at, actor: "eve".into(), reason: "none".into() })
        };
        let entry = match fake {
            Fake::Ends(mark, at) => {
                Entry::Settled(Settled { mark, how: Settlement::Acknowledged, at, by: "ctl9".to_owned() })
            }
            Fake::Returns(mark, at) => Entry::Returned(Returned { mark, at, by }),
            Fake::Fences(fenced, is_named) => {
                let fencing = self.reader.fencing(world, 2, &fenced);
                let incarnation = fencing.incarnation.clone().filter(|_| is_named);
                Entry::Fencing(Fencing { incarnation, ..fencing })
            }
            Fake::Marks(fenced, forgery) => {
                let mut entry = site::mark_of(&self.reader.fencing(world, 2, &fenced), CONTROLLERS[1]);
                match forgery {
                    Forgery::Future => entry.mark.failure_time = world.clock.wall() + TEN_YEARS,
                    Forgery::OtherDisks => entry.mark.on_shared_storage = false,
                    _ => entry.mark.fqdn = HostName::parse("elsewhere.example.net").unwrap(),
                }
                Entry::Mark(entry)
            }
            Fake::Pauses(id, at) => decided(id, About::Pause { scope: Scope::All, until: None }, at),
            Fake::Releases(id, mark, at) => decided(id, About::Release(mark), at),
        };
        (text(&entry.key()), entry.value())
    }

    fn status(&mut self, world: &World) -> Status {
        let Daemon { journal, shared, seen, .. } = self.daemon.as_mut().unwrap();
        let (touched, newest) = journal.touched_since(*seen).unwrap();
        *seen = newest;
        let changed = touched.into_iter().filter_map(|mark| journal.mark(mark).ok()?);
        let gaps = account::audit(journal, &shared.base, &shared.accounts, moment(&world.clock)).unwrap();
        let holds = journal.holds().unwrap();
        Status {
            marks: changed.map(|row| mark(&row)).collect(),
            holds: holds.into_iter().map(|(mark, held)| (mark, held.words)).collect(),
            gaps: gaps.iter().map(|gap| format!("{gap:?}")).collect(),
        }
    }

    fn deliveries(&self, mark: MarkId) -> (Vec<Delivery>, bool) {
        let rows = self.running().journal.deliveries_of(mark).unwrap();
        (rows.sound.iter().map(delivery).collect(), !rows.damaged.is_empty())
    }
}

fn of(scope: simulator::Scope) -> Scope {
    match scope {
        simulator::Scope::All => Scope::All,
        simulator::Scope::Group(name) => Scope::Group(name),
        simulator::Scope::Host(host) => Scope::Host(host),
    }
}
