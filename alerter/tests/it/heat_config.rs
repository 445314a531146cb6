//! The keys of `[heat.NAME]`: what is wrong is said before anything runs.

use crate::masakari_config::{one, route};

fn heat(keys: &str) -> crate::config::Site {
    route("heat", &format!("clouds-file = \"DIR/clouds.yaml\"\n{keys}"), &one())
}

#[test]
fn each_mistake_has_its_sentence() {
    let alphabet = "each of letters, digits, '_', '-' and '.'";
    for (keys, expected) in [
        ("", "1:7: [heat.a] names no resource: add a table resources with the resources of each host, or stacks".to_owned()),
        ("stacks = [\"web\"]", format!("3:11: must be STACK_NAME/STACK_ID, {alphabet}")),
        (
            "resources = { compute1 = [\"web/5e9a\"] }",
            format!("3:27: must be STACK_NAME/STACK_ID/RESOURCE, {alphabet}"),
        ),
        (
            "resources = { \"a b\" = [\"web/5e9a/x\"] }",
            "3:15: a host pattern has a character that no host name can have (allowed beside '*' and '?': letters, digits, '.', '_', '-')".to_owned(),
        ),
    ] {
        assert_eq!(heat(keys).problem(), format!("alerter.toml:{expected}"), "{keys}");
    }
}
