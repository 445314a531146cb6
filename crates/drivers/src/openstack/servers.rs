//! Where Nova runs servers: those of a host, and the host of one.

use serde::de::IgnoredAny;
use serde_json::Value;

use super::catalog::COMPUTE;
use super::session::Exchange;
use super::trouble::{described, found};
use crate::driver::{Failure, LOCKED_OUT, Outcome};
use crate::web::{Answer, Ask};
use crate::which::ADVICE;

/// The field with a server's host; only some users may see it.
const HOST: &str = "OS-EXT-SRV-ATTR:host";

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

impl Exchange<'_> {
    /// Where a server is.
    ///
    /// # Errors
    /// The answer is unknown.
    pub(crate) async fn place_of(self, server: &str, host: &str) -> Result<Place, Outcome> {
        let answer = self.with(COMPUTE).send(&Ask::get(&format!("/servers/{server}"), &[])).await?;
        // Nova's own 404: another's means that the address is wrong.
        if answer.status == 404 && answer.json()["itemNotFound"].is_object() {
            return Ok(Place::Unknown);
        }
        let row = found(COMPUTE.who, &answer, "server")?.unwrap_or_default();
        let on = row.get(HOST).ok_or_else(no_hosts_shown)?;
        let is_there = on.as_str().is_some_and(|on| on.eq_ignore_ascii_case(host));
        Ok(if is_there { Place::There } else { Place::Elsewhere })
    }

    /// Checks that Nova knows a host without servers: its name may be wrong, which nobody would notice.
    ///
    /// # Errors
    /// The answer is unknown, or Nova has no compute service on such a host.
    pub(crate) async fn is_known(self, host: &str) -> Result<(), Outcome> {
        let query = [("host", host), ("binary", "nova-compute")];
        let found = self.with(COMPUTE).get(&Ask::get("/os-services", &query), "services").await?;
        if rows(found).is_empty() { Err(no_such_host(host)) } else { Ok(()) }
    }

    /// Calls `visit` for every server of a host, without having all of them in memory. Nova ignores a filter that the user may
    /// not use, so each row must name its host. `pages`: how many are asked for at once, then fewer where an answer is cut
    /// off; the last must be `1`, which always fits: any tenant can give a server some 400 KiB of metadata.
    ///
    /// # Errors
    /// The answer is unknown.
    pub(crate) async fn each_on(
        self,
        host: &str,
        pages: &[&str],
        mut visit: impl FnMut(&Value),
    ) -> Result<(), Outcome> {
        let mut after: Option<String> = None;
        loop {
            let rows = self.servers(host, pages, after.as_deref()).await?;
            // Nova's own limit may shorten a page: only an empty one is the last.
            let Some(last) = rows.last().map(|row| row["id"].as_str().unwrap_or_default().to_owned()) else {
                return Ok(());
            };
            if rows.iter().any(|row| row.get(HOST).is_none()) {
                return Err(no_hosts_shown());
            }
            if last.is_empty() || after.as_ref() == Some(&last) {
                return Err(no_end());
            }
            let is_there = |row: &&Value| row[HOST].as_str().is_some_and(|on| on.eq_ignore_ascii_case(host));
            rows.iter().filter(is_there).for_each(&mut visit);
            after = Some(last);
        }
    }

    /// The servers behind this one.
    async fn servers(self, host: &str, pages: &[&str], after: Option<&str>) -> Result<Vec<Value>, Outcome> {
        for limit in pages {
            let mut query = vec![("all_tenants", "1"), ("host", host), ("limit", limit)];
            query.extend(after.map(|id| ("marker", id)));
            let answer = self.with(COMPUTE).send(&Ask::get("/servers/detail", &query)).await?;
            match answer.status {
                200 if is_cut(&answer) => {}
                400 if after.is_some() => return Err(lost_its_place(&answer)),
                _ => return Ok(rows(found(COMPUTE.who, &answer, "servers")?)),
            }
        }
        Err(too_long())
    }
}

/// Nova has no host of this name.
fn no_such_host(host: &str) -> Outcome {
    let why = format!("Nova has no compute service on a host named {host}: {ADVICE}");
    Outcome::Rejected(Failure::new("unknown-host", &why))
}

/// Nova does not show where a server is: it may have ignored the filter by host.
fn no_hosts_shown() -> Outcome {
    let why = "Nova does not show the hosts of servers: give the user the role that Nova's policy requires";
    Outcome::Refused(Failure::new("forbidden", why).or_after(LOCKED_OUT))
}

/// The entries of a list.
pub(crate) fn rows(list: Option<Value>) -> Vec<Value> {
    match list {
        Some(Value::Array(rows)) => rows,
        _ => Vec::new(),
    }
}

/// Whether an answer ends in the middle: it is longer than the limit, or the connection broke.
fn is_cut(answer: &Answer) -> bool {
    serde_json::from_slice::<IgnoredAny>(&answer.body).is_err_and(|why| why.is_eof())
}

/// One server alone is too long for an answer, or the connection broke each time.
fn too_long() -> Outcome {
    let why = "Nova's list was cut off, even for one server: check the connection, and whether a server of this host exceeds Nova's metadata quota";
    Outcome::Unknown(Failure::new("protocol", why))
}

/// Nova gives the same page again.
fn no_end() -> Outcome {
    let why = "Nova's list of servers repeats its first page: check what the catalog names as Nova";
    Outcome::Unknown(Failure::new("protocol", why))
}

/// The last server of a page was deleted before the next page was asked for.
fn lost_its_place(answer: &Answer) -> Outcome {
    let advice = " to the next page of servers: the next attempt reads the list again";
    Outcome::Retry(described("Nova", answer, "conflict", advice).after(answer.wish))
}
