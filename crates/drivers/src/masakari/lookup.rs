//! What Masakari has: its segments with their hosts, and its notifications of a host. Nothing is changed here.

use std::collections::BTreeSet;

use marks::time::Timestamp;
use serde_json::Value;

use super::answer;
use super::body::Stored;
use super::row::{Row, Unseen, uuid};
use crate::driver::{Failure, Outcome};
use crate::openstack::Exchange;
use crate::times;
use crate::web::{Answer, Ask};

/// Lists the oldest entries first; by default the newest come first. Masakari gives at most `osapi_max_limit` entries at
/// once and does not show that limit, and `marker` means another thing in each release. But a list whose two ends are the
/// same is whole.
const OLDEST_FIRST: (&str, &str) = ("sort_dir", "asc");
const SEGMENTS: &str = "/segments";
/// From this version on a segment shows whether it is enabled.
const WITH_ENABLED: &str = "instance-ha 1.2";

/// A group of hosts that replace each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) uuid: String,
    /// For people.
    pub(super) name: String,
    /// Masakari takes and ignores notifications of a disabled segment. An older Masakari does not show this.
    pub(super) enabled: Option<bool>,
}

impl Segment {
    /// Where its hosts are.
    fn hosts(&self) -> String {
        format!("{SEGMENTS}/{}/hosts", self.uuid)
    }
}

/// A host as Masakari knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Host {
    pub(super) segment: Segment,
    pub(super) uuid: String,
    pub(super) name: String,
    pub(super) on_maintenance: bool,
    /// When the entry was changed last; whole seconds.
    pub(super) changed: Option<i64>,
}

/// Every host that Masakari shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hosts {
    pub(super) shown: Vec<Host>,
    /// Whether there are no others.
    pub(super) is_whole: bool,
}

impl Hosts {
    /// The host of exactly this name.
    ///
    /// # Errors
    /// The host may be one that is not shown.
    fn named(self, name: &str) -> Result<Option<Host>, Unseen> {
        match self.shown.into_iter().find(|host| host.name == name) {
            None if !self.is_whole => Err(Unseen::Never(Outcome::Rejected(too_many(name)))),
            found => Ok(found),
        }
    }
}

/// A list, or two ends of one.
struct List {
    entries: Vec<Value>,
    is_whole: bool,
}

/// Questions to Masakari in one exchange.
#[derive(Clone, Copy)]
pub(super) struct Lookup<'s>(pub(super) Exchange<'s>);

impl Lookup<'_> {
    /// The id of the stored notification, if Masakari has it.
    ///
    /// # Errors
    /// The answer is unknown.
    pub(super) async fn find(&self, stored: &Stored) -> Result<Option<String>, Unseen> {
        let Some(host) = self.host(&stored.host).await? else { return Ok(None) };
        let rows = self.since(&host, stored).await?;
        Ok(rows.into_iter().find(|row| row.is(stored)).map(|row| row.uuid))
    }

    /// The host's notifications from the time of this one on. If this one is not among them, Masakari does not have it.
    ///
    /// # Errors
    /// The answer is unknown.
    pub(super) async fn since(&self, host: &Host, stored: &Stored) -> Result<Vec<Row>, Unseen> {
        let query = [
            ("type", "COMPUTE_HOST"),
            ("source_host_uuid", host.uuid.as_str()),
            ("generated-since", stored.generated_time.as_str()),
        ];
        let newest = self.list(Ask::get("/notifications", &query), "notifications").await?;
        let rows = rows(&newest, host)?;
        if rows.iter().any(|row| row.is(stored)) {
            return Ok(rows);
        }
        let oldest = [&query[..], &[OLDEST_FIRST]].concat();
        let oldest = self.list(Ask::get("/notifications", &oldest), "notifications").await?;
        let List { entries, is_whole } = joined(newest, oldest, "notification_uuid");
        let rows = self::rows(&entries, host)?;
        match is_whole || rows.iter().any(|row| row.is(stored)) {
            true => Ok(rows),
            false => Err(Unseen::Never(Outcome::Rejected(too_many(&stored.host)))),
        }
    }

    /// Whether the user may list notifications.
    ///
    /// # Errors
    /// As any.
    pub(super) async fn notifications(&self) -> Result<(), Unseen> {
        self.list(Ask::get("/notifications", &[("limit", "1")]), "notifications").await.map(|_| ())
    }

    /// The host of exactly this name.
    ///
    /// # Errors
    /// The answer is unknown.
    pub(super) async fn host(&self, name: &str) -> Result<Option<Host>, Unseen> {
        for segment in segments(&self.list(Ask::get(SEGMENTS, &[]), "segments").await?)? {
            let hosts = hosts(&self.list(Ask::get(&segment.hosts(), &[]), "hosts").await?, &segment)?;
            if let Some(found) = hosts.into_iter().find(|host| host.name == name) {
                return Ok(Some(found));
            }
        }
        // It counts as missing only after it was searched among all.
        let all = self.both_ends(SEGMENTS, "segments", None).await?;
        self.hosts_of(&all).await?.named(name)
    }

    /// Every host of every segment.
    ///
    /// # Errors
    /// The answer is unknown.
    pub(super) async fn all(&self) -> Result<Hosts, Unseen> {
        // A Masakari that does not know this version refuses it.
        let segments = match self.both_ends(SEGMENTS, "segments", Some(WITH_ENABLED)).await {
            Err(Unseen::Never(_)) => self.both_ends(SEGMENTS, "segments", None).await?,
            other => other?,
        };
        self.hosts_of(&segments).await
    }

    async fn hosts_of(&self, List { entries, is_whole }: &List) -> Result<Hosts, Unseen> {
        let mut all = Hosts { shown: Vec::new(), is_whole: *is_whole };
        for segment in segments(entries)? {
            let own = self.both_ends(&segment.hosts(), "hosts", None).await?;
            all.shown.extend(hosts(&own.entries, &segment)?);
            all.is_whole &= own.is_whole;
        }
        Ok(all)
    }

    async fn both_ends(&self, path: &str, key: &str, version: Option<&str>) -> Result<List, Unseen> {
        let newest = self.list(Ask::get(path, &[]).in_version(version), key).await?;
        let oldest = self.list(Ask::get(path, &[OLDEST_FIRST]).in_version(version), key).await?;
        Ok(joined(newest, oldest, "uuid"))
    }

    async fn list(&self, ask: Ask<'_>, key: &str) -> Result<Vec<Value>, Unseen> {
        let answer = self.0.send(&ask).await;
        entries(&answer.map_err(|outcome| Unseen::NotNow(outcome.of_a_question()))?, key)
    }
}

/// The entries of a list that Masakari gave.
fn entries(answer: &Answer, key: &str) -> Result<Vec<Value>, Unseen> {
    if answer.status != 200 {
        return Err(answer::unseen(answer));
    }
    // An answer that was cut off may seem whole to HTTP.
    let body: Value = serde_json::from_slice(&answer.body).map_err(|_| cut_off())?;
    match &body[key] {
        Value::Array(rows) => Ok(rows.clone()),
        _ => Err(strange()),
    }
}

/// One list of its two ends, each entry once.
fn joined(newest: Vec<Value>, oldest: Vec<Value>, id: &str) -> List {
    let known: BTreeSet<String> = newest.iter().map(|entry| entry[id].to_string()).collect();
    let (mut entries, before) = (newest, known.len());
    entries.extend(oldest.into_iter().filter(|entry| !known.contains(&entry[id].to_string())));
    List { is_whole: entries.len() == before, entries }
}

fn segments(entries: &[Value]) -> Result<Vec<Segment>, Unseen> {
    entries.iter().map(|entry| segment(entry).ok_or_else(strange)).collect()
}

fn hosts(entries: &[Value], segment: &Segment) -> Result<Vec<Host>, Unseen> {
    entries.iter().map(|entry| host(entry, segment).ok_or_else(strange)).collect()
}

fn rows(entries: &[Value], host: &Host) -> Result<Vec<Row>, Unseen> {
    let own = entries.iter().filter(|row| row["source_host_uuid"] == host.uuid.as_str());
    own.map(|entry| Row::read(entry).ok_or_else(strange)).collect()
}

fn segment(entry: &Value) -> Option<Segment> {
    let name = entry["name"].as_str().unwrap_or_default().to_owned();
    Some(Segment { uuid: uuid(&entry["uuid"])?, name, enabled: entry["enabled"].as_bool() })
}

fn host(entry: &Value, segment: &Segment) -> Option<Host> {
    Some(Host {
        segment: segment.clone(),
        uuid: uuid(&entry["uuid"])?,
        name: entry["name"].as_str()?.to_owned(),
        on_maintenance: entry["on_maintenance"].as_bool()?,
        changed: times::of(&entry["updated_at"]),
    })
}

/// How long ago it was, in seconds; 0 if its clock is ahead of ours.
pub(super) fn ago(since: i64, now: Timestamp) -> u64 {
    u64::try_from(now.seconds().saturating_sub(since)).unwrap_or_default()
}

fn cut_off() -> Unseen {
    Unseen::NotNow(Outcome::Retry(Failure::new("unavailable", "Masakari's answer was cut off")))
}

fn strange() -> Unseen {
    Unseen::Never(Outcome::Refused(Failure::new(
        "misconfigured",
        "the answer is not Masakari's: check what the catalog, or endpoint, names",
    )))
}

/// It is unknown whether Masakari has it.
pub(super) fn too_many(host: &str) -> Failure {
    let says = format!(
        "Masakari lists too few entries at once and does not show those of {host}: raise its osapi_max_limit"
    );
    Failure::new("not-shown", &says)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const BODY: &[u8] =
        br#"{"notification":{"type":"COMPUTE_HOST","hostname":"c","generated_time":"2026-07-21T02:13:21Z",
        "payload":{"event":"STOPPED","cluster_status":"OFFLINE","host_status":"NORMAL"}}}"#;

    fn of(generated: &str, host_status: &str) -> Option<Row> {
        let payload = json!({"host_status": host_status, "event": "STOPPED", "cluster_status": "OFFLINE"});
        Row::read(
            &json!({"notification_uuid": "9b1e", "status": "new", "generated_time": generated, "payload": payload}),
        )
    }

    #[test]
    fn times_are_compared_whatever_their_form() {
        let stored = Stored::read(BODY).unwrap();
        for form in [
            "2026-07-21T02:13:21.000000",
            "2026-07-21T02:13:21",
            "2026-07-21T02:13:21Z",
            "2026-07-21T04:13:21+02:00",
        ] {
            let row = of(form, "NORMAL").unwrap();
            assert!(row.is(&stored) && !row.is_after(&stored), "{form}");
        }
        let later = of("2026-07-21T02:13:22.000000", "NORMAL").unwrap();
        assert!(!later.is(&stored) && later.is_after(&stored));
        assert!(of("soon", "NORMAL").is_none() && of("", "NORMAL").is_none());
    }

    /// Another monitor's notification of the same second is not ours, and Masakari may ignore it.
    #[test]
    fn another_payload_is_another_notification() {
        let (stored, other) = (Stored::read(BODY).unwrap(), of("2026-07-21T02:13:21", "UNKNOWN").unwrap());
        assert!(!other.is(&stored));
        assert!(other.is_failure(), "the broken variant checks the event alone");
    }

    /// A value of a list becomes a path.
    #[test]
    fn a_name_that_is_no_uuid_is_none() {
        for strange in [json!(""), json!("../x"), json!("a".repeat(37)), json!(7), json!(null)] {
            assert_eq!(uuid(&strange), None);
        }
        assert!(uuid(&json!("b6165712-0000-4000-8000-000000000001")).is_some());
    }

    /// The broken variant counts entries: a list that is full seems whole, or a whole one does not.
    #[test]
    fn a_list_is_whole_when_its_ends_are_the_same() {
        let of = |newest: &[u8], oldest: &[u8]| {
            let list = |ids: &[u8]| ids.iter().map(|id| json!({ "uuid": id })).collect();
            let List { entries, is_whole } = joined(list(newest), list(oldest), "uuid");
            (entries.len(), is_whole)
        };
        assert_eq!(of(&[], &[]), (0, true));
        assert_eq!(of(&[3, 2, 1], &[1, 2, 3]), (3, true));
        assert_eq!(of(&[3, 2], &[1, 2]), (3, false), "what is between them is unknown");
        assert_eq!(of(&[4, 3], &[1, 2]), (4, false));
        let full = 2;
        assert_ne!([3, 2, 1].len() < full, of(&[3, 2, 1], &[1, 2, 3]).1, "the broken variant");
    }

    #[test]
    fn half_an_answer_is_asked_for_again() {
        let of = |status, body| entries(&Answer::of(status, body, None), "hosts");
        assert_eq!(of(200, r#"{"hosts": []}"#), Ok(vec![]));
        assert!(matches!(of(200, r#"{"hosts": [{"#), Err(Unseen::NotNow(_))));
        assert!(matches!(of(200, r#"{"segments": []}"#), Err(Unseen::Never(_))));
        assert!(matches!(of(503, ""), Err(Unseen::NotNow(_))));
        assert!(matches!(of(403, ""), Err(Unseen::Hidden(_))));
        assert!(matches!(of(404, ""), Err(Unseen::Never(_))));
    }
}
