//! etcd's own tool: TLS, several members and users are its matter. What it must know of us stands in its environment, where no list of
//! processes shows it.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use marks::register::Etcd;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::error::RegisterError;
use super::tools::{OUTPUT_MAX, Tools};
use crate::child::{self, ChildError};

/// After a leader is lost, what was asked of it is not answered any more, and the next one is there within about two seconds. So it is
/// asked once more; whatever is asked may be asked twice.
const ATTEMPT: Duration = Duration::from_secs(3);
/// Before its own end, so that it says itself what is wrong.
const RESERVE: Duration = Duration::from_millis(100);
/// Less than this is no attempt.
const SHORTEST: Duration = Duration::from_millis(200);

/// Why etcd did not do what it was asked for. What it said is not repeated: it may hold what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EtcdFault {
    /// Nobody said where it is.
    #[error("[store.etcd] in alerter.toml does not say where it is: run `nova-host-alerter check-config`")]
    Unknown,
    /// No member with a leader answered in time.
    #[error("no answer in time: look whether most of its members run")]
    Silent,
    /// No connection was made. Who refuses our certificate does not say so.
    #[error(
        "none of its members can be spoken to: look whether they can be reached from here, and whether they take our certificate and until when it is valid"
    )]
    Unreachable,
    /// It takes nothing more.
    #[error(
        "its database is full (NOSPACE): compact and defragment it or raise its quota, then run `etcdctl alarm disarm`"
    )]
    Full,
    /// It does not know us.
    #[error("it does not take our user and password: look at user and password-file in [store.etcd]")]
    Login,
    /// It knows us, and we may not.
    #[error("our user may not do this: grant its role read and write of the prefix in [store.etcd]")]
    Forbidden,
    /// One of the two certificates.
    #[error(
        "it does not take our certificate, or we do not take its: look at the files in [store.etcd], and until when they are valid"
    )]
    Certificate,
    /// Something else, which its own log has.
    #[error("it refused: look at its log")]
    Refused,
}

impl EtcdFault {
    /// What its tool's complaint comes to. What says more comes first: a member that cannot be spoken to is silent as well.
    fn of(said: &str) -> Self {
        const WORDS: [(&str, EtcdFault); 15] = [
            ("database space exceeded", EtcdFault::Full),
            ("authentication failed", EtcdFault::Login),
            ("user name is empty", EtcdFault::Login),
            ("user name not found", EtcdFault::Login),
            ("permission denied", EtcdFault::Forbidden),
            ("x509:", EtcdFault::Certificate),
            ("tls:", EtcdFault::Certificate),
            ("certificate", EtcdFault::Certificate),
            ("TransientFailure", EtcdFault::Unreachable),
            ("connection refused", EtcdFault::Unreachable),
            ("deadline exceeded", EtcdFault::Silent),
            ("request timed out", EtcdFault::Silent),
            ("no leader", EtcdFault::Silent),
            ("leader changed", EtcdFault::Silent),
            ("Unavailable", EtcdFault::Silent),
        ];
        WORDS.iter().find(|(word, _)| said.contains(word)).map_or(Self::Refused, |(_, fault)| *fault)
    }

    /// A stable machine word.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Unknown => "etcd-unknown",
            Self::Silent => "etcd-silent",
            Self::Unreachable => "etcd-unreachable",
            Self::Full => "etcd-full",
            Self::Login => "etcd-login",
            Self::Forbidden => "etcd-forbidden",
            Self::Certificate => "etcd-certificate",
            Self::Refused => "etcd-refused",
        }
    }
}

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
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match ask_once(tools, arguments, input, left.min(ATTEMPT)) {
            Err(RegisterError::Etcd(EtcdFault::Silent | EtcdFault::Unreachable)) if has_time(deadline) => {}
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
    let mut command = command(tools)?;
    let own = format!("{}ms", limit.saturating_sub(RESERVE).max(RESERVE).as_millis());
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

/// Starts to watch: it prints something whenever anything changes behind this revision, until it ends.
pub(super) fn watch(tools: &Tools, revision: u64) -> Result<Child, RegisterError> {
    let prefix = &place(tools)?.prefix;
    let from = format!("--rev={}", revision.saturating_add(1));
    let mut command = command(tools)?;
    command.args(["watch", "--prefix", &from, prefix]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    child::spawn_apart(command).map_err(|e| RegisterError::Etcdctl(e.into()))
}

/// With nothing but what `[store.etcd]` says. A user is given with its password, as every release of etcdctl takes it.
fn command(tools: &Tools) -> Result<Command, RegisterError> {
    let Etcd { endpoints, ca, identity, login, prefix: _ } = place(tools)?;
    let mut command = child::cluster_tool(&tools.etcdctl);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// As 3.4 says it. The broken variant takes the first word that fits: every fault is one of time as well.
    #[test]
    fn a_complaint_comes_to_its_cause() {
        let handshake = r#"{"level":"warn","error":"rpc error: code = DeadlineExceeded desc = latest balancer error: connection error: desc = \"transport: authentication handshake failed: x509: certificate signed by unknown authority\""}
Error: context deadline exceeded"#;
        for (said, fault) in [
            ("Error: etcdserver: mvcc: database space exceeded", EtcdFault::Full),
            ("Error: etcdserver: authentication failed, invalid user ID or password", EtcdFault::Login),
            ("Error: etcdserver: permission denied", EtcdFault::Forbidden),
            (handshake, EtcdFault::Certificate),
            (
                "\"error\":\"rpc error: code = DeadlineExceeded desc = latest balancer error: all SubConns are in TransientFailure\"\nError: context deadline exceeded",
                EtcdFault::Unreachable,
            ),
            ("Error: context deadline exceeded", EtcdFault::Silent),
            (
                "Error: etcdserver: request timed out, possibly due to previous leader failure",
                EtcdFault::Silent,
            ),
            ("Error: etcdserver: too many operations in txn request", EtcdFault::Refused),
        ] {
            assert_eq!(EtcdFault::of(said), fault, "{said}");
        }
    }
}
