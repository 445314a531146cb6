//! Where Nova runs a server now: a configuration is wrong as soon as the server has moved.

use serde_json::Value;
use tokio::time::Instant;

use super::catalog::COMPUTE;
use super::check::ask_for;
use super::session::{Ask, Session};
use super::usual::found;
use crate::driver::{Failure, LOCKED_OUT, Outcome};

/// The field with a server's host; only some users may see it.
pub(crate) const HOST: &str = "OS-EXT-SRV-ATTR:host";

/// Where a server is, compared with a host that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// On that host, as Nova has it.
    There,
    /// On another host, or on none.
    Elsewhere,
    /// Nova has no such server.
    Unknown,
}

/// Where a server is.
///
/// # Errors
/// The answer is unknown.
pub(crate) async fn place_of(
    session: &Session,
    server: &str,
    host: &str,
    end: Instant,
) -> Result<Place, Outcome> {
    let path = format!("/servers/{server}");
    let answer =
        session.send(&COMPUTE, &Ask::get(&path, &[]), end).await.map_err(|trouble| trouble.outcome())?;
    // Nova's own 404: another's means that the address is wrong.
    if answer.status == 404 && answer.json()["itemNotFound"].is_object() {
        return Ok(Place::Unknown);
    }
    let row = found(COMPUTE.who, &answer, "server")?.unwrap_or_default();
    let on = row.get(HOST).ok_or_else(no_hosts_shown)?;
    let is_there = on.as_str().is_some_and(|on| on.eq_ignore_ascii_case(host));
    Ok(if is_there { Place::There } else { Place::Elsewhere })
}

/// Checks that Nova knows a host without servers: otherwise its name is wrong, and nobody would notice.
///
/// # Errors
/// The answer is unknown, or Nova knows no such host.
pub(crate) async fn is_known(session: &Session, host: &str, end: Instant) -> Result<(), Outcome> {
    let query = [("host", host), ("binary", "nova-compute")];
    let rows = ask_for(session, &COMPUTE, ("/os-services", &query), "services", end).await?;
    match rows.as_ref().and_then(Value::as_array).is_some_and(|rows| !rows.is_empty()) {
        true => Ok(()),
        false => Err(no_such_host(host)),
    }
}

/// Nova has no host of this name.
fn no_such_host(host: &str) -> Outcome {
    let why = format!("Nova has no compute service on a host named {host}: set host-name, or [hosts.names]");
    Outcome::Rejected(Failure::new("unknown-host", &why))
}

/// Nova does not show where a server is: it may have ignored the filter by host.
pub(crate) fn no_hosts_shown() -> Outcome {
    let why = "Nova does not show the hosts of servers: give the user the role that Nova's policy requires";
    Outcome::Refused(Failure::new("forbidden", why).or_after(LOCKED_OUT))
}
