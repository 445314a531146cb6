//! What Pacemaker knows of the resource and of the mark device.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use tempfile::TempDir;
use tests::trials::Named;

use super::options::parameters_of_the_agent;
use super::page::{heads, section};
use super::{pages, text};

/// Its tests.
pub(super) fn tests() -> Vec<Named> {
    tests::trials![
        every_parameter_of_the_resource_is_on_its_page,
        every_parameter_in_the_examples_for_pacemaker_is_in_the_manual
    ]
}

/// What the agent itself prints, with nothing of resource-agents but an empty file of functions.
fn metadata_of_the_resource(script: &str) -> String {
    let room = TempDir::new().unwrap();
    let agent = room.path().join("agent");
    fs::write(room.path().join("ocf-shellfuncs"), "").unwrap();
    fs::write(&agent, script).unwrap();
    let output = Command::new("sh")
        .arg(agent)
        .arg("meta-data")
        .env("OCF_FUNCTIONS_DIR", room.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Parameters with their defaults, and actions with what is suggested of each.
fn in_metadata(xml: &str) -> BTreeSet<String> {
    let attribute = |line: &str, name: &str| {
        Some(line.split_once(&format!("{name}=\""))?.1.split('"').next()?.to_owned())
    };
    let mut found = BTreeSet::new();
    let mut parameter = String::new();
    for line in xml.lines() {
        if line.starts_with("<parameter ") {
            parameter = attribute(line, "name").unwrap();
        } else if line.starts_with("<content ") {
            found.insert(format!("{parameter} = {}", attribute(line, "default").unwrap()));
        } else if line.starts_with("<action ") {
            found.insert(attribute(line, "name").unwrap());
        }
    }
    found
}

pub(super) fn on_the_resources_page(page: &str) -> BTreeSet<String> {
    let of = ["OPTIONS", "ACTIONS"];
    heads(page).into_iter().filter(|head| of.contains(&head.section.as_str())).map(|head| head.text).collect()
}

fn every_parameter_of_the_resource_is_on_its_page() {
    let script = text("ocf/nova-host-alerter");
    let page = &pages()["ocf_openstack_nova-host-alerter.7"];
    let documented = in_metadata(&metadata_of_the_resource(&script));
    assert!(documented.len() >= 8, "{documented:?}");
    assert_eq!(documented, on_the_resources_page(page));
    let renamed = script.replace("<parameter name=\"binary\"", "<parameter name=\"program\"");
    assert_ne!(
        in_metadata(&metadata_of_the_resource(&renamed)),
        on_the_resources_page(page),
        "a renamed parameter must be seen"
    );
    assert!(
        documented
            .iter()
            .filter(|documented| !documented.contains('='))
            .all(|action| section(page, "SYNOPSIS").contains(action.as_str()))
    );
}

/// The parameters that a resource of ours is given, of each command that makes one; Pacemaker's own begin with `pcmk_`.
fn given(example: &str, agent: &str) -> BTreeSet<String> {
    let joined = example.replace("\\\n", " ");
    let lines = joined
        .lines()
        .filter(|line| line.split_whitespace().any(|word| word.trim_start_matches("stonith:") == agent));
    let before_others = |line: &str| {
        [" op ", " meta "]
            .iter()
            .fold(line.to_owned(), |line, word| line.split(word).next().unwrap().to_owned())
    };
    let words =
        lines.flat_map(|line| before_others(line).split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    words
        .filter_map(|word| Some(word.split_once('=')?.0.to_owned()))
        .filter(|name| !name.starts_with("pcmk_"))
        .collect()
}

fn every_parameter_in_the_examples_for_pacemaker_is_in_the_manual() {
    let pages = pages();
    let agent: BTreeSet<String> = parameters_of_the_agent().into_iter().map(|(name, _)| name).collect();
    let resource: BTreeSet<String> = on_the_resources_page(&pages["ocf_openstack_nova-host-alerter.7"])
        .iter()
        .filter_map(|head| Some(head.split_once(" = ")?.0.to_owned()))
        .collect();
    for path in ["packaging/examples/crmsh.txt", "packaging/examples/pcs.sh"] {
        let example = text(path);
        let of_resource = given(&example, "ocf:openstack:nova-host-alerter");
        assert_eq!(of_resource, BTreeSet::from(["config".to_owned()]), "{path}");
        assert!(
            of_resource.is_subset(&resource) && given(&example, "fence_mark").is_subset(&agent),
            "{path}"
        );
        let slip = example
            .replace("config=/etc", "conf=/etc")
            .replace("pcmk_host_list=compute1 pcmk_status", "host_list=compute1 pcmk_status");
        assert!(
            !given(&slip, "ocf:openstack:nova-host-alerter").is_subset(&resource),
            "{path}: a wrong parameter must be seen"
        );
        assert!(!given(&slip, "fence_mark").is_subset(&agent), "{path}: a wrong parameter must be seen");
    }
}
