//! Whether Masakari has this very notification: of this host, with this time.

use reqwest::Method;
use serde_json::Value;
use tokio::time::Instant;

use super::body::Told;
use crate::openstack::{Ask, INSTANCE_HA, Session, seconds};

/// Why it is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unseen {
    /// Masakari did not say.
    Unclear,
    /// The user may not look.
    Forbidden,
}

/// Its name, if there is one. The lists are read as far as Masakari gives them at once (1,000 entries).
///
/// # Errors
/// It could not be learnt.
pub(super) async fn find(session: &Session, told: &Told, end: Instant) -> Result<Option<String>, Unseen> {
    let query = [("type", "COMPUTE_HOST"), ("generated-since", told.generated_time.as_str())];
    let all = list(session, "/notifications", &query, "notifications", end).await?;
    let is_same =
        |row: &&Value| row["payload"]["event"] == "STOPPED" && is_same_time(row, &told.generated_time);
    let same: Vec<&Value> = all.iter().filter(is_same).collect();
    // A list of notifications does not name their hosts, and no list can be asked for by a host's name.
    if same.is_empty() {
        return Ok(None);
    }
    let Some(host) = host(session, &told.host, end).await? else { return Ok(None) };
    let ours = same.into_iter().find(|row| row["source_host_uuid"] == host);
    Ok(ours.and_then(|row| row["notification_uuid"].as_str()).map(str::to_owned))
}

/// Masakari's name for a host.
async fn host(session: &Session, name: &str, end: Instant) -> Result<Option<String>, Unseen> {
    for segment in list(session, "/segments", &[], "segments", end).await? {
        let uuid = segment["uuid"].as_str().filter(|uuid| is_uuid(uuid)).ok_or(Unseen::Unclear)?;
        let hosts = list(session, &format!("/segments/{uuid}/hosts"), &[], "hosts", end).await?;
        if let Some(found) = hosts.iter().find(|host| host["name"] == name) {
            return found["uuid"].as_str().map(|uuid| Some(uuid.to_owned())).ok_or(Unseen::Unclear);
        }
    }
    Ok(None)
}

async fn list(
    session: &Session,
    path: &str,
    query: &[(&str, &str)],
    key: &str,
    end: Instant,
) -> Result<Vec<Value>, Unseen> {
    let ask = Ask { method: &Method::GET, path, query, body: None, version: None };
    let answer = session.send(&INSTANCE_HA, &ask, end).await.map_err(|_| Unseen::Unclear)?;
    if answer.status == 403 {
        return Err(Unseen::Forbidden);
    }
    match (answer.status, &answer.json()[key]) {
        (200, Value::Array(rows)) => Ok(rows.clone()),
        _ => Err(Unseen::Unclear),
    }
}

/// It becomes a part of a path.
fn is_uuid(text: &str) -> bool {
    text.len() <= 36 && text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
}

/// Masakari gives times back without a zone, with a fraction.
fn is_same_time(row: &Value, sent: &str) -> bool {
    let stored = row["generated_time"].as_str().and_then(seconds);
    stored.is_some() && stored == seconds(sent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn times_are_compared_whatever_their_form() {
        let same = |stored: &str| is_same_time(&json!({ "generated_time": stored }), "2026-07-21T02:13:21Z");
        for stored in [
            "2026-07-21T02:13:21.000000",
            "2026-07-21T02:13:21",
            "2026-07-21T02:13:21Z",
            "2026-07-21T04:13:21+02:00",
        ] {
            assert!(same(stored), "{stored}");
        }
        for stored in ["2026-07-21T02:13:22.000000", "soon", ""] {
            assert!(!same(stored), "{stored}");
        }
        assert!(!is_same_time(&json!({}), "soon"));
    }
}
