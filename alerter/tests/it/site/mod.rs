//! A cluster without Pacemaker: controllers with real journals and the real intake, around a register, a CIB, a fencing
//! history and evidence files that a test writes. Its clock is moved by hand. Beside it, the built daemon in a process of its
//! own. What is inside of the alerter is named here and in the simulator alone: a test asks what is seen from outside.

mod audit;
mod daemon;
mod plain;
mod program;
mod served;
mod told;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fmt, fs};

use alerter::intake::files;
use alerter::moment;
use journal::{Journal, Role};
use marks::fencing::{Fencing, Incarnation};
use marks::host::HostName;
use marks::id::{FencingId, MarkId, OperationId};
use marks::register::{Entries, Entry, KEPT, Key, Register, Unsealed};
use marks::sighting::{Sighting, Witness};
use marks::time::{Boot, Timestamp};
use nix::unistd::Uid;
use pacemaker::cib::Cib;
use pacemaker::evidence::{
    Action, Directory, EventName, Evidence, EvidenceError, Join, Label, Moment, Outcome,
};
use serde_json::Value;
use simulator::cib;
use tempfile::TempDir;

use crate::check_config::alerter;

pub(crate) use alerter::control::remote::{DOCUMENT, paths};
pub(crate) use alerter::daemon::checks::beat;
pub(crate) use alerter::policy::Hold;
pub(crate) use alerter::state::counters::OUTCOMES;
pub(crate) use audit::Outage;
pub(crate) use daemon::{Alerter, PATIENCE, again, begin, lost, taken, unreached};
pub(crate) use journal::Verdict;
pub(crate) use marks::mark::MarkRow as Mark;
pub(crate) use plain::Plain;
pub(crate) use program::{LONG, NOBODY, Program, Socket, deliveries};
pub(crate) use served::Served;
pub(crate) use simulator::cib::{CONTROLLERS, Host, Kind};
pub(crate) use told::{Cut, Damage};

/// Two routes, so that one can be down while the other takes what is sent.
pub(crate) const ROUTES: [&str; 2] = ["nova", "backup"];

/// By how many seconds the controllers' clocks are ahead: not at all, by more than they may differ, and by an hour.
pub(crate) const CLOCKS: [[i64; 3]; 4] = [[0; 3], [0, 150, -150], [0, -150, 150], [0, -3600, 3600]];

/// Each of these with each of the clocks.
pub(crate) fn with_clocks<T: Copy, const N: usize>(all: [T; N]) -> impl Iterator<Item = (T, [i64; 3])> {
    all.into_iter().flat_map(|one| CLOCKS.map(|clocks| (one, clocks)))
}

/// What was sent to a route.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Notified {
    pub(crate) by: &'static str,
    pub(crate) route: String,
    pub(crate) id: String,
    pub(crate) body: Vec<u8>,
    /// The host's node name.
    pub(crate) node: String,
    /// Epoch seconds.
    pub(crate) failure_time: i64,
    pub(crate) fqdn: String,
    pub(crate) on_shared_storage: bool,
    pub(crate) at: Timestamp,
}

impl fmt::Debug for Notified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { by, route, id, node, failure_time, .. } = self;
        write!(f, "{node} at {failure_time} by {by} to {route} as {id}")
    }
}

/// The controllers' directories.
pub(crate) struct Homes(TempDir);

impl Homes {
    /// Each with this configuration, and a journal that is not there yet.
    pub(crate) fn new(settings: &str) -> Self {
        let homes = Self(tempfile::Builder::new().tempdir_in(memory()).unwrap());
        for controller in CONTROLLERS {
            let home = homes.home(controller);
            fs::create_dir_all(&home).unwrap();
            for (directory, mode) in [(homes.0.path(), 0o755), (&home, 0o700)] {
                fs::set_permissions(directory, fs::Permissions::from_mode(mode)).unwrap();
            }
            let file = homes.settings(controller);
            let journal = homes.journal(controller);
            fs::write(&file, format!("[store]\npath = \"{}\"\n{settings}", journal.display())).unwrap();
            fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
        }
        homes
    }

    fn home(&self, controller: &str) -> PathBuf {
        self.0.path().join(controller)
    }

    pub(crate) fn journal(&self, controller: &str) -> PathBuf {
        self.home(controller).join("marks.db")
    }

    fn settings(&self, controller: &str) -> PathBuf {
        self.home(controller).join("alerter.toml")
    }

    /// What a command of that controller says in JSON.
    pub(crate) fn ask(&self, controller: &str, words: &[&str]) -> Value {
        let answer = alerter(&self.settings(controller), &[words, &["--json"]].concat());
        serde_json::from_slice(&answer.stdout).unwrap_or_else(|_| panic!("{words:?}: {answer:?}"))
    }

    /// A journal as a command of that controller opens it.
    pub(crate) fn open(&self, controller: &str) -> Journal {
        Journal::open(&self.journal(controller), Role::Agent).unwrap()
    }

    /// The same on a disk that is new.
    pub(crate) fn renewed(&self, controller: &str) -> Journal {
        for end in ["", "-wal", "-shm"] {
            let _is_not_there = fs::remove_file(format!("{}{end}", self.journal(controller).display()));
        }
        self.open(controller)
    }

    /// Changes a controller's journal by other means than ours, as a fault would.
    pub(crate) fn tamper(&self, controller: &str, sql: &str) {
        rusqlite::Connection::open(self.journal(controller)).unwrap().execute_batch(sql).unwrap();
    }
}

/// The cluster and what happened in it. Parts of it are public: a test breaks them as it likes.
pub(crate) struct Site {
    pub(crate) homes: Homes,
    /// The right time.
    pub(crate) now: Timestamp,
    /// When the site began, by the right time and by the monotonic clock.
    began: (Timestamp, Instant),
    /// By how many milliseconds controllers' clocks are ahead of the right time; those that are not named are right.
    pub(crate) skews: BTreeMap<&'static str, i64>,
    /// Controllers that were booted since the site began.
    pub(crate) booted: BTreeMap<&'static str, Timestamp>,
    /// By whose clock Pacemaker dates its fencing history and `node_fenced`.
    pub(crate) dc: &'static str,
    /// Each controller was there and dates its fencing history with its own clock; else it has the DC's copy.
    pub(crate) dates_history: bool,
    /// What the alerters and agents see of the register.
    pub(crate) register: BTreeMap<Key, Entry>,
    /// Every controller has the key, and this is what root has written there; without it no entry is sealed.
    pub(crate) sealed: Option<BTreeSet<Key>>,
    /// A page is lacking here.
    pub(crate) is_partial: bool,
    /// Nothing can be written into the register.
    pub(crate) register_is_mute: bool,
    /// The CIB cannot be read.
    pub(crate) cib_is_mute: bool,
    pub(crate) quorum: bool,
    pub(crate) hosts: BTreeMap<&'static str, Host>,
    /// The document that was read last, and what it said.
    last_cib: RefCell<(String, Arc<Cib>)>,
    /// Pacemaker's fencing history.
    pub(crate) history: Vec<Sighting>,
    /// Controllers whose machines are off: no agent and no alert runs there.
    pub(crate) lost: BTreeSet<&'static str>,
    /// When a controller did its first work since it joined, by its own clock; Pacemaker forgets that with its fencing.
    pub(crate) own_work: BTreeMap<&'static str, i64>,
    /// Routes that refuse every connection.
    pub(crate) down: BTreeSet<&'static str>,
    pub(crate) notified: Vec<Notified>,
    /// What routes did behind an acknowledgement: by whom, on which of their steps, with what.
    pub(crate) further: Vec<(&'static str, String, String)>,
    /// What was really fenced.
    pub(crate) outages: Vec<Outage>,
}

impl Site {
    /// Three controllers, and these hosts, connected to the first controller for an hour.
    pub(crate) fn new(hosts: &[&'static str]) -> Self {
        Self::at(Timestamp::from_seconds(Timestamp::now().seconds()), hosts)
    }

    /// The same at another time.
    pub(crate) fn at(now: Timestamp, hosts: &[&'static str]) -> Self {
        let connected = (now - Duration::from_secs(3600)).seconds();
        let routes = ROUTES.map(|route| format!("[http.{route}]\nurl = \"http://127.0.0.1:9/{route}\"\n"));
        let hosts_of = "[hosts]\ndomain = \"example.org\"\non-shared-storage = true\n";
        let site = Self {
            homes: Homes::new(&format!("{hosts_of}{}", routes.concat())),
            now,
            began: (now, Instant::now()),
            skews: BTreeMap::new(),
            booted: BTreeMap::new(),
            dc: "ctl1",
            dates_history: false,
            register: BTreeMap::new(),
            sealed: None,
            is_partial: false,
            register_is_mute: false,
            cib_is_mute: false,
            quorum: true,
            hosts: hosts.iter().map(|host| (*host, Host::connected("ctl1", connected))).collect(),
            last_cib: RefCell::default(),
            history: Vec::new(),
            lost: BTreeSet::new(),
            own_work: BTreeMap::new(),
            down: BTreeSet::new(),
            notified: Vec::new(),
            further: Vec::new(),
            outages: Vec::new(),
        };
        for controller in CONTROLLERS {
            files::prepare(&site.homes.home(controller).join("evidence")).unwrap();
        }
        site
    }

    /// Every controller's configuration says `names` in `[hosts.names]`, an inline table, and nothing else there.
    pub(crate) fn name_hosts(&self, names: &str) {
        let named = |line: &str| match line {
            "[hosts]" => format!("[hosts]\nnames = {names}\n"),
            line => format!("{line}\n"),
        };
        self.rewrite(|text| text.lines().filter(|line| !line.starts_with("names = ")).map(named).collect());
    }

    /// Every controller's configuration says `list`, an array, in `[hosts] match`.
    pub(crate) fn match_hosts(&self, list: &str) {
        self.replace("[hosts]\n", &format!("[hosts]\nmatch = {list}\n"));
    }

    /// No controller's configuration requires the last of the routes any more.
    pub(crate) fn leave_the_backup_free(&self) {
        self.configure("required = false\n");
    }

    /// Adds this to every controller's configuration, behind the last of the routes.
    pub(crate) fn configure(&self, more: &str) {
        self.rewrite(|text| text.to_owned() + more);
    }

    fn rewrite(&self, anew: impl Fn(&str) -> String) {
        for file in CONTROLLERS.map(|controller| self.homes.settings(controller)) {
            let text = fs::read_to_string(&file).unwrap();
            fs::write(file, anew(&text)).unwrap();
        }
    }

    /// A controller's clock.
    pub(crate) fn clock(&self, controller: &str) -> Timestamp {
        Timestamp(self.now.0 + self.skews.get(controller).copied().unwrap_or_default())
    }

    /// Both clocks of a controller.
    pub(crate) fn moment(&self, controller: &str) -> moment::Moment {
        moment::Moment { instant: self.began.1 + self.now.since(self.began.0), wall: self.clock(controller) }
    }

    /// A controller's boot: all have run since before the site began, unless they were booted again.
    pub(crate) fn boot(&self, controller: &str) -> Boot {
        let began = self.booted.get(controller).copied().unwrap_or(self.began.0);
        Boot {
            id: format!("{controller} {}", began.0),
            began: self.clock(controller) - self.now.since(began),
        }
    }

    /// The fencing history as a controller has it.
    fn history_of(&self, controller: &str) -> Vec<Sighting> {
        let differs = match self.dates_history {
            true => (self.clock(controller).0 - self.clock(self.dc).0).div_euclid(1000),
            false => 0,
        };
        let dated = |seen: &Sighting| Timestamp::from_seconds(seen.at.seconds() + differs);
        self.history.iter().map(|seen| Sighting { at: dated(seen), ..seen.clone() }).collect()
    }

    /// By how many seconds two clocks differ at most.
    fn skew(&self) -> i64 {
        let all = || CONTROLLERS.iter().map(|name| self.clock(name).0);
        (all().max().unwrap_or_default() - all().min().unwrap_or_default()).div_euclid(1000) + 1
    }

    /// Makes a host a cluster node, which the configuration has to name.
    pub(crate) fn make_cluster_node(&mut self, host: &'static str, kind: Kind) {
        self.hosts.get_mut(host).unwrap().kind = kind;
        self.replace("[hosts]", &format!("[hosts]\nmatch = [\"{host}\"]"));
    }

    /// There is no register, and no cluster is asked.
    pub(crate) fn live_without_register(&self) {
        self.replace("[store]", "[store]\nregister = \"none\"");
    }

    /// Changes this in every controller's configuration.
    pub(crate) fn replace(&self, from: &str, to: &str) {
        self.rewrite(|text| {
            assert!(text.contains(from), "{text}");
            text.replace(from, to)
        });
    }

    /// Adds an id that a mark of the host's current outage may have.
    fn may_be_called(&mut self, host: &str, id: MarkId) {
        let open = self.outages.iter_mut().rev().find(|outage| outage.host == host);
        if let Some(outage) = open.filter(|outage| outage.ended.is_none()) {
            outage.ids.insert(id);
        }
    }

    pub(crate) fn advance(&mut self, seconds: f64) {
        self.now = self.now + Duration::from_secs_f64(seconds);
    }

    fn open(&self, controller: &str) -> Journal {
        self.homes.open(controller)
    }

    /// How many marks all controllers know together.
    pub(crate) fn known_marks(&self) -> usize {
        CONTROLLERS.iter().map(|name| self.open(name).recent_marks(100).unwrap().sound.len()).sum()
    }

    /// The CIB as a controller reads it; most polls find it as it was.
    pub(crate) fn cib(&self) -> Arc<Cib> {
        let members = CONTROLLERS.map(|name| (!self.lost.contains(name), self.own_work.get(name).copied()));
        let dc = CONTROLLERS.iter().position(|name| *name == self.dc).unwrap();
        let xml = cib::document(self.hosts.iter().map(|(name, host)| (*name, host)), members, dc);
        let mut last = self.last_cib.borrow_mut();
        if xml != last.0 {
            *last = (xml, Arc::default());
            last.1 = Arc::new(Cib::parse(&last.0).unwrap());
        }
        Arc::clone(&last.1)
    }

    pub(crate) fn entries(&self) -> Entries {
        let mut entries =
            Entries { sound: self.register.clone(), is_partial: self.is_partial, ..Entries::default() };
        let Some(written) = &self.sealed else { return entries };
        for (key, entry) in &self.register {
            let is_known = entry.by().is_some_and(|by| CONTROLLERS.contains(&by));
            let why = if is_known { Unsealed::Forged } else { Unsealed::Unknown };
            match written.contains(key) {
                true => drop(entries.sealed.insert(key.clone())),
                false => drop(entries.unsealed.insert(key.clone(), why)),
            }
        }
        entries
    }

    /// Every controller has the same key from here on.
    #[must_use]
    pub(crate) fn with_key(mut self) -> Self {
        self.sealed = Some(BTreeSet::new());
        self
    }

    /// Every controller has a clock of its own, by which it dates Pacemaker's fencing history too, and the key.
    #[must_use]
    pub(crate) fn with_clocks(mut self, ahead: [i64; 3]) -> Self {
        self.skews = CONTROLLERS.into_iter().zip(ahead.map(|seconds| seconds * 1000)).collect();
        self.dates_history = true;
        self.with_key()
    }

    /// All that ended a mark or a delivery was another controller.
    pub(crate) fn ended_by(&mut self, by: &str) {
        for entry in self.register.values_mut() {
            match entry {
                Entry::Settled(end) => end.by = by.into(),
                Entry::Acknowledged(end) => end.by = by.into(),
                _ => {}
            }
        }
    }

    /// Nothing of an outage stands in the register any more, as long after its end.
    pub(crate) fn register_forgets_outages(&mut self) {
        self.register.retain(|key, _| matches!(key, Key::Watermark(_)));
    }

    /// Root writes an entry: whatever anybody else wrote there is not heard.
    pub(crate) fn seal(&mut self, entry: Entry) {
        let key = entry.key();
        if self.sealed.as_mut().is_some_and(|sealed| sealed.insert(key.clone())) {
            self.register.insert(key, entry);
        } else {
            self.publish(entry);
        }
    }

    /// `fence_mark` on a controller, run by the fencer: journal, then register.
    pub(crate) fn off(&mut self, controller: &'static str, host: &'static str) -> FencingId {
        let fencing = self.fencing(controller, host);
        self.mark(controller, &fencing);
        fencing.id
    }

    /// What `fence_mark` would write now.
    pub(crate) fn fencing(&self, controller: &str, host: &str) -> Fencing {
        Fencing {
            committed_at: self.clock(controller) + Duration::from_millis(30),
            seen_by: controller.to_owned(),
            incarnation: self.incarnation(host),
            already_down: self.cib().fenced_before(&HostName::parse(host).unwrap()),
            ..samples::fencing(host, self.clock(controller))
        }
    }

    /// The newest connection of a host, as the CIB remembers it.
    pub(crate) fn incarnation(&self, host: &str) -> Option<Incarnation> {
        self.cib().incarnation_of(&HostName::parse(host).unwrap())
    }

    pub(crate) fn mark(&mut self, controller: &'static str, fencing: &Fencing) {
        assert!(!self.lost.contains(controller), "nothing runs on a lost controller");
        self.may_be_called(fencing.node.as_str(), fencing.id.into());
        self.open(controller).append_fencing(fencing).unwrap();
        self.monitor(controller);
    }

    /// `fence_mark` where there is no register: it knows nothing of the cluster either.
    pub(crate) fn record(&mut self, controller: &'static str, host: &'static str) {
        let fencing = Fencing { incarnation: None, already_down: None, ..self.fencing(controller, host) };
        self.may_be_called(host, fencing.id.into());
        self.open(controller).append_fencing(&fencing).unwrap();
    }

    /// What `fence_mark` does at each `monitor` and at the end of each `off`: what its journal has and the register lacks is
    /// published, or published again.
    pub(crate) fn monitor(&mut self, controller: &'static str) {
        if self.register_is_mute || !self.quorum || self.lost.contains(controller) {
            return;
        }
        let (mut journal, now) = (self.open(controller), self.clock(controller));
        new_fencings(&mut journal, now).into_iter().for_each(|entry| self.seal(entry));
        lost_fencings(&mut journal, now, &self.register).into_iter().for_each(|entry| self.seal(entry));
    }

    /// An entry is written once.
    pub(crate) fn publish(&mut self, entry: Entry) {
        self.register.entry(entry.key()).or_insert(entry);
    }

    /// A host dies: an outage begins. The cluster takes a moment to see it.
    pub(crate) fn die(&mut self, host: &'static str) {
        self.hosts.get_mut(host).unwrap().member = Some(false);
        self.outages.push(Outage { host, began: self.now, ended: None, ids: BTreeSet::new() });
    }

    /// Pacemaker ends its operation: alerts on all controllers, the history, and `node_fenced`.
    pub(crate) fn seen_fenced(&mut self, host: &'static str) -> OperationId {
        let operation = self.alert(host, Action::Off, 0, "ctl1");
        let (node, at) = (HostName::parse(host).unwrap(), self.clock(self.dc).seconds());
        self.may_be_called(host, MarkId::of_operation(&node, operation));
        self.may_be_called(host, MarkId::of_node_fenced(&node, at));
        self.remember(host, false);
        let known = self.hosts.get_mut(host).unwrap();
        (known.fenced, known.work) = (at, None);
        operation
    }

    /// `stonith_admin --confirm`: Pacemaker takes the operator's word for a fencing.
    pub(crate) fn confirm(&mut self, host: &'static str) {
        self.alert(host, Action::Off, 0, "a human");
        self.remember(host, true);
        self.hosts.get_mut(host).unwrap().fenced = self.clock(self.dc).seconds();
    }

    /// The fencing history gains an operation.
    pub(crate) fn remember(&mut self, host: &str, by_human: bool) {
        let node = HostName::parse(host).unwrap();
        let at = Timestamp::from_seconds(self.clock(self.dc).seconds());
        self.history.push(Sighting { node, witness: Witness::History, at, by_human });
    }

    /// `alert_mark` runs on every controller that is there.
    pub(crate) fn alert(&self, host: &str, action: Action, rc: i32, executor: &str) -> OperationId {
        let operation = OperationId::parse(&FencingId::generate().to_string()).unwrap();
        for controller in CONTROLLERS.into_iter().filter(|controller| !self.lost.contains(controller)) {
            self.alert_on(controller, (host, action, rc, executor), operation);
        }
        operation
    }

    /// `alert_mark` runs on one controller.
    pub(crate) fn alert_on(
        &self,
        controller: &str,
        (host, action, rc, executor): (&str, Action, i32, &str),
        operation: OperationId,
    ) {
        let evidence = Evidence {
            target: HostName::parse(host).unwrap(),
            action,
            outcome: Outcome::from_rc(rc),
            operation,
            at: Moment::from_micros(u64::try_from(self.clock(controller).0).unwrap() * 1000).unwrap(),
            executor: Label::lossy(executor),
            client: Label::lossy("pacemaker-controld"),
            origin: Label::lossy("ctl1"),
        };
        self.keep_evidence(controller, |directory| directory.write(&evidence));
    }

    /// `alert_mark` runs on every controller that is there: a controller has joined.
    pub(crate) fn alert_of_join(&self, node: &str) {
        for controller in CONTROLLERS.into_iter().filter(|controller| !self.lost.contains(controller)) {
            let at = Moment::from_micros(u64::try_from(self.clock(controller).0).unwrap() * 1000).unwrap();
            let join = Join { node: HostName::parse(node).unwrap(), at };
            self.keep_evidence(controller, |directory| directory.write_join(&join));
        }
    }

    /// As the user whose directory it is.
    fn keep_evidence(
        &self,
        controller: &str,
        write: impl Fn(&Directory) -> Result<EventName, EvidenceError>,
    ) {
        let directory = self.homes.home(controller).join("evidence");
        let owner = fs::metadata(&directory).unwrap().uid();
        let name = write(&Directory::open(&directory, Uid::from_raw(owner)).unwrap()).unwrap();
        chown(directory.join(name.as_str()), Some(owner), None).unwrap();
    }

    /// How many files of evidence wait on a controller.
    pub(crate) fn evidence_on(&self, controller: &str) -> usize {
        fs::read_dir(self.homes.home(controller).join("evidence")).unwrap().count()
    }

    /// A host is back: its remote resource runs on that controller.
    pub(crate) fn back(&mut self, host: &'static str, controller: &'static str) {
        let (now, second) = (self.now, self.clock(controller).seconds());
        let joined = self.clock(self.dc).seconds();
        let known = self.hosts.get_mut(host).unwrap();
        known.come_back(controller, second, joined);
        if known.kind != Kind::Remote {
            self.alert_of_join(host);
        }
        for outage in self.outages.iter_mut().filter(|o| o.host == host && o.ended.is_none()) {
            outage.ended = Some(now);
        }
    }

    /// An outage as it should be: dead, marked and fenced within two seconds. Gives the fencing.
    pub(crate) fn outage(&mut self, host: &'static str, controller: &'static str) -> FencingId {
        self.die(host);
        self.advance(1.0);
        let fencing = self.off(controller, host);
        self.advance(1.0);
        self.seen_fenced(host);
        fencing
    }

    /// The host dies; the agent marks it, or only Pacemaker reports it. Gives the fencing.
    pub(crate) fn fail(&mut self, host: &'static str, is_marked: bool) -> Option<FencingId> {
        if is_marked {
            return Some(self.outage(host, "ctl2"));
        }
        self.die(host);
        self.advance(1.0);
        self.seen_fenced(host);
        None
    }

    /// What the audit says, in one text; empty where every promise was kept.
    pub(crate) fn audit(&self) -> Vec<String> {
        audit::complaints(&self.outages, &self.notified, self.skew())
    }

    /// What the promise wants: every outage is sent, or held by the alerter that is active now with a reason
    /// that everybody sees, where `may_be_held`; what is sent is true; and nothing waits for ever where nobody sees it.
    pub(crate) fn promise(&self, alerter: &Alerter, may_be_held: bool) -> Vec<String> {
        let held = self.outages.iter().filter(|outage| outage.ids.iter().any(|id| alerter.is_held(*id)));
        let excused: BTreeSet<String> = match may_be_held {
            true => held.flat_map(|o| ROUTES.map(|route| audit::not_notified(o, route))).collect(),
            false => BTreeSet::new(),
        };
        let mut wrong: Vec<String> = self.audit().into_iter().filter(|it| !excused.contains(it)).collect();
        let is_true = |notified: &&Notified| {
            notified.fqdn == format!("{}.example.org", notified.node) && notified.on_shared_storage
        };
        let untrue = self.notified.iter().filter(|notified| !is_true(notified));
        wrong.extend(untrue.map(|notified| format!("{notified:?} says what nobody configured")));
        let waiting = self.evidence_on(alerter.controller);
        if waiting > 0 {
            wrong.push(format!("{waiting} pieces of evidence wait on {}", alerter.controller));
        }
        wrong
    }

    /// Every fenced host was sent once to every route.
    #[track_caller]
    pub(crate) fn assert_all_notified(&self) {
        let complaints = self.audit();
        assert!(complaints.is_empty(), "{complaints:#?}\n{:#?}\n{:#?}", self.notified, self.outages);
    }

    /// The ids that were sent, each once, in order.
    pub(crate) fn notified_ids(&self) -> Vec<String> {
        let mut ids: Vec<String> = Vec::new();
        for notified in &self.notified {
            if !ids.contains(&notified.id) {
                ids.push(notified.id.clone());
            }
        }
        ids
    }
}

/// A site and an alerter on this controller that has polled.
pub(crate) fn begun(hosts: &[&'static str], controller: &'static str) -> (Site, Alerter) {
    started(Site::new(hosts), controller)
}

/// The same in a site that is there.
pub(crate) fn started(mut site: Site, controller: &'static str) -> (Site, Alerter) {
    let mut alerter = Alerter::start(&site, controller);
    alerter.run(&mut site, 2);
    (site, alerter)
}

/// A mark as an alerter with the site's configuration makes it of a fencing.
pub(crate) use samples::entry as mark_of;

/// What `fence_mark` publishes at a `monitor`: what its journal has and no register got.
pub(crate) fn new_fencings(journal: &mut Journal, now: Timestamp) -> Vec<Entry> {
    let waiting = journal.unpublished(now - Duration::from_secs(86_400)).unwrap().sound;
    let keys: Vec<String> = waiting.iter().map(|fencing| Key::Fencing(fencing.id).to_string()).collect();
    journal.note_published(Register::Attrd, &keys).unwrap();
    waiting.into_iter().map(Entry::Fencing).collect()
}

/// What it publishes again: what the register has lost.
pub(crate) fn lost_fencings(
    journal: &mut Journal,
    now: Timestamp,
    register: &BTreeMap<Key, Entry>,
) -> Vec<Entry> {
    let mut lost = journal.unsettled(Register::Attrd, now - KEPT).unwrap().sound;
    lost.retain(|fencing| !stands(fencing, register));
    lost.into_iter().map(Entry::Again).collect()
}

/// Whether the register says anything of a fencing or of its mark.
fn stands(fencing: &Fencing, register: &BTreeMap<Key, Entry>) -> bool {
    let mark = fencing.id.into();
    let keys = [Key::Fencing(fencing.id), Key::Again(fencing.id), Key::Mark(mark), Key::Settled(mark)];
    keys.iter().any(|key| register.contains_key(key))
}

/// Journals sync every mark: in memory that costs nothing.
fn memory() -> PathBuf {
    let shm = PathBuf::from("/dev/shm");
    let can_be_written = tempfile::Builder::new().tempfile_in(&shm).is_ok();
    if can_be_written { shm } else { std::env::temp_dir() }
}
