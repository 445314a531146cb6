//! The shipped JSON Schemas, of the event and of `status`: what the alerter sends and prints fits them, and nothing else does.

use std::fs;

use nix::sys::signal::Signal;
use regex_lite::Regex;
use serde_json::{Value, json};
use tests::installed::source;
use tests::programs::Site;
use tests::receiver::Receiver;
use tests::trials::Group;

use crate::path::{LIMIT, until};

/// Its tests; they run everywhere.
pub(crate) fn group() -> Group {
    Group::everywhere(tests::trials![
        what_is_sent_fits_the_schema,
        what_is_no_event_does_not_fit,
        what_status_prints_fits_its_schema,
        an_error_is_json_where_json_was_asked_for,
    ])
}

fn schema() -> Value {
    schema_of("host-failure")
}

fn schema_of(name: &str) -> Value {
    let file = source(&format!("packaging/schema/{name}.schema.json"));
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
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
        "$ref" => faults(whole, whole.pointer(&rule.as_str().unwrap()[1..]).unwrap(), value, place),
        "type" => unless(match rule {
            Value::Array(types) => types.iter().any(|one| is_of_type(one, value)),
            one => is_of_type(one, value),
        }),
        "items" => {
            let each = value.as_array().into_iter().flatten().enumerate();
            each.flat_map(|(at, one)| faults(whole, rule, one, &format!("{place}/{at}"))).collect()
        }
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
        "additionalProperties" if rule.is_object() => {
            let all = value.as_object().into_iter().flatten();
            all.flat_map(|(name, one)| faults(whole, rule, one, &format!("{place}/{name}"))).collect()
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

fn is_of_type(word: &Value, value: &Value) -> bool {
    match word.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64(),
        "null" => value.is_null(),
        other => panic!("no check of type {other}"),
    }
}

fn misfits(event: &Value) -> Vec<String> {
    let schema = schema();
    faults(&schema, &schema, event, "")
}

fn status(site: &Site, words: &[&str]) -> Value {
    let output = site.alerter(&[words, &["-o", "json"]].concat()).unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let schema = schema_of("status");
    assert_eq!(faults(&schema, &schema, &answer, ""), [""; 0], "{words:?}: {answer:#}");
    answer
}

/// With marks in several states, with a running daemon and without.
fn what_status_prints_fits_its_schema() {
    let mut receiver = Receiver::on_loopback().unwrap();
    let mut site = Site::new(receiver.address()).unwrap();
    site.start().unwrap();
    site.fence("compute1").unwrap();
    let says = |words: &[&str], what| site.said(words).is_ok_and(|said| said.contains(what));
    until("compute1 is acknowledged", || says(&["list", "--all"], "settled (acknowledged)"));
    receiver.down();
    site.said(&["mark", "compute2", "--fenced", "--reason", "x"]).unwrap();
    site.said(&["maintenance", "begin", "compute3", "--reason", "x", "--for", "1h"]).unwrap();
    site.fence("compute3").unwrap();
    until("compute3 is held", || says(&["list"], "maintenance"));
    let problems = status(&site, &["status"])["problems"].as_array().map_or(0, Vec::len);
    assert!(problems > 0, "a problem was tried too");
    status(&site, &["status", "--check"]);
    site.said(&["unmark", "compute3", "--reason", "x"]).unwrap();
    let counted: Value =
        serde_json::from_str(&site.said(&["history", "--summary", "--json"]).unwrap()).unwrap();
    assert_eq!((&counted["outages"], &counted["hosts"]), (&3.into(), &3.into()), "{counted}");
    assert_eq!(counted["states"], json!({"acknowledged": 1, "dismissed": 1, "open": 1}), "{counted}");
    let after = &counted["acknowledged_after"];
    assert!(after["p50"].is_u64() && after["p50"] == after["max"], "{counted}");
    site.end(Signal::SIGTERM).unwrap();
    status(&site, &["status"]);
}

/// The broken variant prints a sentence that no program reads.
fn an_error_is_json_where_json_was_asked_for() {
    let site = Site::with("[exec.recovery]\ncommand = [\"/bin/true\"]\n").unwrap();
    for (words, code, kind) in [
        (&["show", "compute1"][..], 1, "missing"),
        (&["retry", "--all"], 1, "silent"),
        (&["list", "--limit", "x"], 2, "usage"),
        (&["show", "compute1", "--since", "yesterday"], 2, "usage"),
    ] {
        let output = site.alerter(&[words, &["--json"]].concat()).unwrap();
        let error: Value =
            serde_json::from_slice(&output.stderr).unwrap_or_else(|_| panic!("{words:?}: {output:?}"));
        assert!(error["error"]["message"].is_string(), "{error}");
        assert_eq!(
            (output.status.code(), error["error"]["kind"].as_str()),
            (Some(code), Some(kind)),
            "{error}"
        );
    }
    let plain = site.alerter(&["show", "c1", "-o", "csv"]).unwrap();
    assert_eq!(plain.status.code(), Some(2));
    assert!(String::from_utf8(plain.stderr).unwrap().contains("tip: use `-o json`"));
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
    for keys in ["", "time-format = \"rfc3339\"", "body = \"extended\""] {
        let events = sent(keys);
        assert_eq!(events.len(), 2, "{events:?}");
        for event in events {
            assert_eq!(misfits(&event), [""; 0], "{event}");
        }
    }
    let other = sent("body = \"template\"\ntemplate = '{\"ticket\": {{ id }}}'");
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
