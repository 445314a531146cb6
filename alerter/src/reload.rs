//! A new configuration in a running daemon: read and checked as at a start, and put in force by the engine between two passes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use journal::{Journal, NewHistory};
use marks::register::{About, Decision, Scope};
use marks::time::Timestamp;
use tracing::{error, info, warn};

use crate::config::{self, Route, Settings};
use crate::problem::NotInForce;
use crate::state::Shared;
use crate::state::reloads::Reloaded;
use crate::words::plain;
use site::ConfigErrors;

/// Reads the configuration again and puts it in force. `file`: another main file than the last time. The result is logged; a failure
/// degrades the daemon until a reload succeeds.
pub async fn reload(shared: &Shared, file: Option<PathBuf>) -> Reloaded {
    let _in_turn = shared.reloads.turn.lock().await;
    let file = shared.reloads.file(file).unwrap_or_else(|| shared.base.settings().file.clone());
    let read = file.clone();
    // Reading files may hang, and must not block a delivery.
    let loaded = tokio::task::spawn_blocking(move || config::load(&read)).await;
    put(shared, &file, loaded.expect("a panic anywhere ends the whole daemon")).await
}

/// The same with a configuration that was read.
pub async fn put(shared: &Shared, file: &Path, loaded: Result<Settings, ConfigErrors>) -> Reloaded {
    match loaded {
        Ok(settings) => {
            let answered = shared.reloads.ask(settings);
            shared.poke.notify_one();
            answered.await.unwrap_or_else(|_| Reloaded::Busy(STOPS.to_owned()))
        }
        Err(problems) => {
            let said = problems.problems().iter().map(ToString::to_string).collect();
            let came = Reloaded::Refused(said);
            report(shared, file, &came);
            came
        }
    }
}

const STOPS: &str = "the daemon is stopping: its next start reads the configuration";

/// Logs the result, and degrades the daemon after a failure.
pub fn report(shared: &Shared, file: &Path, came: &Reloaded) {
    match came {
        Reloaded::Changed(what) => {
            *shared.reload_trouble() = None;
            shared.health.reset();
            let what = if what.is_empty() { "nothing has changed".to_owned() } else { what.join("; ") };
            info!("the configuration {} was read again: {what}", file.display());
        }
        Reloaded::Refused(problems) => {
            let why = trouble(file, problems);
            error!("{why}");
            *shared.reload_trouble() = Some(NotInForce { why, is_busy: false });
        }
        Reloaded::Busy(why) => {
            let why = format!("the new configuration {} is not in force: {why}", file.display());
            warn!("{why}; run `nova-host-alerter reload` again when that is over");
            *shared.reload_trouble() = Some(NotInForce { why, is_busy: true });
        }
    }
}

/// Records who had it read again, and why. It is in force even if this cannot be written.
pub async fn note(shared: &Shared, changes: &[String], (user, reason): (String, String)) {
    let what = if changes.is_empty() { "nothing has changed".to_owned() } else { changes.join("; ") };
    let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    let detail = plain(&format!("the configuration was read again ({what}){why}"));
    let append = move |journal: &mut Journal| {
        let row = NewHistory::new(Timestamp::now(), "reloaded", &detail, &user);
        journal.append_history(&row)
    };
    if let Err(error) = shared.base.store.run(append).await {
        warn!(
            kind = error.kind(),
            "the reload of the configuration could not be written into the history: {error}"
        );
    }
}

/// One line, however many problems there are.
fn trouble(file: &Path, problems: &[String]) -> String {
    let first = problems.first().map_or("it cannot be used", String::as_str);
    let more = match problems.len() {
        0 | 1 => String::new(),
        all => format!(" (and {} more: see `nova-host-alerter check-config`)", all - 1),
    };
    format!(
        "the new configuration {} is not used, and the old one stays in force: {first}{more}; correct it, then run `nova-host-alerter reload`",
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
            "[store] {} cannot change while the daemon runs: restart the resource, or undo the change",
            changed.join(" and ")
        )
    })
}

/// A pause or a maintenance of a group that the new configuration does not have: its marks would be sent without a decision. One
/// sentence.
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
                "group {name} is {what} by {}, but is not in the new configuration: run `nova-host-alerter {end} --group {name}` first, or keep the group's name",
                decision.actor
            )
        })
    })
}

/// Which routes have changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteChanges {
    /// These go on with the driver, the outbox and the endpoint that they have.
    pub kept: Vec<String>,
    /// These have another driver now.
    pub renewed: Vec<String>,
    /// A sentence for each change.
    pub said: Vec<String>,
}

/// Keeps the objects of what has not changed: drivers have tokens and connections.
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
    changes
}

/// One sentence for each section that has changed.
pub fn changed_sections(old: &Settings, new: &Settings) -> Vec<String> {
    let names =
        old.sections.keys().chain(new.sections.keys().filter(|name| !old.sections.contains_key(*name)));
    let changed = names.filter(|name| old.sections.get(*name) != new.sections.get(*name));
    changed.map(|name| format!("[{name}] has changed")).collect()
}
