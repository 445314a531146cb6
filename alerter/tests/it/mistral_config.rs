//! The keys of `[mistral.NAME]`: what is wrong is said before anything runs, and what is right is what is sent.

use serde_json::{Value, json};

use crate::config::Site;
use crate::nova_config::beside_a_cloud;
use crate::openstack::mark;

/// A route with these keys, beside a file with a cloud.
fn route(keys: &str) -> Site {
    beside_a_cloud("mistral.a", keys)
}

/// What Mistral is sent.
fn sent(site: &Site) -> Value {
    serde_json::from_slice(&site.settings().routes[0].driver.body(&mark())).unwrap()
}

#[test]
fn a_workflow_is_a_route() {
    let site = route("workflow = \"host-evacuate\"");
    let settings = site.settings();
    let driver = &settings.routes[0].driver;
    let shown = "workflow host-evacuate in Mistral of cloud one at https://k/v3";
    assert_eq!((driver.kind(), driver.endpoint().as_str()), ("mistral", shown));
    assert!(driver.further_steps().is_empty() && driver.warnings().is_empty());
    let usual = json!({"id": mark().id.to_string(), "workflow_name": "host-evacuate",
        "input": {"search_opts": {"host": "Compute1.my.cloud.com"}, "on_shared_storage": true}});
    assert_eq!(sent(&site), usual);
}

#[test]
fn every_key_counts() {
    let site = route(
        r#"workflow = "evacuate"
namespace = "ops"
time-format = "rfc3339"
description = "{node} at {failure_time}"
[mistral.a.input]
host = "{hostname}"
shared = "{on_shared_storage}"
when = "{failure_time}"
retries = 0x1_0
ratio = 0.5
force = false
names = ["{node}", 1, { deep = "{id}" }, [true]]
expression = "<% $.x %> {{{{ _.y }}}}"
[mistral.a.input.search_opts]
host = "{node}.{node}"
"#,
    );
    let expected = json!({
        "id": mark().id.to_string(), "workflow_name": "evacuate", "workflow_namespace": "ops",
        "description": "compute1 at 2026-07-21T02:13:20Z",
        "input": {"host": "Compute1.my.cloud.com", "shared": true, "when": "2026-07-21T02:13:20Z", "retries": 16,
            "ratio": 0.5, "force": false, "names": ["compute1", 1, {"deep": mark().id.to_string()}, [true]],
            "expression": "<% $.x %> {{ _.y }}", "search_opts": {"host": "compute1.compute1"}}});
    assert_eq!(sent(&site), expected);
}

/// An input of its own replaces the usual one, also where it is empty.
#[test]
fn an_empty_input_is_one() {
    assert_eq!(sent(&route("workflow = \"w\"\ninput = {}"))["input"], json!({}));
}

/// A later file adds to the table key by key.
#[test]
fn an_input_may_stand_in_several_files() {
    let site = route("workflow = \"w\"\ninput = { a = 1, b = 2 }");
    let site = site.with("alerter.d/more.toml", "[mistral.a.input]\nb = \"{node}\"\nc = 3\n");
    assert_eq!(sent(&site)["input"], json!({"a": 1, "b": "compute1", "c": 3}));
}

#[test]
fn each_mistake_has_its_sentence() {
    let placeholder = "unknown placeholder; known are: {id}, {hostname}, {node}, {failure_time}, {generated_time}, {on_shared_storage}; a brace itself is written twice";
    let json = "must be a JSON value: text, a number that is not too large, true or false, a list or a table";
    let name = "must be a name without blanks, of at most 255 characters";
    for (keys, expected) in [
        (
            "namespace = \"x\"",
            "1:10: [mistral.a] has no workflow: set it to the name of the workflow to start".to_owned(),
        ),
        ("workflow = \"\"", format!("3:12: {name}")),
        ("workflow = \"a b\"", format!("3:12: {name}")),
        ("workflow = \"w\"\nnamespace = \"a\\tb\"", format!("4:13: {name}")),
        ("workflow = \"w\"\ndescription = \"{host}\"", format!("4:15: {placeholder}")),
        ("workflow = \"w\"\ninput = { a = \"{host\" }", format!("4:15: {placeholder}")),
        ("workflow = \"w\"\ninput = { a = [\"{}\"] }", format!("4:15: {placeholder}")),
        ("workflow = \"w\"\ninput = { a = { b = \"}\" } }", format!("4:21: {placeholder}")),
        ("workflow = \"w\"\ninput = { a = 2026-07-21 }", format!("4:15: {json}")),
        ("workflow = \"w\"\ninput = { a = inf }", format!("4:15: {json}")),
        ("workflow = \"w\"\ninput = \"x\"", "4:9: must be a table: write [mistral.a.input]".to_owned()),
        (
            "workflow = \"w\"\ntime-format = \"iso\"",
            "4:15: unknown word; known are: \"epoch\", \"rfc3339\"".to_owned(),
        ),
        (
            "workflow = \"w\"\nworkflow-name = \"x\"",
            "4:1: unknown key workflow-name in [mistral.a]".to_owned(),
        ),
    ] {
        let problem = route(keys).problem();
        assert!(problem.starts_with(&format!("alerter.toml:{expected}")), "{keys}: {problem}");
    }
    let site = route("workflow = \"w\"\ninput = { a = 1 }")
        .with("alerter.d/more.toml", "[mistral.a.input.a]\nb = 1\n");
    assert_eq!(site.problem(), "alerter.toml:4:15: is also a table, and cannot be a value too");
}
