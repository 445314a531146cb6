//! What is around the alerter: a clock that is moved by hand, hosts as the cluster sees them, the register, the fencing
//! history, receivers of marks, and what operators decided.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use alerter::moment::Moment;
use fastrand::Rng;
use journal::{Journal, Role};
use marks::fencing::Fencing;
use marks::host::HostName;
use marks::id::{FencingId, MarkId, NoteId};
use marks::mark::{MarkRow, Settlement};
use marks::register::{
    About, Decision, Entries, Entry, KEPT, Key, Register, Returned, Scope, Settled, Unsealed,
};
use marks::sighting::{Sighting, Witness};
use marks::time::{Boot, Timestamp};
use pacemaker::cib::Cib;
use tempfile::TempDir;

use super::story::Story;
use crate::site::{mark_of, stands};

pub(super) const CONTROLLERS: [&str; 3] = ["ctl1", "ctl2", "ctl3"];
/// By whose clock Pacemaker dates `node_fenced` and `in_ccm`.
const DC: usize = 0;

/// When every story begins: what the real clock says has no part in it.
const BEGINNING: Timestamp = Timestamp(4_000_000_000_000);
/// The word of an attribute that asks not to report a host.
const SKIP: &str = "host-failure-skip";

/// The controllers' clocks: the monotonic one, and a wall clock each.
pub(super) struct Clock {
    base: Instant,
    /// Milliseconds since the story began.
    pub(super) now: u64,
    /// By how many milliseconds the wall clocks were set.
    pub(super) set: i64,
    /// By how many milliseconds the wall clock of each controller is ahead.
    skews: [i64; 3],
    /// Where the alerter runs, or ran last.
    pub(super) active: usize,
}

impl Clock {
    pub(super) fn moment(&self) -> Moment {
        Moment { instant: self.base + Duration::from_millis(self.now), wall: self.wall() }
    }

    /// The alerter's.
    pub(super) fn wall(&self) -> Timestamp {
        self.of(self.active)
    }

    /// A controller's.
    fn of(&self, controller: usize) -> Timestamp {
        Timestamp(self.right().0 + self.skews[controller])
    }

    /// The active controller's boot: all have run since before the story.
    pub(super) fn boot(&self) -> Boot {
        let id = CONTROLLERS[self.active].to_owned();
        Boot { id, began: Timestamp(self.wall().0 - self.now.cast_signed()) }
    }

    /// The clock of one controller is set.
    pub(super) fn jump(&mut self, controller: usize, by: i64) {
        self.skews[controller] += by;
    }

    /// One that is right.
    fn right(&self) -> Timestamp {
        Timestamp(BEGINNING.0 + self.now.cast_signed() + self.set)
    }

    /// When the wall clock will say `at`, if nobody sets it.
    pub(super) fn when(&self, at: Timestamp) -> u64 {
        self.now + u64::try_from(at.0 - self.wall().0).unwrap_or(0)
    }

    /// When the wall clock said `at`, as it goes now.
    pub(super) fn when_it_was(&self, at: Timestamp) -> u64 {
        self.now.saturating_add_signed(at.0 - self.wall().0)
    }

    /// When the monotonic clock will say `instant`.
    pub(super) fn when_instant(&self, instant: Instant) -> u64 {
        let since = instant.saturating_duration_since(self.base);
        u64::try_from(since.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }
}

/// What a host is to the cluster, and how the cluster says whether it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Remote,
    /// A cluster node; `in_ccm` is true or false (before 2.1.7).
    Flag,
    /// The same; `in_ccm` says since when, and 0 for not (2.1.7 and later).
    Epoch,
}

/// A compute host, as the cluster sees it.
pub(super) struct Host {
    pub(super) name: HostName,
    pub(super) group: usize,
    kind: Kind,
    /// Since when it is there, by the DC's clock, epoch seconds.
    joined: i64,
    /// Pacemaker has forgotten what it did since it joined.
    is_forgotten: bool,
    pub(super) is_up: bool,
    /// `node_fenced`, epoch seconds; 0 where it is not.
    fenced: i64,
    /// The successful starts of its remote resource that the cluster remembers: controller, call, second.
    connections: Vec<(usize, u32, i64)>,
    pub(super) is_skipped: bool,
    /// Milliseconds since the story began.
    pub(super) changed: u64,
    /// Its line in the status section, made again when it changes.
    status: String,
}

/// A host was really down, and fenced.
#[derive(Clone, Debug)]
pub(super) struct Outage {
    pub(super) host: usize,
    pub(super) began: Timestamp,
    pub(super) ended: Option<Timestamp>,
}

/// How an endpoint takes what it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mood {
    Takes,
    /// The connection is refused.
    Refuses,
    /// No answer in time; what was sent has arrived all the same, or has not.
    TimesOut,
    /// It says that it cannot now.
    Busy,
    /// It takes no mark until somebody changes something.
    Denies,
}

/// An attempt that has reached a receiver, or tried to.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    pub(super) mark: MarkId,
    pub(super) node: HostName,
    pub(super) body: Vec<u8>,
}

/// An endpoint that is notified.
pub(super) struct Receiver {
    pub(super) mood: Mood,
    /// Since when it takes marks, in milliseconds since the story began.
    pub(super) fine_since: u64,
    /// It has refused everybody before.
    pub(super) denied: bool,
    /// Whose messages it does not take.
    pub(super) rejects: BTreeSet<HostName>,
    /// Milliseconds that an exchange takes.
    pub(super) pace: u64,
    /// It takes the message first and says later whether it has the mark.
    pub(super) confirms_later: bool,
    /// By its own record: the marks that it has.
    pub(super) has: BTreeSet<MarkId>,
    /// The marks whose messages it has.
    pub(super) got: BTreeSet<MarkId>,
    /// The first attempt of each mark.
    pub(super) first: BTreeMap<MarkId, Attempt>,
    /// When it was first notified of a host, in milliseconds since the story began.
    pub(super) notified: BTreeMap<HostName, u64>,
    /// Which hosts it has down, each because of the mark whose reason stands there.
    pub(super) down: BTreeMap<HostName, MarkId>,
}

/// What somebody writes who can write the register and is no alerter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forgery {
    /// An open mark has ended, says a controller that does not exist.
    Ends,
    /// The host of an open mark is back; it is not.
    Returns,
    /// The next fencing has a mark already, of another name.
    OtherName,
    /// The same, on other disks.
    OtherDisks,
    /// A host that lives was fenced.
    Lives,
    /// The same, in many years.
    Future,
    /// Everything is paused.
    Pauses,
    /// An open mark is released.
    Releases,
}

impl Forgery {
    /// Where there is a key.
    pub(super) const UNSEALED: [Self; 8] = [
        Self::Ends,
        Self::Returns,
        Self::OtherName,
        Self::OtherDisks,
        Self::Lives,
        Self::Future,
        Self::Pauses,
        Self::Releases,
    ];
    pub(super) const ALL: [Self; 6] =
        [Self::Ends, Self::Returns, Self::OtherName, Self::OtherDisks, Self::Lives, Self::Future];
}

/// What an operator decided that holds marks back.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub(super) id: NoteId,
    pub(super) scope: Scope,
    /// In milliseconds since the story began.
    pub(super) until: Option<u64>,
    pub(super) is_maintenance: bool,
    /// Another controller has read it, and counts its time from then on; or a clock was set.
    pub(super) may_last: bool,
    /// It stands in a part of the register that is missing, or was lost with a journal.
    pub(super) is_missing: bool,
}

impl Order {
    /// Whether it may be over, and nobody can say.
    pub(super) fn fades(&self, now: u64) -> bool {
        self.is_missing || self.may_last && self.until.is_some_and(|until| until <= now + ORDER_SLACK)
    }
}

/// A disk that cannot be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Jam {
    pub(super) controller: usize,
    pub(super) hangs: bool,
    /// When the alerter there is monitored next.
    pub(super) monitor: u64,
}

/// How often Pacemaker monitors the alerter, in milliseconds.
pub(super) const MONITOR: u64 = 10_000;
/// What is written of a mark, and what a full disk says to it.
const TABLES: [&str; 7] = ["fencing", "mark", "folded", "delivery", "hold", "connection", "history"];
const WRITES: [&str; 3] = ["INSERT", "UPDATE", "DELETE"];
const REFUSED: &str = "BEGIN SELECT RAISE(ABORT, 'the disk is full'); END;";

/// Clocks that are set make the end of an order as uncertain as this, in milliseconds.
const ORDER_SLACK: u64 = 5_000;

/// Everything that is not the alerter.
pub(super) struct World {
    directory: TempDir,
    pub(super) clock: Clock,
    pub(super) hosts: Vec<Host>,
    pub(super) group_names: Vec<String>,
    pub(super) index_of: BTreeMap<HostName, usize>,
    pub(super) register: BTreeMap<Key, Entry>,
    /// Who was fenced, and when by each controller's clock.
    pub(super) history: Vec<(HostName, [Timestamp; 3])>,
    /// Controllers whose machines are off.
    pub(super) lost: BTreeSet<usize>,
    pub(super) receivers: BTreeMap<String, Receiver>,
    pub(super) outages: Vec<Outage>,
    /// The outage of each id that an honest mark may have.
    pub(super) whose: BTreeMap<MarkId, usize>,
    /// The ids of marks that somebody forged.
    pub(super) forged: BTreeSet<MarkId>,
    /// The marks whose end somebody forged, or which somebody wrote in another form.
    pub(super) forged_about: BTreeSet<MarkId>,
    /// What stands beside the next fencing.
    beside: Option<Forgery>,
    /// When a host was fenced last, in milliseconds since the story began.
    pub(super) fenced: u64,
    /// What is in force, by what operators did.
    pub(super) orders: Vec<Order>,
    /// What has ended by itself on the controller on which the alerter runs.
    pub(super) past_orders: Vec<Order>,
    /// The last release of each group, by its name.
    pub(super) group_releases: BTreeMap<String, Timestamp>,
    pub(super) released: BTreeSet<MarkId>,
    pub(super) dismissed: BTreeSet<MarkId>,
    /// What of the register is missing, and since when something is.
    missing: BTreeSet<Key>,
    pub(super) lacking: Option<u64>,
    /// What stands there and no key seals.
    planted: BTreeSet<Key>,
    pub(super) jam: Option<Jam>,
    freed: u64,
    /// When a controller was set up anew, and nothing was known any more.
    pub(super) replaced: Option<(Timestamp, u64)>,
    has_key: bool,
    agents: Vec<Journal>,
    cib: Option<Arc<Cib>>,
    ids: u64,
}

impl World {
    pub(super) fn new(story: &Story) -> Self {
        let directory = tempfile::Builder::new().tempdir_in(memory()).unwrap();
        let clock = Clock { base: Instant::now(), now: 0, set: 0, skews: story.skews, active: 0 };
        let connected = (clock.of(0) - Duration::from_secs(3600)).seconds();
        let host = |(rank, (name, group)): (usize, &(String, usize))| Host {
            name: HostName::parse(name).unwrap(),
            group: *group,
            kind: story.kinds.get(rank).copied().unwrap_or(Kind::Remote),
            joined: connected,
            is_forgotten: false,
            is_up: true,
            fenced: 0,
            connections: vec![(0, 7, connected)],
            is_skipped: false,
            changed: 0,
            status: String::new(),
        };
        let mut hosts: Vec<Host> = story.hosts.iter().enumerate().map(host).collect();
        hosts.iter_mut().for_each(Host::write_status);
        let index_of = hosts.iter().enumerate().map(|(at, host)| (host.name.clone(), at)).collect();
        let mut world = Self {
            directory,
            clock,
            hosts,
            group_names: story.groups.clone(),
            index_of,
            register: BTreeMap::new(),
            history: Vec::new(),
            lost: BTreeSet::new(),
            receivers: story.routes.iter().map(|route| (route.name.clone(), route.receiver())).collect(),
            outages: Vec::new(),
            whose: BTreeMap::new(),
            forged: BTreeSet::new(),
            forged_about: BTreeSet::new(),
            beside: None,
            fenced: 0,
            orders: Vec::new(),
            past_orders: Vec::new(),
            group_releases: BTreeMap::new(),
            released: BTreeSet::new(),
            dismissed: BTreeSet::new(),
            missing: BTreeSet::new(),
            lacking: None,
            planted: BTreeSet::new(),
            jam: None,
            freed: 0,
            replaced: None,
            has_key: story.has_key,
            agents: Vec::new(),
            cib: None,
            ids: story.seed.wrapping_mul(1_000_003),
        };
        for controller in CONTROLLERS {
            world.furnish(controller, &story.settings);
        }
        world.agents = (0..3).map(|at| Journal::open(&world.journal(at), Role::Agent).unwrap()).collect();
        world
    }

    fn furnish(&self, controller: &str, settings: &str) {
        let home = self.directory.path().join(controller);
        fs::create_dir_all(&home).unwrap();
        for (directory, mode) in [(self.directory.path().to_owned(), 0o755), (home.clone(), 0o700)] {
            fs::set_permissions(directory, fs::Permissions::from_mode(mode)).unwrap();
        }
        let file = home.join("alerter.toml");
        let text = format!("[store]\npath = \"{}\"\n{settings}", home.join("marks.db").display());
        fs::write(&file, text).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
    }

    pub(super) fn journal(&self, controller: usize) -> PathBuf {
        self.directory.path().join(CONTROLLERS[controller]).join("marks.db")
    }

    pub(super) fn settings(&self, controller: usize) -> PathBuf {
        self.directory.path().join(CONTROLLERS[controller]).join("alerter.toml")
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

    pub(super) fn note_id(&mut self) -> NoteId {
        NoteId::parse(&self.id()).unwrap()
    }

    pub(super) fn entries(&self) -> Entries {
        let mut sound = self.register.clone();
        sound.retain(|key, _| !self.missing.contains(key));
        let sealed =
            sound.keys().filter(|key| self.has_key && !self.planted.contains(key)).cloned().collect();
        let unsealed = self.planted.iter().map(|key| (key.clone(), Unsealed::Unknown)).collect();
        Entries { sound, sealed, unsealed, is_partial: self.lacking.is_some(), ..Entries::default() }
    }

    /// Of the register one entry in so many is missing. What ends a decision is not missed without it.
    pub(super) fn lack(&mut self, one_in: u8, rng: &mut Rng) {
        self.lacking = Some(self.clock.now);
        self.missing = self.register.keys().filter(|_| rng.u8(..one_in) == 0).cloned().collect();
        for key in self.missing.clone() {
            if let Key::Ending(id) = key {
                self.missing.insert(Key::Decision(id));
            }
        }
        for order in &mut self.orders {
            order.is_missing = self.missing.contains(&Key::Decision(order.id));
        }
    }

    pub(super) fn is_missing(&self, key: &Key) -> bool {
        self.missing.contains(key)
    }

    pub(super) fn heal(&mut self) {
        if self.lacking.take().is_none() {
            return;
        }
        self.missing.clear();
        self.orders.iter_mut().for_each(|order| order.is_missing = false);
    }

    /// The register is empty, and so is a controller's journal.
    pub(super) fn replace(&mut self, controller: usize) {
        self.register.clear();
        self.planted.clear();
        self.orders.iter_mut().for_each(|order| order.is_missing = true);
        self.replaced = Some((self.clock.right(), self.clock.now));
        let home = self.journal(controller);
        for end in ["", "-wal", "-shm"] {
            let _is_not_there = fs::remove_file(format!("{}{end}", home.display()));
        }
        self.agents[controller] = Journal::open(&home, Role::Agent).unwrap();
    }

    /// A full disk still takes something here and there.
    pub(super) fn jam(&mut self, controller: usize, hangs: bool, rng: &mut Rng) {
        self.jam = Some(Jam { controller, hangs, monitor: self.clock.now + MONITOR });
        let full = TABLES.iter().filter(|_| !hangs && rng.u8(..3) > 0);
        let refuse =
            |write, table| format!("CREATE TRIGGER {write}_{table} BEFORE {write} ON {table} {REFUSED}");
        let sql = full.flat_map(|table| WRITES.map(|write| refuse(write, table)));
        self.tamper(controller, &sql.collect::<String>());
    }

    pub(super) fn free(&mut self) {
        let Some(Jam { controller, .. }) = self.jam.take() else { return };
        self.freed = self.clock.now;
        let take = |write, table| format!("DROP TRIGGER IF EXISTS {write}_{table};");
        let sql = TABLES.iter().flat_map(|table| WRITES.map(|write| take(write, table)));
        self.tamper(controller, &sql.collect::<String>());
    }

    /// Whether the alerter may not have seen what happened lately.
    pub(super) fn was_jammed(&self) -> bool {
        self.jam.is_some() || (self.freed > 0 && self.clock.now < self.freed + MONITOR)
    }

    pub(super) fn is_jammed(&self, controller: usize) -> bool {
        self.jam.is_some_and(|jam| jam.controller == controller)
    }

    pub(super) fn tamper(&self, controller: usize, sql: &str) {
        rusqlite::Connection::open(self.journal(controller)).unwrap().execute_batch(sql).unwrap();
    }

    /// The fencing history as the alerter's controller has it: each dates what it hears of with its own clock.
    pub(super) fn history(&self) -> Vec<Sighting> {
        let seen = |(node, at): &(HostName, [Timestamp; 3])| Sighting {
            node: node.clone(),
            witness: Witness::History,
            at: at[self.clock.active],
            by_human: false,
        };
        self.history.iter().map(seen).collect()
    }

    /// The controller, or the next one that is not lost.
    pub(super) fn living(&self, controller: usize) -> usize {
        (0..3).map(|more| (controller + more) % 3).find(|at| !self.lost.contains(at)).unwrap_or(0)
    }

    /// The same where the alerter can start: its disk can be written.
    pub(super) fn fit(&self, controller: usize) -> usize {
        let is_fit = |at: &usize| !self.lost.contains(at) && !self.is_jammed(*at);
        (0..3).map(|more| (controller + more) % 3).find(is_fit).unwrap_or(controller)
    }

    /// A host dies and Pacemaker fences it; `fence_mark` runs on a controller, where it is configured.
    pub(super) fn fence(&mut self, host: usize, by: Option<usize>) {
        let was_up = std::mem::replace(&mut self.hosts[host].is_up, false);
        if was_up {
            self.outages.push(Outage { host, began: self.clock.right(), ended: None });
        }
        // The DC has seen it leave by then.
        self.touch(host);
        let outage = self.outages.iter().rposition(|outage| outage.host == host).unwrap();
        if let Some(by) = by {
            let id = self.mark(by, host);
            self.whose.insert(id.into(), outage);
        }
        let (node, dated) = (self.hosts[host].name.clone(), [0, 1, 2].map(|at| self.clock.of(at)));
        for at in dated {
            self.whose.insert(MarkId::of_node_fenced(&node, at.seconds()), outage);
        }
        self.history.push((node, dated));
        (self.hosts[host].fenced, self.hosts[host].is_forgotten) = (dated[DC].seconds(), true);
        self.touch(host);
        self.fenced = self.clock.now;
    }

    fn mark(&mut self, by: usize, host: usize) -> FencingId {
        let fencing = self.fencing(by, host);
        let id = fencing.id;
        if let Some(forgery) = self.beside.take() {
            let mut entry = mark_of(&fencing, CONTROLLERS[1]);
            match forgery {
                Forgery::OtherDisks => entry.mark.on_shared_storage = false,
                _ => entry.mark.fqdn = HostName::parse("elsewhere.example.net").unwrap(),
            }
            self.forged_about.extend((!self.has_key).then_some(MarkId::from(id)));
            self.plant(Entry::Mark(entry));
        }
        // The register alone has what the disk does not take.
        if self.is_jammed(by) {
            self.publish(Entry::Fencing(fencing));
            return id;
        }
        self.agents[by].append_fencing(&fencing).unwrap();
        self.monitor(by);
        id
    }

    fn fencing(&mut self, by: usize, host: usize) -> Fencing {
        let (now, id) = (self.clock.of(by), FencingId::parse(&self.id()).unwrap());
        let (node, cib) = (self.hosts[host].name.clone(), self.cib());
        Fencing {
            id,
            committed_at: now + Duration::from_millis(30),
            seen_by: CONTROLLERS[by].to_owned(),
            incarnation: cib.incarnation_of(&node),
            already_down: cib.fenced_before(&node),
            ..samples::fencing(node.as_str(), now)
        }
    }

    /// What `fence_mark` does at each `monitor` and at the end of each `off`: what its journal has and the register lacks is
    /// published.
    pub(super) fn monitor(&mut self, controller: usize) {
        if self.is_jammed(controller) {
            return;
        }
        let since = self.clock.of(controller) - Duration::from_secs(86_400);
        let waiting = self.agents[controller].unpublished(since).unwrap().sound;
        let keys: Vec<String> = waiting.iter().map(|fencing| Key::Fencing(fencing.id).to_string()).collect();
        waiting.into_iter().map(Entry::Fencing).for_each(|entry| self.publish(entry));
        self.agents[controller].note_published(Register::Attrd, &keys).unwrap();
        let since = self.clock.of(controller) - KEPT;
        let lost = self.agents[controller].unsettled(Register::Attrd, since).unwrap().sound;
        let register = self.entries().believed().sound;
        for fencing in lost {
            if !stands(&fencing, &register) {
                self.publish(Entry::Again(fencing));
            }
        }
    }

    /// Somebody writes what no alerter wrote; `open` is a mark that is not settled.
    pub(super) fn forge(&mut self, forgery: Forgery, host: usize, open: Option<&MarkRow>) {
        let (at, by) = (self.clock.wall(), CONTROLLERS[2].to_owned());
        match (forgery, open) {
            (Forgery::Ends, Some(row)) => {
                let how = Settlement::Acknowledged;
                self.forged_about.insert(row.id);
                self.plant(Entry::Settled(Settled { mark: row.id, how, at, by: "ctl9".to_owned() }));
            }
            (Forgery::Returns, Some(row)) if !self.hosts[self.index_of[&row.node]].is_up => {
                self.plant(Entry::Returned(Returned { mark: row.id, at, by }));
            }
            (Forgery::Pauses, _) => self.plant_decision(About::Pause { scope: Scope::All, until: None }),
            (Forgery::Releases, Some(row)) => self.plant_decision(About::Release(row.id)),
            (Forgery::OtherName | Forgery::OtherDisks, _) => self.beside = Some(forgery),
            (Forgery::Lives | Forgery::Future, _) if self.hosts[host].is_up => {
                let fencing = self.fencing(2, host);
                self.forged.extend((!self.has_key).then_some(MarkId::from(fencing.id)));
                if forgery == Forgery::Lives {
                    // Some name no connection: only clocks are left to judge them by.
                    let incarnation = fencing.incarnation.clone().filter(|_| host.is_multiple_of(2));
                    return self.plant(Entry::Fencing(Fencing { incarnation, ..fencing }));
                }
                let mut entry = mark_of(&fencing, CONTROLLERS[1]);
                entry.mark.failure_time = at + Duration::from_secs(10 * 365 * 86_400);
                self.plant(Entry::Mark(entry));
            }
            _ => {}
        }
    }

    fn plant_decision(&mut self, about: About) {
        let (id, at) = (self.note_id(), self.clock.wall());
        self.plant(Entry::Decision(Decision { id, about, at, actor: "eve".into(), reason: "none".into() }));
    }

    /// Somebody writes who has no key.
    fn plant(&mut self, entry: Entry) {
        let key = entry.key();
        if self.has_key && !self.register.contains_key(&key) {
            self.planted.insert(key.clone());
        }
        self.register.entry(key).or_insert(entry);
    }

    /// An entry is written once, by those who have a key on pages of their own.
    pub(super) fn publish(&mut self, entry: Entry) {
        let key = entry.key();
        self.missing.remove(&key);
        if self.planted.remove(&key) {
            self.register.insert(key, entry);
        } else {
            self.register.entry(key).or_insert(entry);
        }
    }

    /// A host is back: its remote resource runs on that controller. That is `unseen` where the cluster has lost the connection at once.
    pub(super) fn bring_back(&mut self, host: usize, to: usize, unseen: bool) {
        let (now, dc) = (self.clock.right(), self.clock.of(DC).seconds());
        self.hosts[host].connect(to, self.clock.of(to).seconds());
        (self.hosts[host].joined, self.hosts[host].is_forgotten) = (dc, false);
        // The controller that had connected it before has stopped its resource since; clocks that agree need not know that.
        if self.clock.skews != [0; 3] {
            self.hosts[host].connections.retain(|(there, ..)| *there == to);
        }
        if unseen {
            self.hosts[host].connections.retain(|(there, ..)| *there != to);
        }
        self.touch(host);
        for outage in self.outages.iter_mut().filter(|outage| outage.host == host && outage.ended.is_none()) {
            outage.ended = Some(now);
        }
    }

    /// A controller's power fails: another one connects the hosts that it had connected.
    pub(super) fn lose(&mut self, controller: usize) {
        self.lost = [controller].into();
        let next = self.living(controller);
        let now = self.clock.of(next).seconds();
        for at in 0..self.hosts.len() {
            let host = &mut self.hosts[at];
            let newest = host.connections.iter().max_by_key(|(_, call, _)| *call).map(|(there, ..)| *there);
            host.connections.retain(|(there, ..)| *there != controller);
            if host.is_up && newest == Some(controller) {
                host.connect(next, now);
            }
            self.touch(at);
        }
    }

    fn touch(&mut self, host: usize) {
        self.hosts[host].changed = self.clock.now;
        self.hosts[host].write_status();
        self.cib = None;
    }

    pub(super) fn skip(&mut self, host: usize, is_skipped: bool) {
        self.hosts[host].is_skipped = is_skipped;
        self.cib = None;
    }

    /// The CIB as a controller reads it.
    pub(super) fn cib(&mut self) -> Arc<Cib> {
        if self.cib.is_none() {
            self.cib = Some(Arc::new(Cib::parse(&self.cib_xml()).unwrap()));
        }
        self.cib.clone().unwrap()
    }

    fn cib_xml(&self) -> String {
        let (mut nodes, mut resources, mut states) = (String::new(), String::new(), String::new());
        for (id, name) in CONTROLLERS.iter().enumerate() {
            let is_member = !self.lost.contains(&id);
            write!(nodes, r#"<node id="{id}" uname="{name}"/>"#).unwrap();
            write!(
                states,
                r#"<node_state id="{id}" uname="{name}" in_ccm="{is_member}"><lrm id="{id}"><lrm_resources>"#
            )
            .unwrap();
            self.hosts.iter().for_each(|host| host.write_connections(id, &mut states));
            states.push_str("</lrm_resources></lrm></node_state>");
        }
        for host in &self.hosts {
            let name = &host.name;
            let attribute = if host.is_skipped { skip_attribute() } else { String::new() };
            if host.kind == Kind::Remote {
                write!(nodes, r#"<node id="{name}" uname="{name}" type="remote">{attribute}</node>"#)
                    .unwrap();
                write!(
                    resources,
                    r#"<primitive id="{name}" class="ocf" provider="pacemaker" type="remote"/>"#
                )
                .unwrap();
            } else {
                write!(nodes, r#"<node id="{name}" uname="{name}">{attribute}</node>"#).unwrap();
            }
            states.push_str(&host.status);
        }
        format!(
            r#"<cib dc-uuid="0"><configuration><crm_config/><nodes>{nodes}</nodes><resources>{resources}</resources><constraints/></configuration><status>{states}</status></cib>"#
        )
    }
}

fn skip_attribute() -> String {
    format!(
        r#"<instance_attributes id="a"><nvpair id="n" name="{SKIP}" value="true"/></instance_attributes>"#
    )
}

impl Host {
    /// Each controller remembers the newest start.
    fn connect(&mut self, controller: usize, second: i64) {
        let call = self.connections.iter().map(|(_, call, _)| *call).max().unwrap_or(7) + 1;
        self.connections.retain(|(there, ..)| *there != controller);
        self.connections.push((controller, call, second));
        (self.is_up, self.fenced) = (true, 0);
    }

    fn write_connections(&self, controller: usize, into: &mut String) {
        let name = &self.name;
        if self.kind != Kind::Remote {
            return;
        }
        for (_, call, second) in self.connections.iter().filter(|(there, ..)| *there == controller) {
            // The controller that held the connection to a host that is lost has seen its monitor fail.
            let seen = if self.is_up {
                String::new()
            } else {
                format!(
                    r#"<lrm_rsc_op id="{name}" operation="monitor" rc-code="1" call-id="{call}" last-rc-change="{}"/>"#,
                    second + 1
                )
            };
            write!(into, r#"<lrm_resource id="{name}" class="ocf" provider="pacemaker" type="remote"><lrm_rsc_op id="{name}" operation="start" rc-code="0" call-id="{call}" last-rc-change="{second}"/>{seen}</lrm_resource>"#).unwrap();
        }
    }

    fn write_status(&mut self) {
        let (name, is_up, fenced, joined) = (&self.name, self.is_up, self.fenced, self.joined);
        let word = if is_up { "member" } else { "down" };
        let own = match self.kind {
            Kind::Remote => format!(r#"remote_node="true" in_ccm="{is_up}" node_fenced="{fenced}""#),
            Kind::Flag => {
                let crmd = if is_up { "online" } else { "offline" };
                format!(r#"in_ccm="{is_up}" crmd="{crmd}" join="{word}" expected="{word}""#)
            }
            Kind::Epoch => {
                let since = if is_up { joined } else { 0 };
                format!(r#"in_ccm="{since}" crmd="{since}" join="{word}" expected="{word}""#)
            }
        };
        let work = if self.kind == Kind::Remote || self.is_forgotten { String::new() } else { probe(joined) };
        self.status = format!(r#"<node_state id="{name}" uname="{name}" {own}>{work}</node_state>"#);
    }
}

/// What a cluster node does first of all when it has joined.
fn probe(second: i64) -> String {
    format!(
        r#"<lrm><lrm_resources><lrm_resource id="power" class="stonith" type="fence_ipmilan"><lrm_rsc_op id="power_last_0" operation="monitor" rc-code="7" call-id="5" last-rc-change="{second}"/></lrm_resource></lrm_resources></lrm>"#
    )
}

/// A number that seems random (splitmix64).
pub(super) fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Journals sync every mark: in memory that costs nothing.
fn memory() -> PathBuf {
    let shm = PathBuf::from("/dev/shm");
    let can_be_written = tempfile::Builder::new().tempfile_in(&shm).is_ok();
    if can_be_written { shm } else { std::env::temp_dir() }
}
