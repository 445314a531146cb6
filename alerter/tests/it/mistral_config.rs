//! The keys of `[mistral.NAME]`: what is wrong is said before anything runs, and what is right is what is sent.

use serde_json::json;

use crate::config::Site;
use crate::nova_config::{beside_a_cloud, stored};
use crate::openstack::mark;

/// A route with these keys, beside a file with a cloud.
fn route(keys: &str) -> Site {
    beside_a_cloud("mistral.a", keys)
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
    assert_eq!(stored(&site), expected);
}

/// An input of its own replaces the usual one, also where it is empty.
#[test]
fn an_empty_input_is_one() {
    assert_eq!(stored(&route("workflow = \"w\"\ninput = {}"))["input"], json!({}));
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
        ("workflow = \"w\"\nnamespace = \"a\\tb\"", format!("4:13: {name}")),
        ("workflow = \"w\"\ndescription = \"{host}\"", format!("4:15: {placeholder}")),
        ("workflow = \"w\"\ninput = { a = \"{host\" }", format!("4:15: {placeholder}")),
        ("workflow = \"w\"\ninput = { a = 2026-07-21 }", format!("4:15: {json}")),
    ] {
        let problem = route(keys).problem();
        assert!(problem.starts_with(&format!("alerter.toml:{expected}")), "{keys}: {problem}");
    }
    let site = route("workflow = \"w\"\ninput = { a = 1 }")
        .with("alerter.d/more.toml", "[mistral.a.input.a]\nb = 1\n");
    assert_eq!(site.problem(), "alerter.toml:4:15: is also a table, and cannot be a value too");
}
