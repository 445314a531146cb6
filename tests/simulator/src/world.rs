//! What is around the alerter: a clock that is moved by hand, hosts as the cluster sees them, the register, the fencing
//! history, receivers of marks, and what operators decided.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use marks::host::HostName;
use marks::id::{FencingId, MarkId, NoteId};
use marks::time::Timestamp;

use crate::cib::{self, CONTROLLERS, Kind};
use crate::product::{Alerter, Disk, Fake, Fenced, Mark, Scope};
use crate::story::{Forgery, Group, Mood, RouteOf, Story, mix};

/// By whose clock Pacemaker dates `node_fenced` and `in_ccm`.
const DC: usize = 0;

/// When every story begins: what the real clock says has no part in it.
const BEGINNING: Timestamp = Timestamp(4_000_000_000_000);

/// The controllers' clocks: the monotonic one, and a wall clock each.
#[derive(Default)]
pub struct Clock {
    /// Milliseconds since the story began.
    pub now: u64,
    /// By how many milliseconds the wall clocks were set.
    pub(crate) set: i64,
    /// By how many milliseconds the wall clock of each controller is ahead.
    pub(crate) skews: [i64; 3],
    /// Where the alerter runs, or ran last.
    pub active: usize,
}

impl Clock {
    /// The alerter's.
    pub fn wall(&self) -> Timestamp {
        self.of(self.active)
    }

    /// A controller's.
    pub fn of(&self, controller: usize) -> Timestamp {
        Timestamp(self.right().0 + self.skews[controller])
    }

    /// One that is right.
    fn right(&self) -> Timestamp {
        Timestamp(BEGINNING.0 + self.now.cast_signed() + self.set)
    }

    /// When the wall clock will say `at`, if nobody sets it.
    pub fn when(&self, at: Timestamp) -> u64 {
        self.now + u64::try_from(at.0 - self.wall().0).unwrap_or(0)
    }

    /// When the wall clock said `at`, as it goes now.
    pub(crate) fn when_it_was(&self, at: Timestamp) -> u64 {
        self.now.saturating_add_signed(at.0 - self.wall().0)
    }
}

/// A compute host.
pub(crate) struct Host {
    pub(crate) name: HostName,
    pub(crate) group: usize,
    pub(crate) cib: cib::Host,
    /// Milliseconds since the story began.
    pub(crate) changed: u64,
}

/// A host was really down, and fenced.
#[derive(Clone, Debug)]
pub(crate) struct Outage {
    pub(crate) host: usize,
    pub(crate) began: Timestamp,
    pub(crate) ended: Option<Timestamp>,
}

/// An endpoint that is notified.
#[derive(Default)]
pub(crate) struct Receiver {
    pub(crate) mood: Mood,
    /// Since when it takes marks, in milliseconds since the story began.
    pub(crate) fine_since: u64,
    /// It has refused everybody before.
    pub(crate) denied: bool,
    /// Whose messages it does not take.
    pub(crate) rejects: BTreeSet<HostName>,
    /// Milliseconds that an exchange takes.
    pub(crate) pace: u64,
    /// It is told that hosts are back.
    pub(crate) goes_on: bool,
    /// It takes the message first and says later whether it has the mark.
    pub(crate) confirms_later: bool,
    /// By its own record: the marks that it has.
    pub(crate) has: BTreeSet<MarkId>,
    /// The marks whose messages it has.
    pub(crate) got: BTreeSet<MarkId>,
    /// What it got first of each mark.
    pub(crate) first: BTreeMap<MarkId, Vec<u8>>,
    /// When it was first notified of a host, in milliseconds since the story began.
    pub(crate) notified: BTreeMap<HostName, u64>,
    /// Which hosts it has down, each because of the mark whose reason stands there.
    pub(crate) down: BTreeMap<HostName, MarkId>,
}

impl Receiver {
    fn of(route: &RouteOf) -> Self {
        let RouteOf { pace, goes_on, confirms_later, .. } = *route;
        Self { pace, goes_on, confirms_later, ..Self::default() }
    }
}

/// What an operator decided that holds marks back.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) id: NoteId,
    pub(crate) scope: Scope,
    /// In milliseconds since the story began.
    pub(crate) until: Option<u64>,
    pub(crate) is_maintenance: bool,
    /// Another controller has read it, and counts its time from then on; or a clock was set.
    pub(crate) may_last: bool,
    /// It stands in a part of the register that is missing, or was lost with a journal.
    pub(crate) is_missing: bool,
}

impl Order {
    /// Whether it may be over, and nobody can say.
    pub(crate) fn fades(&self, now: u64) -> bool {
        self.is_missing || self.may_last && self.until.is_some_and(|until| until <= now + ORDER_SLACK)
    }
}

/// A disk that cannot be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jam {
    pub(crate) controller: usize,
    pub(crate) hangs: bool,
    /// When the alerter there is monitored next.
    pub(crate) monitor: u64,
}

/// Hosts need longer than this to come back and to fail again, in milliseconds.
pub(crate) const SETTLING: u64 = 12_000;
/// How often Pacemaker monitors the alerter, in milliseconds.
pub(crate) const MONITOR: u64 = 10_000;
/// Clocks that are set make the end of an order as uncertain as this, in milliseconds.
const ORDER_SLACK: u64 = 5_000;

/// What the audit has to know of an entry of the register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tells {
    /// It says what an operator decided.
    Word(NoteId),
    /// It says that this is over.
    End(NoteId),
    /// A route has a mark.
    Taken(MarkId, String),
    /// Anything else.
    Other,
}

/// An entry of the register: whatever an alerter makes of it.
#[derive(Clone, Debug)]
pub struct Written {
    /// Its text.
    pub value: String,
    /// Others have a key, and who wrote this has none.
    pub is_planted: bool,
    /// Nobody can read it now.
    pub is_missing: bool,
    /// What it says.
    pub tells: Tells,
}

/// Everything that is not the alerter.
#[derive(Default)]
pub struct World {
    /// The controllers' clocks.
    pub clock: Clock,
    /// What happens by chance.
    pub rng: Rng,
    pub(crate) hosts: Vec<Host>,
    pub(crate) groups: Vec<Group>,
    pub(crate) index_of: BTreeMap<HostName, usize>,
    /// The register, by the texts of its keys; what is lost of it is drawn in their order.
    pub register: BTreeMap<String, Written>,
    /// Since when something of it is missing, and everybody sees that.
    pub lacking: Option<u64>,
    /// Root seals what it writes there.
    pub has_key: bool,
    /// Who was fenced, and when by each controller's clock.
    history: Vec<(HostName, [Timestamp; 3])>,
    /// When a host was fenced last, in milliseconds since the story began.
    pub fenced: u64,
    /// Since when the alerter could not write, in the same.
    pub trouble: Option<u64>,
    /// When it started, in the same.
    pub began: u64,
    /// Controllers whose machines are off.
    pub(crate) lost: BTreeSet<usize>,
    pub(crate) receivers: BTreeMap<String, Receiver>,
    /// What receivers are to confirm: when, by the world's clock, on which route, and of which mark.
    pub(crate) callbacks: Vec<(u64, String, MarkId)>,
    /// Whose hosts are to be probed, and when; and which of them were found up.
    pub(crate) asked: BTreeMap<MarkId, (u64, HostName)>,
    pub(crate) probed: BTreeMap<MarkId, bool>,
    pub(crate) outages: Vec<Outage>,
    /// The outage of each id that an honest mark may have.
    pub(crate) whose: BTreeMap<MarkId, usize>,
    /// The ids of marks that somebody forged.
    pub(crate) forged: BTreeSet<MarkId>,
    /// The marks whose end somebody forged, or which somebody wrote in another form.
    pub(crate) forged_about: BTreeSet<MarkId>,
    /// What stands beside the next fencing.
    beside: Option<Forgery>,
    /// What is in force, by what operators did.
    pub(crate) orders: Vec<Order>,
    /// What has ended by itself on the controller on which the alerter runs.
    pub(crate) past_orders: Vec<Order>,
    /// The last release of each group, by its name.
    pub(crate) group_releases: BTreeMap<String, Timestamp>,
    pub(crate) released: BTreeSet<MarkId>,
    pub(crate) dismissed: BTreeSet<MarkId>,
    pub(crate) jam: Option<Jam>,
    freed: u64,
    /// When a controller was set up anew, and nothing was known any more.
    pub(crate) replaced: Option<(Timestamp, u64)>,
    cib: Option<Arc<str>>,
    ids: u64,
}

impl World {
    pub(crate) fn new(story: &Story) -> Self {
        let clock = Clock { skews: story.skews, ..Clock::default() };
        let connected = (clock.of(0) - Duration::from_secs(3600)).seconds();
        let host = |(rank, (name, group)): (usize, &(String, usize))| {
            let kind = story.kinds.get(rank).copied().unwrap_or(Kind::Remote);
            let cib = cib::Host { kind, ..cib::Host::connected(CONTROLLERS[0], connected) };
            Host { name: HostName::parse(name).unwrap(), group: *group, cib, changed: 0 }
        };
        let hosts: Vec<Host> = story.hosts.iter().enumerate().map(host).collect();
        Self {
            clock,
            rng: Rng::with_seed(mix(story.seed ^ 0x5eed)),
            index_of: hosts.iter().enumerate().map(|(at, host)| (host.name.clone(), at)).collect(),
            hosts,
            groups: story.groups.clone(),
            has_key: story.has_key,
            receivers: story.routes.iter().map(|route| (route.name.clone(), Receiver::of(route))).collect(),
            ids: story.seed.wrapping_mul(1_000_003),
            ..Self::default()
        }
    }

    /// An id by the story's clock and counter alone.
    fn id(&mut self) -> String {
        self.ids = self.ids.wrapping_add(1);
        let millis = u64::try_from(self.clock.wall().0).unwrap();
        let mixed = mix(self.ids);
        format!(
            "{:08x}-{:04x}-7{:03x}-8{:03x}-{:012x}",
            millis >> 16,
            millis & 0xffff,
            mixed >> 52,
            (mixed >> 40) & 0xfff,
            mixed & 0xffff_ffff_ffff
        )
    }

    pub(crate) fn note_id(&mut self) -> NoteId {
        NoteId::parse(&self.id()).unwrap()
    }

    /// An entry is written once, by those who have a key on pages of their own.
    pub fn publish(&mut self, key: String, value: String, tells: Tells) {
        let new = Written { value, is_planted: false, is_missing: false, tells };
        let known = self.register.entry(key).or_insert_with(|| new.clone());
        if known.is_planted { *known = new } else { known.is_missing = false }
    }

    /// Somebody writes who has no key.
    fn plant(&mut self, (key, value): (String, String)) {
        let new = Written { value, is_planted: self.has_key, is_missing: false, tells: Tells::Other };
        self.register.entry(key).or_insert(new);
    }

    /// Of the register one entry in so many is missing. What ends a decision is not missed without it.
    pub(crate) fn lack(&mut self, one_in: u8) {
        self.lacking = Some(self.clock.now);
        let mut words = BTreeSet::new();
        for entry in self.register.values_mut() {
            entry.is_missing = self.rng.u8(..one_in) == 0;
            if let (Tells::Word(id) | Tells::End(id), true) = (&entry.tells, entry.is_missing) {
                words.insert(*id);
            }
        }
        for entry in self.register.values_mut() {
            entry.is_missing |= matches!(&entry.tells, Tells::Word(id) if words.contains(id));
        }
        self.orders.iter_mut().for_each(|order| order.is_missing = words.contains(&order.id));
    }

    /// By another clock nobody can say when they end.
    pub(crate) fn doubt_orders(&mut self) {
        self.orders.iter_mut().for_each(|order| order.may_last = true);
    }

    /// The entry of an acknowledgement stands in the register for all to see.
    pub(crate) fn is_known_to_all(&self, mark: MarkId, route: &str) -> bool {
        let says = |entry: &Written| {
            !entry.is_missing && matches!(&entry.tells, Tells::Taken(of, by) if *of == mark && by == route)
        };
        self.register.values().any(says)
    }

    pub(crate) fn heal(&mut self) {
        if self.lacking.take().is_some() {
            self.register.values_mut().for_each(|entry| entry.is_missing = false);
            self.orders.iter_mut().for_each(|order| order.is_missing = false);
        }
    }

    /// The register is empty, and so is a controller's disk.
    pub(crate) fn replace(&mut self, controller: usize, alerter: &mut dyn Alerter) {
        self.register.clear();
        self.orders.iter_mut().for_each(|order| order.is_missing = true);
        self.replaced = Some((self.clock.right(), self.clock.now));
        alerter.disk(controller, Disk::IsWiped);
    }

    /// A full disk still takes something here and there.
    pub(crate) fn jam(&mut self, controller: usize, hangs: bool, alerter: &mut dyn Alerter) {
        self.jam = Some(Jam { controller, hangs, monitor: self.clock.now + MONITOR });
        if !hangs {
            alerter.disk(controller, Disk::Fills(&mut || self.rng.u8(..3) > 0));
        }
    }

    pub(crate) fn free(&mut self, alerter: &mut dyn Alerter) {
        let Some(Jam { controller, .. }) = self.jam.take() else { return };
        self.freed = self.clock.now;
        alerter.disk(controller, Disk::Fills(&mut || false));
    }

    /// Whether the alerter may not have seen what happened lately.
    pub(crate) fn was_jammed(&self) -> bool {
        self.jam.is_some() || (self.freed > 0 && self.clock.now < self.freed + MONITOR)
    }

    /// Whether the disk of a controller cannot be written, or not all of it.
    pub fn is_jammed(&self, controller: usize) -> bool {
        self.jam.is_some_and(|jam| jam.controller == controller)
    }

    /// Whether the alerter's disk does not answer at all.
    pub fn hangs(&self) -> bool {
        self.jam.is_some_and(|jam| jam.hangs && jam.controller == self.clock.active)
    }

    /// The fencing history as the alerter's controller has it: each dates what it hears of with its own clock.
    pub fn history(&self) -> impl ExactSizeIterator<Item = (HostName, Timestamp)> {
        self.history.iter().map(|(node, at)| (node.clone(), at[self.clock.active]))
    }

    /// The controller, or the next one that is not lost.
    pub(crate) fn living(&self, controller: usize) -> usize {
        self.next(controller, |_| true).unwrap_or(0)
    }

    /// The same where the alerter can start: its disk can be written.
    pub(crate) fn fit(&self, controller: usize) -> usize {
        self.next(controller, |at| !self.is_jammed(at)).unwrap_or(controller)
    }

    fn next(&self, controller: usize, is_fit: impl Fn(usize) -> bool) -> Option<usize> {
        let mut all = (0..3).map(|more| (controller + more) % 3);
        all.find(|at| !self.lost.contains(at) && is_fit(*at))
    }

    /// A host dies and Pacemaker fences it; `fence_mark` runs on a controller, where it is configured.
    pub(crate) fn fence(&mut self, host: usize, by: Option<usize>, alerter: &mut dyn Alerter) {
        let Host { cib, changed, .. } = &mut self.hosts[host];
        // A host needs some seconds until the cluster would notice that it is gone again.
        if cib.is_up() && self.clock.now < *changed + SETTLING && *changed > 0 {
            return;
        }
        if cib.member.replace(false) == Some(true) {
            self.outages.push(Outage { host, began: self.clock.right(), ended: None });
        }
        // The DC has seen it leave by then.
        self.touch(host);
        let outage = self.outages.iter().rposition(|outage| outage.host == host).unwrap();
        if let Some(by) = by.map(|by| self.living(by)) {
            let id = self.mark(by, host, alerter);
            self.whose.insert(id, outage);
        }
        let (node, dated) = (self.hosts[host].name.clone(), [0, 1, 2].map(|at| self.clock.of(at)));
        for at in dated {
            self.whose.insert(MarkId::of_node_fenced(&node, at.seconds()), outage);
        }
        self.history.push((node, dated));
        (self.hosts[host].cib.fenced, self.hosts[host].cib.work) = (dated[DC].seconds(), None);
        self.touch(host);
        self.fenced = self.clock.now;
    }

    fn mark(&mut self, by: usize, host: usize, alerter: &mut dyn Alerter) -> MarkId {
        let fenced = self.fenced(by, host);
        let id = fenced.id.into();
        if let Some(forgery) = self.beside.take() {
            self.forged_about.extend((!self.has_key).then_some(id));
            let fake = alerter.forge(self, Fake::Marks(fenced.clone(), forgery));
            self.plant(fake);
        }
        alerter.off(self, by, &fenced);
        id
    }

    fn fenced(&mut self, by: usize, host: usize) -> Fenced {
        let (at, id) = (self.clock.of(by), FencingId::parse(&self.id()).unwrap());
        Fenced { id, host: self.hosts[host].name.clone(), at }
    }

    /// Somebody writes what no alerter wrote; `open` is a mark that is not settled.
    pub(crate) fn forge(
        &mut self,
        forgery: Forgery,
        host: usize,
        open: Option<&Mark>,
        alerter: &mut dyn Alerter,
    ) {
        let at = self.clock.wall();
        let fake = match (forgery, open) {
            (Forgery::Ends, Some(row)) => {
                self.forged_about.insert(row.id);
                Fake::Ends(row.id, at)
            }
            (Forgery::Returns, Some(row)) if !self.hosts[self.index_of[&row.node]].cib.is_up() => {
                Fake::Returns(row.id, at)
            }
            (Forgery::Pauses, _) => Fake::Pauses(self.note_id(), at),
            (Forgery::Releases, Some(row)) => Fake::Releases(self.note_id(), row.id, at),
            (Forgery::OtherName | Forgery::OtherDisks, _) => return self.beside = Some(forgery),
            (Forgery::Lives | Forgery::Future, _) if self.hosts[host].cib.is_up() => {
                let fenced = self.fenced(2, host);
                self.forged.extend((!self.has_key).then_some(MarkId::from(fenced.id)));
                match forgery {
                    // Some name no connection: only clocks are left to judge them by.
                    Forgery::Lives => Fake::Fences(fenced, host.is_multiple_of(2)),
                    _ => Fake::Marks(fenced, forgery),
                }
            }
            _ => return,
        };
        let fake = alerter.forge(self, fake);
        self.plant(fake);
    }

    /// A host is back: its remote resource runs on that controller. That is `unseen` where the cluster has lost the connection at once.
    pub(crate) fn bring_back(&mut self, host: usize, to: usize, unseen: bool) {
        if self.hosts[host].cib.is_up() || self.clock.now < self.hosts[host].changed + SETTLING {
            return;
        }
        let to = self.living(to);
        let (now, dc, second) =
            (self.clock.right(), self.clock.of(DC).seconds(), self.clock.of(to).seconds());
        let cib = &mut self.hosts[host].cib;
        cib.come_back(CONTROLLERS[to], second, dc);
        // The controller that had connected it before has stopped its resource since; clocks that agree need not know that.
        if self.clock.skews != [0; 3] {
            cib.connections.retain(|(there, ..)| *there == CONTROLLERS[to]);
        }
        if unseen {
            cib.forget(CONTROLLERS[to]);
        }
        self.touch(host);
        for outage in self.outages.iter_mut().filter(|outage| outage.host == host && outage.ended.is_none()) {
            outage.ended = Some(now);
        }
    }

    /// A controller's power fails: another one connects the hosts that it had connected.
    pub(crate) fn lose(&mut self, controller: usize) {
        self.lost = [controller].into();
        let next = self.living(controller);
        let now = self.clock.of(next).seconds();
        for at in 0..self.hosts.len() {
            self.hosts[at].cib.move_connection(CONTROLLERS[controller], CONTROLLERS[next], now);
            self.touch(at);
        }
    }

    fn touch(&mut self, host: usize) {
        self.hosts[host].changed = self.clock.now;
        self.cib = None;
    }

    pub(crate) fn skip(&mut self, host: usize, is_skipped: bool) {
        self.hosts[host].cib.is_skipped = is_skipped;
        self.cib = None;
    }

    /// The CIB as a controller reads it.
    pub fn cib(&mut self) -> Arc<str> {
        let hosts = self.hosts.iter().map(|host| (host.name.as_str(), &host.cib));
        let members = [0, 1, 2].map(|id| (!self.lost.contains(&id), None));
        Arc::clone(self.cib.get_or_insert_with(|| cib::document(hosts, members, DC).into()))
    }
}
