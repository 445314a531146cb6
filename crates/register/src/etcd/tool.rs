//! etcd's own tool: it handles TLS, several members and users. Our credentials are in its environment, which no list of
//! processes shows.

use std::fmt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use pacemaker::child::{self, ChildError};
use pacemaker::tools::{OUTPUT_MAX, ToolError};
use serde::Deserialize;

use crate::Access;
use crate::backend::At;
use crate::error::{Done, RegisterError};
use crate::etcd_fault::EtcdFault;

/// The first attempt, of which a request to a lost leader gets nothing: there is a new leader within about two seconds. Each
/// further attempt may take twice as long, so that a slow answer comes too. Every request may be repeated.
const ATTEMPT: Duration = Duration::from_secs(3);
/// Its own time limit ends earlier, so that it reports the reason itself, also on a busy machine; at most half of a
/// longer time.
const RESERVE: Duration = Duration::from_millis(500);
/// Less time than this is no attempt.
const SHORTEST: Duration = Duration::from_millis(200);

/// The settings of `[store.etcd]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Etcd {
    /// Its members, `https://HOST:PORT` each. One that answers is enough.
    pub endpoints: Vec<String>,
    /// Trusted CAs instead of the system's.
    pub ca: Option<PathBuf>,
    /// Our certificate and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Our user.
    pub login: Option<Login>,
    /// The prefix of this cluster's keys; ends with a slash.
    pub prefix: String,
}

/// A user and its password.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// Without a colon.
    pub user: String,
    /// Never shown.
    pub password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

/// Its answer.
#[derive(Deserialize)]
pub(super) struct Answer {
    /// For a read.
    #[serde(default)]
    pub(super) kvs: Vec<Pair>,
    /// For a transaction; absent if it failed.
    #[serde(default)]
    pub(super) succeeded: bool,
}

/// In base64, both.
#[derive(Deserialize)]
pub(super) struct Pair {
    pub(super) key: String,
    #[serde(default)]
    pub(super) value: String,
}

/// The settings of etcd.
pub(super) fn place(access: &Access) -> Done<&Etcd> {
    access.etcd.as_ref().ok_or(RegisterError::Etcd(EtcdFault::Unknown))
}

/// Repeats the request until there is an answer or no time is left.
pub(super) fn ask((access, deadline): At<'_>, arguments: &[&str], input: &str) -> Done<Answer> {
    let (mut said, mut attempt) = (None, ATTEMPT);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match ask_once(access, arguments, input, left.min(attempt)) {
            Err(RegisterError::Etcd(EtcdFault::Silent)) if has_time(deadline) => {}
            Err(RegisterError::Etcd(EtcdFault::Unreachable)) if has_time(deadline) => {
                said = Some(EtcdFault::Unreachable);
            }
            // Its message before it was cut off has the reason.
            Err(RegisterError::Etcd(EtcdFault::Silent)) => {
                return Err(RegisterError::Etcd(said.unwrap_or(EtcdFault::Silent)));
            }
            answered => return answered,
        }
        attempt *= 2;
    }
}

fn has_time(deadline: Instant) -> bool {
    deadline.saturating_duration_since(Instant::now()) >= SHORTEST
}

fn ask_once(access: &Access, arguments: &[&str], input: &str, limit: Duration) -> Done<Answer> {
    let mut command = command(access)?;
    let own = format!("{}ms", limit.saturating_sub(RESERVE).max(limit / 2).as_millis());
    // These it does not read from its environment.
    command.args([format!("--command-timeout={own}"), format!("--dial-timeout={own}")]).args(arguments);
    match child::answer(command, input.as_bytes(), limit, OUTPUT_MAX) {
        Ok(output) => parse(&output),
        Err(ChildError::Failed(failure)) => Err(RegisterError::Etcd(EtcdFault::of(&failure.said))),
        Err(ChildError::TooSlow(_)) => Err(RegisterError::Etcd(EtcdFault::Silent)),
        Err(source) => Err(RegisterError::Etcdctl(source)),
    }
}

/// With the settings of `[store.etcd]` alone. User and password are given as every release of etcdctl takes them.
fn command(access: &Access) -> Done<Command> {
    let Etcd { endpoints, ca, identity, login, prefix: _ } = place(access)?;
    let mut command = child::cluster_tool(&access.etcdctl);
    command.env("ETCDCTL_API", "3").env("ETCDCTL_WRITE_OUT", "json");
    command.env("ETCDCTL_ENDPOINTS", endpoints.join(","));
    if let Some(ca) = ca {
        command.env("ETCDCTL_CACERT", ca);
    }
    if let Some((certificate, key)) = identity {
        command.env("ETCDCTL_CERT", certificate).env("ETCDCTL_KEY", key);
    }
    if let Some(login) = login {
        command.env("ETCDCTL_USER", format!("{}:{}", login.user, login.password));
    }
    Ok(command)
}

/// Reads its output.
pub(super) fn parse(printed: &[u8]) -> Done<Answer> {
    serde_json::from_slice(printed).map_err(|_| ToolError::Unreadable { tool: "etcdctl" }.into())
}
