//! `maintenance run`: a command with a maintenance around it, which ends with the command, whatever came of it.

use std::ffi::OsString;
use std::fs;
use std::io::{self, IsTerminal as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use nix::sys::signal::{self as signals, Signal};
use nix::unistd::Pid;
use serde::Serialize;
use tokio::process::{Child, Command};
use tokio::signal::unix::{self, SignalKind};

use super::answer::{print, say};
use super::change::operator;
use super::sources::{control, wait_for};
use super::{decide, text};
use crate::cli::{self, Cli};
use crate::control::api::ChangeAnswer;
use crate::control::client::ClientError;
use crate::control::decisions::{Decided, EndRequest};

/// As shells have it: the command could not be run, or was not found, or was ended by the signal with this number less.
const NOT_RUN: u8 = 126;
const NOT_FOUND: u8 = 127;
const BY_SIGNAL: u8 = 128;

/// So long the daemon is asked again to end the maintenance: a move of the alerter takes less.
const PATIENCE: Duration = Duration::from_secs(120);
/// So long between two such requests.
const PAUSE: Duration = Duration::from_secs(1);

/// What came of it.
#[derive(Serialize)]
struct Ran {
    /// The maintenance.
    id: String,
    /// What this program exits with.
    code: u8,
    /// Whether the maintenance was ended; else it ends by itself.
    ended: bool,
}

/// Begins, runs the command, ends. Without a maintenance the command is not run.
pub(super) fn run(cli: &Cli, options: &cli::During) -> anyhow::Result<ExitCode> {
    let ran = wait_for(bracket(cli, options))??;
    if cli.is_for_programs() {
        print(cli, &ran, String::new)?;
    }
    Ok(ExitCode::from(ran.code))
}

async fn bracket(cli: &Cli, options: &cli::During) -> anyhow::Result<Ran> {
    // Before anything begins: from here on no signal ends this program before it has ended the maintenance.
    let mut signals = Signals::listen()?;
    let begun: Decided = control(cli).post("/v1/maintenance/begin", &decide::request(&options.begin)).await?;
    note(&begun.message);
    let code = attend(&options.command, &mut signals).await;
    let ended = end_patiently(cli, &begun, code, &mut signals).await;
    match &ended {
        Ok(answer) => note(&answer.message),
        Err(error) => note(&goes_on(&options.begin.whom, &begun, error)),
    }
    Ok(Ran { id: begun.id, code, ended: ended.is_ok() })
}

/// Asks until the daemon answers, for two minutes at most; a signal ends that.
async fn end_patiently(
    cli: &Cli,
    begun: &Decided,
    code: u8,
    signals: &mut Signals,
) -> Result<ChangeAnswer, ClientError> {
    let limit = Instant::now() + PATIENCE;
    let mut is_said = false;
    loop {
        let error = match end(cli, begun, code).await {
            Err(error) if may_pass(&error) && Instant::now() < limit => error,
            ended => return ended,
        };
        if !is_said {
            let seconds = PATIENCE.as_secs();
            note(&format!(
                "the maintenance has not ended yet; ending it is retried for {seconds} s: {error}"
            ));
            is_said = true;
        }
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            _ = signals.next() => return Err(error),
        }
    }
}

/// A daemon that starts, or has no journal for a moment, ends it a little later.
fn may_pass(error: &ClientError) -> bool {
    match error {
        ClientError::Silent(_) => true,
        ClientError::Refused { kind, .. } => !["not-root", "request", "not-found"].contains(&kind.as_str()),
    }
}

/// An operator must see this: while the maintenance goes on, a failure of the host is not sent.
fn goes_on(whom: &cli::Whom, begun: &Decided, error: &ClientError) -> String {
    let what = match (&whom.host, &whom.group) {
        (_, Some(group)) => format!("--group {group}"),
        (host, None) => host.clone().unwrap_or_default(),
    };
    format!(
        "ATTENTION: the maintenance goes on{}, and no failure is sent until it ends: run `nova-host-alerter maintenance end {what}` on the controller that runs the alerter: {error}",
        until(begun)
    )
}

async fn end(cli: &Cli, begun: &Decided, code: u8) -> Result<ChangeAnswer, ClientError> {
    let request = EndRequest {
        id: Some(begun.id.clone()),
        reason: format!("the command ended with {code}"),
        user: operator(),
        ..EndRequest::default()
    };
    control(cli).post("/v1/maintenance/end", &request).await
}

fn until(begun: &Decided) -> String {
    begun.until.map_or_else(String::new, |at| format!(" until {}", text::time(at)))
}

/// The command's own output is not mixed with ours.
fn note(sentence: &str) {
    say(&format!("nova-host-alerter: {sentence}\n"), &mut io::stderr());
}

/// Runs the command to its end, however long that takes, and hands it the signals that were meant to end us.
async fn attend(words: &[OsString], signals: &mut Signals) -> u8 {
    if let Some(signal) = signals.pending().await {
        note("the command was not run: a signal came first");
        return by_signal(signal as i32);
    }
    let Some((program, arguments)) = words.split_first() else { return NOT_FOUND };
    let mut child = match Command::new(program).args(arguments).spawn() {
        Ok(child) => child,
        Err(error) => {
            note(&format!("{} was not run: {error}", program.to_string_lossy()));
            return if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_RUN };
        }
    };
    loop {
        tokio::select! {
            ended = child.wait() => return code(ended),
            signal = signals.next() => hand_on(&child, signal),
        }
    }
}

/// A terminal sends its own signals to the command as well: twice is more than many programs take.
fn hand_on(child: &Child, signal: Signal) {
    let is_terminals = signal == Signal::SIGINT && io::stdin().is_terminal();
    let id = child.id().and_then(|id| i32::try_from(id).ok());
    if let Some(id) = id.filter(|_| !is_terminals) {
        let _it_has_ended = signals::kill(Pid::from_raw(id), signal);
    }
}

fn code(ended: io::Result<ExitStatus>) -> u8 {
    match ended {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => u8::try_from(code).unwrap_or(u8::MAX),
            (None, signal) => by_signal(signal.unwrap_or_default()),
        },
        Err(error) => {
            note(&format!("it is not known how the command ended: {error}"));
            NOT_RUN
        }
    }
}

fn by_signal(number: i32) -> u8 {
    u8::try_from(number).unwrap_or_default().saturating_add(BY_SIGNAL)
}

/// The signals that end this program, without SIGKILL and without those that the caller ignores (`nohup`, a job in the
/// background): a handler here would take that from the command too.
struct Signals {
    terminate: Option<unix::Signal>,
    interrupt: Option<unix::Signal>,
    hang_up: Option<unix::Signal>,
}

impl Signals {
    fn listen() -> anyhow::Result<Self> {
        let ignored = ignored_by(&fs::read_to_string("/proc/self/status").unwrap_or_default());
        let listen = |kind: SignalKind| {
            let is_ignored = ignored & (1 << (kind.as_raw_value() - 1)) != 0;
            let listening = (!is_ignored).then(|| unix::signal(kind)).transpose();
            listening.context("signals cannot be received")
        };
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Signal {
        tokio::select! {
            () = come(&mut self.terminate) => Signal::SIGTERM,
            () = come(&mut self.interrupt) => Signal::SIGINT,
            () = come(&mut self.hang_up) => Signal::SIGHUP,
        }
    }

    /// One that has come already.
    async fn pending(&mut self) -> Option<Signal> {
        tokio::select! {
            biased;
            signal = self.next() => Some(signal),
            () = std::future::ready(()) => None,
        }
    }
}

/// One that is ignored never comes.
async fn come(signal: &mut Option<unix::Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// The mask of ignored signals that the kernel shows of a process (proc(5)); none where it cannot be read.
fn ignored_by(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use marks::time::Timestamp;

    use super::*;

    fn ended_by(script: &str) -> u8 {
        let words = ["/bin/sh", "-c", script].map(OsString::from);
        wait_for(async { attend(&words, &mut Signals::listen().unwrap()).await }).unwrap()
    }

    /// S0-38: the caller's script sees what the command said.
    #[test]
    fn the_commands_code_is_ours() {
        assert_eq!(ended_by("exit 0"), 0);
        assert_eq!(ended_by("exit 17"), 17);
        assert_eq!(ended_by("kill -KILL $$"), 137);
        let none = |name: &str| {
            let words = [OsString::from(name)];
            wait_for(async { attend(&words, &mut Signals::listen().unwrap()).await }).unwrap()
        };
        assert_eq!((none("/nowhere/at/all"), none("/etc/passwd")), (NOT_FOUND, NOT_RUN));
    }

    /// The broken variant gives up at the first refusal, or goes on asking what no time changes.
    #[test]
    fn what_may_pass_is_asked_again() {
        let refused = |kind: &str| ClientError::Refused { kind: kind.into(), message: "x".into() };
        assert!(may_pass(&ClientError::Silent("/run/x".into())) && may_pass(&refused("busy")));
        assert!(!may_pass(&refused("not-root")) && !may_pass(&refused("request")));
    }

    #[test]
    fn a_maintenance_that_goes_on_says_how_it_is_ended() {
        let begun: Decided =
            serde_json::from_value(serde_json::json!({ "id": "x", "until": Timestamp(0), "message": "m" }))
                .unwrap();
        let whom = |host: Option<&str>, group: Option<&str>| cli::Whom {
            host: host.map(str::to_owned),
            group: group.map(str::to_owned),
        };
        let silent = ClientError::Silent("/run/x".into());
        let said = goes_on(&whom(Some("compute1"), None), &begun, &silent);
        assert!(said.starts_with("ATTENTION: the maintenance goes on until 1970-01-01 00:00:00Z"), "{said}");
        assert!(said.contains("`nova-host-alerter maintenance end compute1`"), "{said}");
        assert!(goes_on(&whom(None, Some("rack1")), &begun, &silent).contains("end --group rack1`"));
    }

    #[test]
    fn the_kernel_says_which_signals_are_ignored() {
        let status = "Name:\tsh\nSigBlk:\tffffffffffffffff\nSigIgn:\t0000000000001003\nSigCgt:\t0\n";
        assert_eq!((ignored_by(status), ignored_by(""), ignored_by("SigIgn:\tx")), (0x1003, 0, 0));
    }
}
