//! `alert_mark`: from the environment of a Pacemaker alert to one file of evidence.
//!
//! It judges nothing: failures and unfencings are written too, and the alerter decides. Of the alerts about nodes it keeps
//! that a cluster node has joined: that ends an outage which nobody saw end. Pacemaker runs it as `hacluster`, neither waits
//! for it nor runs it again, and only logs its exit code.

mod description;

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use marks::host::{HostName, HostNameError};
use nix::unistd::geteuid;
use pacemaker::evidence::{
    DIRECTORY, Directory, EventName, Evidence, EvidenceError, Join, Label, Moment, Outcome,
};

use crate::paths::Paths;
use crate::report::Report;
use description::Description;

/// The name in the system log and before a line on standard error.
pub const IDENT: &str = "alert_mark";

/// Why a fencing alert is not written down. None of the alert's texts is part of the sentence but a checked host name.
#[derive(Debug, thiserror::Error)]
pub enum AlertError {
    /// No node, or no name.
    #[error(
        "a fencing is not written down: its node is not usable ({0}); look at the alert in Pacemaker's log"
    )]
    Target(HostNameError),
    /// No number.
    #[error("the fencing of {0} is not written down: the alert has no result code; look at Pacemaker's log")]
    Result(HostName),
    /// Not the sentence that Pacemaker makes.
    #[error(
        "the fencing of {0} is not written down: the alert's description cannot be understood; look at Pacemaker's log"
    )]
    Description(HostName),
    /// Success by its code, but not by its text.
    #[error(
        "the fencing of {0} is not written down: the alert's result code and its description disagree; look at Pacemaker's log"
    )]
    Contradiction(HostName),
    /// A node without a name.
    #[error("that a node has joined is not written down: {0}; look at the alert in Pacemaker's log")]
    Node(HostNameError),
    /// Not an absolute path.
    #[error(
        "the alert about {0} is not written down: its recipient is no absolute path; correct the recipient in the cluster's configuration"
    )]
    Recipient(HostName),
    /// The directory.
    #[error("the alert about {host} is not written down: {source}")]
    Evidence {
        /// The node.
        host: HostName,
        /// What is wrong.
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

/// Runs the agent on the environment of this process.
pub fn main() -> ExitCode {
    match run(&Alert::new(&|name| env::var_os(name))) {
        Ok(_) => ExitCode::SUCCESS,
        Err(e) => {
            Report::new(Paths::default().syslog, false, false).of(IDENT).failure(&e.to_string());
            ExitCode::FAILURE
        }
    }
}

/// Writes the evidence, if the alert is about a fencing or a cluster node that has joined; gives the file's name.
///
/// # Errors
/// [`AlertError`]: it is about one, but cannot be written down.
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
    /// An alert whose variables are looked up like this.
    pub fn new(variable: &'a dyn Fn(&str) -> Option<OsString>) -> Self {
        Self { variable }
    }

    /// Whether it is about a fencing operation.
    pub fn is_fencing(&self) -> bool {
        self.text("kind").is_some_and(|kind| kind == "fencing")
    }

    /// Whether it says that a cluster node has become a member. Remote nodes have the id 0, and connections that say more.
    pub fn is_join(&self) -> bool {
        let says = |name, word| self.text(name).is_some_and(|text| text == word);
        says("kind", "node") && says("desc", "member") && !says("nodeid", "0")
    }

    /// Who has joined, and when.
    ///
    /// # Errors
    /// There is no usable name.
    pub fn join(&self) -> Result<Join, AlertError> {
        let node = HostName::parse(&self.text("node").unwrap_or_default()).map_err(AlertError::Node)?;
        Ok(Join { node, at: self.alert_time().unwrap_or_else(Moment::now) })
    }

    /// What it says of a fencing.
    ///
    /// # Errors
    /// Something is missing or unusable.
    pub fn evidence(&self) -> Result<Evidence, AlertError> {
        let target = HostName::parse(&self.text("node").unwrap_or_default()).map_err(AlertError::Target)?;
        let rc = self.text("rc").and_then(|rc| rc.parse().ok());
        let outcome = Outcome::from_rc(rc.ok_or_else(|| AlertError::Result(target.clone()))?);
        // Its end may quote any program's words, in any encoding.
        let text = self.get("desc").unwrap_or_default();
        let text = text.to_string_lossy();
        let said = Description::parse(&text, target.as_str())
            .ok_or_else(|| AlertError::Description(target.clone()))?;
        // A false success would notify of a host that lives.
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

    /// Where the evidence goes: the recipient; `None` for one that is no absolute path.
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

    /// A variable that is set to something.
    fn get(&self, name: &str) -> Option<OsString> {
        let set = |prefix| (self.variable)(&format!("{prefix}_{name}")).filter(|value| !value.is_empty());
        set("CRM_alert").or_else(|| set("CRM_notify"))
    }
}

#[cfg(test)]
mod tests;
