//! Where Nova runs a server now: a configuration that says so once is wrong as soon as the server has moved.

use serde_json::Value;
use tokio::time::Instant;

use super::catalog::COMPUTE;
use super::check::look_up;
use super::session::{Ask, Session};
use super::usual::found;
use crate::driver::{Failure, LOCKED_OUT, Outcome};

/// On which host a server is, as those see it who may.
pub(crate) const HOST: &str = "OS-EXT-SRV-ATTR:host";

/// Where a server is, seen from a host that has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// There, as far as Nova knows.
    There,
    /// On another host, or on none.
    Elsewhere,
    /// Nova has no such server.
    Unknown,
}

/// Where a server is.
///
/// # Errors
/// It could not be learnt.
pub(crate) async fn place_of(
    session: &Session,
    server: &str,
    host: &str,
    end: Instant,
) -> Result<Place, Outcome> {
    let path = format!("/servers/{server}");
    let answer =
        session.send(&COMPUTE, &Ask::get(&path, &[]), end).await.map_err(|trouble| trouble.outcome())?;
    // Nova's own word for what is not there: a 404 of somebody else says that the address is wrong.
    if answer.status == 404 && answer.json()["itemNotFound"].is_object() {
        return Ok(Place::Unknown);
    }
    let row = found(COMPUTE.who, &answer, "server")?.unwrap_or_default();
    let on = row.get(HOST).ok_or_else(no_hosts_shown)?;
    let is_there = on.as_str().is_some_and(|on| on.eq_ignore_ascii_case(host));
    Ok(if is_there { Place::There } else { Place::Elsewhere })
}

/// A host without servers is one that Nova knows: else its name is wrong, and nobody would ever notice.
///
/// # Errors
/// It could not be learnt, or Nova knows no such host.
pub(crate) async fn is_known(session: &Session, host: &str, end: Instant) -> Result<(), Outcome> {
    let query = [("host", host), ("binary", "nova-compute")];
    let rows = look_up(session, &COMPUTE, ("/os-services", &query), "services", end).await?;
    match rows.as_ref().and_then(Value::as_array).is_some_and(|rows| !rows.is_empty()) {
        true => Ok(()),
        false => Err(no_such_host(host)),
    }
}

/// Nova says nothing of a host by this name.
fn no_such_host(host: &str) -> Outcome {
    let why = format!("Nova has no compute service on a host named {host}: set host-name, or [hosts.names]");
    Outcome::Rejected(Failure::new("unknown-host", &why))
}

/// Nova does not say where a server is: it may have passed over the host that was asked for.
pub(crate) fn no_hosts_shown() -> Outcome {
    let why =
        "Nova does not show on which hosts servers are: give the user the role that its policy asks for";
    Outcome::Refused(Failure::new("forbidden", why).or_after(LOCKED_OUT))
}
