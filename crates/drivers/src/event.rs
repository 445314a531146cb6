//! The standard body of a host failure (design, section 5), and its other forms: pure functions of the mark.

pub mod template;

use marks::delivery::RETURN;
use marks::id::MarkId;
use marks::mark::Mark;
use marks::time::Timestamp;
use serde::Serialize;
use serde_json::Value;

/// How times are written. The seed's `failure_time` is seconds since the epoch; for its `generated_time` the seed says
/// nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeFormat {
    /// Whole seconds since the Unix epoch, as a number.
    #[default]
    Epoch,
    /// RFC 3339 in UTC with whole seconds, as a text.
    Rfc3339,
}

/// The host of every test: it cannot exist (RFC 2606).
pub(super) const NO_HOST: &str = "send-test.invalid";

/// One event in the form that its receiver reads. Serialised in the order of its fields: the order is part of the contract.
#[derive(Serialize)]
pub struct Event<'a> {
    id: &'a MarkId,
    event_type: &'a str,
    version: &'a str,
    generated_time: Value,
    payload: Payload<'a>,
    #[serde(rename = "nova-host-alerter", skip_serializing_if = "Option::is_none")]
    extensions: Option<Extensions<'a>>,
    /// Pacemaker's name of the host, for the forms that have it.
    #[serde(skip)]
    node: &'a str,
    /// What the host's health check said before the fencing, for the form that has it.
    #[serde(skip)]
    cause: Option<&'a str>,
    /// What follows the id in the key of the request.
    #[serde(skip)]
    suffix: &'a str,
}

/// What stands behind the seed's fields with `body = "extended"`.
#[derive(Serialize)]
struct Extensions<'a> {
    node: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'a str>,
}

#[derive(Serialize)]
struct Payload<'a> {
    hostname: &'a str,
    on_shared_storage: bool,
    failure_time: Value,
}

impl<'a> Event<'a> {
    /// The event of a mark: the same for the same mark.
    pub fn of_mark(mark: &'a Mark, format: TimeFormat) -> Self {
        let (hostname, on_shared_storage) = (mark.fqdn.as_str(), mark.on_shared_storage);
        let payload = Payload { hostname, on_shared_storage, failure_time: format.value(mark.failure_time) };
        let generated_time = format.value(mark.generated_time);
        Self { node: mark.node.as_str(), ..Self::new(&mark.id, "host failure", generated_time, payload) }
    }

    /// The same outage is over: its id and its payload, with the time when the host was seen to be back.
    pub fn of_return(mark: &'a Mark, returned: Timestamp, format: TimeFormat) -> Self {
        let generated_time = format.value(returned);
        let event_type = "host returned";
        Self { event_type, generated_time, suffix: RETURN, ..Self::of_mark(mark, format) }
    }

    /// The event of a test: the same shape, another type, and a host that cannot exist.
    pub fn of_test(id: &'a MarkId, now: Timestamp, format: TimeFormat) -> Self {
        let failure_time = format.value(now);
        let payload = Payload { hostname: NO_HOST, on_shared_storage: true, failure_time };
        Self::new(id, "test", format.value(now), payload)
    }

    fn new(id: &'a MarkId, event_type: &'a str, generated_time: Value, payload: Payload<'a>) -> Self {
        let (version, extensions) = ("1.0", None);
        Self {
            id,
            event_type,
            version,
            generated_time,
            payload,
            extensions,
            node: NO_HOST,
            cause: None,
            suffix: "",
        }
    }

    /// The event, with what the host's health check had said.
    pub fn because(self, cause: Option<&'a str>) -> Self {
        Self { cause, ..self }
    }

    /// The standard body: compact JSON.
    pub fn bytes(&self) -> Vec<u8> {
        bytes(self)
    }

    /// The body with the extensions, for a route that asks for them.
    pub fn extended(self) -> Vec<u8> {
        bytes(&Self { extensions: Some(Extensions { node: self.node, cause: self.cause }), ..self })
    }
}

/// A body as it is stored.
pub(crate) fn bytes(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).expect("texts, numbers and truth values are always JSON")
}

impl TimeFormat {
    /// Their words in the configuration.
    pub const WORDS: [(&str, Self); 2] = [("epoch", Self::Epoch), ("rfc3339", Self::Rfc3339)];

    /// A time as a value of its own.
    pub(crate) fn value(self, time: Timestamp) -> Value {
        match self {
            Self::Rfc3339 => time.rfc3339_seconds().into(),
            Self::Epoch => time.seconds().into(),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use marks::host::HostName;
    use proptest::prelude::*;

    const ID: &str = "0193b3a4-5c6d-7e8f-9a0b-1c2d3e4f5a6b";

    pub(crate) fn mark() -> Mark {
        Mark {
            id: MarkId::parse(ID).unwrap(),
            node: HostName::parse("compute1").unwrap(),
            fqdn: HostName::parse("Compute1.my.cloud.com").unwrap(),
            on_shared_storage: true,
            failure_time: Timestamp(1_784_600_000_999),
            generated_time: Timestamp(1_784_600_001_001),
        }
    }

    /// S1-10, S1-18, S1-35, S1-36, S1-37, S1-38, S1-39, S1-40, S1-41, S1-42: the seed's fields, in its order, and
    /// nothing else; valid JSON; times in whole seconds since the epoch.
    #[test]
    fn the_body_is_the_seeds() {
        let golden = concat!(
            r#"{"id":"0193b3a4-5c6d-7e8f-9a0b-1c2d3e4f5a6b","event_type":"host failure","version":"1.0","#,
            r#""generated_time":1784600001,"payload":{"hostname":"Compute1.my.cloud.com","on_shared_storage":true,"#,
            r#""failure_time":1784600000}}"#
        );
        let body = Event::of_mark(&mark(), TimeFormat::Epoch).bytes();
        assert_eq!(String::from_utf8(body.clone()).unwrap(), golden);
        let parsed: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(parsed["payload"]["failure_time"], 1_784_600_000);
    }

    /// S0-23, S1-36: a route that asks for extensions gets them behind the seed's fields, under one key; no other route
    /// does.
    #[test]
    fn extensions_stand_behind_the_seeds_fields() {
        let (plain, body) = (
            Event::of_mark(&mark(), TimeFormat::Epoch).bytes(),
            Event::of_mark(&mark(), TimeFormat::Epoch).extended(),
        );
        let (plain, body) = (String::from_utf8(plain).unwrap(), String::from_utf8(body).unwrap());
        let (same, behind) = body.split_at(plain.len() - 1);
        assert_eq!(same, &plain[..plain.len() - 1]);
        assert_eq!(behind, r#","nova-host-alerter":{"node":"compute1"}}"#);
        let mark = mark();
        let caused = Event::of_mark(&mark, TimeFormat::Epoch).because(Some("/a hangs"));
        let body = String::from_utf8(caused.extended()).unwrap();
        let behind = r#","nova-host-alerter":{"node":"compute1","cause":"/a hangs"}}"#;
        assert_eq!(body.strip_suffix(behind), Some(same), "{body}");
        let test =
            String::from_utf8(Event::of_test(&mark.id, Timestamp(0), TimeFormat::Epoch).extended()).unwrap();
        let words = [r#""event_type":"test""#, r#"{"node":"send-test.invalid"}"#];
        assert!(words.iter().all(|word| test.contains(word)), "{test}");
    }

    /// S4-34: the same outage, another type, and the time of the return.
    #[test]
    fn a_return_has_the_outages_id_and_payload() {
        let parsed = |body: Vec<u8>| serde_json::from_slice::<Value>(&body).unwrap();
        let returned = Timestamp(1_784_601_000_500);
        let (failure, back) = (
            parsed(Event::of_mark(&mark(), TimeFormat::Epoch).bytes()),
            parsed(Event::of_return(&mark(), returned, TimeFormat::Epoch).bytes()),
        );
        assert_eq!((&back["id"], &back["payload"]), (&failure["id"], &failure["payload"]));
        assert_eq!(back["event_type"], "host returned");
        assert_eq!(back["generated_time"], 1_784_601_000);
        let extended = parsed(Event::of_return(&mark(), returned, TimeFormat::Epoch).extended());
        assert_eq!(extended["nova-host-alerter"]["node"], "compute1");
    }

    /// S1-38: false where instances are not on shared storage.
    #[test]
    fn storage_that_is_not_shared_is_reported_as_such() {
        let body = Event::of_mark(&Mark { on_shared_storage: false, ..mark() }, TimeFormat::Epoch).bytes();
        assert!(String::from_utf8(body).unwrap().contains(r#""on_shared_storage":false"#));
    }

    /// S1-41: the other format, where the receiver wants it.
    #[test]
    fn times_can_be_rfc_3339() {
        let parsed: Value =
            serde_json::from_slice(&Event::of_mark(&mark(), TimeFormat::Rfc3339).bytes()).unwrap();
        assert_eq!(parsed["generated_time"], "2026-07-21T02:13:21Z");
        assert_eq!(parsed["payload"]["failure_time"], "2026-07-21T02:13:20Z");
    }

    /// A receiver that checks the type, or the host, or either, takes no test for a failure.
    #[test]
    fn a_test_cannot_be_taken_for_a_failure() {
        let body = Event::of_test(&mark().id, Timestamp(5_000), TimeFormat::Epoch).bytes();
        let parsed: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(parsed["event_type"], "test");
        assert_eq!(parsed["payload"]["hostname"], "send-test.invalid");
        assert!(!String::from_utf8(body).unwrap().contains("failure\""), "no failure's type is in it");
    }

    proptest! {
        /// Whatever the host's name and the clock are, the body is valid JSON with both, and below 2 KiB.
        #[test]
        fn every_mark_has_a_valid_body(name in "[A-Za-z0-9][A-Za-z0-9_-]{0,60}(\\.[a-z0-9]{1,60}){1,3}", at in any::<i64>(), rfc in any::<bool>()) {
            let format = if rfc { TimeFormat::Rfc3339 } else { TimeFormat::Epoch };
            let mark = Mark { fqdn: HostName::parse(&name).unwrap(), failure_time: Timestamp(at), ..mark() };
            let body = Event::of_mark(&mark, format).bytes();
            let parsed: Value = serde_json::from_slice(&body).unwrap();
            prop_assert_eq!(parsed["payload"]["hostname"].as_str(), Some(name.as_str()));
            prop_assert!(body.len() < 2048);
            let extended = Event::of_mark(&mark, format).extended();
            prop_assert!(serde_json::from_slice::<Value>(&extended).is_ok());
            prop_assert!(extended.len() < 2048 && String::from_utf8(extended).unwrap().contains(&name));
            prop_assert_eq!(body, Event::of_mark(&mark, format).bytes());
        }
    }
}
