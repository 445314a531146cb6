//! `status`: whether the daemon works, and the state of the routes. Also the OCF agent's monitor.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use journal::{Holder, Journal, JournalError, Lock, Role};

use super::answer::{print, println_all};
use super::sources::{journal_path, site, wait_for};
use super::terminal::Style;
use super::{overview, screen};
use crate::cli::Cli;
use crate::config::control_socket;
use crate::control::api::Health;
use crate::control::client::{self, ClientError};
use crate::problem::Limits;

const OCF_NOT_RUNNING: u8 = 7;
const OCF_DEGRADED: u8 = 190;

/// Exits as an OCF monitor does. Neither the configuration nor an endpoint can make it fail, nor a daemon that stalls for less
/// than `patience`: the resource agent derives that from the time limit of its operation.
pub(super) fn ocf(cli: &Cli, patience: Duration) -> anyhow::Result<ExitCode> {
    let journal = journal_path(cli);
    let (sentence, code) = match Lock::holder(&journal) {
        Err(error) => (error.to_string(), ExitCode::FAILURE),
        Ok(None) => (not_running(&journal), ExitCode::from(OCF_NOT_RUNNING)),
        Ok(Some(holder)) => {
            let daemon = client::Daemon::patient(&control_socket(&journal), patience);
            match wait_for(daemon.get::<Health>("/v1/health"))? {
                Ok(health) if !health.healthy => (health.reasons.join("; "), ExitCode::FAILURE),
                Ok(health) if health.degraded => (health.reasons.join("; "), ExitCode::from(OCF_DEGRADED)),
                Ok(_) => ("the daemon works".to_owned(), ExitCode::SUCCESS),
                Err(error) => (unanswered(&holder, &error), ExitCode::FAILURE),
            }
        }
    };
    println_all(&sentence);
    Ok(code)
}

/// Pacemaker keeps 128 characters: the cause comes first, and no advice to start what runs.
fn unanswered(holder: &Holder, error: &ClientError) -> String {
    match error {
        ClientError::Silent(_) => format!("the daemon does not answer (process {})", holder.pid),
        ClientError::Refused { message, .. } => format!("the daemon refuses to say its state: {message}"),
    }
}

/// The process that holds the journal. The OCF agent reads no configuration, and asks for it before it starts or stops.
pub(super) fn process(cli: &Cli) -> anyhow::Result<ExitCode> {
    let holder = Lock::holder(&journal_path(cli))?;
    println_all(&holder.as_ref().map(ToString::to_string).unwrap_or_default());
    Ok(holder.map_or(ExitCode::from(OCF_NOT_RUNNING), |_| ExitCode::SUCCESS))
}

/// With the reason where that is the journal: else only the system log would have it, and not Pacemaker.
fn not_running(journal: &Path) -> String {
    let said = "the daemon does not run";
    match Journal::open(journal, Role::Reader) {
        Ok(_) | Err(JournalError::Missing { .. }) => said.to_owned(),
        Err(error) => format!("{said}: {error}"),
    }
}

pub(super) fn show(cli: &Cli) -> anyhow::Result<ExitCode> {
    // For its warnings: what cannot be read of the configuration may be the journal's place.
    site(cli);
    let daemon = wait_for(overview::ask(cli))?;
    let status = overview::take(cli, daemon, Limits::default());
    print(cli, &status, || screen::drawn(&status, Style::of_stdout()))?;
    Ok(if status.running { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
