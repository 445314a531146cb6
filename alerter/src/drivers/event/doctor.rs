//! The body as an inspector of OPNFV Doctor takes it: a list of events, of which there is one.

use marks::id::MarkId;
use marks::mark::Mark;
use marks::time::Timestamp;
use serde::Serialize;

use super::{NO_HOST, Time, TimeFormat, bytes};

/// What the inspector calls a host that is down; it does nothing about events of other types.
const TYPE: &str = "compute.host.down";
/// Who noticed.
const MONITOR: &str = "nova-host-alerter";

/// Serialised in the order of its fields: the order is part of the contract.
#[derive(Serialize)]
struct Event<'a> {
    id: &'a MarkId,
    time: Time,
    r#type: &'a str,
    details: Details<'a>,
}

#[derive(Serialize)]
struct Details<'a> {
    hostname: &'a str,
    status: &'a str,
    monitor: &'a str,
    monitor_event_id: &'a MarkId,
}

/// The body that tells a mark: the same bytes for the same mark. Its time is that of the failure.
pub fn of_mark(mark: &Mark) -> Vec<u8> {
    body(&mark.id, mark.failure_time, TYPE, mark.fqdn.as_str(), "down")
}

/// The body of a test: of another type, and about a host that cannot exist.
pub fn of_test(id: &MarkId, now: Timestamp) -> Vec<u8> {
    body(id, now, "test", NO_HOST, "test")
}

fn body(id: &MarkId, time: Timestamp, r#type: &str, hostname: &str, status: &str) -> Vec<u8> {
    let details = Details { hostname, status, monitor: MONITOR, monitor_event_id: id };
    bytes(&[Event { id, time: TimeFormat::Rfc3339.write(time), r#type, details }])
}

#[cfg(test)]
mod tests {
    use super::super::tests::mark;
    use super::*;

    #[test]
    fn the_body_is_what_the_inspector_reads() {
        let golden = concat!(
            r#"[{"id":"0193b3a4-5c6d-7e8f-9a0b-1c2d3e4f5a6b","time":"2026-07-21T02:13:20Z","type":"compute.host.down","#,
            r#""details":{"hostname":"Compute1.my.cloud.com","status":"down","monitor":"nova-host-alerter","#,
            r#""monitor_event_id":"0193b3a4-5c6d-7e8f-9a0b-1c2d3e4f5a6b"}}]"#
        );
        assert_eq!(String::from_utf8(of_mark(&mark())).unwrap(), golden);
    }

    /// An inspector looks at the type alone. The broken variant is a test of the type of a failure.
    #[test]
    fn a_test_takes_no_host_down() {
        let downs = |body: &[u8]| {
            let events: serde_json::Value = serde_json::from_slice(body).unwrap();
            events.as_array().unwrap().iter().filter(|event| event["type"] == "compute.host.down").count()
        };
        let test = of_test(&mark().id, Timestamp(0));
        assert_eq!((downs(&test), downs(&of_mark(&mark()))), (0, 1));
        let careless = body(&mark().id, Timestamp(0), TYPE, NO_HOST, "test");
        assert_eq!(downs(&careless), 1);
        assert!(!String::from_utf8(test).unwrap().contains("down"));
    }
}
