//! Plays a story: the clock jumps from one event to the next, and the alerter passes at each.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use fastrand::Rng;
use journal::{Callback as Confirmation, Says};
use marks::host::HostName;
use marks::id::MarkId;
use marks::mark::MarkRow;
use marks::register::{About, Decision, Ending, Scope};

use super::audit::{Audit, Tally, is_notified_otherwise};
use super::daemon::{Broken, Callback, Daemon};
use super::story::{Cut, Event, Scale, Story};
use super::world::{MONITOR, Mood, Order, World, mix};

/// Hosts need longer than this to come back and to fail again, in milliseconds.
const SETTLING: u64 = 12_000;
/// So many passes at one moment are a loop.
const SPIN: u32 = 2_000;
/// Operators check what is still there so often when all is quiet, in milliseconds.
const ROUND: u64 = 600_000;
/// A return is on its way so long after its mark has ended, in milliseconds.
const BEHIND: u64 = 20 * 60_000;
/// What is not done after so long will never be, in milliseconds.
const PATIENCE: u64 = 72 * 3_600_000;

/// What came of a story.
pub(super) struct Played {
    pub(super) violations: Vec<String>,
    pub(super) tally: Tally,
    /// Milliseconds.
    pub(super) lasted: u64,
    /// When the first route was notified of each host, in milliseconds since the story began.
    pub(super) notified: BTreeMap<HostName, u64>,
}

struct Run {
    world: World,
    daemon: Option<Daemon>,
    /// Where the next one starts, and when.
    restart: Option<(u64, usize)>,
    audit: Audit,
    rng: Rng,
    broken: Broken,
    events: VecDeque<(u64, Event)>,
    cut: Option<(Cut, Option<usize>)>,
    callbacks: Vec<Callback>,
    confirming: Vec<String>,
}

/// Plays the story of a seed.
pub(super) fn play(seed: u64, scale: Scale, broken: Broken, is_loud: bool) -> Played {
    play_story(Story::new(seed, scale), broken, is_loud)
}

/// Plays a story.
pub(super) fn play_story(story: Story, broken: Broken, is_loud: bool) -> Played {
    let seed = story.seed;
    let mut audit = Audit::new(&story, is_loud);
    let mut world = World::new(&story);
    if is_loud {
        println!("{}\n{} hosts", story.settings, story.hosts.len());
    }
    let daemon = Daemon::start(&mut world, 0, broken);
    audit.restart(&daemon.journal);
    let confirming = story.routes.iter().filter(|route| route.confirms_later);
    let mut run = Run {
        world,
        daemon: Some(daemon),
        restart: None,
        audit,
        rng: Rng::with_seed(mix(seed ^ 0x5eed)),
        broken,
        confirming: confirming.map(|route| route.name.clone()).collect(),
        events: story.events.into(),
        cut: None,
        callbacks: Vec::new(),
    };
    run.until(story.rest);
    run.come_to_rest();
    let lasted = run.world.clock.now;
    let notified =
        run.world.receivers.values().next().map(|first| first.notified.clone()).unwrap_or_default();
    Played { violations: run.audit.violations, tally: run.audit.tally, lasted, notified }
}

impl Run {
    /// Plays on until a time.
    fn until(&mut self, end: u64) {
        let mut spins = 0;
        while self.audit.violations.is_empty() {
            let next = self.next().min(end);
            spins = if next > self.world.clock.now { 0 } else { spins + 1 };
            if spins > SPIN {
                let why = self.daemon.as_ref().map(|daemon| daemon.reasons(&self.world));
                self.audit.violations.push(format!("at {next} ms: the alerter goes in circles: {why:?}"));
                return;
            }
            if next >= end {
                self.world.clock.now = self.world.clock.now.max(end);
                return;
            }
            self.world.clock.now = self.world.clock.now.max(next);
            self.step();
        }
    }

    fn next(&self) -> u64 {
        let event = self.events.front().map(|(at, _)| *at);
        let restart = self.restart.map(|(at, _)| at);
        let daemon = self.daemon.as_ref();
        let alerter = daemon.and_then(|daemon| daemon.next(&self.world));
        let callback = daemon.and_then(|_| self.callbacks.iter().map(|callback| callback.at).min());
        let ends = self.world.orders.iter().filter_map(|order| order.until);
        let ends = ends.filter(|until| *until > self.world.clock.now);
        let monitor = self.world.jam.filter(|jam| daemon.is_some_and(|it| it.controller == jam.controller));
        // One that hangs does nothing.
        let hangs = monitor.is_some_and(|jam| jam.hangs);
        let own = alerter.into_iter().chain(callback).filter(|_| !hangs).min();
        let others = [event, restart, own, monitor.map(|jam| jam.monitor), ends.min()];
        others.into_iter().flatten().min().unwrap_or(u64::MAX)
    }

    /// Everything that happens at this moment.
    fn step(&mut self) {
        let now = self.world.clock.now;
        if self.restart.is_some_and(|(at, _)| at <= now) {
            self.start();
        }
        while self.events.front().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, event)) = self.events.pop_front() {
                self.happens(event);
            }
        }
        let over = |order: &Order| !order.may_last && order.until.is_some_and(|until| until <= now);
        if self.world.orders.iter().any(over) {
            self.poll_soon();
        }
        self.world.past_orders.extend(self.world.orders.extract_if(.., |order| over(order)));
        self.monitor();
        self.confirm();
        self.pass();
    }

    /// Pacemaker moves an alerter whose disk cannot be written, where that says so.
    fn monitor(&mut self) {
        let now = self.world.clock.now;
        let (Some(jam), Some(daemon)) = (&mut self.world.jam, &mut self.daemon) else { return };
        if jam.controller != daemon.controller || now < jam.monitor {
            return;
        }
        jam.monitor = now + MONITOR;
        if daemon.is_better_elsewhere(now) {
            self.audit.say(&self.world, || "the monitor fails for want of a disk".to_owned());
            self.kill(None);
        }
    }

    fn start(&mut self) {
        let Some((_, controller)) = self.restart.take() else { return };
        let controller = self.world.fit(controller);
        let was = self.world.clock.active;
        let mut daemon = Daemon::start(&mut self.world, controller, self.broken);
        if controller != was {
            // What has ended by itself begins anew there.
            self.world.orders.append(&mut self.world.past_orders);
            self.world.orders.iter_mut().for_each(|order| order.may_last = true);
        }
        self.audit.restart(&daemon.journal);
        self.audit.say(&self.world, || format!("an alerter starts on controller {controller}"));
        daemon.callbacks.clear();
        self.daemon = Some(daemon);
    }

    fn pass(&mut self) {
        let Some(daemon) = &mut self.daemon else { return };
        let jam = self.world.jam.filter(|jam| jam.controller == daemon.controller);
        if jam.is_some_and(|jam| jam.hangs) {
            return daemon.cannot_write(self.world.clock.now);
        }
        let cut = self.cut.map(|(cut, _)| cut);
        let passed = daemon.pass(&mut self.world, &mut self.audit, &mut self.rng, cut);
        self.callbacks.append(&mut daemon.callbacks);
        if passed == Err(Cut::Unwritten) {
            assert!(jam.is_some(), "a sound disk was not written");
            return daemon.cannot_write(self.world.clock.now);
        }
        if let Some(since) = daemon.trouble.take() {
            self.audit.wrote_again(&self.world, since);
        }
        if let Err(cut) = passed {
            self.audit.say(&self.world, || format!("the alerter is killed: {cut:?}"));
            let to = self.cut.take().and_then(|(_, to)| to);
            self.kill(to);
        }
    }

    fn kill(&mut self, to: Option<usize>) {
        let Some(mut daemon) = self.daemon.take() else { return };
        self.callbacks.append(&mut daemon.callbacks);
        let wait = self.rng.u64(500..10_000);
        self.restart = Some((self.world.clock.now + wait, to.unwrap_or(daemon.controller)));
    }

    fn poll_soon(&mut self) {
        let now = self.world.clock.now;
        self.daemon.iter_mut().for_each(|daemon| daemon.poll_soon(now));
    }

    /// Receivers say that they have what they had only accepted.
    fn confirm(&mut self) {
        let (now, wall) = (self.world.clock.now, self.world.clock.wall());
        let Some(daemon) = self.daemon.as_mut().filter(|it| !self.world.is_jammed(it.controller)) else {
            return;
        };
        let (due, later) =
            std::mem::take(&mut self.callbacks).into_iter().partition(|callback| callback.at <= now);
        self.callbacks = later;
        for Callback { route, mark, .. } in due {
            let refuses = self.rng.u8(..6) == 0 && !self.world.receivers[&route].has.contains(&mark);
            let says = match refuses {
                true => Says::Refuses { reason: "no room".into(), next_due: wall + Duration::from_secs(60) },
                false => Says::Has { reference: None, reason: None },
            };
            let receiver = self.world.receivers.get_mut(&route).unwrap();
            if !refuses {
                receiver.has.insert(mark);
            }
            let (confirming, actor) = (self.confirming.clone(), "receiver".to_owned());
            let callback = Confirmation { mark, route: Some(route.clone()), confirming, actor };
            let heard = daemon.journal.call_back(&callback, &says, wall).unwrap();
            self.audit.say(&self.world, || format!("{route} says of {mark}: refuses {refuses}: {heard:?}"));
            daemon.poll_soon(now);
        }
    }

    fn happens(&mut self, event: Event) {
        self.audit.say(&self.world, || format!("{event:?}"));
        match event {
            Event::Fences { host, by } => self.fence(host, by),
            Event::Returns { host, to, unseen } => self.bring_back(host, to, unseen),
            Event::Turns { route, mood } => self.turn(route, mood),
            Event::Rejects { route, hosts } => {
                let names = hosts.into_iter().map(|host| self.world.hosts[host].name.clone()).collect();
                self.world.receivers.values_mut().nth(route).unwrap().rejects = names;
            }
            Event::Empties { all_but_one_in } => {
                let rng = &mut self.rng;
                self.world.register.retain(|_, _| all_but_one_in.is_some_and(|n| rng.u8(..n) == 0));
            }
            Event::Monitors => {
                let all = (0..3).filter(|at| !self.world.lost.contains(at)).collect::<Vec<_>>();
                all.into_iter().for_each(|at| self.world.monitor(at));
            }
            Event::Forges { forgery, host, rank } => {
                let open = self.open_mark(rank);
                self.world.forge(forgery, host, open.as_ref());
            }
            Event::Dies { cut, to } => self.cut = Some((cut, to)),
            Event::Loses { controller } => self.lose(controller),
            Event::Finds => self.world.lost.clear(),
            Event::Skips { host, is_skipped } => self.world.skip(host, is_skipped),
            Event::Lacks { one_in } => self.world.lack(one_in, &mut self.rng),
            Event::Heals => self.world.heal(),
            Event::Replaces { controller } => self.replace(controller),
            Event::Jams { behind, hangs } => {
                let controller = (self.world.clock.active + behind) % 3;
                self.world.jam(controller, hangs, &mut self.rng);
            }
            Event::Frees => self.world.free(),
            Event::SetsClock { by } => {
                self.world.clock.set += by;
                self.world.orders.iter_mut().for_each(|order| order.may_last = true);
            }
            Event::Jumps { controller, by } => {
                self.world.clock.jump(controller, by);
                self.world.orders.iter_mut().for_each(|order| order.may_last = true);
            }
            // A command at a disk that cannot be written fails, and the operator tries it again later.
            other if self.daemon.as_ref().is_some_and(|it| self.world.is_jammed(it.controller)) => {
                self.audit.say(&self.world, || format!("not answered: {other:?}"));
            }
            other => self.decide(other),
        }
        self.poll_soon();
    }

    /// The alerter starts where it never ran, and nothing is known any more.
    fn replace(&mut self, controller: usize) {
        self.world.free();
        self.kill(None);
        self.restart = Some((self.world.clock.now, controller));
        self.world.replace(controller);
    }

    fn fence(&mut self, host: usize, by: Option<usize>) {
        let host_of = &self.world.hosts[host];
        // A host needs some seconds until the cluster would notice that it is gone again.
        if host_of.is_up && self.world.clock.now < host_of.changed + SETTLING && host_of.changed > 0 {
            return;
        }
        let by = by.map(|by| self.world.living(by));
        self.world.fence(host, by);
    }

    fn bring_back(&mut self, host: usize, to: usize, unseen: bool) {
        let host_of = &self.world.hosts[host];
        if !host_of.is_up && self.world.clock.now >= host_of.changed + SETTLING {
            let to = self.world.living(to);
            self.world.bring_back(host, to, unseen);
        }
    }

    fn turn(&mut self, route: usize, mood: Mood) {
        let now = self.world.clock.now;
        let receiver = self.world.receivers.values_mut().nth(route).unwrap();
        receiver.denied |= mood == Mood::Denies;
        (receiver.mood, receiver.fine_since) = (mood, now);
    }

    fn lose(&mut self, controller: usize) {
        self.world.lose(controller);
        if self.daemon.as_ref().is_some_and(|daemon| daemon.controller == controller) {
            self.kill(Some(controller));
        }
    }

    /// What operators do, by the commands of the controller on which the alerter runs.
    fn decide(&mut self, event: Event) {
        match event {
            Event::Pauses { group, limit } => {
                let scope = group.map_or(Scope::All, |group| self.scope_of(group));
                let until = limit.map(|limit| self.world.clock.wall() + Duration::from_millis(limit));
                self.order(About::Pause { scope: scope.clone(), until }, (scope, limit, false));
            }
            Event::Maintains { host, group, limit } => {
                let of_host = |host: usize| Scope::Host(self.world.hosts[host].name.clone());
                let scope = host.map_or_else(|| self.scope_of(group), of_host);
                let until = self.world.clock.wall() + Duration::from_millis(limit);
                self.order(About::Maintenance { scope: scope.clone(), until }, (scope, Some(limit), true));
            }
            Event::Resumes => self.end_order(false),
            Event::EndsMaintenance => self.end_order(true),
            Event::ReleasesGroup { group } => self.release_group(group),
            // Nobody believes what was forged.
            Event::Releases { rank } => {
                let row = self.open_mark(rank).filter(|row| !self.world.forged.contains(&row.id));
                row.iter().for_each(|row| self.release(row.id));
            }
            Event::Unmarks { rank } => self.open_mark(rank).iter().for_each(|row| self.unmark(row.id)),
            Event::Damages { rank } => self.open_mark(rank).iter().for_each(|row| self.damage(row.id)),
            _ => {}
        }
    }

    fn scope_of(&self, group: usize) -> Scope {
        Scope::Group(self.world.group_names[group].clone())
    }

    fn open_mark(&self, rank: usize) -> Option<MarkRow> {
        let daemon = self.daemon.as_ref()?;
        let open = daemon.journal.open_marks().unwrap().sound;
        let rank = rank.min(open.len().saturating_sub(1));
        open.into_iter().nth(rank)
    }

    fn decision(&mut self, about: About) -> Decision {
        let (id, at) = (self.world.note_id(), self.world.clock.wall());
        Decision { id, about, at, actor: "alice".into(), reason: "she has one".into() }
    }

    fn order(&mut self, about: About, (scope, limit, is_maintenance): (Scope, Option<u64>, bool)) {
        let decision = self.decision(about);
        let Some(daemon) = &mut self.daemon else { return };
        assert!(daemon.journal.decide(&decision).unwrap());
        let until = limit.map(|limit| self.world.clock.now + limit);
        let (id, may_last, is_missing) = (decision.id, false, false);
        self.world.orders.push(Order { id, scope, until, is_maintenance, may_last, is_missing });
    }

    fn end_order(&mut self, is_maintenance: bool) {
        let at = self.world.clock.wall();
        let Some(daemon) = &mut self.daemon else { return };
        let found = self.world.orders.iter().position(|order| order.is_maintenance == is_maintenance);
        if let Some(found) = found {
            let order = self.world.orders.remove(found);
            let end = Ending { id: order.id, at, actor: "alice".into(), reason: "done".into() };
            let is_ended = daemon.journal.end_decision(&end).unwrap();
            if !is_ended && !order.fades(self.world.clock.now) {
                self.audit.violations.push(format!("what an operator decided cannot be ended: {order:?}"));
            }
            // Another controller may still have it.
            self.world.past_orders.extend(Some(order).filter(|order| !is_ended && order.is_missing));
        }
    }

    fn release_group(&mut self, group: usize) {
        let name = self.world.group_names[group].clone();
        let decision = self.decision(About::ReleaseGroup(name.clone()));
        let Some(daemon) = &mut self.daemon else { return };
        assert!(daemon.journal.decide(&decision).unwrap());
        self.world.group_releases.insert(name, decision.at);
    }

    fn release(&mut self, mark: MarkId) {
        let decision = self.decision(About::Release(mark));
        let Some(daemon) = &mut self.daemon else { return };
        if daemon.journal.decide(&decision).unwrap() {
            self.world.released.insert(mark);
            self.world.dismissed.remove(&mark);
        }
    }

    /// P5: it ends at once, whatever holds.
    fn unmark(&mut self, mark: MarkId) {
        let now = self.world.clock.wall();
        let Some(daemon) = &mut self.daemon else { return };
        let done = daemon.journal.dismiss(mark, "it lives", "alice", now).unwrap();
        if done {
            self.world.dismissed.insert(mark);
        }
        let is_open = daemon.journal.mark(mark).unwrap().is_some_and(|row| row.settled.is_none());
        if is_open || !done {
            self.audit.violations.push(format!("{mark} could not be ended by an operator"));
        }
    }

    /// Changes a delivery by other means than ours, as a fault would.
    fn damage(&mut self, mark: MarkId) {
        let Some(daemon) = &self.daemon else { return };
        let sql = format!(
            "UPDATE delivery SET body = x'00' WHERE mark = '{mark}' AND state IN ('pending', 'parked')
             AND route = (SELECT min(route) FROM delivery WHERE mark = '{mark}')"
        );
        rusqlite::Connection::open(daemon.journal.path()).unwrap().execute_batch(&sql).unwrap();
    }

    /// Everything works, hosts come back, pauses end, and operators check what is still held.
    fn come_to_rest(&mut self) {
        self.audit.say(&self.world, || "everything comes to rest".to_owned());
        self.cut = None;
        self.events.clear();
        self.world.lost.clear();
        self.world.free();
        self.world.heal();
        let now = self.world.clock.now;
        for receiver in self.world.receivers.values_mut() {
            receiver.mood = Mood::Takes;
            receiver.rejects.clear();
            receiver.fine_since = now;
        }
        self.world.clock.now += SETTLING;
        if self.daemon.is_none() {
            self.restart = Some((self.world.clock.now, self.restart.map_or(0, |(_, controller)| controller)));
            self.step();
        }
        for host in 0..self.world.hosts.len() {
            let is_skipped = self.world.hosts[host].is_skipped;
            if is_skipped {
                self.world.skip(host, false);
            }
            self.bring_back(host, 1, false);
        }
        for is_maintenance in [false, true] {
            while self.world.orders.iter().any(|order| order.is_maintenance == is_maintenance) {
                self.end_order(is_maintenance);
            }
        }
        self.poll_soon();
        let last = self.world.clock.now + PATIENCE;
        while self.is_busy() && self.world.clock.now < last && self.audit.violations.is_empty() {
            let end = self.world.clock.now + ROUND;
            self.until(end);
            self.go_round();
        }
        // Steps that follow the end of the last mark; some wait until its host has been back for a while, which a poll finds.
        for _ in 0..BEHIND / ROUND {
            self.poll_soon();
            self.until(self.world.clock.now + ROUND);
        }
        if let Some(daemon) = self.daemon.as_ref().filter(|_| self.audit.violations.is_empty()) {
            self.audit.end(&self.world, daemon);
        }
    }

    fn is_busy(&self) -> bool {
        let Some(daemon) = &self.daemon else { return true };
        let is_new = self.world.clock.now < self.world.fenced + 60_000;
        is_new || !self.callbacks.is_empty() || !daemon.journal.open_marks().unwrap().sound.is_empty()
    }

    /// An operator decides about each mark that waits for one.
    fn go_round(&mut self) {
        let Some(daemon) = &self.daemon else { return };
        let (mut release, mut let_go, mut unmark) = (Vec::new(), Vec::new(), Vec::new());
        for row in daemon.journal.open_marks().unwrap().sound {
            let deliveries = daemon.journal.deliveries_of(row.id).unwrap();
            let held = daemon.journal.hold_of(row.id).unwrap();
            let is_doubted = row.standing.doubt().is_some();
            if is_doubted {
                self.audit.doubted(&self.world, &row);
            }
            let is_known = self.world.forged.contains(&row.id) || is_notified_otherwise(&self.world, &row);
            if !deliveries.damaged.is_empty() || (is_doubted && is_known) {
                unmark.push(row.id);
            } else if is_doubted || held.is_some_and(|held| held.words[0] == "confirm") {
                release.push(row.id);
            } else if deliveries.sound.iter().any(|d| d.state.as_str() == "held" && !d.waits_in_chain()) {
                let_go.push(row.id);
            }
        }
        release.into_iter().for_each(|mark| self.release(mark));
        unmark.into_iter().for_each(|mark| self.unmark(mark));
        let now = self.world.clock.wall();
        let Some(daemon) = &mut self.daemon else { return };
        for mark in let_go {
            daemon.journal.release_held(mark, false, ("I checked", "alice"), now).unwrap();
            self.world.released.insert(mark);
        }
        self.poll_soon();
    }
}
