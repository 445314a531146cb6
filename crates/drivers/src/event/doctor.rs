//! The body as an inspector of OPNFV Doctor takes it: a list of one event.

use marks::id::MarkId;
use marks::mark::Mark;
use marks::time::Timestamp;
use serde::Serialize;

use super::{NO_HOST, Time, TimeFormat, bytes};

/// The inspector's type for a host that is down; it ignores events of other types.
const TYPE: &str = "compute.host.down";
/// The type of a return.
const UP: &str = "compute.host.up";
/// The event's source.
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
    monitor: &'static str,
    monitor_event_id: &'a MarkId,
}

/// The body of a mark: the same bytes for the same mark. Its time is the failure's.
pub fn of_mark(mark: &Mark) -> Vec<u8> {
    body(&mark.id, mark.failure_time, TYPE, mark.fqdn.as_str(), "down")
}

/// The body of a return: another type, and its time is the return's. The sample inspector goes by the type alone, and
/// would force the living host down.
pub fn of_return(mark: &Mark, returned: Timestamp) -> Vec<u8> {
    body(&mark.id, returned, UP, mark.fqdn.as_str(), "up")
}

/// The body of a test: another type, and a host that cannot exist.
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

    #[test]
    fn a_return_is_the_same_host_with_another_type() {
        let back: serde_json::Value =
            serde_json::from_slice(&of_return(&mark(), Timestamp(1_784_601_000_000))).unwrap();
        assert_eq!((&back[0]["type"], &back[0]["details"]["status"]), (&UP.into(), &"up".into()));
        assert_eq!(back[0]["time"], "2026-07-21T02:30:00Z");
    }

    /// An inspector checks the type alone. The broken variants are a test and a return with the type of a failure.
    #[test]
    fn neither_a_test_nor_a_return_takes_a_host_down() {
        let downs = |body: &[u8]| {
            let events: serde_json::Value = serde_json::from_slice(body).unwrap();
            events.as_array().unwrap().iter().filter(|event| event["type"] == "compute.host.down").count()
        };
        let test = of_test(&mark().id, Timestamp(0));
        let back = of_return(&mark(), Timestamp(0));
        assert_eq!((downs(&test), downs(&back), downs(&of_mark(&mark()))), (0, 0, 1));
        for (host, status) in [(NO_HOST, "test"), ("compute1", "up")] {
            let careless = body(&mark().id, Timestamp(0), TYPE, host, status);
            assert_eq!(downs(&careless), 1);
        }
        assert!(!String::from_utf8(test).unwrap().contains("down"));
    }
}
