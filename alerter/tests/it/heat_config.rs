//! The keys of `[heat.NAME]`: what is wrong is said before anything runs.

use crate::masakari_config::{one, route};

fn heat(keys: &str) -> crate::config::Site {
    route("heat", &format!("clouds-file = \"DIR/clouds.yaml\"\n{keys}"), &one())
}

#[test]
fn resources_or_stacks_are_a_route() {
    for keys in [
        "resources = { compute1 = [\"web/5e9a/server\", \"web/5e9a/0\"], \"compute-*\" = [] }",
        "stacks = [\"web/5e9a\"]\nhost-name = \"node\"\nwhen-returned = \"healthy\"",
        "[heat.a.resources]\n\"compute-west-*\" = [\"web/5e9a/server\"]",
    ] {
        let settings = heat(keys).settings();
        let driver = &settings.routes[0].driver;
        assert_eq!(
            (driver.kind(), driver.endpoint().as_str()),
            ("heat", "Heat of cloud one at https://k/v3")
        );
    }
}

#[test]
fn each_mistake_has_its_sentence() {
    let alphabet = "each of letters, digits, '_', '-' and '.'";
    for (keys, expected) in [
        ("", "1:7: [heat.a] names no resource: add a table resources with the resources of each host, or stacks".to_owned()),
        ("stacks = []", "1:7: [heat.a] names no resource: add a table resources with the resources of each host, or stacks".to_owned()),
        ("stacks = [\"web\"]", format!("3:11: must be STACK_NAME/STACK_ID, {alphabet}")),
        (
            "resources = { compute1 = [\"web/5e9a\"] }",
            format!("3:27: must be STACK_NAME/STACK_ID/RESOURCE, {alphabet}"),
        ),
        (
            "resources = { \"a b\" = [\"web/5e9a/x\"] }",
            "3:15: a host pattern has a character that no host name can have (allowed beside '*' and '?': letters, digits, '.', '_', '-')".to_owned(),
        ),
        ("resources = [\"web/5e9a/x\"]", "3:13: must be a table: write [heat.a.resources]".to_owned()),
        (
            "stacks = [\"web/5e9a\"]\nwhen-returned = \"x\"",
            "4:17: unknown word; known are: \"leave\", \"healthy\"".to_owned(),
        ),
    ] {
        assert_eq!(heat(keys).problem(), format!("alerter.toml:{expected}"), "{keys}");
    }
}
