//! Plays a story: the clock jumps from one event to the next, and the alerter passes at each.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use marks::host::HostName;
use marks::id::MarkId;

use crate::audit::{Audit, Tally, is_notified_otherwise};
use crate::product::{Alerter, Command, Disk, Mark, Scope};
use crate::scene::Scene;
use crate::story::{Cut, Event, Mood, Story};
use crate::world::{Clock, MONITOR, Order, SETTLING, World};

/// So many passes at one moment are a loop.
const SPIN: u32 = 2_000;
/// Operators check what is still there so often when all is quiet, in milliseconds.
const ROUND: u64 = 600_000;
/// A return is on its way so long after its mark has ended, in milliseconds.
const BEHIND: u64 = 20 * 60_000;
/// What is not done after so long will never be, in milliseconds.
const PATIENCE: u64 = 72 * 3_600_000;

/// What came of a story.
pub struct Played {
    /// What was not as it should be.
    pub violations: Vec<String>,
    /// What was counted.
    pub tally: Tally,
    /// Milliseconds.
    pub lasted: u64,
    /// When the first route was notified of each host, in milliseconds since the story began.
    pub notified: BTreeMap<HostName, u64>,
}

struct Run<'a> {
    alerter: &'a mut dyn Alerter,
    is_up: bool,
    scene: Scene,
    /// Where the next one starts, and when.
    restart: Option<(u64, usize)>,
    events: VecDeque<(u64, Event)>,
    cut: Option<(Cut, Option<usize>)>,
}

/// Plays a story to an alerter, aloud if somebody listens.
pub fn play(story: Story, alerter: &mut dyn Alerter, is_loud: bool) -> Played {
    let scene = Scene { audit: Audit::new(&story, is_loud), world: World::new(&story) };
    if is_loud {
        println!("{}\n{} hosts", story.settings, story.hosts.len());
    }
    let events = story.events.into();
    let mut run = Run { alerter, is_up: false, scene, restart: Some((0, 0)), events, cut: None };
    run.start();
    run.until(story.rest);
    run.come_to_rest();
    let Scene { world, audit } = run.scene;
    let notified = world.receivers.into_values().next().map(|first| first.notified).unwrap_or_default();
    Played { violations: audit.violations, tally: audit.tally, lasted: world.clock.now, notified }
}

impl Run<'_> {
    /// Plays on until a time.
    fn until(&mut self, end: u64) {
        let mut spins = 0;
        while self.scene.audit.violations.is_empty() {
            let next = self.next().min(end);
            spins = if next > self.scene.world.clock.now { 0 } else { spins + 1 };
            if spins > SPIN {
                let why = self.is_up.then(|| self.alerter.reasons(&self.scene.world));
                return self.wrong(format!("at {next} ms: the alerter goes in circles: {why:?}"));
            }
            let clock = &mut self.scene.world.clock;
            clock.now = clock.now.max(next);
            if next >= end {
                return;
            }
            self.step();
        }
    }

    fn next(&self) -> u64 {
        let Scene { world, .. } = &self.scene;
        let event = self.events.front().map(|(at, _)| *at);
        let restart = self.restart.map(|(at, _)| at);
        let ends =
            world.orders.iter().filter_map(|order| order.until).filter(|until| *until > world.clock.now);
        let monitor = world.jam.filter(|jam| self.is_up && jam.controller == world.clock.active);
        // One that hangs does nothing.
        let own = || {
            let reasons = self.alerter.reasons(world).into_iter().map(|(_, at)| at);
            let asked = world.asked.values().map(|(at, _)| *at);
            reasons.chain(asked).chain(world.callbacks.iter().map(|(at, ..)| *at)).min()
        };
        let own = if self.is_up && !world.hangs() { own() } else { None };
        let others = [event, restart, own, monitor.map(|jam| jam.monitor), ends.min()];
        others.into_iter().flatten().min().unwrap_or(u64::MAX)
    }

    /// Everything that happens at this moment.
    fn step(&mut self) {
        let now = self.scene.world.clock.now;
        if self.restart.is_some_and(|(at, _)| at <= now) {
            self.start();
        }
        while self.events.front().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, event)) = self.events.pop_front() {
                self.happens(event);
            }
        }
        let over = |order: &Order| !order.may_last && order.until.is_some_and(|until| until <= now);
        if self.scene.world.orders.iter().any(over) {
            self.poll_soon();
        }
        self.scene.world.past_orders.extend(self.scene.world.orders.extract_if(.., |order| over(order)));
        self.monitor();
        self.confirm();
        self.pass();
    }

    /// Pacemaker moves an alerter whose disk cannot be written, where that says so.
    fn monitor(&mut self) {
        let world = &mut self.scene.world;
        let (now, active) = (world.clock.now, world.clock.active);
        let due = world.jam.as_mut().filter(|jam| jam.controller == active && now >= jam.monitor);
        let Some(jam) = due.filter(|_| self.is_up) else { return };
        jam.monitor = now + MONITOR;
        if self.alerter.is_better_elsewhere(world) {
            self.say(|| "the monitor fails for want of a disk".to_owned());
            self.kill(None);
        }
    }

    fn say(&self, text: impl FnOnce() -> String) {
        self.scene.audit.say(&self.scene.world, text);
    }

    fn wrong(&mut self, what: String) {
        self.scene.audit.violations.push(what);
    }

    fn start(&mut self) {
        let Some((_, controller)) = self.restart.take() else { return };
        let Scene { world, audit } = &mut self.scene;
        let controller = world.fit(controller);
        if std::mem::replace(&mut world.clock.active, controller) != controller {
            // What has ended by itself begins anew there.
            world.orders.append(&mut world.past_orders);
            world.doubt_orders();
        }
        (world.began, world.trouble) = (world.clock.now, None);
        world.asked.clear();
        world.probed.clear();
        self.alerter.start(world);
        audit.restart(world, self.alerter);
        self.is_up = true;
        self.say(|| format!("an alerter starts on controller {controller}"));
    }

    fn pass(&mut self) {
        if !self.is_up {
            return;
        }
        let passed = self.alerter.pass(&mut self.scene, self.cut.map(|(cut, _)| cut));
        let Scene { world, audit } = &mut self.scene;
        if passed == Err(Cut::Unwritten) {
            assert!(world.is_jammed(world.clock.active), "a sound disk was not written");
            world.trouble.get_or_insert(world.clock.now);
            return;
        }
        if let Some(since) = world.trouble.take() {
            audit.wrote_again(world, since);
        }
        if let Err(cut) = passed {
            self.say(|| format!("the alerter is killed: {cut:?}"));
            let to = self.cut.take().and_then(|(_, to)| to);
            self.kill(to);
        }
    }

    fn kill(&mut self, to: Option<usize>) {
        if std::mem::take(&mut self.is_up) {
            self.alerter.kill();
            let Clock { now, active, .. } = self.scene.world.clock;
            let wait = self.scene.world.rng.u64(500..10_000);
            self.restart = Some((now + wait, to.unwrap_or(active)));
        }
    }

    fn poll_soon(&mut self) {
        if self.is_up {
            self.alerter.wake(self.scene.world.clock.now);
        }
    }

    /// Whether somebody answers commands: at a disk that cannot be written they fail, and are tried again later.
    fn answers(&self) -> bool {
        self.is_up && !self.scene.world.is_jammed(self.scene.world.clock.active)
    }

    /// Somebody says something to the alerter, if it runs.
    fn decide(&mut self, command: &Command) -> Option<bool> {
        self.is_up.then(|| self.alerter.decide(command, self.scene.world.clock.wall()))
    }

    /// Receivers say that they have what they had only accepted.
    fn confirm(&mut self) {
        if !self.answers() {
            return;
        }
        let World { clock, callbacks, .. } = &mut self.scene.world;
        let due: Vec<_> = callbacks.extract_if(.., |(at, ..)| *at <= clock.now).collect();
        for (_, route, mark) in due {
            let World { receivers, rng, .. } = &mut self.scene.world;
            let has = &mut receivers.get_mut(&route).unwrap().has;
            let refuses = rng.u8(..6) == 0 && !has.contains(&mark);
            if !refuses {
                has.insert(mark);
            }
            self.say(|| format!("{route} says of {mark}: refuses {refuses}"));
            self.decide(&Command::Confirm(route, mark, refuses));
            self.poll_soon();
        }
    }

    fn happens(&mut self, event: Event) {
        self.say(|| format!("{event:?}"));
        let Scene { world, .. } = &mut self.scene;
        match event {
            Event::Fences { host, by } => world.fence(host, by, self.alerter),
            Event::Returns { host, to, unseen } => world.bring_back(host, to, unseen),
            Event::Turns { route, mood } => self.turn(route, mood),
            Event::Rejects { route, hosts } => {
                let names = hosts.into_iter().map(|host| world.hosts[host].name.clone()).collect();
                world.receivers.values_mut().nth(route).unwrap().rejects = names;
            }
            Event::Empties { all_but_one_in } => {
                let rng = &mut world.rng;
                world.register.retain(|_, _| all_but_one_in.is_some_and(|n| rng.u8(..n) == 0));
            }
            Event::Monitors => {
                for at in (0..3).filter(|at| !world.lost.contains(at)).collect::<Vec<_>>() {
                    self.alerter.monitor(world, at);
                }
            }
            Event::Forges { forgery, host, rank } => {
                let open = self.open_mark(rank);
                self.scene.world.forge(forgery, host, open.as_ref(), self.alerter);
            }
            Event::Dies { cut, to } => self.cut = Some((cut, to)),
            Event::Loses { controller } => {
                world.lose(controller);
                if world.clock.active == controller {
                    self.kill(Some(controller));
                }
            }
            Event::Finds => world.lost.clear(),
            Event::Skips { host, is_skipped } => world.skip(host, is_skipped),
            Event::Lacks { one_in } => world.lack(one_in),
            Event::Heals => world.heal(),
            Event::Replaces { controller } => self.replace(controller),
            Event::Jams { behind, hangs } => {
                world.jam((world.clock.active + behind) % 3, hangs, self.alerter);
            }
            Event::Frees => world.free(self.alerter),
            Event::SetsClock { by } => {
                world.clock.set += by;
                world.doubt_orders();
            }
            Event::Jumps { controller, by } => {
                world.clock.skews[controller] += by;
                world.doubt_orders();
            }
            other if self.is_up && !self.answers() => self.say(|| format!("not answered: {other:?}")),
            other => self.operate(other),
        }
        self.poll_soon();
    }

    /// The alerter starts where it never ran, and nothing is known any more.
    fn replace(&mut self, controller: usize) {
        self.scene.world.free(self.alerter);
        self.kill(None);
        self.restart = Some((self.scene.world.clock.now, controller));
        self.scene.world.replace(controller, self.alerter);
    }

    fn turn(&mut self, route: usize, mood: Mood) {
        let now = self.scene.world.clock.now;
        let receiver = self.scene.world.receivers.values_mut().nth(route).unwrap();
        receiver.denied |= mood == Mood::Denies;
        (receiver.mood, receiver.fine_since) = (mood, now);
    }

    /// What operators do, by the commands of the controller on which the alerter runs.
    fn operate(&mut self, event: Event) {
        match event {
            Event::Pauses { group, limit } => {
                let scope = group.map_or(Scope::All, |group| self.scope_of(group));
                self.order(scope, limit, false);
            }
            Event::Maintains { host, group, limit } => {
                let of_host = |host: usize| Scope::Host(self.scene.world.hosts[host].name.clone());
                let scope = host.map_or_else(|| self.scope_of(group), of_host);
                self.order(scope, Some(limit), true);
            }
            Event::Resumes => self.end_order(false),
            Event::EndsMaintenance => self.end_order(true),
            Event::ReleasesGroup { group } => self.release_group(group),
            // Nobody believes what was forged.
            Event::Releases { rank } => {
                let row = self.open_mark(rank).filter(|row| !self.scene.world.forged.contains(&row.id));
                row.iter().for_each(|row| self.release(row.id));
            }
            Event::Unmarks { rank } => self.open_mark(rank).iter().for_each(|row| self.unmark(row.id)),
            Event::Damages { rank } => {
                let disk = self.scene.world.clock.active;
                self.open_mark(rank).iter().for_each(|row| self.alerter.disk(disk, Disk::Damages(row.id)));
            }
            _ => {}
        }
    }

    fn scope_of(&self, group: usize) -> Scope {
        Scope::Group(self.scene.world.groups[group].name.clone())
    }

    fn refresh(&mut self) -> BTreeMap<MarkId, Vec<String>> {
        self.scene.audit.refresh(&self.scene.world, self.alerter).holds
    }

    fn open_mark(&mut self, rank: usize) -> Option<Mark> {
        self.is_up.then(|| self.refresh())?;
        let open = self.scene.audit.open();
        let rank = rank.min(open.len().saturating_sub(1));
        open.into_iter().nth(rank)
    }

    fn order(&mut self, scope: Scope, limit: Option<u64>, is_maintenance: bool) {
        let (id, wall) = (self.scene.world.note_id(), self.scene.world.clock.wall());
        let until = limit.map(|limit| wall + Duration::from_millis(limit));
        let command = match (is_maintenance, until) {
            (true, Some(until)) => Command::Maintain(id, scope.clone(), until),
            _ => Command::Pause(id, scope.clone(), until),
        };
        let Some(is_taken) = self.decide(&command) else { return };
        assert!(is_taken);
        let until = limit.map(|limit| self.scene.world.clock.now + limit);
        let (may_last, is_missing) = (false, false);
        self.scene.world.orders.push(Order { id, scope, until, is_maintenance, may_last, is_missing });
    }

    fn end_order(&mut self, is_maintenance: bool) {
        let orders = &mut self.scene.world.orders;
        let found = orders.iter().position(|order| order.is_maintenance == is_maintenance);
        if let Some(found) = found.filter(|_| self.is_up) {
            let order = orders.remove(found);
            let is_ended = self.decide(&Command::End(order.id)) == Some(true);
            let Scene { world, audit } = &mut self.scene;
            if !is_ended && !order.fades(world.clock.now) {
                audit.violations.push(format!("what an operator decided cannot be ended: {order:?}"));
            }
            // Another controller may still have it.
            world.past_orders.extend((!is_ended).then_some(order));
        }
    }

    fn release_group(&mut self, group: usize) {
        let (id, name) = (self.scene.world.note_id(), self.scene.world.groups[group].name.clone());
        let Some(is_taken) = self.decide(&Command::ReleaseGroup(id, name.clone())) else { return };
        assert!(is_taken);
        let World { clock, group_releases, .. } = &mut self.scene.world;
        group_releases.insert(name, clock.wall());
    }

    fn release(&mut self, mark: MarkId) {
        let id = self.scene.world.note_id();
        if self.decide(&Command::Release(id, mark)) == Some(true) {
            self.scene.world.released.insert(mark);
            self.scene.world.dismissed.remove(&mark);
        }
    }

    /// P5: it ends at once, whatever holds.
    fn unmark(&mut self, mark: MarkId) {
        let Some(done) = self.decide(&Command::Unmark(mark)) else { return };
        if done {
            self.scene.world.dismissed.insert(mark);
        }
        self.refresh();
        let is_open = self.scene.audit.rows.get(&mark).is_some_and(|row| row.settled.is_none());
        if is_open || !done {
            self.wrong(format!("{mark} could not be ended by an operator"));
        }
    }

    /// Everything works, hosts come back, pauses end, and operators check what is still held.
    fn come_to_rest(&mut self) {
        self.say(|| "everything comes to rest".to_owned());
        self.cut = None;
        self.events.clear();
        self.scene.world.lost.clear();
        self.scene.world.free(self.alerter);
        self.scene.world.heal();
        let now = self.scene.world.clock.now;
        for receiver in self.scene.world.receivers.values_mut() {
            receiver.mood = Mood::Takes;
            receiver.rejects.clear();
            receiver.fine_since = now;
        }
        self.scene.world.clock.now += SETTLING;
        if !self.is_up {
            self.restart =
                Some((self.scene.world.clock.now, self.restart.map_or(0, |(_, controller)| controller)));
            self.step();
        }
        for host in 0..self.scene.world.hosts.len() {
            self.scene.world.skip(host, false);
            self.scene.world.bring_back(host, 1, false);
        }
        for is_maintenance in [false, true] {
            while self.scene.world.orders.iter().any(|order| order.is_maintenance == is_maintenance) {
                self.end_order(is_maintenance);
            }
        }
        self.poll_soon();
        let last = self.scene.world.clock.now + PATIENCE;
        while self.is_busy() && self.scene.world.clock.now < last && self.scene.audit.violations.is_empty() {
            let end = self.scene.world.clock.now + ROUND;
            self.until(end);
            self.go_round();
        }
        // Steps that follow the end of the last mark; some wait until its host has been back for a while, which a poll finds.
        for _ in 0..BEHIND / ROUND {
            self.poll_soon();
            self.until(self.scene.world.clock.now + ROUND);
        }
        if self.is_up && self.scene.audit.violations.is_empty() {
            self.scene.audit.end(&self.scene.world, self.alerter);
        }
    }

    fn is_busy(&mut self) -> bool {
        if !self.is_up {
            return true;
        }
        self.refresh();
        let World { clock, fenced, callbacks, .. } = &self.scene.world;
        clock.now < fenced + 60_000 || !callbacks.is_empty() || !self.scene.audit.open().is_empty()
    }

    /// An operator decides about each mark that waits for one.
    fn go_round(&mut self) {
        if !self.is_up {
            return;
        }
        let (mut release, mut let_go, mut unmark) = (Vec::new(), Vec::new(), Vec::new());
        let holds = self.refresh();
        let Scene { world, audit } = &mut self.scene;
        for row in audit.open() {
            let (deliveries, is_damaged) = self.alerter.deliveries(row.id);
            if row.is_doubted {
                audit.doubted(world, &row);
            }
            let is_known = world.forged.contains(&row.id) || is_notified_otherwise(world, &row);
            if is_damaged || (row.is_doubted && is_known) {
                unmark.push(row.id);
            } else if row.is_doubted || holds.get(&row.id).is_some_and(|words| words[0] == "confirm") {
                release.push(row.id);
            } else if deliveries.iter().any(|d| d.state == "held" && !d.waits_in_chain) {
                let_go.push(row.id);
            }
        }
        release.into_iter().for_each(|mark| self.release(mark));
        unmark.into_iter().for_each(|mark| self.unmark(mark));
        for mark in let_go {
            self.decide(&Command::LetGo(mark));
            self.scene.world.released.insert(mark);
        }
        self.poll_soon();
    }
}
