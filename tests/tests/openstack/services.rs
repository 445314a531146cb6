//! The services themselves: that what drivers are tested against is what it seems to be.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use tests::lab::wait;
use tests::openstack::{NOVA_ALONE, Part, Token};

use crate::Scenario;
use crate::cloud::Cloud;

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("nova_forces_a_service_down", nova_forces_a_service_down),
    ("mistral_starts_a_workflow_once", mistral_starts_a_workflow_once),
    ("heat_marks_a_resource_unhealthy", heat_marks_a_resource_unhealthy),
];

const LIMIT: Duration = Duration::from_secs(60);

fn nova_forces_a_service_down(cloud: &mut Cloud) -> anyhow::Result<()> {
    cloud.put_right()?;
    let services = &mut cloud.services;
    services.also(Part::Nova)?;
    let token = services.token()?;
    let version = [("OpenStack-API-Version", "compute 2.53")];
    let list = format!("GET /v2.1/os-services?host={NOVA_ALONE}&binary=nova-compute");
    let found = services.ask(Part::Nova, &token, &list, &version, None)?.expect(200)?;
    let id = found["services"][0]["id"].as_str().context("no such service")?.to_owned();
    let change = json!({"forced_down": true, "status": "disabled", "disabled_reason": "fenced"});
    let put = format!("PUT /v2.1/os-services/{id}");
    let changed = services.ask(Part::Nova, &token, &put, &version, Some(&change))?.expect(200)?;
    ensure!(
        changed["service"]["forced_down"] == true && changed["service"]["status"] == "disabled",
        "{changed}"
    );
    let change = json!({"forced_down": false, "status": "enabled"});
    services.ask(Part::Nova, &token, &put, &version, Some(&change))?.expect(200).map(drop)
}

/// Of one id there is one execution.
fn mistral_starts_a_workflow_once(cloud: &mut Cloud) -> anyhow::Result<()> {
    cloud.put_right()?;
    cloud.services.also(Part::Mistral)?;
    let token = cloud.services.token()?;
    let id = "0197a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b";
    let body = json!({"id": id, "workflow_name": "host_down", "input": {"host": "compute1"}});
    for _ in 0..2 {
        let begun = cloud
            .services
            .ask(Part::Mistral, &token, "POST /v2/executions", &[], Some(&body))?
            .expect(201)?;
        ensure!(begun["id"] == id, "{begun}");
    }
    wait::until("the execution to succeed", LIMIT, || {
        let what = format!("GET /v2/executions/{id}");
        let seen = cloud.services.ask(Part::Mistral, &token, &what, &[], None)?.expect(200)?;
        Ok((seen["state"] == "SUCCESS").then_some(()))
    })
}

fn heat_marks_a_resource_unhealthy(cloud: &mut Cloud) -> anyhow::Result<()> {
    cloud.put_right()?;
    cloud.services.also(Part::Heat)?;
    let token = cloud.services.token()?;
    let path = new_stack(cloud, &token)?;
    let resource = format!("{path}/resources/one");
    let body = json!({"mark_unhealthy": true, "resource_status_reason": "its host was fenced"});
    let patched = cloud.services.ask(Part::Heat, &token, &format!("PATCH {resource}"), &[], Some(&body))?;
    ensure!(patched.clone().expect(200)? == Value::Null, "{patched:?}");
    let seen = cloud.services.ask(Part::Heat, &token, &format!("GET {resource}"), &[], None)?.expect(200)?;
    ensure!(seen["resource"]["resource_status"] == "CHECK_FAILED", "{seen}");
    Ok(())
}

/// A stack with resources that are nothing; gives its path.
fn new_stack(cloud: &Cloud, token: &Token) -> anyhow::Result<String> {
    let nothing = json!({"type": "OS::Heat::None"});
    let template =
        json!({"heat_template_version": "2018-08-31", "resources": {"one": nothing, "two": nothing}});
    let body = json!({"stack_name": "a_stack", "template": template});
    let what = format!("POST /v1/{}/stacks", token.project);
    let made = cloud.services.ask(Part::Heat, token, &what, &[], Some(&body))?.expect(201)?;
    let id = made["stack"]["id"].as_str().context("a stack without an id")?;
    let path = format!("/v1/{}/stacks/a_stack/{id}", token.project);
    wait::until("the stack to be complete", LIMIT, || {
        let seen = cloud.services.ask(Part::Heat, token, &format!("GET {path}"), &[], None)?.expect(200)?;
        Ok((seen["stack"]["stack_status"] == "CREATE_COMPLETE").then_some(()))
    })?;
    Ok(path)
}
