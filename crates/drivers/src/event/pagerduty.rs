//! The body as PagerDuty's Events API v2 takes it. The integration key is no part of it: it is put into what is sent.

use marks::id::MarkId;
use marks::mark::Mark;
use marks::time::Timestamp;
use serde::Serialize;

use super::{NO_HOST, Payload, TimeFormat, bytes, rfc3339};

/// How the body begins, which distinguishes it from the others.
const BEGINNING: &[u8] = br#"{"event_action":"#;
/// The sender, for people.
const CLIENT: &str = "nova-host-alerter";
/// The class of each event.
const CLASS: &str = "host failure";

/// Serialised in the order of its fields: the order is part of the contract.
#[derive(Serialize)]
struct Event<'a> {
    event_action: &'a str,
    /// PagerDuty has one open incident for each.
    dedup_key: &'a MarkId,
    payload: Facts<'a>,
    client: &'a str,
}

#[derive(Serialize)]
struct Facts<'a> {
    summary: String,
    source: &'a str,
    severity: &'a str,
    timestamp: String,
    component: &'a str,
    class: &'a str,
    custom_details: Details<'a>,
}

#[derive(Serialize)]
struct Details<'a> {
    id: &'a MarkId,
    #[serde(flatten)]
    payload: Payload<'a>,
}

/// What an event does to the incident of its mark.
enum Action {
    Trigger,
    Resolve,
}

/// The body of a mark: the same bytes for the same mark. It opens an incident, or joins the one that is open.
pub fn of_mark(mark: &Mark, format: TimeFormat) -> Vec<u8> {
    let summary = format!("compute host {} has failed and was fenced", mark.fqdn.as_str());
    let details = Details { id: &mark.id, payload: Payload::of_mark(mark, format) };
    body(Action::Trigger, summary, mark.failure_time, mark.node.as_str(), details)
}

/// The body of a return: it closes that incident.
pub fn of_return(mark: &Mark, returned: Timestamp, format: TimeFormat) -> Vec<u8> {
    let summary = format!("compute host {} is back", mark.fqdn.as_str());
    let details = Details { id: &mark.id, payload: Payload::of_mark(mark, format) };
    body(Action::Resolve, summary, returned, mark.node.as_str(), details)
}

/// The body of a test. It closes an incident that does not exist, so it notifies nobody.
pub fn of_test(id: &MarkId, now: Timestamp, format: TimeFormat) -> Vec<u8> {
    let details = Details { id, payload: Payload::of_test(now, format) };
    body(Action::Resolve, "a test of nova-host-alerter: no host has failed".to_owned(), now, NO_HOST, details)
}

fn body(action: Action, summary: String, at: Timestamp, component: &str, details: Details<'_>) -> Vec<u8> {
    let (event_action, severity) = match action {
        Action::Trigger => ("trigger", "critical"),
        Action::Resolve => ("resolve", "info"),
    };
    let (dedup_key, source, timestamp) = (details.id, details.payload.hostname, rfc3339(at));
    let payload =
        Facts { summary, source, severity, timestamp, component, class: CLASS, custom_details: details };
    bytes(&Event { event_action, dedup_key, payload, client: CLIENT })
}

/// Whether a stored body is one of these: one that was stored before the route's form changed gets no integration key.
pub fn is_one(body: &[u8]) -> bool {
    body.starts_with(BEGINNING)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::tests::mark;
    use super::super::{alertmanager, cloudevents, doctor, of_mark as standard};
    use super::*;

    fn parsed(body: &[u8]) -> Value {
        serde_json::from_slice(body).unwrap()
    }

    #[test]
    fn a_failure_opens_an_incident() {
        let golden = concat!(
            r#"{"event_action":"trigger","dedup_key":"0193b3a4-5c6d-7e8f-9a0b-1c2d3e4f5a6b","#,
            r#""payload":{"summary":"compute host Compute1.my.cloud.com has failed and was fenced","#,
            r#""source":"Compute1.my.cloud.com","severity":"critical","timestamp":"2026-07-21T02:13:20Z","#,
            r#""component":"compute1","class":"host failure","#,
            r#""custom_details":{"id":"0193b3a4-5c6d-7e8f-9a0b-1c2d3e4f5a6b","hostname":"Compute1.my.cloud.com","#,
            r#""on_shared_storage":true,"failure_time":1784600000}},"client":"nova-host-alerter"}"#
        );
        assert_eq!(String::from_utf8(of_mark(&mark(), TimeFormat::Epoch)).unwrap(), golden);
    }

    /// The broken variant has a key of its own, and closes nothing.
    #[test]
    fn a_return_closes_the_incident_of_its_failure() {
        let back = parsed(&of_return(&mark(), Timestamp(1_784_601_000_000), TimeFormat::Epoch));
        let failure = parsed(&of_mark(&mark(), TimeFormat::Epoch));
        assert_eq!((&back["event_action"], &back["dedup_key"]), (&"resolve".into(), &failure["dedup_key"]));
        assert_eq!(back["payload"]["timestamp"], "2026-07-21T02:30:00Z");
        assert_ne!(Value::from(format!("{}.return", mark().id)), failure["dedup_key"]);
    }

    /// The broken variant is a trigger that says "test": it wakes somebody.
    #[test]
    fn a_test_opens_no_incident() {
        let triggers = |body: &[u8]| parsed(body)["event_action"] == "trigger";
        let test = of_test(&mark().id, Timestamp(0), TimeFormat::Rfc3339);
        assert!(!triggers(&test) && triggers(&of_mark(&mark(), TimeFormat::Epoch)));
        assert!(parsed(&test)["payload"]["summary"].as_str().unwrap().contains("test"));
        let details = Details { id: &mark().id, payload: Payload::of_test(Timestamp(0), TimeFormat::Epoch) };
        assert!(triggers(&body(Action::Trigger, "test".to_owned(), Timestamp(0), NO_HOST, details)));
    }

    /// The broken variant goes by the route's present form: an integration key would go into other bodies.
    #[test]
    fn a_body_of_another_form_is_no_event_of_pagerduty() {
        let back = of_return(&mark(), Timestamp(0), TimeFormat::Epoch);
        let test = of_test(&mark().id, Timestamp(0), TimeFormat::Epoch);
        assert!(is_one(&of_mark(&mark(), TimeFormat::Epoch)) && is_one(&back) && is_one(&test));
        let cloud_event = cloudevents::of_mark(&mark(), "/x", TimeFormat::Epoch);
        let alert = alertmanager::of_mark(&mark());
        for other in
            [standard(&mark(), TimeFormat::Epoch), doctor::of_mark(&mark()), cloud_event, alert, vec![]]
        {
            assert!(!is_one(&other), "{}", String::from_utf8_lossy(&other));
        }
    }
}
