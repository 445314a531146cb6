//! `status`: does the daemon work, and how are the routes. Also the OCF agent's monitor.

use std::process::ExitCode;
use std::time::Duration;

use marks::journal::{Journal, JournalError, Lock, Role};
use marks::time::Timestamp;
use serde::Serialize;

use super::report::VIEW;
use super::{journal_path, print_json, println_all, text, wait_for};
use crate::cli::Cli;
use crate::control::api::{ClusterStatus, Daemon, Health, RouteStatus};
use crate::control::client;
use crate::daemon::socket_path;
use crate::policy;

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

#[derive(Debug, Serialize)]
struct Status {
    view: &'static str,
    running: bool,
    daemon: Option<Daemon>,
    /// Fencings that no daemon has made a mark of yet.
    new_fencings: usize,
    open: usize,
    held: usize,
    damaged: usize,
    journal_bytes: u64,
}

pub(super) fn show(cli: &Cli) -> anyhow::Result<ExitCode> {
    let path = journal_path(cli);
    let daemon: Option<Daemon> = wait_for(client::Daemon::at(&socket_path(&path)).get("/v1/status"))?.ok();
    let status = match Journal::open(&path, Role::Reader) {
        Ok(journal) => count(&journal, daemon)?,
        Err(JournalError::Missing { .. }) => Status {
            view: VIEW,
            running: daemon.is_some(),
            daemon,
            new_fencings: 0,
            open: 0,
            held: 0,
            damaged: 0,
            journal_bytes: 0,
        },
        Err(error) => return Err(error.into()),
    };
    if cli.json {
        print_json(&status)?;
    } else {
        println_all(&sentences(&status));
    }
    Ok(if status.running { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn count(journal: &Journal, daemon: Option<Daemon>) -> Result<Status, JournalError> {
    let (open, deliveries, fencings) =
        (journal.open_marks()?, journal.open_deliveries()?, journal.unfolded_fencings()?);
    Ok(Status {
        view: VIEW,
        running: daemon.is_some(),
        daemon,
        new_fencings: fencings.sound.len(),
        open: open.sound.len(),
        held: open.sound.iter().filter(|mark| !policy::holds(mark).is_empty()).count(),
        damaged: open.damaged.len() + deliveries.damaged.len() + fencings.damaged.len(),
        journal_bytes: journal.size(),
    })
}

fn sentences(status: &Status) -> String {
    let mut out = match &status.daemon {
        None => "the daemon does not answer; marks are kept and told when it runs again\n".to_owned(),
        Some(daemon) => format!(
            "nova-host-alerter {} runs on {} (process {})\n",
            daemon.version, daemon.controller, daemon.pid
        ),
    };
    out += &format!(
        "{}: {} open mark(s), {} held, {} damaged row(s)\n",
        status.view, status.open, status.held, status.damaged
    );
    if status.new_fencings > 0 {
        out += &format!("{} fencing(s) wait for the daemon to tell them\n", status.new_fencings);
    }
    let Some(daemon) = &status.daemon else { return out };
    out += &daemon.health.reasons.iter().map(|reason| format!("degraded: {reason}\n")).collect::<String>();
    out += &daemon.cluster.as_ref().map(cluster).unwrap_or_default();
    let heading = ["ROUTE", "DRIVER", "WAITING", "ENDPOINT", "STATE"].map(str::to_owned).to_vec();
    let rows: Vec<_> = std::iter::once(heading).chain(daemon.routes.iter().map(route)).collect();
    out + &text::table(&rows)
}

fn cluster(cluster: &ClusterStatus) -> String {
    let told = if cluster.permitted { "marks may be told" } else { "nothing may be told now" };
    let warnings: String = cluster.warnings.iter().map(|warning| format!("warning: {warning}\n")).collect();
    format!("register {}: {} entries, {told}\n{warnings}", cluster.register, cluster.entries)
}

fn route(route: &RouteStatus) -> Vec<String> {
    let state = match (route.failing_since, &route.failure, &route.detail) {
        (Some(since), Some(kind), Some(detail)) => {
            format!("nothing accepted since {} ({kind}): {detail}", text::time(Timestamp(since)))
        }
        _ => "ready".to_owned(),
    };
    vec![route.name.clone(), route.driver.clone(), route.waiting.to_string(), route.endpoint.clone(), state]
}
