//! `status`: does the daemon work, and how are the routes. Also the OCF agent's monitor.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Duration;

use marks::journal::{Journal, JournalError, Lock, Role, Rows};
use marks::register::Tools;
use marks::time::Timestamp;
use serde::Serialize;

use super::merged::{self, Look};
use super::report::{self, MarkReport};
use super::{
    controller, journal_path, print_json, println_all, register_of, say_fault, site, text, wait_for,
};
use crate::cli::Cli;
use crate::config;
use crate::control::api::{ClusterStatus, Daemon, Health, RouteStatus};
use crate::control::client;
use crate::daemon::socket_path;
use crate::steer::groups::GroupStatus;

/// A monitor must answer within a second.
const OCF_PATIENCE: Duration = Duration::from_millis(800);
const OCF_NOT_RUNNING: u8 = 7;
const OCF_DEGRADED: u8 = 190;

/// Exits as an OCF monitor does. Neither the configuration nor an endpoint can make it fail.
pub(super) fn ocf(cli: &Cli) -> anyhow::Result<ExitCode> {
    let journal = journal_path(cli);
    let (sentence, code) = match Lock::holder(&journal) {
        Err(error) => (error.to_string(), ExitCode::FAILURE),
        Ok(None) => ("the daemon does not run".to_owned(), ExitCode::from(OCF_NOT_RUNNING)),
        Ok(Some(holder)) => {
            let daemon = client::Daemon::patient(&socket_path(&journal), OCF_PATIENCE);
            match wait_for(daemon.get::<Health>("/v1/health"))? {
                Ok(health) if health.degraded => (health.reasons.join("; "), ExitCode::from(OCF_DEGRADED)),
                Ok(_) => ("the daemon works".to_owned(), ExitCode::SUCCESS),
                Err(error) => (
                    format!("the daemon (process {holder}) runs and does not answer: {error}"),
                    ExitCode::FAILURE,
                ),
            }
        }
    };
    println_all(&sentence);
    Ok(code)
}

#[derive(Debug, Default, Serialize)]
struct Status {
    view: &'static str,
    running: bool,
    daemon: Option<Daemon>,
    /// The controller that the alerter runs on, as far as the cluster could be asked.
    alerter_on: Option<String>,
    /// Fencings that no daemon has made a mark of yet.
    new_fencings: usize,
    /// Fencings of other controllers in the register that no mark covers.
    unmarked_fencings: usize,
    open: usize,
    held: usize,
    /// Open marks that no configured route can tell; absent where nobody can say what is configured.
    without_route: Option<usize>,
    /// Settled marks that a route which is not required has not taken yet.
    settled_still_tried: usize,
    damaged: usize,
    journal_bytes: u64,
}

pub(super) fn show(cli: &Cli) -> anyhow::Result<ExitCode> {
    let site = site(cli);
    let daemon: Option<Daemon> =
        wait_for(client::Daemon::at(&socket_path(&site.store)).get("/v1/status"))?.ok();
    let look = Look::with_alerter(register_of(&site), &Tools::default());
    say_fault(&look);
    let journal = match Journal::open(&site.store, Role::Reader) {
        Err(JournalError::Missing { .. }) => None,
        opened => Some(opened?),
    };
    let counted = count(journal.as_ref(), &look, routes(cli, daemon.as_ref()).as_ref())?;
    let alerter_on = look.alerter_on.or_else(|| Some(daemon.as_ref()?.controller.clone()));
    let status = Status { running: daemon.is_some(), daemon, alerter_on, ..counted };
    if cli.json {
        print_json(&status)?;
    } else {
        println_all(&sentences(&status, &controller()));
    }
    Ok(if status.running { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The names of the routes that can tell a mark: the daemon's; where none runs, those that the next one would have.
fn routes(cli: &Cli, daemon: Option<&Daemon>) -> Option<BTreeSet<String>> {
    if let Some(daemon) = daemon {
        return Some(daemon.routes.iter().map(|route| route.name.clone()).collect());
    }
    let settings = config::load(&cli.config).ok()?;
    Some(settings.routes.iter().map(|route| route.name.to_string()).collect())
}

fn count(
    journal: Option<&Journal>,
    look: &Look,
    routes: Option<&BTreeSet<String>>,
) -> Result<Status, JournalError> {
    let (rows, damaged_marks) = parts(journal.map(Journal::unfinished_marks).transpose()?);
    let (unfolded, damaged_fencings) = parts(journal.map(Journal::unfolded_fencings).transpose()?);
    let (_, damaged_deliveries) = parts(journal.map(Journal::open_deliveries).transpose()?);
    let (settled, open): (Vec<MarkReport>, Vec<MarkReport>) = report::unfinished(journal, rows, look)?
        .into_iter()
        .partition(|report| report.mark.settled.is_some());
    let new = merged::unmarked(journal, unfolded, look, &controller(), Timestamp::now())?;
    Ok(Status {
        view: look.view(),
        new_fencings: new.here.len(),
        unmarked_fencings: new.elsewhere.len(),
        open: open.len(),
        held: open.iter().filter(|report| !report.holds.is_empty()).count(),
        without_route: routes.map(|routes| open.iter().filter(|report| is_stranded(report, routes)).count()),
        settled_still_tried: settled.len(),
        damaged: damaged_marks + damaged_deliveries + damaged_fencings,
        journal_bytes: journal.map_or(0, Journal::size),
        ..Status::default()
    })
}

/// Whether no configured route can tell an open mark. One without a name has no deliveries yet and is held; one with a
/// damaged row is counted as damaged; that of another journal has its deliveries there.
fn is_stranded(report: &MarkReport, routes: &BTreeSet<String>) -> bool {
    let is_sound = report.in_journal && report.mark.fqdn.is_some() && report.damaged.is_empty();
    is_sound && !report.can_be_told_by(routes)
}

/// The sound rows, and how many are damaged.
fn parts<T>(rows: Option<Rows<T>>) -> (Vec<T>, usize) {
    rows.map_or_else(|| (Vec::new(), 0), |rows| (rows.sound, rows.damaged.len()))
}

fn sentences(status: &Status, controller: &str) -> String {
    let mut out = match (&status.daemon, &status.alerter_on) {
        (Some(daemon), _) => format!(
            "nova-host-alerter {} runs on {} (process {})\n",
            daemon.version, daemon.controller, daemon.pid
        ),
        (None, Some(node)) if !is_same_node(node, controller) => {
            format!("the alerter runs on {node}; here it does not run\n")
        }
        (None, _) => "the daemon does not answer; marks are kept and told when it runs again\n".to_owned(),
    };
    out += &format!(
        "{}: {} open mark(s), {} held, {} damaged row(s)\n",
        status.view, status.open, status.held, status.damaged
    );
    if let Some(stranded @ 1..) = status.without_route {
        out += &format!(
            "error: {stranded} open mark(s) have no delivery that a configured route can make: see `nova-host-alerter list`, and configure the route again, or end them with `unmark`\n"
        );
    }
    if status.settled_still_tried > 0 {
        out += &format!(
            "{} settled mark(s) are still tried on routes that are not required\n",
            status.settled_still_tried
        );
    }
    if status.new_fencings > 0 {
        out += &format!("{} fencing(s) wait for the daemon to tell them\n", status.new_fencings);
    }
    if status.unmarked_fencings > 0 {
        out += &format!(
            "{} fencing(s) in the register have no mark there: they wait for the alerter, or it holds them\n",
            status.unmarked_fencings
        );
    }
    let Some(daemon) = &status.daemon else { return out };
    out += &daemon.health.reasons.iter().map(|reason| format!("degraded: {reason}\n")).collect::<String>();
    out += &daemon.cluster.as_ref().map(cluster).unwrap_or_default();
    out += &daemon.orders.iter().map(|order| format!("in force: {order}\n")).collect::<String>();
    out += &groups(&daemon.groups);
    let heading = ["ROUTE", "DRIVER", "WAITING", "ENDPOINT", "STATE"].map(str::to_owned).to_vec();
    let rows: Vec<_> = std::iter::once(heading).chain(daemon.routes.iter().map(route)).collect();
    out + &text::table(&rows)
}

/// Pacemaker's name of a controller and the kernel's may differ by a domain.
fn is_same_node(one: &str, other: &str) -> bool {
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    short(one) == short(other)
}

fn cluster(cluster: &ClusterStatus) -> String {
    let told = if cluster.permitted { "marks may be told" } else { "nothing may be told now" };
    let warnings: String = cluster.warnings.iter().map(|warning| format!("warning: {warning}\n")).collect();
    format!("register {}: {} entries, {told}\n{warnings}", cluster.register, cluster.entries)
}

/// Groups say something where there are any beside the one of everybody, or where that one has a limit or holds something.
fn groups(groups: &[GroupStatus]) -> String {
    let says = |group: &GroupStatus| group.allowed.is_some() || !group.held.is_empty();
    if groups.len() < 2 && !groups.iter().any(says) {
        return String::new();
    }
    let heading =
        ["GROUP", "HOSTS", "DOWN", "MARKED", "IN FLIGHT", "HELD", "LIMIT", "MORE ALLOWED"].map(str::to_owned);
    let rows: Vec<_> = std::iter::once(heading.to_vec()).chain(groups.iter().map(group)).collect();
    text::table(&rows) + "\n"
}

fn group(group: &GroupStatus) -> Vec<String> {
    let held = group.held.iter().map(|(word, count)| format!("{count} {word}")).collect::<Vec<_>>();
    let since = group.storm_since.map(|at| format!("storm since {}", text::time(Timestamp(at))));
    let held: Vec<String> = held.into_iter().chain(since).collect();
    let number = |number: usize| number.to_string();
    vec![
        group.name.clone(),
        number(group.size),
        number(group.unhealthy),
        number(group.marked),
        number(group.in_flight),
        if held.is_empty() { "0".to_owned() } else { held.join(", ") },
        group.limit.clone(),
        group.allowed.map_or_else(|| "any".to_owned(), number),
    ]
}

fn route(route: &RouteStatus) -> Vec<String> {
    let state = match (route.failing_since, &route.failure, &route.detail) {
        (Some(since), Some(kind), Some(detail)) => {
            format!("nothing accepted since {} ({kind}): {detail}", text::time(Timestamp(since)))
        }
        _ => "ready".to_owned(),
    };
    let state = if route.required { state } else { format!("not required; {state}") };
    vec![route.name.clone(), route.driver.clone(), route.waiting.to_string(), route.endpoint.clone(), state]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_controller_that_has_the_alerter_is_named_where_it_is_another_one() {
        let first = |alerter_on: Option<&str>| {
            let status =
                Status { view: "cluster", alerter_on: alerter_on.map(str::to_owned), ..Status::default() };
            sentences(&status, "ctl1.example.org").lines().next().unwrap_or_default().to_owned()
        };
        assert_eq!(first(Some("ctl2")), "the alerter runs on ctl2; here it does not run");
        let silent = "the daemon does not answer; marks are kept and told when it runs again";
        assert_eq!((first(Some("CTL1")), first(None)), (silent.to_owned(), silent.to_owned()));
    }

    /// S1-15: none where there is nothing to say, and where nobody knows what is configured.
    #[test]
    fn marks_without_a_route_are_an_error_that_says_what_to_do() {
        let said = |without_route| {
            let status = Status { view: "cluster", open: 5, without_route, ..Status::default() };
            sentences(&status, "ctl1")
        };
        let stranded = said(Some(2));
        let wanted = "error: 2 open mark(s) have no delivery that a configured route can make: see `nova-host-alerter list`, and configure the route again, or end them with `unmark`\n";
        assert!(stranded.contains(wanted), "{stranded}");
        assert!(!said(Some(0)).contains("error") && !said(None).contains("error"));
    }

    #[test]
    fn settled_marks_that_are_still_tried_are_counted_apart() {
        let status = Status { view: "cluster", settled_still_tried: 3, ..Status::default() };
        let said = sentences(&status, "ctl1");
        assert!(said.contains("cluster: 0 open mark(s)"), "{said}");
        assert!(
            said.contains("3 settled mark(s) are still tried on routes that are not required\n"),
            "{said}"
        );
    }

    #[test]
    fn fencings_that_only_the_register_knows_are_counted() {
        let status = Status { view: "cluster", unmarked_fencings: 2, ..Status::default() };
        let said = sentences(&status, "ctl1");
        assert!(
            said.contains("cluster: 0 open mark(s)") && said.contains("2 fencing(s) in the register"),
            "{said}"
        );
    }
}
