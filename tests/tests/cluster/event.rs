//! The event as it must arrive, byte by byte.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, ensure};
use marks::id::MarkId;
use serde_json::Value;
use tests::receiver::Received;

use crate::cloud::Mark;

/// Seconds since the epoch.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Checks one request against its mark; `died` is when the host died or later was fenced at the earliest.
pub(crate) fn check(request: &Received, mark: &Mark, died: u64) -> anyhow::Result<()> {
    ensure!(request.first_line == "POST /v1/host-failures HTTP/1.1", "{}", request.first_line);
    ensure!(request.header("content-type") == Some("application/json"), "{:?}", request.headers);
    let body = String::from_utf8(request.body.clone())?;
    let event: Value = serde_json::from_str(&body)?;
    let id = event["id"].as_str().context("no id")?;
    MarkId::parse(id).with_context(|| format!("{id} is no UUID"))?;
    ensure!(id == mark.id, "sent as {id}, marked as {}", mark.id);
    let generated = event["generated_time"].as_u64().context("no generated_time")?;
    let failed = event["payload"]["failure_time"].as_u64().context("no failure_time")?;
    ensure!(died <= failed && failed <= generated && generated <= now(), "{died} {body}");
    let expected = format!(
        "{{\"id\":\"{id}\",\"event_type\":\"host failure\",\"version\":\"1.0\",\"generated_time\":{generated},\
         \"payload\":{{\"hostname\":\"compute1.my.cloud.com\",\"on_shared_storage\":true,\"failure_time\":{failed}}}}}"
    );
    ensure!(body == expected, "arrived: {body}\nexpected: {expected}");
    ensure!(body == mark.body, "arrived: {body}\nin the journal: {}", mark.body);
    Ok(())
}

/// Broken variants of an event that [`check`] took: it takes none of them.
pub(crate) fn another_is_noticed(request: &Received, mark: &Mark, died: u64) -> anyhow::Result<()> {
    let body = String::from_utf8(request.body.clone())?;
    let changes =
        [("true", "false"), (".my.cloud.com", ""), ("\"1.0\"", "1.0"), (",", ", "), ("host failure", "host")];
    for (from, to) in changes {
        let other = Received { body: body.replacen(from, to, 1).into_bytes(), ..request.clone() };
        ensure!(check(&other, mark, died).is_err(), "{to:?} for {from:?} is not noticed");
    }
    ensure!(check(request, mark, now() + 1).is_err(), "a failure before the host died is not noticed");
    Ok(())
}
