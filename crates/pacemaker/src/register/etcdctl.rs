//! etcd's own tool: TLS, several members and users are its matter. What it must know of us stands in its environment, where no list of
//! processes shows it.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use marks::register::Etcd;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::error::RegisterError;
use super::etcd_fault::EtcdFault;
use super::tools::{OUTPUT_MAX, Tools};
use crate::child::{self, ChildError};

/// After a leader is lost, what was asked of it is not answered any more, and the next one is there within about two seconds. So it is
/// asked once more; whatever is asked may be asked twice.
const ATTEMPT: Duration = Duration::from_secs(3);
/// Before its own end, so that it says itself what is wrong, also on a machine that is busy; half of what is less than twice as long.
const RESERVE: Duration = Duration::from_millis(500);
/// Less than this is no attempt.
const SHORTEST: Duration = Duration::from_millis(200);

/// What it answered.
#[derive(Deserialize)]
pub(super) struct Answer {
    pub(super) header: Header,
    /// Of a reading.
    #[serde(default)]
    pub(super) kvs: Vec<Pair>,
    /// Of a transaction; absent where it did not come to pass.
    #[serde(default)]
    pub(super) succeeded: bool,
}

/// Of every answer.
#[derive(Deserialize)]
pub(super) struct Header {
    /// How often anything was changed there so far.
    pub(super) revision: u64,
}

/// In base64, both.
#[derive(Deserialize)]
pub(super) struct Pair {
    pub(super) key: String,
    #[serde(default)]
    pub(super) value: String,
}

/// Where it is.
pub(super) fn place(tools: &Tools) -> Result<&Etcd, RegisterError> {
    tools.etcd.as_ref().ok_or(RegisterError::Etcd(EtcdFault::Unknown))
}

/// Asks until there is an answer or no time is left.
pub(super) fn ask(
    tools: &Tools,
    arguments: &[&str],
    input: &str,
    deadline: Instant,
) -> Result<Answer, RegisterError> {
    let mut said = None;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match ask_once(tools, arguments, input, left.min(ATTEMPT)) {
            Err(RegisterError::Etcd(EtcdFault::Silent)) if has_time(deadline) => {}
            Err(RegisterError::Etcd(EtcdFault::Unreachable)) if has_time(deadline) => {
                said = Some(EtcdFault::Unreachable);
            }
            // What it said before it was cut off says more.
            Err(RegisterError::Etcd(EtcdFault::Silent)) => {
                return Err(RegisterError::Etcd(said.unwrap_or(EtcdFault::Silent)));
            }
            answered => return answered,
        }
    }
}

fn has_time(deadline: Instant) -> bool {
    deadline.saturating_duration_since(Instant::now()) >= SHORTEST
}

fn ask_once(
    tools: &Tools,
    arguments: &[&str],
    input: &str,
    limit: Duration,
) -> Result<Answer, RegisterError> {
    let mut command = command(tools, &tools.etcdctl)?;
    let own = format!("{}ms", limit.saturating_sub(RESERVE).max(limit / 2).as_millis());
    // Of these it does not see what stands in its environment.
    command.args([format!("--command-timeout={own}"), format!("--dial-timeout={own}")]).args(arguments);
    let (output, said) = child::answer(command, input.as_bytes(), limit, OUTPUT_MAX);
    match output {
        Ok(output) => parse(&output),
        Err(ChildError::Failed(_)) => {
            Err(RegisterError::Etcd(EtcdFault::of(&String::from_utf8_lossy(&said))))
        }
        Err(ChildError::TooSlow(_)) => Err(RegisterError::Etcd(EtcdFault::Silent)),
        Err(source) => Err(RegisterError::Etcdctl(source)),
    }
}

/// Ends the watch with whoever started it, whose death closes this shell's input; it would go on until it has something to say.
const GUARD: &str = r#""$@" & exec >&-; read -r _; kill "$!""#;

/// Starts to watch: it prints something whenever anything changes behind this revision, until it ends. It is a process group of its own.
pub(super) fn watch(tools: &Tools, revision: u64) -> Result<Child, RegisterError> {
    let prefix = &place(tools)?.prefix;
    let from = format!("--rev={}", revision.saturating_add(1));
    let mut command = command(tools, Path::new("/bin/sh"))?;
    command.args(["-c", GUARD, "sh"]).arg(&tools.etcdctl).args(["watch", "--prefix", &from, prefix]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    child::spawn_apart(command).map_err(|e| RegisterError::Etcdctl(e.into()))
}

/// With nothing but what `[store.etcd]` says. A user is given with its password, as every release of etcdctl takes it.
fn command(tools: &Tools, program: &Path) -> Result<Command, RegisterError> {
    let Etcd { endpoints, ca, identity, login, prefix: _ } = place(tools)?;
    let mut command = child::cluster_tool(program);
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

/// Reads what it printed.
pub(super) fn parse<T: DeserializeOwned>(printed: &[u8]) -> Result<T, RegisterError> {
    serde_json::from_slice(printed).map_err(|_| RegisterError::Unreadable { tool: "etcdctl" })
}
