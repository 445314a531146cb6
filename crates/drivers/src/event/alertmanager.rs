//! The body as Prometheus's Alertmanager takes it (API v2): a list of one alert.

use std::time::Duration;

use marks::id::MarkId;
use marks::mark::Mark;
use marks::time::Timestamp;
use serde::Serialize;

use super::{NO_HOST, bytes, rfc3339};

/// How long an alert stays open without a return: an alerter that is silent must not end it, as Alertmanager's
/// `resolve_timeout` would without an `endsAt`.
pub const OPEN: Duration = Duration::from_secs(30 * 86_400);
/// A test has ended so long ago that no clock of an Alertmanager can have it open.
const LONG_OVER: Duration = Duration::from_secs(86_400);
const SECOND: Duration = Duration::from_secs(1);

/// Serialised in the order of its fields: the order is part of the contract.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Alert<'a> {
    labels: Labels<'a>,
    annotations: Annotations,
    starts_at: String,
    ends_at: String,
}

/// Alertmanager knows an alert by them: they are the same for the failure and the return.
#[derive(Serialize)]
struct Labels<'a> {
    alertname: &'a str,
    host: &'a str,
    node: &'a str,
    id: &'a MarkId,
    severity: &'a str,
}

impl<'a> Labels<'a> {
    fn of_mark(mark: &'a Mark) -> Self {
        let (host, node) = (mark.fqdn.as_str(), mark.node.as_str());
        Self { alertname: "HostFailed", host, node, id: &mark.id, severity: "critical" }
    }
}

#[derive(Serialize)]
struct Annotations {
    summary: String,
    description: String,
}

impl Annotations {
    fn of_mark(mark: &Mark) -> Self {
        let storage = if mark.on_shared_storage { "" } else { "not " };
        Self {
            summary: format!("compute host {} has failed", mark.fqdn.as_str()),
            description: format!(
                "Pacemaker has fenced {}; its instances are {storage}on shared storage",
                mark.node.as_str()
            ),
        }
    }
}

/// The body of a mark: the same bytes for the same mark. The alert starts with the failure.
pub fn of_mark(mark: &Mark) -> Vec<u8> {
    body(Labels::of_mark(mark), Annotations::of_mark(mark), mark.failure_time, mark.failure_time + OPEN)
}

/// The body of a return: the same alert, which ends with the return, and after it has started. Where Alertmanager's clock
/// is behind, the end is still to come, and Alertmanager keeps the failure's: the return has to be sent again
/// (`marks::refresh`).
pub fn of_return(mark: &Mark, returned: Timestamp) -> Vec<u8> {
    let start = mark.failure_time;
    body(Labels::of_mark(mark), Annotations::of_mark(mark), start, returned.max(start + SECOND))
}

/// The body of a test: other labels, and an alert that is over.
pub fn of_test(id: &MarkId, now: Timestamp) -> Vec<u8> {
    let labels = Labels { alertname: "Test", host: NO_HOST, node: NO_HOST, id, severity: "none" };
    let summary = "a test of nova-host-alerter".to_owned();
    let annotations = Annotations { summary, description: "no host has failed".to_owned() };
    let end = now - LONG_OVER;
    body(labels, annotations, end - SECOND, end)
}

fn body(labels: Labels<'_>, annotations: Annotations, start: Timestamp, end: Timestamp) -> Vec<u8> {
    bytes(&[Alert { labels, annotations, starts_at: rfc3339(start), ends_at: rfc3339(end) }])
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::tests::mark;
    use super::*;

    fn alert(body: &[u8]) -> Value {
        let alerts: Value = serde_json::from_slice(body).unwrap();
        assert_eq!(alerts.as_array().unwrap().len(), 1);
        alerts[0].clone()
    }

    #[test]
    fn a_failure_is_an_alert_that_stays() {
        let golden = concat!(
            r#"[{"labels":{"alertname":"HostFailed","host":"Compute1.my.cloud.com","node":"compute1","#,
            r#""id":"0193b3a4-5c6d-7e8f-9a0b-1c2d3e4f5a6b","severity":"critical"},"#,
            r#""annotations":{"summary":"compute host Compute1.my.cloud.com has failed","#,
            r#""description":"Pacemaker has fenced compute1; its instances are on shared storage"},"#,
            r#""startsAt":"2026-07-21T02:13:20Z","endsAt":"2026-08-20T02:13:20Z"}]"#
        );
        assert_eq!(String::from_utf8(of_mark(&mark())).unwrap(), golden);
        let other = of_mark(&Mark { on_shared_storage: false, ..mark() });
        assert!(
            alert(&other)["annotations"]["description"].as_str().unwrap().ends_with("not on shared storage")
        );
    }

    /// The broken variant ends where the host was seen to be back, whatever the clocks say: Alertmanager rejects it.
    #[test]
    fn a_return_is_the_same_alert_with_an_end_behind_its_start() {
        let failure = alert(&of_mark(&mark()));
        for (returned, end) in [
            (1_784_601_000_500, "2026-07-21T02:30:00Z"),
            (1_784_600_000_999, "2026-07-21T02:13:21Z"),
            (0, "2026-07-21T02:13:21Z"),
        ] {
            let back = alert(&of_return(&mark(), Timestamp(returned)));
            assert_eq!(
                (&back["labels"], &back["startsAt"], &back["endsAt"]),
                (&failure["labels"], &failure["startsAt"], &end.into())
            );
        }
        assert!(rfc3339(Timestamp(0)).as_str() < failure["startsAt"].as_str().unwrap());
    }

    /// The broken variant is a failure with the host of tests: it is open for 30 days.
    #[test]
    fn a_test_is_an_alert_that_is_long_over() {
        let now = Timestamp(1_784_600_000_000);
        let ends_before = |alert: &Value| alert["endsAt"].as_str().unwrap() < rfc3339(now).as_str();
        let test = alert(&of_test(&mark().id, now));
        assert!(ends_before(&test) && test["startsAt"].as_str() < test["endsAt"].as_str());
        assert_eq!(
            (&test["labels"]["alertname"], &test["labels"]["host"]),
            (&"Test".into(), &NO_HOST.into())
        );
        assert!(!ends_before(&alert(&of_mark(&mark()))));
    }
}
