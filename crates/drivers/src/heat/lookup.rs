//! What Nova and Heat are asked before anything is changed: the servers of a host, and the resources as they are.

use serde_json::Value;
use tokio::time::Instant;

use super::answer::no_such;
use super::body::Stored;
use super::found::Found;
use super::keys::{Resource, Stack, is_plain};
use crate::driver::Outcome;
use crate::openstack::{ORCHESTRATION, Session, ask_for, each_on, is_known};

/// How many servers are asked for at once: ten mostly fit into one answer.
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

/// The servers that were on the host when it failed.
///
/// # Errors
/// The answer is unknown, or Nova knows no such host.
pub(super) async fn servers(
    session: &Session,
    stored: &Stored,
    end: Instant,
) -> Result<Vec<String>, Outcome> {
    let mut all = Vec::new();
    each_on(session, &stored.host, &PAGES, end, |row| {
        if !stored.precedes(row["created"].as_str()) {
            all.push(text(row, "id"));
        }
    })
    .await?;
    if all.is_empty() && !stored.is_test() {
        is_known(session, &stored.host, end).await?;
    }
    Ok(all)
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
    use serde_json::json;

    use super::*;

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
