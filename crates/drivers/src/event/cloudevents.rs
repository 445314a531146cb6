//! The body as a CloudEvent 1.0 in structured mode: one JSON object with the standard payload as its data.

use marks::delivery::RETURN;
use marks::id::MarkId;
use marks::mark::Mark;
use marks::time::Timestamp;
use serde::Serialize;

use super::{Payload, Time, TimeFormat, bytes};

/// How the body begins, which distinguishes it from the others.
const BEGINNING: &[u8] = br#"{"specversion":"#;
/// Its content type.
const CONTENT_TYPE: &str = "application/cloudevents+json";
/// The type of a host failure. Receivers choose by it, so it never changes.
const TYPE: &str = "org.openstack.nova-host-alerter.host.failed";
/// The type of a return.
const RETURN_TYPE: &str = "org.openstack.nova-host-alerter.host.returned";
/// The type of a test.
const TEST: &str = "org.openstack.nova-host-alerter.test";

/// Serialised in the order of its fields: the order is part of the contract.
#[derive(Serialize)]
struct Event<'a> {
    specversion: &'a str,
    id: &'a str,
    source: &'a str,
    r#type: &'a str,
    time: Time,
    datacontenttype: &'a str,
    data: Payload<'a>,
}

/// The body of a mark: the same bytes for the same mark and source. Its time is the failure's.
pub fn of_mark(mark: &Mark, source: &str, format: TimeFormat) -> Vec<u8> {
    let data = Payload::of_mark(mark, format);
    body(&mark.id.to_string(), source, TYPE, mark.failure_time, data)
}

/// The body of a return. Its id is another one: source and id together distinguish events. Its time is the return's.
pub fn of_return(mark: &Mark, returned: Timestamp, source: &str, format: TimeFormat) -> Vec<u8> {
    let data = Payload::of_mark(mark, format);
    body(&format!("{}{RETURN}", mark.id), source, RETURN_TYPE, returned, data)
}

/// The body of a test: another type, and a host that cannot exist.
pub fn of_test(id: &MarkId, now: Timestamp, source: &str, format: TimeFormat) -> Vec<u8> {
    body(&id.to_string(), source, TEST, now, Payload::of_test(now, format))
}

fn body(id: &str, source: &str, r#type: &str, time: Timestamp, data: Payload<'_>) -> Vec<u8> {
    let time = TimeFormat::Rfc3339.write(time);
    let datacontenttype = "application/json";
    bytes(&Event { specversion: "1.0", id, source, r#type, time, datacontenttype, data })
}

/// A body's content type, read from its own bytes: a body that was stored before the route's form changed keeps its type.
pub fn content_type(body: &[u8]) -> &'static str {
    match body.starts_with(BEGINNING) {
        true => CONTENT_TYPE,
        false => "application/json",
    }
}

/// Reads a source: a URI, or the path of one, of at most 256 characters.
///
/// # Errors
/// One sentence.
pub fn source(text: &str) -> Result<String, String> {
    let of_a_uri = |b: u8| b.is_ascii_graphic() && !br#""<>\^`{|}"#.contains(&b);
    match (1..=256).contains(&text.len()) && text.bytes().all(of_a_uri) {
        true => Ok(text.to_owned()),
        false => Err("must be a URI, or the path of one, of at most 256 characters".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::mark;
    use super::super::{self as standard, doctor};
    use super::*;

    #[test]
    fn the_body_is_a_cloud_event_with_the_standard_payload() {
        let golden = concat!(
            r#"{"specversion":"1.0","id":"0193b3a4-5c6d-7e8f-9a0b-1c2d3e4f5a6b","source":"/region-one","#,
            r#""type":"org.openstack.nova-host-alerter.host.failed","time":"2026-07-21T02:13:20Z","#,
            r#""datacontenttype":"application/json","data":{"hostname":"Compute1.my.cloud.com","#,
            r#""on_shared_storage":true,"failure_time":1784600000}}"#
        );
        let body = of_mark(&mark(), "/region-one", TimeFormat::Epoch);
        assert_eq!(String::from_utf8(body.clone()).unwrap(), golden);
        assert!(body.starts_with(BEGINNING));
        let (event, standard): (serde_json::Value, serde_json::Value) = (
            serde_json::from_slice(&body).unwrap(),
            serde_json::from_slice(&super::super::of_mark(&mark(), TimeFormat::Epoch)).unwrap(),
        );
        assert_eq!(event["data"], standard["payload"]);
    }

    /// The broken variant is a test with the type of a failure.
    #[test]
    fn a_test_has_another_type_and_another_host() {
        let test = of_test(&mark().id, Timestamp(0), "/x", TimeFormat::Rfc3339);
        let failures = |body: &[u8]| String::from_utf8_lossy(body).matches(TYPE).count();
        assert_eq!((failures(&test), failures(&of_mark(&mark(), "/x", TimeFormat::Rfc3339))), (0, 1));
        let data = Payload::of_test(Timestamp(0), TimeFormat::Epoch);
        assert_eq!(failures(&body("id", "/x", TYPE, Timestamp(0), data)), 1);
        assert!(String::from_utf8(test).unwrap().contains("send-test.invalid"));
    }

    /// Receivers drop what has the source and the id of an earlier event. The broken variant is the failure's id.
    #[test]
    fn a_return_is_another_event_of_the_same_outage() {
        let parsed = |body: Vec<u8>| serde_json::from_slice::<serde_json::Value>(&body).unwrap();
        let failure = parsed(of_mark(&mark(), "/x", TimeFormat::Epoch));
        let back = parsed(of_return(&mark(), Timestamp(1_784_601_000_000), "/x", TimeFormat::Epoch));
        assert_eq!(back["type"], RETURN_TYPE);
        assert_eq!((&back["time"], &back["data"]), (&"2026-07-21T02:30:00Z".into(), &failure["data"]));
        assert_eq!(back["id"], format!("{}.return", failure["id"].as_str().unwrap()));
    }

    #[test]
    fn a_source_is_a_uri_or_its_path() {
        for text in ["/nova-host-alerter", "https://ctl1.my.cloud.com/alerter?region=one", "urn:uuid:1"] {
            assert!(source(text).is_ok(), "{text}");
        }
        for text in ["", "a b", "ä", "<a>", "a\nb", &"x".repeat(257)] {
            assert!(source(text).is_err(), "{text}");
        }
    }

    /// The broken variant goes by the route's present form.
    #[test]
    fn a_body_keeps_its_type_whatever_the_route_says_now() {
        let standard = standard::of_mark(&mark(), TimeFormat::Epoch);
        let test = standard::of_test(&mark().id, Timestamp(0), TimeFormat::Epoch);
        for body in [&standard, &doctor::of_mark(&mark()), &test] {
            assert_eq!(content_type(body), "application/json");
        }
        assert_eq!(content_type(&of_mark(&mark(), "/x", TimeFormat::Epoch)), "application/cloudevents+json");
        let careless = |_: &[u8]| CONTENT_TYPE;
        assert_ne!(careless(&standard), content_type(&standard));
    }
}
