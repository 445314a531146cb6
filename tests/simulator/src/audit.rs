//! What must be so at every step of a story and at its end: the properties P1 to P11 of the policy, judged by what hosts, receivers
//! and operators did, and not by the policy's own state.
//!
//! P4 (a higher limit never holds more) and P9 (rounding) are shown by the policy's own tests; P8 and P12 are about the agent
//! and the control socket, and P1b about the agent's records, none of which is here.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use marks::host::HostName;
use marks::id::MarkId;
use marks::time::Timestamp;

use crate::cib::CONTROLLERS;
use crate::product::{Alerter, Delivery, Mark, Scope, Status};
use crate::story::{Event, Limit, Mood, Story};
use crate::world::{Order, Outage, World};

/// What is known of the cluster is so old at most, in milliseconds.
const POLL: u64 = 2_500;

/// Clocks that are set make all times as uncertain as this.
const UNSURE: Duration = Duration::from_secs(5);
/// How long a mark waits for a part of the register that is missing, in milliseconds.
const PART: u64 = 60_000;
/// How long a host may be down and fenced without a record, where an alerter can work, in milliseconds.
const SILENCE: u64 = 150_000;
/// How long an alerter may stay where nothing can be written, in seconds.
const STAYS: u64 = 45;
/// How long a return may wait to be taken in, in milliseconds.
const RETURN_LIMIT: u64 = 5_000;
/// How long a mark may wait that nothing holds, where its endpoint takes marks, in milliseconds.
const WAIT_LIMIT: u64 = 180_000;
/// The same where the endpoint had refused everybody until a while ago: it is probed every quarter of an hour.
const PARKED_LIMIT: u64 = 1_000_000;
/// How often that is checked, in milliseconds.
const WAIT_CHECK: u64 = 60_000;
/// Clocks of controllers that differ make times as uncertain as this.
const SKEWED: Duration = Duration::from_secs(125);
/// How long after a controller was set up anew nobody knows who had been back.
const RETURNS: Duration = Duration::from_secs(30);
/// What is fenced within this time of what somebody forged cannot be distinguished from it (`coalesce`).
const NEAR: Duration = Duration::from_secs(180);

/// The states that a delivery does not leave.
const FINAL: [&str; 3] = ["acknowledged", "dismissed", "cancelled"];

/// What is counted for the report.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Outages that were found.
    pub marks: usize,
    /// Exchanges with receivers.
    pub attempts: usize,
    /// Turns of the engine.
    pub passes: usize,
    /// Hosts that an endpoint was notified are back.
    pub returns: usize,
    /// Marks by the reason that was shown first.
    pub holds: BTreeMap<String, usize>,
}

/// What the audit remembers of a group.
#[derive(Clone, Debug, Default)]
struct Watched {
    /// Its limit is not kept now.
    rages: bool,
    /// How many were down at the last check.
    unhealthy: usize,
    /// Until when that may have been so.
    raged: Option<u64>,
    /// Until when nobody can say whether a storm is over: its size or past has changed.
    unsure: u64,
}

/// The audit of one story.
#[derive(Default)]
pub(crate) struct Audit {
    slack: Duration,
    is_loud: bool,
    loses_controllers: bool,
    loses_register: bool,
    lacks_parts: bool,
    groups: Vec<Watched>,
    /// Marks as they are shown, read as they change.
    pub(crate) rows: BTreeMap<MarkId, Mark>,
    /// What was held at the last check.
    held: BTreeMap<MarkId, Vec<String>>,
    /// Attempts that have begun and are not over.
    pub(crate) under_way: BTreeSet<(MarkId, String)>,
    /// What rules have ended, by whichever alerter.
    pub(crate) cancelled: BTreeSet<(MarkId, String)>,
    /// Who was set aside.
    aside: BTreeSet<usize>,
    free_since: BTreeMap<MarkId, u64>,
    /// When each mark was seen first by the alerter that runs.
    met: BTreeMap<MarkId, u64>,
    /// What had ended by then.
    was_over: BTreeSet<MarkId>,
    /// The first open mark of each host, and since when it is the first.
    first: BTreeMap<HostName, (MarkId, u64)>,
    checked: u64,
    /// The latest that the wall clock ever said.
    latest: Timestamp,
    pub(crate) tally: Tally,
    pub(crate) violations: Vec<String>,
}

impl Audit {
    pub(crate) fn new(story: &Story, is_loud: bool) -> Self {
        Self {
            slack: match (story.differ() == 0, story.sets_clock) {
                (false, _) => SKEWED.max(Duration::from_millis(story.differ()) + UNSURE),
                (true, true) => UNSURE,
                (true, false) => Duration::ZERO,
            },
            loses_register: story.has(|it| matches!(it, Event::Empties { .. } | Event::Replaces { .. })),
            lacks_parts: story.has(|it| matches!(it, Event::Lacks { .. })),
            is_loud,
            loses_controllers: story.has(|it| matches!(it, Event::Loses { .. } | Event::Replaces { .. })),
            groups: vec![Watched::default(); story.groups.len()],
            ..Self::default()
        }
    }

    /// Another alerter begins, on its own disk.
    pub(crate) fn restart(&mut self, world: &World, alerter: &mut dyn Alerter) {
        self.was_over.clear();
        self.rows.clear();
        self.held.clear();
        self.under_way.clear();
        self.free_since.clear();
        self.first.clear();
        self.groups.iter_mut().for_each(|group| group.unhealthy = 0);
        self.refresh(world, alerter);
        self.met.clear();
    }

    pub(crate) fn say(&self, world: &World, text: impl FnOnce() -> String) {
        if self.is_loud {
            let now = world.clock.now;
            let (hours, minutes, seconds) = (now / 3_600_000, now / 60_000 % 60, now % 60_000 / 1000);
            println!("{hours:02}:{minutes:02}:{seconds:02}.{:03} {}", now % 1000, text());
        }
    }

    fn wrong(&mut self, world: &World, what: String) {
        self.say(world, || format!("VIOLATION {what}"));
        // One fault shows itself many times.
        if self.violations.len() < 20 {
            self.violations.push(format!("at {} s: {what}", world.clock.now / 1000));
        }
    }

    /// Reads what has changed; gives what is held, and the records that have no end.
    pub(crate) fn refresh(&mut self, world: &World, alerter: &mut dyn Alerter) -> Status {
        let mut status = alerter.status(world);
        for row in status.marks.drain(..) {
            let (mark, is_over) = (row.id, row.settled.is_some());
            let text = format!("{} has mark {mark} ({})", row.node, row.standing);
            if self.rows.insert(mark, row).is_none() {
                self.met.insert(mark, world.clock.now);
                self.was_over.extend(is_over.then_some(mark));
                self.say(world, || text);
            }
        }
        status
    }

    /// What is not settled, oldest first.
    pub(crate) fn open(&self) -> Vec<Mark> {
        let mut open: Vec<Mark> = self.rows.values().filter(|row| row.settled.is_none()).cloned().collect();
        open.sort_by_key(|row| (row.failure_time, row.id));
        open
    }

    /// Before every reading of what is due: what is held is exactly what is in force.
    pub(crate) fn check(&mut self, world: &World, alerter: &mut dyn Alerter) {
        self.tally.passes += 1;
        let Status { holds: held, gaps, .. } = self.refresh(world, alerter);
        for gap in gaps {
            self.wrong(world, format!("a record has no end that can be shown: {gap}"));
        }
        self.latest = self.latest.max(world.clock.wall());
        self.watch_groups(world);
        self.note_news(world, &held);
        for row in self.open() {
            // The state of a living host matters for what is sent.
            if world.forged.contains(&row.id) {
                continue;
            }
            self.check_mark(world, &row, held.get(&row.id).map_or(&[], Vec::as_slice));
            let is_free = !held.contains_key(&row.id) && !row.is_doubted;
            if is_free {
                self.free_since.entry(row.id).or_insert(world.clock.now);
            } else {
                self.free_since.remove(&row.id);
            }
        }
        self.held = held;
        self.check_order(world);
        if world.clock.now >= self.checked + WAIT_CHECK {
            self.checked = world.clock.now;
            self.check_waits(world, alerter);
            self.check_silence(world);
        }
    }

    fn note_news(&mut self, world: &World, held: &BTreeMap<MarkId, Vec<String>>) {
        for (mark, now) in held {
            let before = self.held.get(mark);
            if before != Some(now) {
                self.say(world, || format!("{mark} is held: {}", now.join(" ")));
            }
            if before.and_then(|words| words.first()) != now.first() {
                *self.tally.holds.entry(now[0].clone()).or_default() += 1;
            }
        }
        for mark in self.held.keys().filter(|mark| !held.contains_key(mark)) {
            self.say(world, || format!("{mark} is held no more"));
        }
    }

    /// Which groups' limits are not kept, counted again from the marks alone.
    fn watch_groups(&mut self, world: &World) {
        let aside: BTreeSet<usize> = (0..world.hosts.len()).filter(|host| is_aside(world, *host)).collect();
        let touched: BTreeSet<usize> =
            aside.symmetric_difference(&self.aside).map(|host| world.hosts[*host].group).collect();
        self.aside = aside;
        for (at, group) in world.groups.iter().enumerate() {
            if matches!(group.limit, Limit::None) {
                continue;
            }
            if touched.contains(&at) || world.was_jammed() {
                let cooldown = millis(group.cooldown + self.slack) + 1;
                self.groups[at].unsure = world.clock.now + cooldown;
            }
            let (limit, unhealthy, size) = (group.limit, self.unhealthy(world, at), self.size(world, at));
            let before = std::mem::replace(&mut self.groups[at].unhealthy, unhealthy);
            // Hosts that fail together fail one after another: on its way into a range the number of them is below it.
            let is_passed = |count| !limit.allows(count, size);
            let has_raged = (before.min(unhealthy)..=before.max(unhealthy)).any(is_passed);
            let rages = !limit.allows(unhealthy, size);
            if std::mem::replace(&mut self.groups[at].rages, rages) || has_raged {
                self.groups[at].raged = Some(world.clock.now);
            }
        }
    }

    fn size(&self, world: &World, group: usize) -> usize {
        let own = world.hosts.iter().enumerate().filter(|(_, host)| host.group == group);
        own.filter(|(at, _)| !self.aside.contains(at)).count()
    }

    fn unhealthy(&self, world: &World, group: usize) -> usize {
        let (now, rules) = (world.clock.wall(), &world.groups[group]);
        let counts = |row: &&Mark| {
            let host = world.index_of[&row.node];
            // Another clock made it: its age then counts, and since when it is known here.
            let failed = self.seen_at(world, row) - row.made_at.since(row.failure_time);
            let ends = [
                rules.window.map(|window| failed + window - self.slack),
                row.return_known_at.map(|at| at + rules.healthy_delay),
                row.settled.filter(|(how, _)| *how != "acknowledged").map(|(_, at)| at),
            ];
            let is_over = ends.into_iter().flatten().any(|end| end <= now);
            let is_doubted = row.settled.is_none() && row.is_doubted;
            world.hosts[host].group == group && !self.aside.contains(&host) && !is_over && !is_doubted
        };
        let down: BTreeSet<&str> = self.rows.values().filter(counts).map(|row| row.node.as_str()).collect();
        down.len()
    }

    fn check_mark(&mut self, world: &World, row: &Mark, words: &[String]) {
        let (id, node) = (row.id, &row.node);
        let (expected, part) = (self.in_force(world, row), self.awaits_part(world, row));
        let others: Vec<&str> = words
            .iter()
            .map(String::as_str)
            .filter(|word| !matches!(*word, "storm" | "max-in-flight"))
            .filter(|word| !is_perhaps_ordered(world, world.index_of[node], word))
            .filter(|word| *word != "part-missing" || !part.is_some_and(|until| self.is_about(until, world)))
            .collect();
        let (others, expected) = (self.sure(others), self.sure(expected));
        if others != expected {
            self.wrong(world, format!("{node} ({id}) is held for {others:?}, and {expected:?} is in force"));
        }
        let has = |word: &str| words.iter().any(|own| own == word);
        if has("max-in-flight") && words.len() > 1 {
            self.wrong(world, format!("{node} ({id}) waits for its turn although it is held: {words:?}"));
        }
        if has("storm") && words.last().is_some_and(|last| last != "storm") {
            self.wrong(world, format!("{node} ({id}) shows its holds out of order: {words:?}"));
        }
        self.check_storm(world, row, has("storm"));
        self.check_return(world, row);
    }

    /// Where clocks are set, what ends by time alone may end a little early or late.
    fn sure<'w>(&self, words: Vec<&'w str>) -> Vec<&'w str> {
        if self.slack.is_zero() {
            return words;
        }
        words.into_iter().filter(|word| !matches!(*word, "delay" | "returning")).collect()
    }

    /// Since when what holds a mark lasts: of another alerter's open one since it is first seen here.
    fn seen_at(&self, world: &World, row: &Mark) -> Timestamp {
        if row.made_by == CONTROLLERS[world.clock.active] || self.was_over.contains(&row.id) {
            return row.made_at;
        }
        let met = self.met.get(&row.id).copied().unwrap_or(world.began);
        world.clock.wall() - Duration::from_millis(world.clock.now - met)
    }

    /// C9. Until when a mark waits for the part of the register that is missing.
    fn awaits_part(&self, world: &World, row: &Mark) -> Option<u64> {
        let is_own = row.made_by == CONTROLLERS[world.clock.active];
        let met = self.met.get(&row.id).copied().filter(|_| is_own).unwrap_or_default();
        world.lacking.map(|since| since.max(world.began).max(met) + PART)
    }

    /// Whether it is that time by a clock that is set a little.
    fn is_about(&self, time: u64, world: &World) -> bool {
        !self.slack.is_zero() && world.clock.now.abs_diff(time) <= millis(UNSURE)
    }

    /// C10, D12. Nobody of whom nobody was notified is down and fenced without a record, whatever is lost or hangs.
    fn check_silence(&mut self, world: &World) {
        let ids = |rank: usize| world.whose.iter().filter(move |(_, own)| **own == rank).map(|(id, _)| *id);
        for (rank, outage) in world.outages.iter().enumerate().filter(|(_, outage)| outage.ended.is_none()) {
            let host = &world.hosts[outage.host];
            let is_done = |id| is_notified(world, id) || world.dismissed.contains(&id);
            let is_own =
                |row: &Mark| row.node == host.name && world.whose.get(&row.id).is_none_or(|of| *of == rank);
            let waited = world.clock.now - host.changed.max(world.began);
            // Where nothing is known any more, nobody knows who was notified either.
            let is_forgotten =
                world.replaced.is_some_and(|(at, now)| outage.began < at && world.began == now);
            let is_silent = is_forgotten || !ids(rank).any(is_done);
            if waited > SILENCE && is_silent && !self.rows.values().any(is_own) {
                let what = format!("{} was fenced {} s ago, and nothing says so", host.name, waited / 1000);
                self.wrong(world, what);
            }
        }
    }

    /// P7: a storm holds while too many are down, and for no other reason; and nothing longer than `max-hold`.
    fn check_storm(&mut self, world: &World, row: &Mark, is_held: bool) {
        let (at, now) = (self.group_of(world, row), world.clock.wall());
        let (group, watched) = (&world.groups[at], self.groups[at].clone());
        let (id, node) = (row.id, &row.node);
        let end = self.seen_at(world, row) + group.max_hold;
        let cooldown = millis(group.cooldown + self.slack);
        let is_unsure = world.clock.now < watched.unsure || !self.slack.is_zero() || fades(world);
        let raged = watched.raged.is_some_and(|at| world.clock.now <= at + cooldown);
        if is_held && now >= end + self.slack {
            self.wrong(world, format!("{node} ({id}) is held by a storm for longer than max-hold"));
        }
        if is_held && !raged && !is_unsure {
            self.wrong(world, format!("{node} ({id}) is held by a storm that is over"));
        }
        if !is_held && self.is_bound(world, row) {
            self.wrong(world, format!("{node} ({id}) is not held, and too many of its group are down"));
        }
    }

    /// Whether a storm of its group has to hold it.
    fn is_bound(&self, world: &World, row: &Mark) -> bool {
        let (at, now) = (self.group_of(world, row), world.clock.wall());
        let group = &world.groups[at];
        let is_let_go =
            world.group_releases.get(&group.name).is_some_and(|at| row.made_at <= *at + self.slack);
        let is_in_time = now + self.slack < self.seen_at(world, row) + group.max_hold;
        let is_sure = (self.slack.is_zero() || now >= self.latest) && !fades(world);
        self.groups[at].rages && !is_let_go && is_in_time && is_sure && !world.released.contains(&row.id)
    }

    /// P5: a return is taken in whatever holds.
    fn check_return(&mut self, world: &World, row: &Mark) {
        let host = &world.hosts[world.index_of[&row.node]];
        let since = world.clock.now - host.changed;
        // What was found and fits no outage by wrong clocks asks, and may be of one from which its host is back for long.
        let asks = row.is_doubted && self.slack > SKEWED;
        let may_be_late = self.loses_controllers || world.was_jammed() || asks;
        if host.cib.is_up() && row.returned_at.is_none() && since > RETURN_LIMIT && !may_be_late {
            let node = &row.node;
            self.wrong(world, format!("{node} has been back for {since} ms, and its mark does not know it"));
        }
    }

    fn group_of(&self, world: &World, row: &Mark) -> usize {
        world.hosts[world.index_of[&row.node]].group
    }

    /// The reasons that hold a mark now, except storms and turns, in the order in which they are shown.
    fn in_force(&self, world: &World, row: &Mark) -> Vec<&'static str> {
        let (at, now) = (self.group_of(world, row), world.clock.wall());
        let (host, group) = (world.index_of[&row.node], &world.groups[at]);
        let back = row.return_known_at.map(|at| at + group.healthy_delay);
        let awaits = |until: &u64| world.clock.now < *until && !self.is_about(*until, world);
        let part = self.awaits_part(world, row).filter(awaits);
        let all = [
            ("skip", world.hosts[host].cib.is_skipped),
            ("maintenance", is_ordered(world, host, true)),
            ("pause", is_ordered(world, host, false)),
            ("part-missing", part.is_some()),
            ("confirm", group.is_asked && world.probed.get(&row.id) != Some(&false)),
            ("delay", now < row.failure_time + group.deliver_after),
            ("returning", back.is_some_and(|healthy| now < healthy)),
        ];
        let is_released = world.released.contains(&row.id);
        all.into_iter().filter(|(_, holds)| *holds && !is_released).map(|(word, _)| word).collect()
    }

    /// An attempt begins: nothing holds its mark, no other step of its chain is under way (P10), and nobody knows yet that
    /// the route has it.
    pub(crate) fn begun(&mut self, world: &World, row: &Mark, delivery: &Delivery) {
        self.tally.attempts += 1;
        let route = &delivery.route;
        self.under_way.insert((row.id, route.clone()));
        let (id, node) = (row.id, &row.node);
        self.say(world, || format!("attempt {} of {node} ({id}) on {route} begins", delivery.attempts));
        if world.is_known_to_all(id, route) {
            self.wrong(world, format!("{node} ({id}) is sent to {route} again, which is known to have it"));
        }
        // What somebody forged and an operator lets go has a time of its own.
        if delivery.is_return() || world.forged.contains(&id) {
            return;
        }
        let force = self.sure(self.in_force(world, row));
        if !force.is_empty() || row.is_doubted {
            self.wrong(world, format!("{node} ({id}) is sent to {route} while it is held: {force:?}"));
        }
        if world.dismissed.contains(&id) {
            self.wrong(world, format!("{node} ({id}) is sent to {route} after an operator ended it"));
        }
        if self.is_bound(world, row) {
            self.wrong(world, format!("{node} ({id}) is sent to {route} while too many are down"));
        }
        let steps = self.under_way.iter().filter(|(mark, route)| *mark == id && !route.contains('.'));
        if delivery.is_in_chain && steps.count() > 1 {
            self.wrong(world, format!("two steps of the chain of {node} ({id}) are under way"));
        }
    }

    /// Never more hosts of a group are sent at once than may be: a host's second mark may go on a route on which its first one
    /// has ended by the route's terms, and is of the same host.
    pub(crate) fn count(&mut self, world: &World) {
        let mut busy: BTreeMap<usize, BTreeSet<&HostName>> = BTreeMap::new();
        for (mark, _) in self.under_way.iter().filter(|(_, route)| !route.contains('.')) {
            let Some(row) = self.rows.get(mark).filter(|_| !world.released.contains(mark)) else { continue };
            busy.entry(self.group_of(world, row)).or_default().insert(&row.node);
        }
        let busy: Vec<(usize, usize)> = busy.into_iter().map(|(at, hosts)| (at, hosts.len())).collect();
        for (at, hosts) in busy {
            let group = &world.groups[at];
            if group.at_once.is_some_and(|most| hosts > most as usize) {
                self.wrong(world, format!("{hosts} hosts of group {} are sent at once", group.name));
            }
        }
    }

    /// P3: a receiver sees the same bytes on every attempt, from every controller.
    pub(crate) fn arrived(&mut self, world: &mut World, row: &Mark, delivery: &Delivery) {
        let (mark, node, route, body) = (row.id, &row.node, delivery.base(), &delivery.body);
        let receiver = world.receivers.get_mut(route).unwrap();
        if receiver.first.entry(mark).or_insert_with(|| body.clone()) != body {
            self.wrong(world, format!("{mark} was sent to {route} in other bytes than before"));
        }
        let text = String::from_utf8_lossy(body);
        let is_true = text.contains(&format!("\"{node}.example.org\"")) && !text.contains("false");
        if !is_true {
            self.wrong(world, format!("{route} got of {node} what nobody configured: {text}"));
        }
        let host = world.index_of[node];
        let has_failed = world.outages.iter().any(|outage| outage.host == host);
        let forged_and_refused = world.forged.contains(&mark) && has_failed;
        if !world.whose.contains_key(&mark) && !forged_and_refused {
            self.wrong(world, format!("{route} was notified of {node}, which was not fenced"));
        }
    }

    /// P11: no dead host is called back, whatever its marks are. A poll may be a moment old.
    pub(crate) fn called_back(&mut self, world: &World, row: &Mark, delivery: &Delivery) {
        self.tally.returns += 1;
        let host = &world.hosts[world.index_of[&row.node]];
        if !host.cib.is_up() && world.clock.now > host.changed + POLL {
            let (node, route) = (&row.node, &delivery.route);
            self.wrong(world, format!("{node} is called back by {route} while it is down"));
        }
    }

    /// An endpoint keeps no living host down, unless its mark or return is still open and shown.
    fn is_up_again(&mut self, world: &World, alerter: &dyn Alerter) {
        for (name, receiver) in world.receivers.iter().filter(|(_, receiver)| receiver.goes_on) {
            for (node, mark) in &receiver.down {
                let host = &world.hosts[world.index_of[node]];
                let (deliveries, _) = alerter.deliveries(*mark);
                let is_open = |d: &Delivery| d.base() == name && !FINAL.contains(&d.state);
                // What nobody knows any more cannot be called back.
                let is_lost = world.replaced.is_some() && deliveries.is_empty();
                if host.cib.is_up() && !is_lost && !deliveries.iter().any(is_open) {
                    let states: Vec<String> = deliveries.iter().map(Delivery::shown).collect();
                    self.wrong(world, format!("{node} ({mark}) lives and {name} keeps it down: {states:?}"));
                }
            }
        }
    }

    /// Marks of one host are sent in their order.
    fn check_order(&mut self, world: &World) {
        let mut first: BTreeMap<&HostName, &Mark> = BTreeMap::new();
        let place = |row: &Mark| (row.failure_time, row.id);
        for row in self.rows.values().filter(|row| row.settled.is_none()) {
            let known = first.entry(&row.node).or_insert(row);
            if place(row) < place(known) {
                *known = row;
            }
        }
        let since = |row: &Mark| match self.first.get(&row.node) {
            Some((mark, since)) if *mark == row.id => *since,
            _ => world.clock.now,
        };
        self.first = first.into_iter().map(|(node, row)| (node.clone(), (row.id, since(row)))).collect();
    }

    /// D12. Where nothing can be written the alerter does not stay: another controller could always do better.
    pub(crate) fn wrote_again(&mut self, world: &World, since: u64) {
        let seconds = (world.clock.now - since) / 1000;
        if seconds > STAYS {
            self.wrong(world, format!("the alerter stayed {seconds} s where nothing could be written"));
        }
    }

    /// P6: what nothing holds is sent soon, whatever becomes of others.
    fn check_waits(&mut self, world: &World, alerter: &dyn Alerter) {
        let open = self.open();
        for row in &open {
            let first = self.first.get(&row.node).filter(|(mark, _)| *mark == row.id);
            let Some((_, first)) = first.copied() else { continue };
            let Some(free) = self.free_since.get(&row.id).map(|free| first.max(*free)) else { continue };
            for delivery in alerter.deliveries(row.id).0 {
                if let Some(waited) = self.waits(world, open.len(), free, &delivery, row) {
                    let (node, route) = (&row.node, &delivery.route);
                    let says = format!("nothing holds {node} ({}), and {route} was not notified", row.id);
                    self.wrong(world, format!("{says} of it for {waited} s"));
                }
            }
        }
    }

    /// How many seconds a delivery has waited without a reason, where that is too long.
    fn waits(&self, world: &World, open: usize, free: u64, delivery: &Delivery, row: &Mark) -> Option<u64> {
        let receiver = world.receivers.get(&delivery.route)?;
        let last = delivery.last.as_ref().map(|(kind, _)| kind.as_str());
        let is_own_fault = matches!(last, Some("http-422" | "refused" | "accepted" | "not-confirmed"))
            || receiver.rejects.contains(&row.node);
        if !["pending", "parked"].contains(&delivery.state) || receiver.mood != Mood::Takes || is_own_fault {
            return None;
        }
        let turn = delivery.turn.map_or(0, |at| world.clock.when_it_was(at));
        let released = delivery.released_at.map_or(0, |at| world.clock.when_it_was(at));
        let tried = delivery.last.as_ref().map_or(0, |(_, at)| world.clock.when_it_was(*at));
        let since = [free, receiver.fine_since, turn, released, tried].into_iter().max().unwrap_or_default();
        let waited = world.clock.now.saturating_sub(since);
        let limit = if receiver.denied { PARKED_LIMIT } else { WAIT_LIMIT } + open as u64 * receiver.pace;
        (waited > limit).then_some(waited / 1000)
    }

    /// P1, P2: every outage was sent once to every route that had to get it, or ended by a named operator or a rule.
    pub(crate) fn end(&mut self, world: &World, alerter: &mut dyn Alerter) {
        let Status { holds, .. } = self.refresh(world, alerter);
        self.tally.marks = self.rows.len();
        for row in self.open() {
            let states: Vec<String> = alerter.deliveries(row.id).0.iter().map(Delivery::shown).collect();
            let hold = holds.get(&row.id);
            let Mark { node, id, standing, .. } = row;
            self.wrong(
                world,
                format!("{node} ({id}) is still open ({standing}), held by {hold:?}: {states:?}"),
            );
        }
        for (rank, outage) in world.outages.iter().enumerate() {
            self.end_of(world, alerter, (rank, outage));
        }
        let rows: Vec<Mark> = self.rows.values().cloned().collect();
        rows.iter().for_each(|row| self.agrees(world, alerter, row));
        self.is_up_again(world, alerter);
    }

    /// An operator checks a mark that is in doubt: Pacemaker itself speaks of every fencing here, so that only a register or
    /// a controller that was lost can leave one, or what somebody forged about the mark: its end, or another mark of its fencing.
    pub(crate) fn doubted(&mut self, world: &World, row: &Mark) {
        let is_forged = world.forged_about.contains(&row.id);
        let is_lost = self.loses_controllers || self.loses_register || self.lacks_parts;
        let is_lost = is_lost || self.slack > SKEWED || is_forged;
        // Fenced once more after its outage was notified or ended: nobody knows whether it had been back.
        let is_over = |id| is_notified(world, id) || world.dismissed.contains(&id);
        if !is_lost && world.whose.contains_key(&row.id) && !others(world, row).any(is_over) {
            let word = row.standing;
            self.wrong(world, format!("{} ({}) is held ({word}): Pacemaker says it", row.node, row.id));
        }
    }

    fn end_of(&mut self, world: &World, alerter: &dyn Alerter, (rank, outage): (usize, &Outage)) {
        let host = &world.hosts[outage.host].name;
        // What somebody forged just before cannot be distinguished from it.
        let near = |row: &Mark| row.failure_time.distance(outage.began) <= NEAR + self.slack;
        let is_own = |row: &&Mark| match world.whose.get(&row.id) {
            Some(own) => *own == rank,
            None => row.node == *host && near(row) && is_notified(world, row.id),
        };
        let mut rows: Vec<Mark> = self.rows.values().filter(is_own).cloned().collect();
        if rows.len() > 1 {
            rows.retain(|row| !world.forged.contains(&row.id));
        }
        let own: Vec<&Mark> = rows.iter().collect();
        let is_over = |id: &MarkId| {
            let is_cancelled = self.cancelled.iter().any(|(mark, _)| mark == id);
            is_cancelled || is_notified(world, *id) || world.dismissed.contains(id)
        };
        let has_end = world.whose.iter().any(|(id, of)| *of == rank && is_over(id));
        // By such a clock, and with nothing to compare, its mark is of no outage that can be told.
        let has_asked = |row: &Mark| row.node == *host && world.dismissed.contains(&row.id);
        let has_asked = world.replaced.is_some() && self.slack > SKEWED && self.rows.values().any(has_asked);
        match own.as_slice() {
            // Who is back when all is lost, or had an end before, is not asked about again; nor, by a clock that is years ahead, is the latter.
            [] if world
                .replaced
                .is_some_and(|(at, _)| outage.ended.is_some_and(|end| end < at + RETURNS)) => {}
            [] if (world.replaced.is_some() || self.slack > SKEWED) && has_end || has_asked => {}
            [] => self.wrong(world, format!("{host} was fenced at {} and has no mark", outage.began)),
            [_] => {}
            several => {
                // What an operator has released is her own word.
                let is_said = |row: &Mark| world.released.contains(&row.id);
                let notified =
                    several.iter().filter(|row| is_notified(world, row.id) && !is_said(row)).count();
                let is_lost = self.loses_controllers || self.loses_register || self.lacks_parts;
                let mut others = several.iter().filter(|row| !is_notified(world, row.id));
                // A route's terms may end what an operator has released.
                let is_ended = |row: &Mark| match row.settled {
                    Some(("cancelled", _)) => is_said(row) || self.slack > SKEWED,
                    _ => world.dismissed.contains(&row.id),
                };
                let are_ended = others.all(|row| is_ended(row));
                if (notified > 1 && !self.loses_register) || !(is_lost || are_ended) {
                    let marks = several.len();
                    self.wrong(world, format!("one outage of {host} has {marks} marks, {notified} sent"));
                }
            }
        }
        for row in own {
            self.is_done(world, alerter, row);
        }
    }

    /// Every required receiver has it by its own record, or the mark ended by an operator or a rule.
    fn is_done(&mut self, world: &World, alerter: &dyn Alerter, row: &Mark) {
        let Some((how, _)) = row.settled else { return };
        let (id, node) = (row.id, &row.node);
        let (deliveries, _) = alerter.deliveries(id);
        let has =
            |d: &Delivery| world.receivers.get(&d.route).is_some_and(|receiver| receiver.has.contains(&id));
        let is_ruled_out =
            |d: &Delivery| d.state == "cancelled" || self.cancelled.contains(&(id, d.route.clone()));
        let mut steps = deliveries.iter().filter(|d| d.is_in_chain).peekable();
        let is_notified = match steps.peek() {
            Some(_) => steps.any(has),
            None => deliveries.iter().filter(|d| d.required).all(|d| has(d) || is_ruled_out(d)),
        };
        let is_right = match how {
            "acknowledged" => is_notified,
            "dismissed" => world.dismissed.contains(&id),
            "cancelled" => deliveries.iter().all(|d| d.is_return() || d.state == "cancelled"),
            _ => is_notified_otherwise(world, row),
        };
        if !is_right {
            let states: Vec<String> =
                deliveries.iter().map(|d| format!("{} {}", d.shown(), has(d))).collect();
            self.wrong(world, format!("{node} ({id}) ended as {how} and should not have: {states:?}"));
        }
    }

    /// What the alerter says was taken, the receiver has.
    fn agrees(&mut self, world: &World, alerter: &dyn Alerter, row: &Mark) {
        for delivery in alerter.deliveries(row.id).0 {
            let Some(receiver) = world.receivers.get(&delivery.route) else { continue };
            // Of a mark that another alerter settled only the whole is known.
            let is_own = delivery.last.as_ref().is_some_and(|(kind, _)| kind == "acknowledged");
            if is_own && delivery.state == "acknowledged" && !receiver.has.contains(&row.id) {
                let (node, route) = (&row.node, &delivery.route);
                self.wrong(world, format!("{route} has not got {node}; the alerter says so"));
            }
        }
        if row.is_doubted && row.settled.is_none() {
            self.wrong(world, format!("{} is in doubt for ever", row.node));
        }
    }
}

/// Whether the outage of a mark was sent under another one.
pub(crate) fn is_notified_otherwise(world: &World, row: &Mark) -> bool {
    others(world, row).any(|id| is_notified(world, id))
}

/// The other marks of its outage.
fn others(world: &World, row: &Mark) -> impl Iterator<Item = MarkId> {
    let (own, mark) = (world.whose.get(&row.id), row.id);
    let others = world.whose.iter().filter(move |(id, outage)| **id != mark && Some(*outage) == own);
    others.map(|(id, _)| *id)
}

fn is_notified(world: &World, mark: MarkId) -> bool {
    world.receivers.values().any(|receiver| receiver.got.contains(&mark))
}

/// Whether an order of this kind is about a host.
fn is_ordered(world: &World, host: usize, is_maintenance: bool) -> bool {
    orders(world, host, is_maintenance).any(|order| !order.fades(world.clock.now))
}

/// Whether nobody can say whether one holds it.
fn is_perhaps_ordered(world: &World, host: usize, word: &str) -> bool {
    let is_maintenance = word == "maintenance";
    let is_meant = is_maintenance || word == "pause";
    is_meant
        && !is_ordered(world, host, is_maintenance)
        && orders(world, host, is_maintenance).next().is_some()
}

fn orders(world: &World, host: usize, is_maintenance: bool) -> impl Iterator<Item = &Order> {
    let (name, group) = (&world.hosts[host].name, &world.groups[world.hosts[host].group].name);
    world.orders.iter().filter(move |order| {
        let is_about = match &order.scope {
            Scope::All => true,
            Scope::Group(own) => own == group,
            Scope::Host(own) => own == name,
        };
        order.is_maintenance == is_maintenance && is_about
    })
}

fn is_aside(world: &World, host: usize) -> bool {
    world.hosts[host].cib.is_skipped || is_ordered(world, host, true)
}

/// Whether nobody can say who is in maintenance.
fn fades(world: &World) -> bool {
    world.orders.iter().any(|order| order.is_maintenance && order.fades(world.clock.now))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
