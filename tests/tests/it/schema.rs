//! The shipped JSON Schema of the event: what the alerter really sends fits it, and what would not be the event does not.

use std::fs;
use std::time::Duration;

use regex_lite::Regex;
use serde_json::{Value, json};
use tests::installed::source;
use tests::programs::Site;
use tests::receiver::Receiver;
use tests::trials::Group;

/// As long as anything here may take.
const LIMIT: Duration = Duration::from_secs(30);

/// Its tests; they run everywhere.
pub(crate) fn group() -> Group {
    Group { cannot: None, tests: tests::trials![what_is_sent_fits_the_schema, what_is_no_event_does_not_fit] }
}

fn schema() -> Value {
    serde_json::from_str(&fs::read_to_string(source("packaging/schema/host-failure.schema.json")).unwrap())
        .unwrap()
}

/// What of a value does not fit, by its place. Only the words of JSON Schema that ours has are known here.
fn faults(whole: &Value, schema: &Value, value: &Value, place: &str) -> Vec<String> {
    let words = schema.as_object().unwrap().iter();
    words.flat_map(|(word, rule)| faults_of(whole, schema, (word, rule), value, place)).collect()
}

fn faults_of(
    whole: &Value,
    schema: &Value,
    (word, rule): (&str, &Value),
    value: &Value,
    place: &str,
) -> Vec<String> {
    let unless = |fits: bool| if fits { Vec::new() } else { vec![format!("{place}: {word}")] };
    let below = |name: &str, value: &Value| match schema["properties"].get(name) {
        Some(schema) => faults(whole, schema, value, &format!("{place}/{name}")),
        None => Vec::new(),
    };
    match word {
        "$schema" | "$id" | "$defs" | "title" | "description" => Vec::new(),
        "$ref" => {
            let there = whole.pointer(rule.as_str().unwrap().strip_prefix('#').unwrap()).unwrap();
            faults(whole, there, value, place)
        }
        "type" => unless(match rule.as_str().unwrap() {
            "object" => value.is_object(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_i64(),
            other => panic!("no check of type {other}"),
        }),
        "const" => unless(value == rule),
        "enum" => unless(rule.as_array().unwrap().contains(value)),
        "pattern" => unless(
            value.as_str().is_none_or(|text| Regex::new(rule.as_str().unwrap()).unwrap().is_match(text)),
        ),
        "maxLength" => unless(value.as_str().is_none_or(|text| text.len() as u64 <= rule.as_u64().unwrap())),
        "anyOf" => unless(
            rule.as_array().unwrap().iter().any(|schema| faults(whole, schema, value, place).is_empty()),
        ),
        "required" => {
            unless(rule.as_array().unwrap().iter().all(|name| value.get(name.as_str().unwrap()).is_some()))
        }
        "additionalProperties" => {
            let known = |name: &String| schema["properties"].get(name).is_some();
            unless(value.as_object().is_none_or(|object| object.keys().all(known)))
        }
        "properties" => {
            value.as_object().into_iter().flatten().flat_map(|(name, value)| below(name, value)).collect()
        }
        other => panic!("no check of {other}"),
    }
}

fn misfits(event: &Value) -> Vec<String> {
    let schema = schema();
    faults(&schema, &schema, event, "")
}

/// The event of a fenced host and that of a test, as they arrive over the wire.
fn sent(keys: &str) -> Vec<Value> {
    let receiver = Receiver::on_loopback().unwrap();
    let route =
        format!("[http.recovery]\nurl = \"http://{}/v1/host-failures\"\n{keys}\n", receiver.address());
    let mut site = Site::with(&route).unwrap();
    site.start().unwrap();
    site.fence("compute1").unwrap();
    receiver.wait_for(1, LIMIT).unwrap();
    assert!(site.alerter(&["send-test"]).unwrap().status.success());
    let got = receiver.wait_for(2, LIMIT).unwrap();
    got.iter().map(|request| serde_json::from_slice(&request.body).unwrap()).collect()
}

/// S0-23, S1-35, S1-36: what a receiver reads of the event's form is what it gets.
fn what_is_sent_fits_the_schema() {
    for keys in ["", "time-format = \"rfc3339\"", "method = \"PUT\"", "body = \"extended\""] {
        let events = sent(keys);
        assert_eq!(events.len(), 2, "{events:?}");
        for event in events {
            assert_eq!(misfits(&event), [""; 0], "{event}");
        }
    }
    let other = sent("body = \"doctor\"");
    assert!(!misfits(&other[0]).is_empty(), "another form must not fit: {}", other[0]);
}

fn what_is_no_event_does_not_fit() {
    let event = json!({
        "id": "01a1fdbf-0d60-71c8-80b2-0dca4f558146", "event_type": "host failure", "version": "1.0",
        "generated_time": 1_795_258_519, "payload":
        {"hostname": "compute1.my.cloud.com", "on_shared_storage": true, "failure_time": 1_795_258_518},
        "nova-host-alerter": {"node": "compute1"}
    });
    assert_eq!(misfits(&event), [""; 0]);
    for (place, value) in [
        ("/id", json!("1")),
        ("/event_type", json!("host back")),
        ("/version", json!("2.0")),
        ("/generated_time", json!(1.5)),
        ("/generated_time", json!("yesterday")),
        ("/payload", json!([])),
        ("/payload/hostname", json!("compute1")),
        ("/payload/on_shared_storage", json!("true")),
        ("/payload/failure_time", Value::Null),
        ("/nova-host-alerter/node", json!("two words")),
    ] {
        let mut wrong = event.clone();
        *wrong.pointer_mut(place).unwrap() = value;
        assert!(misfits(&wrong).iter().any(|fault| fault.starts_with(place)), "{wrong}");
    }
    for (place, name) in [("", "id"), ("", "payload"), ("/payload", "hostname")] {
        let mut wrong = event.clone();
        wrong.pointer_mut(place).unwrap().as_object_mut().unwrap().remove(name);
        assert_eq!(misfits(&wrong), [format!("{place}: required")]);
        wrong.pointer_mut(place).unwrap().as_object_mut().unwrap().insert("other".to_owned(), json!(1));
        assert_eq!(misfits(&wrong).len(), 2, "{wrong}");
    }
}
