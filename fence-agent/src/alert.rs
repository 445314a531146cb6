//! `alert_mark`: from the environment of a Pacemaker alert to one file of evidence.
//!
//! It judges nothing: failures and unfencings are written too, and the alerter decides. Of the alerts about nodes it
//! keeps those that a cluster node has joined: they end an outage. Pacemaker runs it as `hacluster`, neither waits for it
//! nor repeats it, and only logs its exit code.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use marks::host::{HostName, HostNameError};
use marks::id::OperationId;
use nix::unistd::geteuid;
use pacemaker::aside;
use pacemaker::evidence::{
    Action, DIRECTORY, Directory, EventName, Evidence, EvidenceError, Join, Label, Moment, Outcome,
};

use crate::paths::Paths;
use crate::report::Report;

/// The name in the system log and on standard error.
pub const IDENT: &str = "alert_mark";

/// Why a fencing alert was not written. The message shows none of the alert's texts but a checked host name.
#[derive(Debug, thiserror::Error)]
pub enum AlertError {
    /// No node, or no name.
    #[error("a fencing was not written: its node name is invalid ({0}); check the alert in Pacemaker's log")]
    Target(HostNameError),
    /// No number.
    #[error("the fencing of {0} was not written: the alert has no result code; check Pacemaker's log")]
    Result(HostName),
    /// Not Pacemaker's sentence.
    #[error(
        "the fencing of {0} was not written: the alert's description cannot be read; check Pacemaker's log"
    )]
    Description(HostName),
    /// Success by its code, but not by its text.
    #[error(
        "the fencing of {0} was not written: the alert's result code and description disagree; check Pacemaker's log"
    )]
    Contradiction(HostName),
    /// A node without a name.
    #[error("a node's join was not written: {0}; check the alert in Pacemaker's log")]
    Node(HostNameError),
    /// Not an absolute path.
    #[error(
        "the alert about {0} was not written: its recipient is not an absolute path; correct it in the cluster's configuration"
    )]
    Recipient(HostName),
    /// The directory.
    #[error("the alert about {host} was not written: {source}")]
    Evidence {
        /// The node.
        host: HostName,
        /// The fault.
        source: EvidenceError,
    },
}

impl AlertError {
    /// A stable machine word.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Target(_) => "target",
            Self::Result(_) => "result",
            Self::Description(_) => "description",
            Self::Contradiction(_) => "contradiction",
            Self::Node(_) => "node",
            Self::Recipient(_) => "recipient",
            Self::Evidence { source, .. } => source.kind(),
        }
    }
}

/// The argument of the process that writes. Pacemaker gives none.
const WRITES: &str = "--at-the-evidence";
/// How long the evidence's disk may take.
const LIMIT: Duration = Duration::from_secs(8);
/// The cluster's user may write here, in memory.
const NOTES: &str = "/run/crm";

/// Runs the agent on the environment of this process.
pub fn main() -> ExitCode {
    let variable = |name: &str| env::var_os(name);
    let alert = Alert::new(&variable);
    let here = || run(&alert).map(drop).map_err(|e| e.to_string());
    if env::args_os().nth(1).is_some_and(|word| word == WRITES) {
        aside::begin();
        return end(here(), |why| eprintln!("{why}"));
    }
    let done =
        if alert.is_fencing() || alert.is_join() { elsewhere(&alert).unwrap_or_else(here) } else { Ok(()) };
    end(done, |why| Report::new(Paths::default().syslog, false, false).of(IDENT).failure(why))
}

fn end(done: Result<(), String>, say: impl FnOnce(&str)) -> ExitCode {
    let Err(why) = done else { return ExitCode::SUCCESS };
    say(&why);
    ExitCode::FAILURE
}

/// Has another process write, which is left behind where the disk hangs: Pacemaker waits for this one. `None` if none can be had.
fn elsewhere(alert: &Alert<'_>) -> Option<Result<(), String>> {
    let (directory, end) = (alert.directory().unwrap_or_default(), Instant::now() + LIMIT);
    let note = aside::note(Path::new(NOTES), IDENT, &directory);
    let mut command = Command::new(aside::MYSELF);
    command.arg(WRITES);
    let left = |_| end.saturating_duration_since(Instant::now());
    Some(match aside::run(command, &[], &note, left).ok()? {
        Some(output) if output.status.success() => Ok(()),
        Some(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        None => Err(format!(
            "an alert was not written: the disk of {} does not answer; check it, see `dmesg`",
            directory.display()
        )),
    })
}

/// Writes the evidence, if the alert is about a fencing or a cluster node that has joined; returns the file's name.
///
/// # Errors
/// [`AlertError`]: the alert is about one, but cannot be written.
pub fn run(alert: &Alert<'_>) -> Result<Option<EventName>, AlertError> {
    if alert.is_fencing() {
        let evidence = alert.evidence()?;
        return keep(alert, &evidence.target, |directory| directory.write(&evidence)).map(Some);
    }
    if alert.is_join() {
        let join = alert.join()?;
        return keep(alert, &join.node, |directory| directory.write_join(&join)).map(Some);
    }
    Ok(None)
}

fn keep(
    alert: &Alert<'_>,
    host: &HostName,
    write: impl FnOnce(&Directory) -> Result<EventName, EvidenceError>,
) -> Result<EventName, AlertError> {
    let path = alert.directory().ok_or_else(|| AlertError::Recipient(host.clone()))?;
    let written = Directory::open(&path, geteuid()).and_then(|directory| write(&directory));
    written.map_err(|source| AlertError::Evidence { host: host.clone(), source })
}

/// The variables of an alert, of which each has an older twin.
#[derive(Clone, Copy)]
pub struct Alert<'a> {
    variable: &'a dyn Fn(&str) -> Option<OsString>,
}

impl<'a> Alert<'a> {
    /// An alert with this lookup of variables.
    pub fn new(variable: &'a dyn Fn(&str) -> Option<OsString>) -> Self {
        Self { variable }
    }

    /// Whether it is about a fencing operation.
    pub fn is_fencing(&self) -> bool {
        self.text("kind").is_some_and(|kind| kind == "fencing")
    }

    /// Whether it reports that a cluster node has become a member. Remote nodes have the id 0; their connections say
    /// more.
    pub fn is_join(&self) -> bool {
        let says = |name, word| self.text(name).is_some_and(|text| text == word);
        says("kind", "node") && says("desc", "member") && !says("nodeid", "0")
    }

    /// The node that has joined, and the time.
    ///
    /// # Errors
    /// The name is missing or invalid.
    pub fn join(&self) -> Result<Join, AlertError> {
        let node = HostName::parse(&self.text("node").unwrap_or_default()).map_err(AlertError::Node)?;
        Ok(Join { node, at: self.alert_time().unwrap_or_else(Moment::now) })
    }

    /// The fencing in it.
    ///
    /// # Errors
    /// Something is missing or invalid.
    pub fn evidence(&self) -> Result<Evidence, AlertError> {
        let target = HostName::parse(&self.text("node").unwrap_or_default()).map_err(AlertError::Target)?;
        let rc = self.text("rc").and_then(|rc| rc.parse().ok());
        let outcome = Outcome::from_rc(rc.ok_or_else(|| AlertError::Result(target.clone()))?);
        // Its end may quote any program's output, in any encoding.
        let text = self.get("desc").unwrap_or_default();
        let text = text.to_string_lossy();
        let said = Description::parse(&text, target.as_str())
            .ok_or_else(|| AlertError::Description(target.clone()))?;
        // A false success would report a host that is alive.
        if outcome == Outcome::Success && !said.done {
            return Err(AlertError::Contradiction(target));
        }
        Ok(Evidence {
            target,
            action: said.action,
            outcome,
            operation: said.operation,
            at: self.alert_time().unwrap_or_else(Moment::now),
            executor: Label::lossy(said.executor),
            client: Label::lossy(said.client),
            origin: Label::lossy(said.origin),
        })
    }

    /// The directory for the evidence: the recipient; `None` if it is not an absolute path.
    pub fn directory(&self) -> Option<PathBuf> {
        let path = self.get("recipient").map_or_else(|| PathBuf::from(DIRECTORY), PathBuf::from);
        path.is_absolute().then_some(path)
    }

    fn alert_time(&self) -> Option<Moment> {
        let number = |name| self.text(name)?.parse::<u64>().ok();
        let micros = number("timestamp_usec").filter(|micros| *micros < 1_000_000).unwrap_or(0);
        let seconds = number("timestamp_epoch")?.checked_mul(1_000_000)?;
        Moment::from_micros(seconds.checked_add(micros)?)
    }

    fn text(&self, name: &str) -> Option<String> {
        self.get(name)?.into_string().ok()
    }

    /// A variable that is not empty.
    fn get(&self, name: &str) -> Option<OsString> {
        let set = |prefix| (self.variable)(&format!("{prefix}_{name}")).filter(|value| !value.is_empty());
        set("CRM_alert").or_else(|| set("CRM_notify"))
    }
}

#[cfg(test)]
mod tests;

/// The parts of `Operation ACTION of TARGET by EXECUTOR for CLIENT@ORIGIN: STATUS[ (REASON)] (ref=UUID)`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Description<'a> {
    action: Action,
    /// A node, "a human", "the cluster".
    executor: &'a str,
    client: &'a str,
    origin: &'a str,
    /// Whether the status is success.
    done: bool,
    operation: OperationId,
}

impl<'a> Description<'a> {
    /// Reads the sentence about `target`; the reason in it is any text, so the id is the one at the very end.
    fn parse(text: &'a str, target: &str) -> Option<Self> {
        let (action, rest) = text.strip_prefix("Operation ")?.split_once(" of ")?;
        let (named, rest) = rest.split_at_checked(target.len())?;
        if !named.eq_ignore_ascii_case(target) {
            return None;
        }
        let (executor, rest) = rest.strip_prefix(" by ")?.split_once(" for ")?;
        let (asked_by, rest) = rest.split_once(": ")?;
        let (client, origin) = asked_by.rsplit_once('@')?;
        let (status, operation) = rest.strip_suffix(')')?.rsplit_once(" (ref=")?;
        Some(Self {
            action: Action::parse(action)?,
            executor,
            client,
            origin,
            done: status == "OK" || status.starts_with("OK ("),
            operation: OperationId::parse(operation).ok()?,
        })
    }
}
