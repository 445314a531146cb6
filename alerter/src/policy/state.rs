//! What the policy knows: groups, marks, hosts, and what operators decided. Built up change by change, so that one host's
//! change costs the same however many there are. Pure: time is an argument.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use marks::host::HostName;
use marks::id::MarkId;
use marks::mark::Settlement;
use marks::register::{Cause, Scope};
use marks::time::Timestamp;

use super::hold;
use super::hold::{Held, Hold, SKIP};
use super::tally::{Span, Storm, Tally};
use crate::config::rules::{Limit, Rules};
use crate::probes::Conclusion;

/// What the policy knows of one mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The mark.
    pub mark: MarkId,
    /// Its host.
    pub host: HostName,
    /// The name that is sent; `None` while it is not known.
    pub fqdn: Option<HostName>,
    /// The index of its host's group.
    pub group: usize,
    /// When its host failed.
    pub failed_at: Timestamp,
    /// When the mark was made, by the clock of the alerter that made it.
    pub known_at: Timestamp,
    /// Since when it is known here, by this clock: what may hold it lasts from then on.
    pub seen_at: Timestamp,
    /// Since when its host is back.
    pub returned_at: Option<Timestamp>,
    /// How and when it ended.
    pub end: Option<(Settlement, Timestamp)>,
    /// Its doubts, which its own row keeps, or the one in which it ended.
    pub doubts: Vec<Hold>,
    /// Whether its host is in the cluster; one that was taken out counts as down no longer.
    pub is_member: bool,
    /// An operator let it go.
    pub is_released: bool,
    /// What the group's probes say of its host.
    pub probe: Conclusion,
    /// How far its notification is.
    pub stage: Stage,
}

impl Subject {
    /// What lies ahead of the clock has happened all the same, and the clock was set back since: a return is long over, an end is of now,
    /// and what holds a mark begins again.
    pub(super) fn by_clock(mut self, now: Timestamp) -> Self {
        let is_ahead = |at: Timestamp| at > now + CLOCK_SLACK;
        self.returned_at = self.returned_at.map(|at| if is_ahead(at) { Timestamp(0) } else { at });
        self.end = self.end.map(|(how, at)| (how, if is_ahead(at) { now } else { at }));
        self.seen_at = if is_ahead(self.seen_at) { now } else { self.seen_at };
        self
    }

    /// When its host failed, by this clock.
    fn failed_here(&self) -> Timestamp {
        Timestamp(self.failed_at.0.saturating_add(self.seen_at.0.saturating_sub(self.known_at.0)))
    }
}

/// How far a mark's notification is, for groups that limit how many are sent at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// An attempt could begin.
    #[default]
    Ready,
    /// It is being sent, or its route still asks what became of it.
    UnderWay,
    /// Nothing can be sent for it now, so it takes no place.
    Waiting,
    /// An attempt could begin since then, but its endpoint is in trouble or has answered an earlier attempt badly. Such marks get
    /// the places that no ready mark needs, the one that is due for longest first.
    Blocked(Timestamp),
}

/// Something that an operator decided about many marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// Whom it is about.
    pub whom: Whom,
    /// When it ends by itself.
    pub until: Option<Timestamp>,
    /// One sentence, with owner and reason.
    pub why: Arc<str>,
    /// Which decision it is, as it was made.
    pub cause: Cause,
}

/// Whom an order is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whom {
    /// Everybody.
    All,
    /// The hosts of a group, by its index.
    Group(usize),
    /// One host.
    Host(HostName),
}

impl Order {
    fn is_about(&self, host: &HostName, group: usize) -> bool {
        match &self.whom {
            Whom::All => true,
            Whom::Group(own) => *own == group,
            Whom::Host(own) => own == host,
        }
    }

    fn is_in_force(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| until > now)
    }
}

/// One group.
#[derive(Clone, Debug)]
pub struct GroupState {
    /// Its name.
    pub name: String,
    /// Its rules.
    pub rules: Rules,
    /// Whether it has probes.
    pub probes: bool,
    /// How many hosts it has, without those that are set aside.
    pub size: usize,
    /// When an operator last released what its storm held.
    pub released_at: Option<Timestamp>,
    pub(super) tally: Tally,
    storm_sentence: Arc<str>,
    crowd_sentence: Arc<str>,
}

impl GroupState {
    /// A group without hosts.
    pub fn new(name: &str, rules: Rules, probes: bool) -> Self {
        let storm_sentence = hold::of_storm(name, &rules, 0).into();
        let crowd_sentence = match rules.serial {
            true => format!("the hosts of group {name} are reported one after another"),
            false => format!("group {name} has as many marks in flight as its max-in-flight allows"),
        };
        Self {
            name: name.to_owned(),
            rules,
            probes,
            size: 0,
            released_at: None,
            tally: Tally::new(),
            storm_sentence,
            crowd_sentence: crowd_sentence.into(),
        }
    }

    /// How many of its hosts are down.
    pub fn unhealthy(&self) -> usize {
        self.tally.unhealthy()
    }

    /// Its storm.
    pub fn storm(&self) -> Storm {
        self.tally.storm()
    }

    /// Its storm in one sentence, with its figures.
    pub fn storm_sentence(&self) -> &str {
        &self.storm_sentence
    }

    /// Whether there is a limit to how many of its marks are sent at once.
    pub fn is_limited(&self) -> bool {
        self.places().is_some()
    }

    /// How many marks may be sent at once.
    pub fn places(&self) -> Option<usize> {
        let own = self.rules.max_in_flight.map(|most| usize::try_from(most).unwrap_or(usize::MAX));
        if self.rules.serial { Some(1) } else { own }
    }
}

/// Everything that the policy knows.
#[derive(Clone, Debug)]
pub struct State {
    pub(super) groups: Vec<GroupState>,
    pub(super) subjects: HashMap<MarkId, Subject>,
    pub(super) by_host: HashMap<HostName, BTreeSet<MarkId>>,
    /// The open marks of each group, in the order in which they are sent.
    pub(super) open: Vec<BTreeSet<(Timestamp, MarkId)>>,
    skipped: HashSet<HostName>,
    maintenance: Vec<Order>,
    pauses: Vec<Order>,
    /// Since when a part of the register is missing, by this daemon.
    partial_since: Option<Timestamp>,
    /// What is closed and is of use until a time.
    fading: BTreeSet<(Timestamp, MarkId)>,
    /// Groups whose past has changed.
    late: BTreeSet<usize>,
    /// Marks of which something has changed since they were decided.
    pub(super) changed: BTreeSet<MarkId>,
    now: Timestamp,
}

impl State {
    /// A state without marks.
    pub fn new(groups: Vec<GroupState>) -> Self {
        let count = groups.len();
        Self {
            groups,
            subjects: HashMap::new(),
            by_host: HashMap::new(),
            open: vec![BTreeSet::new(); count],
            skipped: HashSet::new(),
            maintenance: Vec::new(),
            pauses: Vec::new(),
            partial_since: None,
            fading: BTreeSet::new(),
            late: BTreeSet::new(),
            changed: BTreeSet::new(),
            now: Timestamp(i64::MIN),
        }
    }

    /// The groups, in the order of the configuration.
    pub fn groups(&self) -> &[GroupState] {
        &self.groups
    }

    /// What is known of a mark.
    pub fn subject(&self, mark: MarkId) -> Option<&Subject> {
        self.subjects.get(&mark)
    }

    /// Every mark that is known.
    pub fn subjects(&self) -> impl Iterator<Item = &Subject> {
        self.subjects.values()
    }

    /// The open marks of a group, in the order in which they are sent.
    pub fn open_of(&self, group: usize) -> impl Iterator<Item = &Subject> {
        self.open.get(group).into_iter().flatten().filter_map(|(_, mark)| self.subjects.get(mark))
    }

    /// Takes up what is known of a mark now.
    pub fn see(&mut self, subject: Subject) {
        let (mark, group) = (subject.mark, subject.group);
        if let Some(old) = self.forget(mark).filter(|old| old.group != group) {
            let state = &mut self.groups[old.group];
            state.tally.put(mark, &old.host, None, &state.rules, state.size);
        }
        self.by_host.entry(subject.host.clone()).or_default().insert(mark);
        if subject.end.is_none() {
            self.open[group].insert((subject.failed_at, mark));
        }
        let span = self.counted(&subject);
        let state = &mut self.groups[group];
        if state.tally.is_late(mark, span, state.rules.cooldown) {
            self.late.insert(group);
        }
        state.tally.put(mark, &subject.host, span, &state.rules, state.size);
        self.fade(&subject);
        self.subjects.insert(mark, subject);
        self.changed.insert(mark);
    }

    fn fade(&mut self, subject: &Subject) {
        if subject.end.is_some() {
            self.fading.extend(self.of_use_until(subject).map(|until| (until, subject.mark)));
        }
    }

    /// Until when a mark that has ended is of use: its host may still be down. None: not known yet.
    fn of_use_until(&self, subject: &Subject) -> Option<Timestamp> {
        let rules = &self.groups[subject.group].rules;
        let mut until = subject.end.map_or(self.now, |(_, at)| at);
        if rules.limit != Limit::None {
            until = until.max(self.span(subject).to? + rules.cooldown);
        }
        let is_awaited = rules.serial || subject.stage == Stage::UnderWay;
        Some(if is_awaited { until + rules.max_hold } else { until })
    }

    /// Without a check of the storm: the mark may be back at once.
    fn forget(&mut self, mark: MarkId) -> Option<Subject> {
        let old = self.subjects.remove(&mark)?;
        self.open[old.group].remove(&(old.failed_at, mark));
        let of_host = self.by_host.get_mut(&old.host);
        if of_host.is_some_and(|marks| marks.remove(&mark) && marks.is_empty()) {
            self.by_host.remove(&old.host);
        }
        Some(old)
    }

    /// From when to when a mark's host is down, as far as its group is concerned.
    fn span(&self, subject: &Subject) -> Span {
        let rules = &self.groups[subject.group].rules;
        let is_unsent = |how: Settlement| how != Settlement::Acknowledged;
        let ends = [
            rules.window.map(|window| subject.failed_here() + window),
            subject.returned_at.map(|at| at + rules.healthy_delay),
            subject.end.filter(|(how, _)| is_unsent(*how)).map(|(_, at)| at),
        ];
        Span { from: subject.seen_at, to: ends.into_iter().flatten().min() }
    }

    /// The span that counts; none where it does not.
    fn counted(&self, subject: &Subject) -> Option<Span> {
        let has_limit = self.groups[subject.group].rules.limit != Limit::None;
        let is_doubted = subject.doubts.iter().any(|doubt| doubt.lack().is_none());
        let counts = has_limit && !is_doubted && subject.is_member && !self.is_set_aside(subject);
        counts.then(|| self.span(subject))
    }

    /// Hosts that are skipped or in maintenance leave the count and the size of their group.
    fn is_set_aside(&self, subject: &Subject) -> bool {
        self.is_aside(&subject.host, subject.group)
    }

    /// Whether a host of a group is skipped or in maintenance.
    pub fn is_aside(&self, host: &HostName, group: usize) -> bool {
        self.skipped.contains(host) || self.maintenance.iter().any(|order| order.is_about(host, group))
    }

    /// How many hosts a group has, without those that are set aside.
    pub fn set_size(&mut self, group: usize, size: usize) {
        let state = &mut self.groups[group];
        if state.size != size {
            state.size = size;
            // A storm that holds marks keeps its sentence: else the row of each mark would be written again.
            if !state.storm().holds() {
                state.storm_sentence = hold::of_storm(&state.name, &state.rules, size).into();
            }
            state.tally.check(&state.rules, size);
        }
    }

    /// Which hosts have the attribute [`SKIP`]. Says whether that is new.
    pub fn set_skipped(&mut self, hosts: &HashSet<HostName>) -> bool {
        let touched: Vec<HostName> = hosts.symmetric_difference(&self.skipped).cloned().collect();
        if touched.is_empty() {
            return false;
        }
        self.skipped.clone_from(hosts);
        for host in touched {
            let marks = self.by_host.get(&host).cloned().unwrap_or_default();
            marks.into_iter().for_each(|mark| self.see_again(mark));
        }
        true
    }

    /// What operators decided. It changes rarely, and everything is decided again. Says whether it is new.
    pub fn set_orders(&mut self, maintenance: Vec<Order>, pauses: Vec<Order>) -> bool {
        if (&maintenance, &pauses) == (&self.maintenance, &self.pauses) {
            return false;
        }
        (self.maintenance, self.pauses) = (maintenance, pauses);
        let all: Vec<MarkId> = self.subjects.keys().copied().collect();
        all.into_iter().for_each(|mark| self.see_again(mark));
        true
    }

    /// Since when a part of the register is missing.
    pub fn set_partial(&mut self, since: Option<Timestamp>) {
        if self.partial_since != since {
            self.partial_since = since;
            self.changed.extend(self.open.iter().flatten().map(|(_, mark)| *mark));
        }
    }

    /// An operator released what a group's storm held until then.
    pub fn set_released(&mut self, group: usize, at: Option<Timestamp>) {
        if self.groups[group].released_at != at {
            self.groups[group].released_at = at;
            self.changed.extend(self.open[group].iter().map(|(_, mark)| *mark));
        }
    }

    fn see_again(&mut self, mark: MarkId) {
        if let Some(subject) = self.subjects.get(&mark).cloned() {
            self.see(subject);
        }
    }

    /// What probes say of a mark's host.
    pub fn set_probe(&mut self, mark: MarkId, probe: Conclusion) {
        if let Some(subject) = self.subjects.get_mut(&mark).filter(|subject| subject.probe != probe) {
            subject.probe = probe;
            self.changed.insert(mark);
        }
    }

    /// How far a mark's notification is.
    pub fn set_stage(&mut self, mark: MarkId, stage: Stage) {
        if let Some(subject) = self.subjects.get_mut(&mark).filter(|subject| subject.stage != stage) {
            subject.stage = stage;
            let subject = subject.clone();
            self.fade(&subject);
            self.changed.insert(mark);
        }
    }

    /// The clock was set by so many milliseconds: what holds a mark lasts as long as it would have, and what has passed is counted again.
    pub fn set_clock(&mut self, by: i64, now: Timestamp) {
        self.now = now;
        for subject in self.subjects.values_mut() {
            subject.seen_at.0 = subject.seen_at.0.saturating_add(by);
            *subject = subject.clone().by_clock(now);
        }
        self.late.extend(0..self.groups.len());
        self.changed.extend(self.open.iter().flatten().map(|(_, mark)| *mark));
    }

    /// Time passes.
    pub fn pass_to(&mut self, now: Timestamp) {
        // The clock was set back since the daemon last looked: what has passed by it is counted again.
        if now + CLOCK_SLACK < self.now {
            self.set_clock(0, now);
        }
        self.now = self.now.max(now);
        for group in std::mem::take(&mut self.late) {
            self.replay(group);
        }
        for state in &mut self.groups {
            state.tally.pass_to(self.now, &state.rules, state.size);
        }
        while let Some((_, mark)) = self.fading.first().copied().filter(|(until, _)| *until <= self.now) {
            self.fading.pop_first();
            // It may have changed since.
            let until = self.subjects.get(&mark).and_then(|subject| self.of_use_until(subject));
            if until.is_some_and(|until| until <= self.now) && self.is_closed(mark) {
                if let Some(old) = self.forget(mark) {
                    self.groups[old.group].tally.forget(mark);
                }
                self.changed.insert(mark);
            }
        }
    }

    fn is_closed(&self, mark: MarkId) -> bool {
        self.subjects.get(&mark).is_some_and(|subject| subject.end.is_some())
    }

    fn replay(&mut self, group: usize) {
        let own = self.subjects.values().filter(|subject| subject.group == group);
        let spans = own.filter_map(|subject| Some((subject.mark, &subject.host, self.counted(subject)?)));
        let state = &self.groups[group];
        let tally = Tally::replay(spans, &state.rules, state.size, self.now);
        self.groups[group].tally = tally;
    }

    /// Every reason that holds a mark now, without the limit of how many are sent at once.
    pub(super) fn holds_of(&self, subject: &Subject, now: Timestamp) -> Vec<Held> {
        let mut held: Vec<Held> = subject.doubts.iter().map(|doubt| doubted(*doubt)).collect();
        if subject.is_released {
            return held;
        }
        if self.skipped.contains(&subject.host) {
            held.push(say(Hold::Skip, None, format!("{} has the node attribute {SKIP}", subject.host)));
        }
        held.extend(first(&self.maintenance, subject, now).map(|order| ordered(Hold::Maintenance, order)));
        held.extend(first(&self.pauses, subject, now).map(|order| ordered(Hold::Pause, order)));
        let partial = self.partial_since.map(|since| subject.seen_at.max(since));
        let until = partial.and_then(|since| lasts(since, PARTIAL, now));
        held.extend(until.map(|at| say(Hold::PartMissing, Some(at), hold::PARTIAL.to_owned())));
        let group = &self.groups[subject.group];
        held.extend(group.probes.then(|| unconfirmed(subject)).flatten());
        held.extend(waits(subject, &group.rules, now));
        held.extend(stormy(subject, group, now));
        held
    }
}

fn say(hold: Hold, until: Option<Timestamp>, why: String) -> Held {
    Held { hold, until, why: why.into(), cause: Cause::default() }
}

fn doubted(doubt: Hold) -> Held {
    say(doubt, None, format!("the mark is {}", doubt.as_str()))
}

fn first<'o>(orders: &'o [Order], subject: &Subject, now: Timestamp) -> Option<&'o Order> {
    orders.iter().find(|order| order.is_in_force(now) && order.is_about(&subject.host, subject.group))
}

fn ordered(hold: Hold, order: &Order) -> Held {
    Held { hold, until: order.until, why: Arc::clone(&order.why), cause: order.cause.clone() }
}

fn unconfirmed(subject: &Subject) -> Option<Held> {
    let host = &subject.host;
    let why = match &subject.probe {
        Conclusion::Confirmed => return None,
        Conclusion::Open => format!("{host} is being probed"),
        Conclusion::Healthy(which) => format!("{host} answers: {which}"),
    };
    Some(say(Hold::Confirm, None, why))
}

/// How long a mark waits for a part of the register that may hold it: as long as for its own entry.
const PARTIAL: Duration = Duration::from_secs(60);

/// Clocks of controllers may differ by so much; a later time is nonsense, and holds nothing.
const CLOCK_SLACK: Duration = Duration::from_secs(60);

/// When what began then has lasted so long, if that is still to come.
pub(super) fn lasts(from: Timestamp, span: Duration, now: Timestamp) -> Option<Timestamp> {
    let end = from + span;
    (from <= now + CLOCK_SLACK && now < end).then_some(end)
}

/// What ends by time alone.
fn waits(subject: &Subject, rules: &Rules, now: Timestamp) -> impl Iterator<Item = Held> {
    let host = &subject.host;
    let later = lasts(subject.failed_at, rules.deliver_after, now);
    let delay = later.map(|at| say(Hold::Delay, Some(at), format!("deliver-after of {host} is not over")));
    let back = subject.returned_at.and_then(|at| lasts(at, rules.healthy_delay, now));
    let returning =
        back.map(|at| say(Hold::Returning, Some(at), format!("{host} is back, but not for long enough yet")));
    delay.into_iter().chain(returning)
}

/// A storm holds no mark longer than `max-hold`, and none that an operator released.
fn stormy(subject: &Subject, group: &GroupState, now: Timestamp) -> Option<Held> {
    let until = lasts(subject.seen_at, group.rules.max_hold, now)?;
    let is_released = group.released_at.is_some_and(|at| subject.known_at <= at);
    let is_held = group.storm().holds() && !is_released;
    let why = Arc::clone(&group.storm_sentence);
    let cause = || Cause { scope: Some(Scope::Group(group.name.clone())), decision: None };
    is_held.then(|| Held { hold: Hold::Storm, until: Some(until), why, cause: cause() })
}

impl GroupState {
    /// The hold of a mark that has to wait for its turn.
    pub(super) fn crowded(&self) -> Held {
        let (why, cause) = (Arc::clone(&self.crowd_sentence), Cause::default());
        Held { hold: Hold::MaxInFlight, until: None, why, cause }
    }
}
