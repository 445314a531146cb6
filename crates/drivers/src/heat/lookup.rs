//! What Nova and Heat are asked before anything is changed: the servers of a host, and the resources as they are.

use serde_json::Value;

use super::body::Stored;
use super::found::Found;
use super::keys::{Resource, Stack, is_plain};
use crate::driver::Outcome;
use crate::openstack::{Exchange, rows};
use crate::web::Ask;

/// How many servers are asked for at once: ten mostly fit into one answer.
const PAGES: [&str; 2] = ["10", "1"];
/// Nested stacks, deeper than Heat's own limit.
const DEPTH: &str = "16";

/// A resource that the configuration names; `None` if there is none.
///
/// # Errors
/// The answer is unknown.
pub(super) async fn resource(exchange: Exchange<'_>, resource: &Resource) -> Result<Option<Found>, Outcome> {
    let found = exchange.get(&Ask::get(&resource.path, &[]), "resource").await?;
    Ok(found.map(|row| of_row(&row, resource.path.clone())))
}

/// Everything in a stack and its nested stacks; `None` if there is no such stack. Each is named by its physical id if it has one:
/// after a replacement its name means another one.
///
/// # Errors
/// The answer is unknown.
pub(super) async fn members(exchange: Exchange<'_>, stack: &Stack) -> Result<Option<Vec<Found>>, Outcome> {
    let (path, query) = (format!("{}/resources", stack.path), [("nested_depth", DEPTH)]);
    let found = exchange.get(&Ask::get(&path, &query), "resources").await?;
    Ok(found.map(|all| rows(Some(all)).iter().filter_map(member).collect()))
}

fn member(row: &Value) -> Option<Found> {
    let physical = text(row, "physical_resource_id");
    if !is_plain(&physical) {
        return None;
    }
    let links = row["links"].as_array()?;
    let own = links.iter().find(|link| link["rel"] == "stack")?["href"].as_str()?;
    let stack = Stack::parse(own.rsplit_once("/stacks/")?.1).ok()?;
    Some(of_row(row, format!("{}/resources/{physical}", stack.path)))
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
pub(super) async fn servers(exchange: Exchange<'_>, stored: &Stored) -> Result<Vec<String>, Outcome> {
    let mut all = Vec::new();
    let visit = |row: &Value| {
        if !stored.precedes(row["created"].as_str()) {
            all.push(text(row, "id"));
        }
    };
    exchange.each_on(&stored.host, &PAGES, visit).await?;
    if all.is_empty() && !stored.is_test() {
        exchange.is_known(&stored.host).await?;
    }
    Ok(all)
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
