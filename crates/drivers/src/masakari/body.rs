//! A notification as Masakari takes it: these keys and no other. Pure.

use marks::host::HostName;
use marks::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::event::{NO_HOST, bytes};

/// Masakari takes a notification for a repetition if it has one of the same host from up to 180 s before, or from any
/// time after: `duplicate_notification_detection_interval`.
const APART: i64 = 181;

#[derive(Serialize, Deserialize)]
struct Envelope {
    notification: Stored,
}

/// A notification, which is what is stored. Serialised in the order of its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stored {
    r#type: String,
    /// The host, as Masakari knows it.
    #[serde(rename = "hostname")]
    pub(super) host: String,
    /// The time, as it is sent.
    pub(super) generated_time: String,
    /// What it says of the host.
    pub(super) payload: Payload,
}

/// What a notification says of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Payload {
    pub(super) event: String,
    cluster_status: String,
    host_status: String,
}

/// The notification of a host that failed; `earlier` are the times of its earlier marks, oldest first. `host_status` says
/// that the power state is known: without it Masakari takes the notification and does nothing.
pub(super) fn of_mark(host: &HostName, generated: Timestamp, earlier: &[Timestamp]) -> Vec<u8> {
    write(host.as_str(), Timestamp::from_seconds(apart(generated, earlier)), "STOPPED", "OFFLINE")
}

/// A test: a host that cannot exist, reported as up.
pub(super) fn of_test(now: Timestamp) -> Vec<u8> {
    write(NO_HOST, now, "STARTED", "ONLINE")
}

fn write(host: &str, time: Timestamp, event: &str, cluster_status: &str) -> Vec<u8> {
    let [r#type, host, event, cluster_status, host_status] =
        ["COMPUTE_HOST", host, event, cluster_status, "NORMAL"].map(str::to_owned);
    let payload = Payload { event, cluster_status, host_status };
    // Whole seconds: some databases drop the rest.
    bytes(&Envelope {
        notification: Stored { r#type, host, generated_time: time.rfc3339_seconds(), payload },
    })
}

/// A notification's time in seconds: the mark's time, or so long after the previous notification's that Masakari does not
/// take it for a repetition. The same marks give the same time.
fn apart(own: Timestamp, earlier: &[Timestamp]) -> i64 {
    let after = |said: Option<i64>, at: &Timestamp| {
        let least = said.map_or(i64::MIN, |said| said.saturating_add(APART));
        Some(at.seconds().max(least))
    };
    earlier.iter().chain([&own]).fold(None, after).unwrap_or_else(|| own.seconds())
}

impl Stored {
    /// Reads it; `None` if it is no notification.
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        serde_json::from_slice(body).ok().map(|Envelope { notification }| notification)
    }

    /// Whether it is a test.
    pub(super) fn is_test(&self) -> bool {
        self.host == NO_HOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn host() -> HostName {
        HostName::parse("Compute1.my.cloud.com").unwrap()
    }

    #[test]
    fn the_body_has_the_documented_keys_and_no_other() {
        let body = of_mark(&host(), Timestamp(1_784_600_001_999), &[]);
        let golden = concat!(
            r#"{"notification":{"type":"COMPUTE_HOST","hostname":"Compute1.my.cloud.com","#,
            r#""generated_time":"2026-07-21T02:13:21Z","#,
            r#""payload":{"event":"STOPPED","cluster_status":"OFFLINE","host_status":"NORMAL"}}}"#
        );
        assert_eq!(String::from_utf8(body.clone()).unwrap(), golden);
        let stored = Stored::read(&body).unwrap();
        assert_eq!(stored.generated_time, "2026-07-21T02:13:21Z");
        assert!(!stored.is_test() && Stored::read(b"{}").is_none());
    }

    /// No host has the name of a test, and a test reports no failure.
    #[test]
    fn a_test_is_no_failure() {
        let body = of_test(Timestamp(0));
        assert!(Stored::read(&body).unwrap().is_test());
        let text = String::from_utf8(body).unwrap();
        assert!(text.contains("STARTED") && text.contains("send-test.invalid") && !text.contains("STOPPED"));
    }

    /// What Masakari does: a notification counts only if no stored one is younger than its time less 180 s.
    fn is_duplicate(stored: &[i64], new: i64) -> bool {
        stored.iter().any(|stored| *stored >= new - 180)
    }

    fn said(times: &[i64]) -> Vec<i64> {
        let times: Vec<Timestamp> = times.iter().copied().map(Timestamp::from_seconds).collect();
        (0..times.len()).map(|n| apart(times[n], &times[..n])).collect()
    }

    #[test]
    fn a_second_outage_within_three_minutes_is_no_repetition() {
        assert_eq!(said(&[1000, 1010, 1020, 2000]), [1000, 1181, 1362, 2000]);
        assert_eq!(said(&[5000, 1000]), [5000, 5181], "a clock that ran fast");
        assert!(is_duplicate(&[1000], 1010), "the broken variant sends the time as it is");
    }

    proptest! {
        #[test]
        fn no_outage_of_a_host_is_swallowed(times in proptest::collection::vec(0..100_000i64, 1..12)) {
            let said = said(&times);
            for n in 0..said.len() {
                prop_assert!(said[n] >= times[n] && !is_duplicate(&said[..n], said[n]));
            }
        }
    }
}
