//! What Nova and Heat are asked before anything is changed: the servers of a host, and the resources as they are.

use serde::de::IgnoredAny;
use serde_json::Value;
use tokio::time::Instant;

use super::answer::{lost_its_place, no_end, no_such, too_long};
use super::body::Stored;
use super::found::Found;
use super::targets::{Resource, Stack, is_plain};
use crate::driver::Outcome;
use crate::openstack::{
    Answer, Ask, COMPUTE, HOST, ORCHESTRATION, Session, ask_for, found, is_known, no_hosts_shown,
};

/// How many servers are asked for at once. Ten mostly fit into one answer, and one always does: any tenant can give a
/// server some 400 KiB of metadata.
const PAGES: [&str; 2] = ["10", "1"];
/// Nested stacks, deeper than Heat's own limit.
const DEPTH: &str = "16";

/// A resource that the configuration names.
///
/// # Errors
/// The outer one: the answer is unknown. The inner one: there is no such resource.
pub(super) async fn resource(
    session: &Session,
    resource: &Resource,
    end: Instant,
) -> Result<Result<Found, Outcome>, Outcome> {
    let found = ask_for(session, &ORCHESTRATION, (resource.path(), &[]), "resource", end).await?;
    let missing = || no_such("unknown-resource", &format!("resource {}", resource.written()), "resources");
    Ok(found.map(|row| of_row(&row, resource.path().to_owned())).ok_or_else(missing))
}

/// Everything in a stack and its nested stacks. Each is named by its physical id if it has one: after a replacement its
/// name means another one.
///
/// # Errors
/// The outer one: the answer is unknown. The inner one: there is no such stack.
pub(super) async fn members(
    session: &Session,
    stack: &Stack,
    end: Instant,
) -> Result<Result<Vec<Found>, Outcome>, Outcome> {
    let path = format!("{}/resources", stack.path());
    let found =
        ask_for(session, &ORCHESTRATION, (&path, &[("nested_depth", DEPTH)]), "resources", end).await?;
    let name = stack.path().trim_start_matches("/stacks/");
    let missing = || no_such("unknown-stack", &format!("stack {name}"), "stacks");
    let all = |rows| self::rows(rows).iter().filter_map(member).collect();
    Ok(found.map(|rows| all(Some(rows))).ok_or_else(missing))
}

fn member(row: &Value) -> Option<Found> {
    let physical = text(row, "physical_resource_id");
    if !is_plain(&physical) {
        return None;
    }
    let links = row["links"].as_array()?;
    let own = links.iter().find(|link| link["rel"] == "stack")?["href"].as_str()?;
    let stack = Stack::parse(own.rsplit_once("/stacks/")?.1).ok()?;
    Some(of_row(row, format!("{}/resources/{physical}", stack.path())))
}

fn of_row(row: &Value, path: String) -> Found {
    Found {
        path,
        physical: text(row, "physical_resource_id"),
        status: text(row, "resource_status"),
        reason: text(row, "resource_status_reason"),
        made: row["creation_time"].as_str().map(str::to_owned),
        kind: text(row, "resource_type"),
    }
}

/// The servers that were on the host when it failed. Nova ignores a filter that the user may not use, so each row must
/// name its host.
///
/// # Errors
/// The answer is unknown, or Nova knows no such host.
pub(super) async fn servers(
    session: &Session,
    stored: &Stored,
    end: Instant,
) -> Result<Vec<String>, Outcome> {
    let mut all = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let rows = page(session, &stored.host, after.as_deref(), end).await?;
        // Nova's own limit may shorten a page: only an empty one is the last.
        let Some(last) = rows.last().map(|row| text(row, "id")) else { break };
        if rows.iter().any(|row| row.get(HOST).is_none()) {
            return Err(no_hosts_shown());
        }
        if last.is_empty() || after.as_ref() == Some(&last) {
            return Err(no_end());
        }
        let is_meant = |row: &&Value| {
            text(row, HOST).eq_ignore_ascii_case(&stored.host) && !stored.precedes(row["created"].as_str())
        };
        all.extend(rows.iter().filter(is_meant).map(|row| text(row, "id")));
        after = Some(last);
    }
    if all.is_empty() && !stored.is_test() {
        is_known(session, &stored.host, end).await?;
    }
    Ok(all)
}

/// The servers behind this one. A tenant decides how long its servers' entries are: if ten are too long for one answer,
/// one is not.
async fn page(
    session: &Session,
    host: &str,
    after: Option<&str>,
    end: Instant,
) -> Result<Vec<Value>, Outcome> {
    let mut limits = PAGES.iter();
    loop {
        let limit = limits.next().ok_or_else(too_long)?;
        let mut query = vec![("all_tenants", "1"), ("host", host), ("limit", limit)];
        query.extend(after.map(|id| ("marker", id)));
        let answer = session.send(&COMPUTE, &Ask::get("/servers/detail", &query), end).await;
        let answer = answer.map_err(|trouble| trouble.outcome())?;
        match answer.status {
            200 if is_cut(&answer) => {}
            400 if after.is_some() => return Err(lost_its_place(&answer)),
            _ => return Ok(rows(found(COMPUTE.who, &answer, "servers")?)),
        }
    }
}

/// Whether an answer ends in the middle: it is longer than the limit, or the connection broke.
fn is_cut(answer: &Answer) -> bool {
    serde_json::from_slice::<IgnoredAny>(&answer.body).is_err_and(|why| why.is_eof())
}

fn rows(list: Option<Value>) -> Vec<Value> {
    match list {
        Some(Value::Array(rows)) => rows,
        _ => Vec::new(),
    }
}

fn text(row: &Value, key: &str) -> String {
    row[key].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// S2-14: the innermost stack, and the member by its physical id.
    #[test]
    fn a_member_is_where_its_own_stack_is() {
        let row = |href: &str, physical: &str| {
            json!({"resource_name": "0", "physical_resource_id": physical, "resource_status": "CREATE_COMPLETE",
                "resource_status_reason": "state changed", "creation_time": "2026-07-20T00:00:00Z",
                "links": [{"rel": "self", "href": "http://h/x"}, {"rel": "stack", "href": href}]})
        };
        let inner = "http://heat/v1/4d43/stacks/web-group-x/5e9b";
        let found = member(&row(inner, "9b1e")).unwrap();
        assert_eq!(found.path, "/stacks/web-group-x/5e9b/resources/9b1e");
        assert_eq!((found.physical.as_str(), found.status.as_str()), ("9b1e", "CREATE_COMPLETE"));
        for (href, physical) in
            [(inner, ""), (inner, "../x"), ("http://heat/v1", "9b1e"), ("http://h/stacks/a/b/../c", "9b1e")]
        {
            assert_eq!(member(&row(href, physical)), None, "{href} {physical}");
        }
        assert_eq!(member(&json!({"physical_resource_id": "9b1e"})), None);
    }
}
