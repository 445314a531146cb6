//! What an alerter meets while it works: receivers that answer, probes, and the audit of what it does.

use std::collections::BTreeMap;

use marks::host::HostName;
use marks::id::MarkId;

use crate::audit::Audit;
use crate::product::{Alerter, Answer, Delivery, Mark};
use crate::story::Mood;
use crate::world::World;

/// A host that was found up is probed again after so many milliseconds.
const AGAIN: u64 = 60_000;
/// The time limit of an exchange, in milliseconds.
pub(crate) const LIMIT: u64 = 10_000;

/// The world and the audit.
pub struct Scene {
    /// Everything that is not the alerter.
    pub world: World,
    pub(crate) audit: Audit,
}

impl Scene {
    /// Before anything that is due begins: what is held is exactly what is in force.
    pub fn check(&mut self, alerter: &mut dyn Alerter) {
        self.audit.check(&self.world, alerter);
    }

    /// These attempts begin.
    pub fn begun(&mut self, all: impl IntoIterator<Item = (Mark, Delivery)>) {
        for (mark, delivery) in all {
            self.audit.begun(&self.world, &mark, &delivery);
        }
        self.audit.count(&self.world);
    }

    /// An attempt is over: its answer is on record, or it was not made.
    pub fn ended(&mut self, mark: MarkId, route: &str) {
        self.audit.under_way.remove(&(mark, route.to_owned()));
        self.audit.say(&self.world, || format!("attempt of {mark} on {route} has ended"));
    }

    /// A route's terms keep a mark back, or end it there.
    pub fn kept(&mut self, mark: &Mark, delivery: &Delivery) {
        let (id, Delivery { route, state, .. }) = (mark.id, delivery);
        self.audit.say(&self.world, || format!("{id} is {state} on {route} by its terms"));
        self.audit.cancelled.extend((*state == "cancelled").then(|| (id, route.clone())));
    }

    /// Whether the receiver of a route can be reached.
    pub fn connects(&self, route: &str) -> bool {
        let base = route.split('.').next().unwrap_or_default();
        self.world.receivers[base].mood != Mood::Refuses
    }

    /// The bytes reach the receiver, or do not; gives what comes of it and after how many milliseconds.
    pub fn send(&mut self, mark: &Mark, delivery: &Delivery) -> (Answer, u64) {
        let Self { world, audit } = self;
        let receiver = world.receivers.get_mut(delivery.base()).unwrap();
        let takes = world.rng.u64(1..=receiver.pace);
        let arrives = match receiver.mood {
            Mood::Refuses => return (Answer::Unreachable, 1),
            Mood::Busy => return (Answer::Busy, takes),
            Mood::Denies => return (Answer::Refused, takes),
            Mood::TimesOut if world.rng.bool() => return (Answer::TimedOut, LIMIT),
            Mood::TimesOut => false,
            Mood::Takes => true,
        };
        let is_rejected = receiver.rejects.contains(&mark.node);
        let later = receiver.confirms_later && !delivery.is_return();
        if delivery.is_return() {
            audit.called_back(world, mark, delivery);
            let down = &mut world.receivers.get_mut(delivery.base()).unwrap().down;
            down.retain(|node, own| node != &mark.node || *own != mark.id);
        } else if is_rejected {
            return (Answer::Rejected, takes);
        } else {
            self.arrive(mark, delivery);
        }
        match (arrives, later) {
            (false, _) => (Answer::TimedOut, LIMIT),
            (true, true) => (Answer::Accepted, takes),
            (true, false) => (Answer::Taken, takes),
        }
    }

    fn arrive(&mut self, mark: &Mark, delivery: &Delivery) {
        let Self { world, audit } = self;
        let (route, at) = (delivery.base().to_owned(), world.clock.now);
        let receiver = world.receivers.get_mut(&route).unwrap();
        receiver.got.insert(mark.id);
        receiver.down.insert(mark.node.clone(), mark.id);
        receiver.notified.entry(mark.node.clone()).or_insert(at);
        let later = receiver.confirms_later;
        if !later {
            receiver.has.insert(mark.id);
        }
        audit.arrived(world, mark, delivery);
        if later {
            // Now and then it comes too late, and the mark is sent once more.
            let rng = &mut world.rng;
            let wait = if rng.u8(..4) == 0 { rng.u64(300_000..600_000) } else { rng.u64(500..60_000) };
            world.callbacks.push((at + wait, route, mark.id));
        }
    }

    /// What probes have said since this was asked last: whether the host of a mark is up.
    pub fn probed(&mut self) -> Vec<(MarkId, bool)> {
        let World { clock, asked, probed, hosts, index_of, rng, .. } = &mut self.world;
        let mut said = Vec::new();
        asked.retain(|mark, (at, host)| {
            let is_due = *at <= clock.now;
            if is_due {
                said.push((*mark, hosts[index_of[host]].cib.is_up() || rng.u8(..10) == 0));
            }
            !is_due
        });
        probed.extend(said.iter().copied());
        said
    }

    /// Probes the hosts whose marks wait for that, and no others.
    pub fn ask(&mut self, wanted: BTreeMap<MarkId, HostName>) {
        let World { clock, asked, probed, rng, .. } = &mut self.world;
        asked.retain(|mark, _| wanted.contains_key(mark));
        for (mark, host) in wanted {
            let wait = if probed.get(&mark) == Some(&true) { AGAIN } else { rng.u64(500..15_000) };
            asked.entry(mark).or_insert((clock.now + wait, host));
        }
    }
}
