//! What `status` shows, from journal, register, configuration and the daemon.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

use journal::{Damage, Done, Holder, Journal, JournalError, Rows, Tried};
use marks::fencing::Fencing;
use marks::register::{Decision, Register};
use marks::time::Timestamp;
use pacemaker::cib::is_same_controller;
use serde::Serialize;
use site::Site;

use super::decide;
use super::merged::{Records, RegisterView};
use super::report::{self, MarkReport};
use super::sources::{self, access, open, register_of};
use super::text::{span, time};
use super::trouble::{self, Sight};
use super::unmarked::{Rules, unmarked};
use crate::base::controller;
use crate::cli::Cli;
use crate::config::{self, control_socket};
use crate::control::api::Daemon;
use crate::control::{client, decisions};
use crate::intake::account::{self, Unaccounted};
use crate::log;
use crate::problem::{self, Kind, Level, Limits, Place, Problem};
use crate::surface::headline::Headline;

/// What the examples and `setup` call the alerter's resource.
const USUAL_RESOURCE: &str = "alerter";

/// All of `status --json`. Keys are only added.
#[derive(Debug, Default, Serialize)]
pub(super) struct Status {
    pub(super) view: &'static str,
    pub(super) running: bool,
    /// What marks and holds are read from: `daemon and journal`, or `journal` where no daemon of this controller answers in time.
    pub(super) read_from: &'static str,
    /// How bad it is in all, and whether every fenced host is notified, one sentence.
    pub(super) level: Option<Level>,
    pub(super) headline: String,
    pub(super) at: Option<Timestamp>,
    /// What is wrong, worst first.
    pub(super) problems: Vec<Problem>,
    /// Open marks by state, and the oldest of each.
    pub(super) states: BTreeMap<&'static str, Stage>,
    pub(super) daemon: Option<Daemon>,
    /// The controller that the alerter runs on, as far as the cluster could be asked.
    pub(super) alerter_on: Option<String>,
    /// Whether that is another controller than this one.
    pub(super) runs_elsewhere: bool,
    /// The release of Pacemaker, where it is newer than each that this program was run with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) untried_pacemaker: Option<String>,
    /// Fencings that no daemon has made a mark of yet.
    pub(super) new_fencings: usize,
    /// Fencings of other controllers in the register that no mark covers.
    pub(super) unmarked_fencings: usize,
    pub(super) open: usize,
    pub(super) held: usize,
    /// Open marks that no configured route can deliver; absent where the configuration cannot be read.
    pub(super) without_route: Option<usize>,
    /// Settled marks that a route which is not required has not taken yet.
    pub(super) settled_still_tried: usize,
    pub(super) damaged: usize,
    /// Records of fencings that have no end that can be shown.
    pub(super) unaccounted: usize,
    pub(super) journal_bytes: u64,
    /// Seconds for which the oldest open mark waits that no decision holds.
    pub(super) oldest_seconds: Option<u64>,
    /// Pauses and maintenances in force, one sentence each.
    pub(super) orders: Vec<String>,
    /// This user may not ask.
    #[serde(skip)]
    pub(super) is_refused: bool,
    /// Why the number of open marks is not known here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unknown: Option<String>,
}

/// The open marks of one state.
#[derive(Debug, Serialize)]
pub(super) struct Stage {
    pub(super) marks: usize,
    pub(super) oldest_host: String,
    pub(super) oldest_at: Timestamp,
}

/// What the daemon of this controller says, where one answers in time: a daemon that hangs stops no reader.
pub(super) async fn ask(cli: &Cli) -> Option<Daemon> {
    let (site, _) = Site::read(&cli.config);
    client::Daemon::reading(&control_socket(&site.store)).get("/v1/status").await.ok()
}

/// What is read of journal and register.
#[derive(Default)]
struct Read {
    open: Vec<MarkReport>,
    settled: usize,
    new: Vec<Fencing>,
    elsewhere: Vec<Fencing>,
    damaged: Vec<Damage>,
    unaccounted: Vec<Unaccounted>,
    orders: Vec<Decision>,
    tried: Vec<Tried>,
    bytes: u64,
}

/// What can be read, and why the journal cannot: what stands in the register is known all the same.
fn read_all(
    (cli, site): (&Cli, &Site),
    (register, controller): (&RegisterView, &str),
    now: Timestamp,
) -> (Read, Option<String>) {
    let read = |journal: Option<&Journal>| read(Records { journal, register }, (cli, site), controller, now);
    let opened = match open(cli, &site.store) {
        Err(JournalError::Missing { .. }) => Ok(None),
        opened => opened.map(Some),
    };
    match opened.and_then(|journal| read(journal.as_ref())) {
        Ok(read) => (read, None),
        Err(error) => (read(None).unwrap_or_default(), Some(error.to_string())),
    }
}

/// Puts everything together. What cannot be read is a problem, and no reason to show nothing.
pub(super) fn take(cli: &Cli, daemon: Option<Daemon>, limits: Limits) -> Status {
    let (site, _) = Site::read(&cli.config);
    let (register, now) = (RegisterView::with_alerter(&access(cli, &site)), Timestamp::now());
    let controller = controller();
    let (mut read, unknown) = read_all((cli, &site), (&register, &controller), now);
    // A daemon knows of more than the journal what adds up.
    if let Some(daemon) = daemon.as_ref().filter(|_| unknown.is_none()) {
        read.unaccounted.clone_from(&daemon.unaccounted);
    }
    let settings = config::load(&cli.config);
    let routes = routes(settings.as_ref().ok(), daemon.as_ref());
    let mistakes = if may_read(&cli.config) { mistakes(&settings) } else { Vec::new() };
    let (holder, blind) = holder(cli, &site);
    let holder = holder.filter(|_| daemon.is_none());
    let unknown = unknown.or_else(|| blind.clone().filter(|_| daemon.is_none()));
    let elsewhere = register
        .alerter_on
        .as_deref()
        .filter(|node| !is_same_controller(node, &controller) && daemon.is_none());
    let (fault, place) = (register.fault(), place(cli, &site, settings.as_ref().ok()));
    let sight = Sight {
        now,
        limits,
        daemon: daemon.as_ref(),
        silent: holder.as_ref().map(|holder| holder.pid.as_str()),
        is_blind: blind.is_some(),
        elsewhere,
        config: &mistakes,
        journal: unknown.as_deref(),
        place: &place,
        is_root: nix::unistd::geteuid().is_root(),
        resource: resource(&site, &register),
        register: fault.as_deref(),
        open: &read.open,
        routes: routes.as_ref(),
        orders: &read.orders,
        new: &read.new,
        damaged: &read.damaged,
        unaccounted: &read.unaccounted,
        tried: &read.tried,
    };
    let problems = trouble::problems(&sight);
    let alerter_on = register.alerter_on.clone().or_else(|| Some(daemon.as_ref()?.controller.clone()));
    let counted = count(&read, routes.as_ref(), now);
    let status = Status {
        view: register.view(),
        running: daemon.is_some(),
        read_from: if daemon.is_some() { "daemon and journal" } else { "journal" },
        level: Some(problems.iter().map(|trouble| trouble.level).max().unwrap_or(Level::Ok)),
        at: Some(now),
        problems,
        daemon,
        alerter_on,
        runs_elsewhere: elsewhere.is_some(),
        untried_pacemaker: register.untried.clone(),
        unknown,
        ..counted
    };
    let is_refused = !nix::unistd::geteuid().is_root() && status.unknown.is_some();
    Status { headline: first(cli, &status, is_refused), is_refused, ..status }
}

/// That this user may not ask, or that nobody has configured this, comes before everything else.
fn first(cli: &Cli, status: &Status, is_refused: bool) -> String {
    match cli.config.try_exists() {
        _ if is_refused => "Run this as root: this user may not read the journal.".to_owned(),
        Ok(false) => format!(
            "There is no configuration: {} does not exist. {}",
            cli.config.display(),
            headline(status)
        ),
        _ => headline(status),
    }
}

/// A file that only root may read has no mistakes for others.
fn may_read(file: &Path) -> bool {
    File::open(file).err().is_none_or(|error| error.kind() != ErrorKind::PermissionDenied)
}

/// What the alerter's resource is called, where it is one.
fn resource<'l>(site: &Site, register: &'l RegisterView) -> Option<&'l str> {
    let has_cluster = register_of(site) != Register::None;
    has_cluster.then(|| register.resource.as_deref().unwrap_or(USUAL_RESOURCE))
}

/// Where an operator has to go: the file that was named, and what can be read of it.
fn place(cli: &Cli, site: &Site, settings: Option<&config::Settings>) -> Place {
    let to = settings.map_or(log::To::Syslog, |settings| settings.log.to);
    let directory = site.store.parent().unwrap_or(&site.store);
    Place {
        file: cli.config.display().to_string(),
        directory: directory.display().to_string(),
        log: to.how_to_read(),
    }
}

/// The process that holds the journal, and why it is not known here whether there is one.
fn holder(cli: &Cli, site: &Site) -> (Option<Holder>, Option<String>) {
    match sources::holder(cli, &site.store) {
        Ok(holder) => (holder, None),
        Err(error @ JournalError::Hung { .. }) => (None, Some(error.to_string())),
        // Root may read everything: what stops root stops a daemon too.
        Err(error) => (None, Some(error.to_string()).filter(|_| !nix::unistd::geteuid().is_root())),
    }
}

fn mistakes(settings: &Result<config::Settings, site::ConfigErrors>) -> Vec<String> {
    let errors = settings.as_ref().err();
    errors.into_iter().flat_map(site::ConfigErrors::problems).map(ToString::to_string).collect()
}

fn read(records: Records<'_>, (cli, site): (&Cli, &Site), controller: &str, now: Timestamp) -> Done<Read> {
    let Rows { sound: rows, mut damaged } = records.here(Journal::unfinished_marks)?;
    let unfolded = records.here(Journal::unfolded_fencings)?;
    let is_daemon_here = matches!(sources::holder(cli, &site.store), Ok(Some(_)));
    let (mut reports, deliveries) = report::unfinished(records, rows)?;
    damaged.extend(unfolded.damaged.into_iter().chain(deliveries));
    reports.iter_mut().for_each(|report| report.as_of_last_run = !is_daemon_here);
    let (settled, open): (Vec<MarkReport>, Vec<MarkReport>) =
        reports.into_iter().partition(|report| report.kept.mark.settled.is_some());
    let new = unmarked(records, unfolded.sound, (controller, Rules::of(site)), now)?;
    Ok(Read {
        open,
        settled: settled.len(),
        new: new.here,
        elsewhere: new.elsewhere,
        damaged,
        unaccounted: records.here(|journal| account::of_journal(journal, Rules::of(site).horizon, now))?,
        orders: decide::in_force(records, now)?,
        tried: records.here(Journal::tried)?,
        bytes: records.journal.map_or(0, Journal::size),
    })
}

/// The names of the routes that can deliver a mark: the daemon's; where none runs, those that the next one would have.
fn routes(settings: Option<&config::Settings>, daemon: Option<&Daemon>) -> Option<BTreeSet<String>> {
    if let Some(daemon) = daemon {
        return Some(daemon.routes.iter().map(|route| route.name.clone()).collect());
    }
    Some(settings?.routes.iter().map(|route| route.name.to_string()).collect())
}

fn count(read: &Read, routes: Option<&BTreeSet<String>>, now: Timestamp) -> Status {
    let mut states: BTreeMap<&'static str, Stage> = BTreeMap::new();
    for report in &read.open {
        let (host, at) = (&report.kept.mark.node, report.kept.mark.failure_time);
        let stage = states.entry(report.stage().as_str()).or_insert_with(|| Stage {
            marks: 0,
            oldest_host: host.to_string(),
            oldest_at: at,
        });
        stage.marks += 1;
        if at < stage.oldest_at {
            (stage.oldest_host, stage.oldest_at) = (host.to_string(), at);
        }
    }
    let stranded = |routes: &BTreeSet<String>| {
        trouble::here(&read.open).filter(|kept| problem::gone(kept, routes).is_some()).count()
    };
    let oldest = trouble::waiting(&read.open).map(|report| report.kept.mark.failure_time).min();
    Status {
        states,
        new_fencings: read.new.len(),
        unmarked_fencings: read.elsewhere.len(),
        open: read.open.len(),
        held: read.open.iter().filter(|report| !report.holds().is_empty()).count(),
        without_route: routes.map(stranded),
        settled_still_tried: read.settled,
        damaged: read.damaged.len(),
        unaccounted: read.unaccounted.len(),
        journal_bytes: read.bytes,
        oldest_seconds: oldest.map(|at| now.since(at).as_secs()),
        orders: read.orders.iter().filter_map(decisions::sentence).collect(),
        ..Status::default()
    }
}

/// Whether every fenced host is notified, in one sentence.
fn headline(status: &Status) -> String {
    let is_nowhere = status.problems.iter().any(|one| matches!(one.kind, Kind::NotRunning | Kind::Silent));
    // A damaged row may be of a host that was fenced and that nothing else speaks of.
    let is_damaged = status.damaged > 0 && status.open + status.new_fencings + status.unmarked_fencings == 0;
    let damaged = is_damaged.then(|| format!("{} row(s) of the journal are damaged", status.damaged));
    // What other controllers have marked stands there; a daemon of this one has it in its journal.
    let has_no_register =
        status.daemon.is_none() && status.problems.iter().any(|trouble| trouble.kind == Kind::Register);
    let unread = has_no_register.then(|| "the register cannot be read".to_owned());
    let journal = status.unknown.as_ref().map(|_| "the journal cannot be read".to_owned());
    let headline = Headline {
        unknown: journal.or(damaged).or(unread.filter(|_| status.open + status.new_fencings == 0)),
        open: status.open,
        unmarked: status.new_fencings + status.unmarked_fencings,
        oldest: oldest(status),
        is_nowhere,
    };
    headline.sentence()
}

fn oldest(status: &Status) -> Option<String> {
    let stage = status.states.values().min_by_key(|stage| stage.oldest_at)?;
    let (at, age) = (time(stage.oldest_at), age(stage.oldest_at, status));
    Some(format!("{} since {at} ({age})", stage.oldest_host))
}

pub(super) fn age(at: Timestamp, status: &Status) -> String {
    span(status.at.unwrap_or(at).since(at))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    pub(in crate::commands) fn status() -> Status {
        let headline = "No fenced host waits to be reported.".to_owned();
        Status { view: "cluster", level: Some(Level::Ok), headline, at: Some(NOW), ..Status::default() }
    }

    /// The first question of an operator on call. The broken variant counts marks alone, and misses a fencing without a mark.
    #[test]
    fn the_first_line_says_whether_every_fenced_host_is_notified() {
        assert_eq!(headline(&status()), "No fenced host waits to be reported.");
        let stage = Stage { marks: 2, oldest_host: "compute7".into(), oldest_at: Timestamp(NOW.0 - 600_000) };
        let open =
            Status { open: 2, states: BTreeMap::from([("pending", stage)]), new_fencings: 1, ..status() };
        let wanted = "NOT EVERY FENCED HOST IS REPORTED: 2 wait, compute7 since 2027-01-15 07:50:00Z (10m), 1 is not marked yet.";
        assert_eq!(headline(&open), wanted);
        let new = Status { unmarked_fencings: 2, ..status() };
        assert_eq!(headline(&new), "NOT EVERY FENCED HOST IS REPORTED: 2 are not marked yet.");
        let down =
            Status { problems: vec![Problem::of(Kind::NotRunning, "it is down".to_owned())], ..status() };
        assert!(headline(&down).contains("THE ALERTER DOES NOT RUN"));
        let unread = Status { unknown: Some("I/O error".into()), ..status() };
        assert!(headline(&unread).starts_with("UNKNOWN whether"));
        let damaged = Status { damaged: 1, ..status() };
        assert!(headline(&damaged).starts_with("UNKNOWN whether"), "a damaged fencing has no mark");
        assert_eq!(headline(&Status { open: 1, ..damaged }), "NOT EVERY FENCED HOST IS REPORTED: 1 waits.");
        let one = Status { unmarked_fencings: 1, ..status() };
        assert_eq!(headline(&one), "NOT EVERY FENCED HOST IS REPORTED: 1 is not marked yet.");
    }
}
