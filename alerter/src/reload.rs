//! A new configuration in a running daemon: read and judged as at a start, and taken up by the engine between two passes.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use journal::{Journal, NewHistory};
use marks::register::{About, Decision, Scope};
use marks::time::Timestamp;
use tokio::sync::{Mutex as AsyncMutex, MutexGuard, oneshot};
use tracing::{error, info, warn};

use crate::config::{self, ConfigErrors, NoticeTarget, Route, Settings};
use crate::control::server::plain;
use crate::shared::Shared;

/// What came of a reload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reloaded {
    /// The new configuration is in force: one sentence for each thing that is another one now.
    Changed(Vec<String>),
    /// Nothing has changed; one sentence for each problem.
    Refused(Vec<String>),
    /// Nothing has changed yet, and nothing is wrong with it: it is taken up as soon as this is over.
    Postponed(String),
}

/// What was judged to be good, on its way to the engine.
#[derive(Default)]
pub struct Reloads {
    asked: Mutex<VecDeque<Asked>>,
    /// One at a time: what was read first is not put over what was read later.
    turn: AsyncMutex<()>,
    /// The main file that was asked for last, whatever came of it.
    file: Mutex<Option<PathBuf>>,
    postponed: Mutex<Option<Postponed>>,
}

/// A good configuration that the journal did not let in.
#[derive(Clone)]
pub struct Postponed {
    /// It.
    pub settings: Settings,
    /// Who had it read; nobody signs for a signal.
    pub signed: Signed,
}

/// Who had a configuration read, and why.
#[derive(Clone, Debug, Default)]
pub struct Signed {
    /// As the history has it; empty where nobody signed.
    pub user: String,
    /// In their words; may be empty.
    pub reason: String,
}

/// A configuration that is to be taken up.
pub struct Asked {
    /// The new one.
    pub settings: Settings,
    /// What to say of it.
    pub answer: oneshot::Sender<Reloaded>,
}

impl Reloads {
    /// The next one, if there is one.
    pub fn take(&self) -> Option<Asked> {
        self.asked.lock().expect("a panic anywhere ends the whole daemon").pop_front()
    }

    /// The main file to read: the one that is named now, else the last one that was, so that nobody takes an old file for the
    /// one that was refused.
    fn file(&self, named: Option<PathBuf>) -> Option<PathBuf> {
        let mut last = self.file.lock().expect("a panic anywhere ends the whole daemon");
        *last = named.or_else(|| last.take());
        last.clone()
    }

    /// Keeps it until the journal lets it in.
    pub fn postpone(&self, postponed: Postponed) {
        *self.postponed() = Some(postponed);
    }

    /// Whether one waits.
    pub fn is_postponed(&self) -> bool {
        self.postponed().is_some()
    }

    /// The one that waits, with a guard: while it is held nothing else is read that could be refused, and overtake it. None while
    /// somebody reads: what they read is newer.
    pub fn take_postponed(&self) -> Option<(Postponed, MutexGuard<'_, ()>)> {
        let turn = self.turn.try_lock().ok()?;
        Some((self.postponed().take()?, turn))
    }

    /// What was read later counts, also where it cannot be used.
    pub fn forget(&self) {
        *self.postponed() = None;
    }

    /// Somebody's name for what waits.
    pub fn sign(&self, signed: Signed) {
        if let Some(postponed) = self.postponed().as_mut() {
            postponed.signed = signed;
        }
    }

    fn postponed(&self) -> std::sync::MutexGuard<'_, Option<Postponed>> {
        self.postponed.lock().expect("a panic anywhere ends the whole daemon")
    }

    fn ask(&self, settings: Settings) -> oneshot::Receiver<Reloaded> {
        let (answer, answered) = oneshot::channel();
        let asked = Asked { settings, answer };
        self.asked.lock().expect("a panic anywhere ends the whole daemon").push_back(asked);
        answered
    }
}

/// Reads the configuration afresh and puts it in force. `file` is another main file than that of the last time. What came of
/// it is in the log too, and is a reason to call the daemon degraded until a reload succeeds.
pub async fn reload(shared: &Shared, file: Option<PathBuf>) -> Reloaded {
    let _in_turn = shared.reloads.turn.lock().await;
    let file = shared.reloads.file(file).unwrap_or_else(|| shared.settings().file.clone());
    let read = file.clone();
    // Files may hang, and nothing that hangs may stand in the way of a delivery.
    let loaded = tokio::task::spawn_blocking(move || config::load(&read)).await;
    put(shared, &file, loaded.expect("a panic anywhere ends the whole daemon")).await
}

/// The same with what was read.
pub async fn put(shared: &Shared, file: &Path, loaded: Result<Settings, ConfigErrors>) -> Reloaded {
    match loaded {
        Ok(settings) => {
            let answered = shared.reloads.ask(settings);
            shared.poke.notify_one();
            answered.await.unwrap_or_else(|_| Reloaded::Postponed(STOPS.to_owned()))
        }
        Err(problems) => {
            let said = problems.problems().iter().map(ToString::to_string).collect();
            let came = Reloaded::Refused(said);
            shared.reloads.forget();
            report(shared, file, &came);
            came
        }
    }
}

const STOPS: &str = "the daemon is being stopped: its next start reads the configuration";

/// Says what came of it, in the log and as a reason to call the daemon degraded.
pub fn report(shared: &Shared, file: &Path, came: &Reloaded) {
    match came {
        Reloaded::Changed(what) => {
            *shared.reload_trouble() = None;
            shared.health.reset();
            let what =
                if what.is_empty() { "it says what it said before".to_owned() } else { what.join("; ") };
            info!("the configuration {} was read again: {what}", file.display());
        }
        Reloaded::Refused(problems) => {
            let sentence = trouble(file, problems);
            error!("{sentence}");
            shared.health.note_config(Some(sentence.clone()));
            *shared.reload_trouble() = Some(sentence);
        }
        Reloaded::Postponed(why) => {
            let sentence = postponed(file, why);
            let mut trouble = shared.reload_trouble();
            if trouble.as_deref() != Some(&sentence) {
                warn!("{sentence}");
                *trouble = Some(sentence);
            }
        }
    }
}

/// Puts on record who had it read again, and why. It is in force all the same where this cannot be written down.
pub async fn note(shared: &Shared, changes: &[String], signed: Signed) {
    let what = if changes.is_empty() { "nothing has changed".to_owned() } else { changes.join("; ") };
    let why = if signed.reason.is_empty() { String::new() } else { format!(": {}", signed.reason) };
    let detail = plain(&format!("the configuration was read again ({what}){why}"));
    let append = move |journal: &mut Journal| {
        let (at, event) = (Timestamp::now(), "reloaded");
        let actor = &signed.user;
        let row = NewHistory {
            at,
            event,
            mark: None,
            node: None,
            route: None,
            outcome: None,
            detail: &detail,
            actor,
        };
        journal.append_history(&row)
    };
    if let Err(error) = shared.store.run(append).await {
        warn!(kind = error.kind(), "the history lacks that the configuration was read again: {error}");
    }
}

/// It is no wrong configuration.
fn postponed(file: &Path, why: &str) -> String {
    format!(
        "the new configuration {} is not in force yet: {why}; it is taken up when that is over",
        file.display()
    )
}

/// One line, however many problems there are.
fn trouble(file: &Path, problems: &[String]) -> String {
    let first = problems.first().map_or("it cannot be used", String::as_str);
    let more = match problems.len() {
        0 | 1 => String::new(),
        all => format!(" (and {} more: see `nova-host-alerter check-config`)", all - 1),
    };
    format!(
        "the new configuration {} is not used, and the one before stays in force: {first}{more}; mend it, then run `nova-host-alerter reload`",
        file.display()
    )
}

/// What cannot change while the daemon runs; one sentence.
pub fn obstacle(old: &Settings, new: &Settings) -> Option<String> {
    let changed: Vec<&str> =
        [("path", old.store.path != new.store.path), ("register", old.store.register != new.store.register)]
            .into_iter()
            .filter_map(|(key, is_other)| is_other.then_some(key))
            .collect();
    (!changed.is_empty()).then(|| {
        format!(
            "[store] {} cannot change while the daemon runs: restart the resource for that, or take it back",
            changed.join(" and ")
        )
    })
}

/// A pause or a maintenance of a group that the new configuration does not have: what it holds would be told, and nobody has
/// decided that. One sentence.
pub fn homeless(orders: &[Decision], new: &Settings) -> Option<String> {
    orders.iter().find_map(|decision| {
        let (what, scope, end) = match &decision.about {
            About::Pause { scope, .. } => ("paused", scope, "resume"),
            About::Maintenance { scope, .. } => ("in maintenance", scope, "maintenance end"),
            About::Release(_) | About::ReleaseGroup(_) => return None,
        };
        let Scope::Group(name) = scope else { return None };
        let is_there = new.groups.iter().any(|group| group.name == *name);
        (!is_there).then(|| {
            format!(
                "group {name} is {what} by {} and is not in the new configuration: run `nova-host-alerter {end} --group {name}` first, or keep the name",
                decision.actor
            )
        })
    })
}

/// Which routes are others now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteChanges {
    /// These go on with the driver, the lane and the endpoint that they have.
    pub kept: Vec<String>,
    /// These have another driver now.
    pub renewed: Vec<String>,
    /// What is to be said of routes.
    pub said: Vec<String>,
}

/// Has what says the same as before go on as the same object: drivers have tokens and connections.
pub fn keep_what_is_same(old: &Settings, new: &mut Settings) -> RouteChanges {
    let mut changes = RouteChanges::default();
    for route in &mut new.routes {
        let former = old.routes.iter().find(|former| former.name == route.name);
        let name = route.name.to_string();
        match former {
            None => changes.said.push(format!("route {name} is new")),
            Some(former) if former.is_same(route) => {
                *route = Arc::clone(former);
                changes.kept.push(name);
            }
            Some(former) if former.has_driver_of(route) => {
                let driver = Arc::clone(&former.driver);
                *route = Arc::new(Route { driver, ..Route::clone(route) });
                changes.said.push(format!("route {name} has other marks or terms"));
                changes.kept.push(name);
            }
            Some(_) => {
                changes.said.push(format!("route {name} has changed"));
                changes.renewed.push(name);
            }
        }
    }
    let is_there = |name: &str| new.routes.iter().any(|route| route.name.as_str() == name);
    let gone = old.routes.iter().filter(|route| !is_there(route.name.as_str()));
    changes.said.extend(gone.map(|route| format!("route {} is gone", route.name)));
    new.notices.iter_mut().for_each(|target| keep_target(old, target));
    changes
}

fn keep_target(old: &Settings, target: &mut NoticeTarget) {
    let same = |former: &&NoticeTarget| former.name == target.name && former.written == target.written;
    if let Some(former) = old.notices.iter().find(same) {
        *target = former.clone();
    }
}

/// One sentence for each section that says something else.
pub fn changed_sections(old: &Settings, new: &Settings) -> Vec<String> {
    let names =
        old.sections.keys().chain(new.sections.keys().filter(|name| !old.sections.contains_key(*name)));
    let changed = names.filter(|name| old.sections.get(*name) != new.sections.get(*name));
    changed.map(|name| format!("[{name}] has changed")).collect()
}
