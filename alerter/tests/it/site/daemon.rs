//! An alerter of the model: the real journal, intake, policy and upkeep, in the engine's order, without its waits.

use std::sync::Arc;
use std::time::Duration;

use alerter::base::Base;
use alerter::base::store::Store;
use alerter::cluster::{self, Cluster, Kept, View};
use alerter::config;
use alerter::delivery::endpoint;

use alerter::intake::start::{self, Serving};
use alerter::intake::upkeep::Upkeep;
use alerter::intake::{account, apply};
use alerter::policy::steer;
use alerter::state::Shared;
use drivers::Kind;
use journal::{Capacity, DueDelivery, Ended, Journal, JournalError, RegisterWait, Role, Verdict};
use marks::delivery::{Delivery, State};
use marks::host::HostName;
use marks::id::MarkId;
use marks::register::{Entry, Register};
use marks::time::{Boot, Timestamp};
use register::Access;
use serde_json::Value;

use super::{Homes, Mark, Notified, ROUTES, Site};

/// How long a mark waits for the register.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// How often Pacemaker's fencing history is read.
const HISTORY: Duration = Duration::from_secs(10);

/// One daemon.
pub(crate) struct Alerter {
    pub(crate) controller: &'static str,
    pub(super) journal: Journal,
    pub(super) shared: Arc<Shared>,
    /// Set beforehand by the broken variant of a test.
    pub(crate) upkeep: Upkeep,
    /// Open marks from here on may lack deliveries of the configuration.
    serving: Option<Serving>,
    history_read: Option<Timestamp>,
    /// Sends to both routes without asking the journal whether it may: the broken variant of the audit's tests.
    pub(crate) is_reckless: bool,
}

impl Alerter {
    /// What `run` does before its first poll.
    pub(crate) fn start(site: &Site, controller: &'static str) -> Self {
        Self::start_with(site, controller, drivers::KINDS)
    }

    /// The same with other drivers.
    pub(crate) fn start_with(site: &Site, controller: &'static str, kinds: &'static [Kind]) -> Self {
        let now = site.clock(controller);
        let (mut journal, shared) = begin((&site.homes, controller), kinds, &site.boot(controller), now);
        start::complete_without_cluster(&mut journal, &shared.base, now).unwrap();
        let (upkeep, history_read, is_reckless) = (Upkeep::default(), None, false);
        let serving = Some(Serving::default());
        let mut alerter = Self { controller, journal, shared, upkeep, serving, history_read, is_reckless };
        alerter.serve_open_marks(now);
        alerter
    }

    /// Open marks get what the configuration brings, once it is known who gets it.
    fn serve_open_marks(&mut self, now: Timestamp) {
        while let Some(at) = self.serving.clone().filter(|_| self.shared.base.knows_groups()) {
            self.serving = start::serve_page(&mut self.journal, &self.shared.base, at, now).unwrap();
        }
    }

    /// Its controller's clock is set, and it notices, as the engine does.
    pub(crate) fn set_clock(&mut self, site: &mut Site, by: i64) {
        *site.skews.entry(self.controller).or_default() += by;
        let mut started = self.shared.base.started();
        started.0 += by;
        self.journal.put_off_no_longer_than(site.clock(self.controller) + endpoint::CAP).unwrap();
        self.journal.mind_the_clock(&site.boot(self.controller), site.clock(self.controller)).unwrap();
    }

    /// One pass of the engine: poll, take in, keep the register up, send; and what was acknowledged goes into the register.
    pub(crate) fn pass(&mut self, site: &mut Site) {
        self.take_in(site);
        self.keep_up(site);
        if site.quorum {
            self.send(site);
            self.keep_up(site);
        }
    }

    /// Passes for so many seconds: every two while evidence is awaited, and then fewer and fewer.
    pub(crate) fn run(&mut self, site: &mut Site, seconds: u32) {
        let (mut left, mut step) = (f64::from(seconds / 2 * 2), 2.0);
        let dense = left - 24.0;
        self.pass(site);
        while left > 0.0 {
            step = f64::min(step * 1.4, if left > dense { 2.0 } else { 20.0 }).min(left);
            site.advance(step);
            self.pass(site);
            left -= step;
        }
        site.advance(2.0);
    }

    /// One that starts here, and works for so long.
    pub(crate) fn at_work(site: &mut Site, controller: &'static str, seconds: u32) -> Self {
        let mut alerter = Self::start(site, controller);
        alerter.run(site, seconds);
        alerter
    }

    /// A host fails, and the alerter works for so long.
    pub(crate) fn meets_outage(&mut self, site: &mut Site, host: &'static str, by: &'static str, span: u32) {
        site.outage(host, by);
        self.run(site, span);
    }

    /// The same of its return.
    pub(crate) fn meets_return(&mut self, site: &mut Site, host: &'static str, by: &'static str, span: u32) {
        site.back(host, by);
        self.run(site, span);
    }

    /// The same of what Pacemaker reports.
    pub(crate) fn meets_fencing(&mut self, site: &mut Site, host: &'static str, seconds: u32) {
        site.seen_fenced(host);
        self.run(site, seconds);
    }

    /// It works for so long, and every outage has been notified then.
    #[track_caller]
    pub(crate) fn notifies_all(&mut self, site: &mut Site, seconds: u32) {
        self.run(site, seconds);
        site.assert_all_notified();
    }

    /// What the control socket and the API work on.
    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    fn is_history_due(&self, site: &Site) -> bool {
        self.history_read.is_none_or(|last| site.now.since(last) >= HISTORY)
    }

    /// Polls and takes in, without sending.
    pub(crate) fn take_in(&mut self, site: &Site) {
        self.poll(site, false).unwrap();
        let is_due = self.is_history_due(site);
        if std::mem::take(&mut self.shared.base.seen().history_wanted) || is_due {
            self.poll(site, true).unwrap();
            self.history_read = Some(site.now);
        }
        self.serve_open_marks(self.now(site));
    }

    /// Its controller's clock.
    pub(super) fn now(&self, site: &Site) -> Timestamp {
        site.clock(self.controller)
    }

    /// One poll; gives the fault that cut it off.
    pub(crate) fn poll(&mut self, site: &Site, with_history: bool) -> Result<(), JournalError> {
        let (now, moment) = (self.now(site), site.moment(self.controller));
        let both: (&Base, _) = (&self.shared.base, &self.shared.accounts);
        if self.shared.base.cluster.is_none() {
            apply::take_in_at(&mut self.journal, both, None, moment)?;
            return steer::steer(&mut self.journal, self.shared.policy(), now);
        }
        let view = Arc::new(View {
            taken: moment.instant,
            quorum: Ok(site.quorum),
            entries: Ok(site.entries()),
            known: None,
            kept: Kept::default(),
            cib: if site.cib_is_mute { Err("timed out".to_owned()) } else { Ok(site.cib()) },
            history: with_history.then(|| Ok(site.history_of(self.controller))),
        });
        self.shared.base.seen().note(&view);
        apply::take_in_at(&mut self.journal, both, Some(&view), moment)?;
        // Where the history is due, a poll of the daemon reads it, and this is half of one.
        if with_history || !self.is_history_due(site) {
            let gaps = account::audit(&self.journal, &self.shared.base, &self.shared.accounts, moment)?;
            assert_eq!(gaps, []);
        }
        steer::steer(&mut self.journal, self.shared.policy(), now)
    }

    /// Writes what the register lacks.
    pub(crate) fn keep_up(&mut self, site: &mut Site) {
        if !site.quorum || self.shared.base.cluster.is_none() {
            return;
        }
        let (entries, now) = (site.entries(), self.now(site));
        let found = (Register::Attrd, &entries);
        let wanted = self.upkeep.wanted(&mut self.journal, &self.shared.base, found, now).unwrap();
        let Some(wanted) = wanted else { return };
        if !site.register_is_mute {
            // Its pages are its own: what another one forged takes no place there.
            for entry in cluster::missing(&wanted, &entries.clone().believed()) {
                // An alerter passes fencings on; only their own agents vouch for them.
                if entry.fencing().is_some() { site.publish(entry) } else { site.seal(entry) }
            }
        }
        let standing = wanted.iter().map(Entry::key).filter(|key| site.register.contains_key(key));
        let standing: Vec<String> = standing.map(|key| key.to_string()).collect();
        self.journal.note_published(Register::Attrd, &standing).unwrap();
    }

    /// Removes from the register what has had its time.
    pub(crate) fn clear(&self, site: &mut Site) {
        let now = self.now(site);
        let wanted = self.journal.entries(now - cluster::KEPT, self.controller).unwrap();
        for key in cluster::over(&cluster::bounded(wanted), &site.entries(), now) {
            site.register.remove(&key);
        }
    }

    /// Makes every attempt that is due; a route that is down refuses it.
    pub(crate) fn send(&mut self, site: &mut Site) {
        let routes: Vec<String> =
            self.shared.base.settings().routes.iter().map(|route| route.name.to_string()).collect();
        for route in &routes {
            while let Some(due) = self.begin(site, route) {
                let verdict = if site.down.contains(route.as_str()) {
                    refused_at(self.now(site))
                } else {
                    self.arrive(site, &due);
                    taken()
                };
                self.finish(site, &due, &verdict);
            }
        }
    }

    /// Begins the next attempt that is due on a route.
    pub(crate) fn begin(&mut self, site: &Site, route: &str) -> Option<DueDelivery> {
        let now = self.now(site);
        let gate = RegisterWait { register: Register::Attrd, waited_since: now - PATIENCE, own_since: None };
        let gate = (!self.is_reckless && self.shared.base.cluster.is_some()).then_some(gate);
        let terms = self.shared.base.route(route).map(|route| route.terms.clone()).unwrap_or_default();
        let target = self.shared.base.route(route).map(|route| route.driver.target()).unwrap_or_default();
        let members = self.shared.base.members(now);
        let room = [Capacity { terms, target, membership: members, ..Capacity::of(route, 1) }];
        if !self.is_reckless {
            steer::keep_up(&mut self.journal, self.shared.policy(), (&room, gate), now).unwrap();
        }
        let mut dispatched = self.journal.dispatch(&[], &room, gate, now).unwrap();
        assert!(dispatched.damaged.is_empty());
        dispatched.begun.pop()
    }

    /// The recovery controller gets the bytes.
    pub(crate) fn arrive(&self, site: &mut Site, due: &DueDelivery) {
        if !ROUTES.contains(&due.delivery.route.as_str()) {
            let Delivery { route, body, .. } = due.delivery.clone();
            site.further.push((self.controller, route, String::from_utf8(body).unwrap()));
            return;
        }
        let body: Value = serde_json::from_slice(&due.delivery.body).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let host = text(&body["payload"]["hostname"]);
        site.notified.push(Notified {
            by: self.controller,
            route: due.delivery.route.clone(),
            id: text(&body["id"]),
            body: due.delivery.body.clone(),
            node: host.split('.').next().unwrap().to_owned(),
            fqdn: host.clone(),
            on_shared_storage: body["payload"]["on_shared_storage"].as_bool().unwrap(),
            failure_time: body["payload"]["failure_time"].as_i64().unwrap(),
            at: site.now,
        });
    }

    pub(crate) fn finish(&mut self, site: &Site, due: &DueDelivery, verdict: &Verdict) {
        let (mark, route) = (due.mark.id, due.delivery.route.clone());
        let now = self.now(site);
        let ended = Ended { mark, route, verdict: verdict.clone(), at: now };
        self.journal.dispatch(&[ended], &[], None, now).unwrap();
    }

    /// All marks of a host, oldest first.
    pub(crate) fn marks(&self, host: &str) -> Vec<Mark> {
        let rows = self.journal.marks_of(&HostName::parse(host).unwrap()).unwrap();
        assert!(rows.damaged.is_empty());
        rows.sound
    }

    /// How many damaged rows of a table were reported.
    pub(crate) fn reported(&self, table: &str) -> usize {
        self.shared.base.damages.of(table).len()
    }

    /// Whether a mark waits for somebody, and says why: in doubt, without a name, or by a rule of the policy.
    pub(crate) fn is_held(&self, mark: MarkId) -> bool {
        let open = self.journal.mark(mark).unwrap().filter(|row| row.settled.is_none());
        open.is_some_and(|row| {
            row.standing.doubt().is_some()
                || row.to_mark().is_none()
                || self.journal.hold_of(mark).unwrap().is_some()
        })
    }

    /// The marks of a host that are held.
    pub(crate) fn held(&self, host: &str) -> Vec<MarkId> {
        let marks = self.marks(host).into_iter().map(|row| row.id);
        marks.filter(|mark| self.is_held(*mark)).collect()
    }

    /// The words of their standings.
    pub(crate) fn standings(&self, host: &str) -> Vec<&'static str> {
        self.marks(host).iter().map(|mark| mark.standing.as_str()).collect()
    }
}

/// What `run` does before its first poll.
pub(crate) fn begin(
    (homes, controller): (&Homes, &str),
    kinds: &'static [Kind],
    boot: &Boot,
    now: Timestamp,
) -> (Journal, Arc<Shared>) {
    let open = || Journal::open(&homes.journal(controller), Role::Alerter).unwrap();
    let (store, _thread) = Store::start(open()).unwrap();
    let settings = config::load_with(&homes.settings(controller), kinds).unwrap();
    let cluster = Cluster::start(Access::to(settings.store.register, None), settings.file.clone()).unwrap();
    let mut base = Base::new(settings, store, cluster);
    base.controller = controller.to_owned();
    let shared = Arc::new(Shared::new(base));
    *shared.base.started() = now;
    let mut journal = open();
    start::recover(&mut journal, now).unwrap();
    journal.mind_the_clock(boot, now).unwrap();
    (journal, shared)
}

/// The recovery controller took it.
pub(crate) fn taken() -> Verdict {
    Verdict::Acknowledged { reference: None, detail: "taken".into() }
}

/// Tried once more, in this state and then; `kind` and `detail` say why.
pub(crate) fn again(state: State, ambiguous: bool, (kind, detail): (&str, &str), due: Timestamp) -> Verdict {
    Verdict::Again { state, ambiguous, kind: kind.into(), detail: detail.into(), next_due: due }
}

/// The attempt's answer says nothing: it may have arrived.
pub(crate) fn lost() -> Verdict {
    again(State::Pending, true, ("server-error", "504"), Timestamp(i64::MAX / 2))
}

/// The attempt reached nobody.
pub(crate) fn unreached() -> Verdict {
    Verdict::Unreached {
        state: State::Pending,
        kind: "connect".into(),
        detail: "refused".into(),
        next_due: Timestamp(i64::MAX / 2),
    }
}

fn refused_at(now: Timestamp) -> Verdict {
    again(State::Pending, false, ("refused", "connection refused"), now + Duration::from_secs(2))
}
