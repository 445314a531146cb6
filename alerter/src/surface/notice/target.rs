//! The loop: checks the conditions when the engine has polled, and notifies each target of what it does not know, one notice after
//! the other.
//!
//! Nothing waits for it. A target that is down is tried again forever. What it was notified of is kept in memory and copied into the
//! journal as soon as that can be written. That a notice is about to be sent is written before.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, Instant};

use drivers::{Driver, Message, Outcome, Step};
use journal::{Journal, Notified};
use marks::time::Timestamp;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::condition::{Conditions, Key, Notice};
use super::conditions::{Sight, conditions};
use super::facts::{Facts, Question};
use super::keeper::Keeper;
use super::keys::question;
use super::memory::{Answer, Memory};
use crate::config::{NoticeTarget, NoticeWay, Settings};
use crate::delivery::schedule;
use crate::state::Shared;

/// Two checks are not closer than this, however often something changes.
const SPACING: Duration = Duration::from_secs(1);
/// How long a row that could not be written waits.
const JOURNAL_PAUSE: Duration = Duration::from_secs(1);

/// A target's name, the notice, and its outcome.
type Exchanged = (String, Notice, Outcome);

/// Notifies every configured target, until `stop`. What is under way then is given up: after the next start it is notified again, or
/// taken back.
pub async fn run(shared: Arc<Shared>, stop: CancellationToken) {
    let mut exchanges = JoinSet::new();
    tokio::select! {
        () = stop.cancelled() => {}
        () = run_targets(shared, &mut exchanges) => {}
    }
    exchanges.shutdown().await;
}

async fn run_targets(shared: Arc<Shared>, exchanges: &mut JoinSet<Exchanged>) {
    // The first pass takes up what a former daemon left.
    shared.polled.notified().await;
    let mut notifier = Notifier::new(shared, exchanges).await;
    loop {
        notifier.follow_configuration().await;
        if notifier.targets.is_empty() {
            notifier.count();
            notifier.shared.polled.notified().await;
            continue;
        }
        notifier.check_if_due().await;
        notifier.choose();
        notifier.keep().await;
        notifier.send();
        notifier.count();
        notifier.wait().await;
    }
}

/// One target with what it knows.
struct Target {
    name: String,
    /// None is the log.
    driver: Option<Arc<dyn Driver>>,
    memory: Memory,
    /// What the journal does not have yet.
    dirty: BTreeSet<Key>,
    /// What is sent as soon as the journal has it.
    chosen: Vec<Notice>,
    is_under_way: bool,
    /// How many exchanges in a row failed, and the word of the last failure.
    failures: u32,
    failure: Option<&'static str>,
    /// It is left alone until then.
    ask_at: Instant,
    /// It does not know all.
    is_behind: bool,
}

struct Notifier<'e> {
    shared: Arc<Shared>,
    /// The configuration whose targets these are.
    settings: Option<Arc<Settings>>,
    targets: Vec<Target>,
    exchanges: &'e mut JoinSet<Exchanged>,
    facts: Option<Arc<Facts>>,
    keeper: Keeper,
    conditions: Conditions,
    /// There is a reason to check.
    is_wanted: bool,
    checked: Option<Instant>,
    /// When a condition begins by time alone.
    check_at: Option<Instant>,
    /// When the journal is written again.
    keep_at: Option<Instant>,
}

impl<'e> Notifier<'e> {
    async fn new(shared: Arc<Shared>, exchanges: &'e mut JoinSet<Exchanged>) -> Self {
        let mut notifier = Self {
            shared,
            settings: None,
            targets: Vec::new(),
            exchanges,
            facts: None,
            keeper: Keeper::default(),
            conditions: Conditions::default(),
            is_wanted: true,
            checked: None,
            check_at: None,
            keep_at: None,
        };
        notifier.follow_configuration().await;
        notifier
    }

    /// After a start and after a reload. A target that is still configured keeps its memory.
    async fn follow_configuration(&mut self) {
        let settings = self.shared.base.settings();
        if self.settings.as_ref().is_some_and(|known| Arc::ptr_eq(known, &settings)) {
            return;
        }
        let names: Vec<String> =
            settings.notices.iter().map(|target| target.name.as_str().to_owned()).collect();
        let forget = move |journal: &mut Journal| journal.forget_other_targets(&names);
        if let Err(error) = self.shared.base.store.run(forget).await {
            warn!(
                kind = error.kind(),
                "the journal keeps the notices of targets that are not configured any more: {error}"
            );
        }
        let mut former = std::mem::take(&mut self.targets);
        for wanted in &settings.notices {
            let known = former.iter().position(|target| target.name == wanted.name.as_str());
            let target = match known.map(|at| former.swap_remove(at)) {
                Some(known) => known.renewed(wanted),
                None => Target::new(wanted, &self.shared).await,
            };
            self.targets.push(target);
        }
        (self.settings, self.is_wanted) = (Some(settings), true);
    }

    async fn check_if_due(&mut self) {
        let now = Instant::now();
        if self.next_check(now).is_some_and(|at| at <= now) {
            self.check().await;
        }
    }

    /// When the next check is due; none where there is no reason for one.
    fn next_check(&self, now: Instant) -> Option<Instant> {
        let soonest = self.checked.map_or(now, |checked| checked + SPACING);
        let wanted = self.is_wanted.then_some(soonest);
        wanted.into_iter().chain(self.check_at.map(|at| at.max(soonest))).min()
    }

    /// Finds out what holds now.
    async fn check(&mut self) {
        (self.is_wanted, self.checked) = (false, Some(Instant::now()));
        let now = Timestamp::now();
        self.ask_journal(now).await;
        let (found, begins) = conditions(&Sight::of(&self.shared, now), self.facts.as_deref());
        let (found, lasts) = self.keeper.keep(found, now);
        self.conditions = found;
        self.check_at = begins.into_iter().chain(lasts).min().map(|rest| Instant::now() + rest);
        for target in &mut self.targets {
            target.dirty.extend(target.memory.forget_expired(&self.conditions));
        }
    }

    /// If the journal cannot be read, its last answer counts; the engine reports that fault.
    async fn ask_journal(&mut self, now: Timestamp) {
        let (question, known) = (self.question(), self.facts.clone());
        let ask = move |journal: &mut Journal| Facts::ask(journal, question, known.as_deref(), now);
        if let Ok(Some(new)) = self.shared.base.store.run(ask).await {
            self.facts = Some(Arc::new(new));
        }
    }

    fn question(&self) -> Question {
        let notified = self.targets.iter().flat_map(|target| target.memory.keys());
        // What was not notified yet may be notified already when the answer comes.
        question(notified.chain(self.conditions.holds.keys()))
    }

    /// Counts the notices that each target has not got yet.
    fn count(&self) {
        let now = Timestamp::now();
        let of = |target: &Target| {
            let count = target.memory.outstanding(&self.conditions, now);
            (target.name.clone(), u64::try_from(count).unwrap_or(u64::MAX))
        };
        self.shared.metrics.notices_wait(self.targets.iter().map(of).collect());
    }

    /// Copies into the journal what has changed. Where that fails, memory has it.
    async fn keep(&mut self) {
        if self.keep_at.is_some_and(|at| Instant::now() < at) {
            return;
        }
        self.keep_at = None;
        for target in self.targets.iter_mut().filter(|target| !target.dirty.is_empty()) {
            let (name, (notified, over)) = (target.name.clone(), target.changes());
            let write = move |journal: &mut Journal| journal.record_notices(&name, &notified, &over);
            match self.shared.base.store.run(write).await {
                Ok(()) => target.dirty.clear(),
                // The engine meets the same fault, logs it, and ends the daemon if it does not pass.
                Err(_) => self.keep_at = Some(Instant::now() + JOURNAL_PAUSE),
            }
        }
    }

    /// Chooses the notices that may be sent now.
    fn choose(&mut self) {
        for target in self.targets.iter_mut().filter(|target| !target.is_under_way) {
            target.choose(&self.conditions);
        }
    }

    /// Sends what was chosen, even if the journal cannot be written: that may be what a notice is about.
    fn send(&mut self) {
        let controller = &self.shared.base.controller;
        for target in &mut self.targets {
            for notice in std::mem::take(&mut target.chosen) {
                let Some(driver) = target.driver.clone() else {
                    target.log(&notice);
                    continue;
                };
                target.is_under_way = true;
                let id = notice.id(controller);
                let body = notice.body(&id, controller);
                let name = target.name.clone();
                self.exchanges.spawn(async move {
                    let outcome = driver
                        .deliver(Message {
                            step: Step::Failure,
                            id: &id,
                            body: &body,
                            ambiguous: 0,
                            attempts: 1,
                            is_released: false,
                        })
                        .await;
                    (name, notice, outcome)
                });
            }
        }
    }

    /// Returns when there is a reason to go on.
    async fn wait(&mut self) {
        let next = self.next_due();
        let timer = async {
            match next {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = self.shared.polled.notified() => self.is_wanted = true,
            Some(Ok((name, notice, outcome))) = self.exchanges.join_next() => {
                // A target that is not configured any more has no memory.
                if let Some(target) = self.targets.iter_mut().find(|target| target.name == name) {
                    target.ended(&notice, &outcome);
                }
            }
            () = timer => {}
        }
    }

    /// When something is due by time alone; none where nothing is.
    fn next_due(&self) -> Option<Instant> {
        let now = Instant::now();
        let is_dirty = self.targets.iter().any(|target| !target.dirty.is_empty());
        let keep = is_dirty.then(|| self.keep_at.unwrap_or(now));
        let behind = self.targets.iter().filter(|target| target.is_behind && !target.is_under_way);
        let asked = behind.map(|target| target.ask_at);
        asked.chain(self.next_check(now)).chain(keep).min()
    }
}

impl Target {
    async fn new(target: &NoticeTarget, shared: &Shared) -> Self {
        let (name, driver) = (target.name.as_str().to_owned(), driver_of(target));
        Self {
            memory: memory_of(&name, shared).await,
            name,
            driver,
            dirty: BTreeSet::new(),
            chosen: Vec::new(),
            is_under_way: false,
            failures: 0,
            failure: None,
            ask_at: Instant::now(),
            is_behind: false,
        }
    }

    /// The same by another configuration.
    fn renewed(self, target: &NoticeTarget) -> Self {
        let driver = driver_of(target);
        let is_same = match (&self.driver, &driver) {
            (Some(old), Some(new)) => Arc::ptr_eq(old, new),
            (old, new) => old.is_none() && new.is_none(),
        };
        match is_same {
            true => self,
            false => Self { driver, failures: 0, failure: None, ask_at: Instant::now(), ..self },
        }
    }

    /// Chooses what is notified next. Only the log takes everything at once.
    fn choose(&mut self, found: &Conditions) {
        let most = if self.driver.is_some() { 1 } else { usize::MAX };
        while self.chosen.len() < most {
            let next = self.memory.next(found, Timestamp::now());
            self.is_behind = next.is_some();
            let Some(notice) = next.filter(|_| self.ask_at <= Instant::now()) else { return };
            if self.memory.begins(&notice) {
                self.dirty.insert(notice.key.clone());
            }
            self.chosen.push(notice);
        }
    }

    fn log(&mut self, notice: &Notice) {
        notice.log();
        if self.memory.answered(notice, Answer::Taken) {
            self.dirty.insert(notice.key.clone());
        }
    }

    /// Takes note of the outcome of an exchange.
    fn ended(&mut self, notice: &Notice, outcome: &Outcome) {
        self.is_under_way = false;
        if self.memory.answered(notice, answer(outcome)) {
            self.dirty.insert(notice.key.clone());
        }
        let Some(failure) = outcome.failure() else {
            if self.failure.take().is_some() {
                info!("notice target {} accepts notices again", self.name);
            }
            self.failures = 0;
            return;
        };
        if self.failure.replace(failure.kind) != Some(failure.kind) {
            warn!(
                kind = failure.kind,
                "notice target {} does not accept a notice; it is retried: {}", self.name, failure.detail
            );
        }
        self.failures = self.failures.saturating_add(1);
        self.ask_at = Instant::now() + schedule::wait(self.failures, fastrand::f64(), wish(outcome));
    }

    /// What the journal is to have, and what it is to forget.
    fn changes(&self) -> (Vec<Notified>, Vec<String>) {
        let over = self.dirty.iter().filter(|key| self.memory.row(key).is_none());
        (
            self.dirty.iter().filter_map(|key| self.memory.row(key)).collect(),
            over.map(Key::to_string).collect(),
        )
    }
}

fn driver_of(target: &NoticeTarget) -> Option<Arc<dyn Driver>> {
    match &target.way {
        NoticeWay::Syslog => None,
        NoticeWay::Driver(driver) => Some(Arc::clone(driver)),
    }
}

/// What a former daemon notified this target of.
async fn memory_of(target: &str, shared: &Shared) -> Memory {
    let name = target.to_owned();
    match shared.base.store.run(move |journal| journal.notices_sent(&name)).await {
        Ok(rows) => {
            if !rows.damaged.is_empty() {
                let count = rows.damaged.len();
                warn!(
                    count,
                    "the journal's rows of notices to target {target} are damaged: they are sent again"
                );
            }
            Memory::of_journal(rows.sound)
        }
        Err(error) => {
            warn!(
                kind = error.kind(),
                "the journal's notices to target {target} cannot be read, so they are sent again: {error}"
            );
            Memory::default()
        }
    }
}

fn answer(outcome: &Outcome) -> Answer {
    match outcome {
        Outcome::Acknowledged { .. } | Outcome::Accepted { .. } => Answer::Taken,
        Outcome::Unreachable(_) | Outcome::Retry(_) | Outcome::Refused(_) => Answer::NotNow,
        Outcome::Rejected(_) | Outcome::Held(_) => Answer::NotThis,
        Outcome::Unknown(_) | Outcome::Wait(_) => Answer::Unknown,
    }
}

/// How long the endpoint asks to be left alone. The pause after a refusal is ours, and meant for marks.
fn wish(outcome: &Outcome) -> Option<Duration> {
    match outcome {
        Outcome::Retry(failure) => failure.after,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use journal::Role;

    use super::*;
    use crate::base::Base;
    use crate::base::store::Store;
    use crate::config;

    const CONFIG: &str = "[store]\nregister = \"none\"\n[http.recovery]\nurl = \"http://127.0.0.1:9/\"\n\
                          [notice.log]\nto = \"syslog\"\n[notice.oncall]\nto = \"http\"\nurl = \"http://127.0.0.1:9/\"\n";

    fn shared(dir: &tempfile::TempDir) -> Arc<Shared> {
        let file = dir.path().join("alerter.toml");
        std::fs::write(&file, CONFIG).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&file, mode).unwrap();
        let journal = Journal::open(&dir.path().join("state/marks.db"), Role::Alerter).unwrap();
        let (store, _thread) = Store::start(journal).unwrap();
        Arc::new(Shared::new(Base::new(config::load(&file).unwrap(), store, None)))
    }

    /// One round of the loop, without its wait.
    async fn round(notifier: &mut Notifier<'_>) {
        notifier.check_if_due().await;
        notifier.choose();
        notifier.keep().await;
        notifier.send();
    }

    /// The broken variant says what it knows of each target that there is: one that a reload took away would wait for ever.
    #[tokio::test]
    async fn nothing_waits_for_a_target_that_is_not_configured_any_more() {
        let dir = tempfile::tempdir().unwrap();
        let (shared, mut exchanges) = (shared(&dir), JoinSet::new());
        let mut notifier = Notifier::new(Arc::clone(&shared), &mut exchanges).await;
        notifier.count();
        let waits = |shared: &Shared| -> Vec<String> { shared.metrics.notices().into_keys().collect() };
        assert_eq!(waits(&shared), ["log", "oncall"]);
        let without = CONFIG.split("[notice.log]").next().unwrap();
        std::fs::write(dir.path().join("alerter.toml"), without).unwrap();
        shared.base.put_settings(Arc::new(config::load(&dir.path().join("alerter.toml")).unwrap()));
        notifier.follow_configuration().await;
        assert!(notifier.targets.is_empty());
        notifier.count();
        assert_eq!(waits(&shared), Vec::<String>::new());
    }

    /// The broken variant is a daemon with a young trouble: it is woken when that is old enough.
    #[tokio::test]
    async fn an_idle_daemon_is_not_woken() {
        let dir = tempfile::tempdir().unwrap();
        let (shared, mut exchanges) = (shared(&dir), JoinSet::new());
        let mut notifier = Notifier::new(Arc::clone(&shared), &mut exchanges).await;
        assert!(notifier.next_due().is_some(), "the first check");
        round(&mut notifier).await;
        assert_eq!(notifier.next_due(), None);
        shared.routes.troubles().failed("recovery", ("connect", "refused"), Duration::ZERO, Timestamp::now());
        (notifier.is_wanted, notifier.checked) = (true, None);
        round(&mut notifier).await;
        let checked = notifier.checked.unwrap();
        let due = notifier.next_due().unwrap();
        assert!(
            due > checked + shared.base.settings().degraded_after / 2,
            "not before the trouble is old enough"
        );
        notifier.is_wanted = true;
        assert_eq!(notifier.next_due(), Some(checked + SPACING), "and not oftener than once a second");
    }
}
