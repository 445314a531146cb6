//! The problems that `status` lists, worst first: what it is, whom it is about, since when, and what to type. Pure.

use std::collections::BTreeSet;

use journal::{Damage, HeldMark, Recent, Tried};
use marks::fencing::Fencing;
use marks::register::{About, Decision, Scope};
use marks::time::Timestamp;

use super::report::MarkReport;
use super::text::{span, time};
use crate::control::api::Daemon;
use crate::control::client;
use crate::intake::account::Unaccounted;
use crate::policy::groups::GroupStatus;
use crate::policy::{Hold, end_of_pause};
use crate::problem::{self, Kind, Level, Limits, Place, Problem, unaccounted};
use crate::words::NAMED;

/// All that is seen.
#[derive(Debug)]
pub(super) struct Sight<'a> {
    pub(super) now: Timestamp,
    pub(super) limits: Limits,
    pub(super) daemon: Option<&'a Daemon>,
    /// The process that has the journal's lock, where it does not answer.
    pub(super) silent: Option<&'a str>,
    /// Whether one runs is not known here: the lock cannot be read.
    pub(super) is_blind: bool,
    /// Another controller that runs the alerter.
    pub(super) elsewhere: Option<&'a str>,
    /// What is wrong in the configuration file.
    pub(super) config: &'a [String],
    /// Why the journal cannot be read.
    pub(super) journal: Option<&'a str>,
    /// Where an operator has to go.
    pub(super) place: &'a Place,
    pub(super) is_root: bool,
    /// What the alerter is called as Pacemaker's resource; none where it is none (`register = "none"`).
    pub(super) resource: Option<&'a str>,
    /// Why the register cannot be read.
    pub(super) register: Option<&'a str>,
    pub(super) open: &'a [MarkReport],
    /// The routes that can deliver a mark, where that is known.
    pub(super) routes: Option<&'a BTreeSet<String>>,
    /// Pauses and maintenances in force.
    pub(super) orders: &'a [Decision],
    /// Fencings without a mark.
    pub(super) new: &'a [Fencing],
    pub(super) damaged: &'a [Damage],
    /// Records of fencings that have no end that can be shown.
    pub(super) unaccounted: &'a [Unaccounted],
    /// What routes said when a daemon ran here last.
    pub(super) tried: &'a [Tried],
}

/// Everything, worst first.
pub(super) fn problems(sight: &Sight<'_>) -> Vec<Problem> {
    let mut all = Vec::new();
    // The cause comes before its effect.
    all.extend(of_config(sight));
    all.extend(of_journal(sight));
    all.extend(of_daemon(sight));
    all.extend(of_stores(sight));
    all.extend(of_former(sight));
    all.extend(of_marks(sight));
    all.extend(of_account(sight));
    all.extend(of_orders(sight));
    all.extend(of_age(sight, &all));
    all.sort_by_key(|trouble| std::cmp::Reverse(trouble.level));
    all
}

/// How the alerter is started here.
fn start(sight: &Sight<'_>) -> String {
    match sight.resource {
        Some(name) => format!("`crm_resource --cleanup --resource {name}`"),
        None => "`systemctl start nova-host-alerter`, without a unit `nova-host-alerter run`".to_owned(),
    }
}

fn of_daemon(sight: &Sight<'_>) -> Option<Problem> {
    if sight.daemon.is_some() || sight.elsewhere.is_some() || sight.is_blind {
        return None;
    }
    if let Some(process) = sight.silent {
        let read = if sight.journal.is_none() { ": what follows is read from the journal" } else { "" };
        let seconds = client::READING.as_secs();
        let what = format!(
            "the alerter runs here (process {process}) and has not answered within {seconds} s{read}"
        );
        let root = if sight.is_root { "" } else { "run this as root; " };
        let restart = sight.resource.map(|name| format!("`crm_resource --restart --resource {name}`, or "));
        let restart = restart.unwrap_or_default();
        let then = format!(
            "{root}if it does not answer soon: {restart}`kill {process}`; find the cause: {}",
            sight.place.log
        );
        return Some(Problem { then, ..Problem::of(Kind::Silent, what) });
    }
    let mon = if sight.resource.is_some() { ", `crm_mon -1`" } else { "" };
    let kept = if sight.journal.is_none() { "; marks are kept and sent when it runs again" } else { "" };
    let what = format!("as far as this controller knows, the alerter runs nowhere: no mark is sent{kept}");
    let then = format!(
        "find the cause: {}{mon}, `nova-host-alerter check-config`; if there is none, the alerter was killed; then start it: {}",
        sight.place.log,
        start(sight)
    );
    Some(Problem { then, ..Problem::of(Kind::NotRunning, what) })
}

fn of_config(sight: &Sight<'_>) -> Option<Problem> {
    let (file, problems) = (&sight.place.file, sight.config);
    if problems.is_empty() {
        return None;
    }
    let others = problems.len().saturating_sub(NAMED);
    let more = if others > 0 { format!(" (and {others} more)") } else { String::new() };
    let first = problems[..problems.len() - others].join("; ");
    let runs = sight.daemon.is_some() || sight.elsewhere.is_some() || sight.silent.is_some();
    let (level, meaning) = match runs {
        true => (Level::Warning, "the running alerter still uses the former one, and cannot be restarted"),
        false => (Level::Critical, "the alerter does not start with it"),
    };
    let what = format!("the configuration {file} is wrong, so {meaning}: {first}{more}");
    let then = match runs {
        true => {
            "correct it, then `nova-host-alerter reload`; `nova-host-alerter check-config` lists every mistake with its line"
        }
        false => {
            "correct it; `nova-host-alerter check-config` lists every mistake with its line; then start the alerter, as below"
        }
    };
    Some(Problem { level, then: then.to_owned(), ..Problem::of(Kind::Configuration, what) })
}

fn of_journal(sight: &Sight<'_>) -> Option<Problem> {
    let why = sight.journal?;
    let directory = sight.place.typeable_directory();
    let check = format!("check its disk: `df -h {directory}`, `ls -l {directory}`, `dmesg`");
    let then = match (sight.is_root, sight.daemon.is_some() || sight.silent.is_some()) {
        (false, _) => format!("run this as root; if the journal still cannot be read, {check}"),
        (true, true) => format!("{check}; the alerter continues by itself when the journal can be read"),
        (true, false) if sight.elsewhere.is_some() => {
            format!("{check}; the alerter runs on another controller, and cannot move to this one until then")
        }
        (true, false) => {
            format!(
                "{check}; if the file is not a journal any more, move it away; the alerter does not start by itself: then {}, and compare `stonith_admin --history '*' --verbose` with `nova-host-alerter list --all` to find fenced hosts without a mark",
                start(sight)
            )
        }
    };
    Some(Problem { then, ..Problem::of(Kind::Journal, format!("the journal cannot be read: {why}")) })
}

fn of_stores(sight: &Sight<'_>) -> Vec<Problem> {
    let mut all = Vec::new();
    if let Some(why) = sight.register {
        let what = format!("{why}; what follows is from this controller's journal alone");
        all.push(Problem::of(Kind::Register, what));
    }
    // A delivery's damage is said of its mark.
    let is_of_mark = |row: &&Damage| sight.open.iter().any(|report| report.kept.damaged.contains(row));
    let damaged: Vec<&Damage> = sight.damaged.iter().filter(|row| !is_of_mark(row)).collect();
    if !damaged.is_empty() {
        all.push(problem::damaged(&damaged, sight.place));
    }
    all
}

/// What routes said when an alerter ran here last, where none runs.
fn of_former(sight: &Sight<'_>) -> Vec<Problem> {
    let is_nowhere = sight.daemon.is_none() && sight.elsewhere.is_none();
    sight.tried.iter().filter(|_| is_nowhere).map(problem::of_former).collect()
}

/// Records without an end. A damaged row that is a problem of its own is left out.
fn of_account(sight: &Sight<'_>) -> Vec<Problem> {
    let is_said = |one: &&Unaccounted| {
        sight.damaged.iter().any(|row| one.record == format!("{} {}", row.table, row.key))
    };
    unaccounted(sight.unaccounted.iter().filter(|one| !is_said(one)), sight.place.log)
}

/// What the daemon says, but for what is said better here, and what is wrong with marks.
fn of_marks(sight: &Sight<'_>) -> Vec<Problem> {
    let is_own = |one: &&Problem| match one.kind {
        Kind::Unaccounted => false,
        Kind::Configuration => sight.config.is_empty(),
        _ => true,
    };
    let own = sight.daemon.iter().flat_map(|daemon| &daemon.problems).filter(is_own);
    let open: Vec<&Recent> = here(sight.open).collect();
    let mut all = problem::with_marks(own, &open, sight.routes, (sight.now, sight.limits, sight.place));
    for one in all.iter_mut().filter(|one| one.kind == Kind::Held(Hold::Storm)) {
        one.what += &down_now(sight, one);
    }
    all.extend(of_new(sight));
    all
}

/// Of a mark of another journal is not known what is wrong with it.
pub(super) fn here(open: &[MarkReport]) -> impl Iterator<Item = &Recent> {
    open.iter().filter(|report| report.in_journal).map(|report| &report.kept)
}

/// How many hosts of a stormy group are down at the moment.
fn down_now(sight: &Sight<'_>, storm: &Problem) -> String {
    let is_it = |group: &&GroupStatus| storm.subject == Some(Scope::Group(group.name.clone()).to_string());
    let group = sight.daemon.and_then(|daemon| daemon.groups.iter().find(is_it));
    group.map(|group| format!("; {} of {} are down now", group.unhealthy, group.size)).unwrap_or_default()
}

fn of_new(sight: &Sight<'_>) -> Option<Problem> {
    let first = sight.new.iter().map(|fencing| fencing.asked_at).min()?;
    // A running daemon takes a moment; without one that is said already.
    if sight.daemon.is_none() || sight.now.since(first) < sight.limits.warning {
        return None;
    }
    let mut hosts: Vec<String> = sight.new.iter().map(|fencing| fencing.node.to_string()).collect();
    hosts.dedup();
    let what = format!("{} fenced since {} and not marked yet", hosts.join(", "), time(first));
    let then = format!(
        "read the alerter's log: {}; `nova-host-alerter list` shows each with the reason",
        sight.place.log
    );
    Some(Problem { hosts, since: Some(first), then, ..Problem::of(Kind::NotMarked, what) })
}

/// A pause that nobody ends is forgotten easily: it is shown also while it holds nothing. A maintenance ends by itself.
fn of_orders(sight: &Sight<'_>) -> Vec<Problem> {
    let pauses = sight.orders.iter().filter(|order| matches!(order.about, About::Pause { .. }));
    let holds = |order: &Decision| {
        let is_it = |held: &HeldMark| held.cause.decision == Some(order.id);
        sight.open.iter().any(|report| report.kept.held.as_ref().is_some_and(is_it))
    };
    pauses.filter(|order| !holds(order)).map(|order| of_pause(order, sight.now)).collect()
}

fn of_pause(order: &Decision, now: Timestamp) -> Problem {
    let scope = order.about.scope().unwrap_or(Scope::All);
    let until = order.about.until();
    let end = until.map_or_else(|| "until `resume`".to_owned(), |at| format!("until {}", time(at)));
    let what = format!(
        "{scope} paused by {} since {} ({}), {end}: {}; hosts that are fenced until then are not reported",
        order.actor,
        time(order.at),
        span(now.since(order.at)),
        order.reason
    );
    let then =
        format!("when the reason no longer applies, run {}", end_of_pause(order.about.scope().as_ref()));
    Problem { since: Some(order.at), until, then, ..Problem::of(Kind::Paused, what) }
}

/// Open marks that nothing else is said of, where they are open for too long.
fn of_age(sight: &Sight<'_>, said: &[Problem]) -> Option<Problem> {
    let is_said = said.iter().any(|one| matches!(one.kind, Kind::NotRunning | Kind::Silent));
    let oldest = waiting(sight.open).min_by_key(|report| report.kept.mark.failure_time)?;
    let (since, age) = (oldest.kept.mark.failure_time, sight.now.since(oldest.kept.mark.failure_time));
    // An operator may give a critical age that is below the warning's default.
    if is_said || age < sight.limits.warning.min(sight.limits.critical) {
        return None;
    }
    let level = if age >= sight.limits.critical { Level::Critical } else { Level::Warning };
    let host = oldest.kept.mark.node.to_string();
    let what = format!("{host} has waited to be reported for {}, since {}", span(age), time(since));
    let then = format!("run `nova-host-alerter show {host}` for the answer to each attempt");
    Some(Problem { level, hosts: vec![host], since: Some(since), then, ..Problem::of(Kind::Old, what) })
}

/// Open marks that nobody has decided to hold: those whose age is bad.
pub(super) fn waiting(open: &[MarkReport]) -> impl Iterator<Item = &MarkReport> {
    open.iter().filter(|report| {
        let by_decision = |hold: &Hold| !hold.is_doubt() && !hold.passes();
        report.kept.mark.settled.is_none() && !report.holds().iter().any(by_decision)
    })
}

#[cfg(test)]
pub(super) mod tests;
