//! The `nova`, `mistral` and `heat` drivers against the services themselves.

use std::time::Duration;

use anyhow::{Context as _, anyhow, ensure};
use drivers::heat::{self, ByHost, Heat, Resource, WhichName};

use drivers::mistral::{self, Mistral};

use drivers::Step;

use marks::host::HostPatterns;
use marks::mark::Mark;
use marks::time::Timestamp;
use serde_json::{Value, json};
use tests::lab::wait;
use tests::openstack::{ENABLED, Part, Token, Who};

use crate::Scenario;
use crate::cloud::{Cloud, LONG, SOON, expect, mark};

pub(crate) const SCENARIOS: &[Scenario] = &[
    (
        "a_repetition_after_mistral_was_frozen_starts_nothing",
        a_repetition_after_mistral_was_frozen_starts_nothing,
    ),
    ("heat_has_the_resource_marked_and_unmarked", heat_has_the_resource_marked_and_unmarked),
];

/// As long as a frozen service is waited for.
const SHORT: Duration = Duration::from_secs(2);

fn workflow(name: &str) -> impl FnOnce(drivers::openstack::CloudOptions) -> anyhow::Result<Mistral> {
    move |cloud| Ok(Mistral::new(mistral::Options::of(cloud, name))?)
}

fn executions(cloud: &Cloud, token: &Token) -> anyhow::Result<Vec<Value>> {
    let all = cloud.services.ask(Part::Mistral, token, "GET /v2/executions", &[], None)?.expect(200)?;
    all["executions"].as_array().cloned().context("no list of executions")
}

/// What came while it could not answer is started when it can, and the repetition finds it.
fn a_repetition_after_mistral_was_frozen_starts_nothing(cloud: &mut Cloud) -> anyhow::Result<()> {
    cloud.put_right()?;
    begin_again(cloud)?;
    let token = cloud.services.token()?;
    let sender = cloud.sender_of(Who::Admin, SHORT, workflow("host-evacuate"))?;
    expect(
        &sender.send(&sender.driver.test_body(&mark(ENABLED[0]).id, Timestamp::now()), 0),
        "acknowledged",
    )?;
    cloud.services.freeze(Part::Mistral)?;
    let lost = sender.attempt(ENABLED[0], 0);
    cloud.services.thaw(Part::Mistral)?;
    expect(&lost, "unknown timeout")?;
    let later = cloud.sender_of(Who::Admin, LONG, workflow("host-evacuate"))?;
    expect(&later.attempt(ENABLED[0], 1), "acknowledged")?;
    expect(&later.attempt(ENABLED[0], 1), "acknowledged")?;
    let all = executions(cloud, &token)?;
    ensure!(all.len() == 1, "{all:?}");
    Ok(())
}

/// A Mistral without executions.
fn begin_again(cloud: &mut Cloud) -> anyhow::Result<()> {
    cloud.services.also(Part::Mistral)?;
    let token = cloud.services.token()?;
    let ids: Vec<Value> = executions(cloud, &token)?.into_iter().map(|one| one["id"].clone()).collect();
    for id in ids.iter().filter_map(Value::as_str) {
        let what = format!("DELETE /v2/executions/{id}?force=true");
        cloud.services.ask(Part::Mistral, &token, &what, &[], None)?.expect(204)?;
    }
    Ok(())
}

/// A resource that is no server is not marked, since its host is unknown. The named resource alone is unmarked.
fn heat_has_the_resource_marked_and_unmarked(cloud: &mut Cloud) -> anyhow::Result<()> {
    cloud.put_right()?;
    cloud.services.also(Part::Heat)?;
    let token = cloud.services.token()?;
    let stack = new_stack(cloud, &token)?;
    let sender = cloud.sender_of(Who::Admin, LONG, |cloud| {
        let resource = Resource::parse(&format!("{stack}/one")).map_err(|why| anyhow!(why))?;
        let mut resources = ByHost::<Resource>::default();
        resources.add(HostPatterns::parse(ENABLED[0])?, vec![resource]);
        let (host_name, stacks, unmark) = (WhichName::Fqdn.into(), Vec::new(), true);
        Ok(Heat::new(heat::Options { cloud, host_name, resources, stacks, unmark })?)
    })?;
    let status = |name: &str| -> anyhow::Result<Value> {
        let what = format!("GET /v1/{}/stacks/{stack}/resources/{name}", token.project);
        let seen = cloud.services.ask(Part::Heat, &token, &what, &[], None)?.expect(200)?;
        Ok(seen["resource"]["resource_status"].clone())
    };
    let test = sender.driver.test_body(&mark(ENABLED[0]).id, Timestamp::now());
    expect(&sender.send(&test, 0), "acknowledged")?;
    ensure!(status("one")? == "CREATE_COMPLETE", "a test changed something");
    expect(&sender.attempt(ENABLED[0], 0), "acknowledged")?;
    ensure!(status("one")? == "CREATE_COMPLETE", "it was made after that failure");
    let later = Timestamp::from_seconds(Timestamp::now().seconds() + 5);
    let failed = Mark { generated_time: later, ..mark(ENABLED[0]) };
    expect(&sender.send(&sender.driver.body(&failed), 0), "rejected not-a-server")?;
    ensure!(status("one")? == "CREATE_COMPLETE", "nobody says where it is");
    let reason = format!("nova-host-alerter, mark {}: by hand", failed.id);
    for name in ["one", "two"] {
        let what = format!("PATCH /v1/{}/stacks/{stack}/resources/{name}", token.project);
        let change = json!({"mark_unhealthy": true, "resource_status_reason": reason});
        cloud.services.ask(Part::Heat, &token, &what, &[], Some(&change))?.expect(200)?;
    }
    let back = sender.driver.return_body(&failed, &[], Timestamp::now());
    for ambiguous in [0, 1] {
        expect(&sender.step(Step::Return, &back, ambiguous), "acknowledged")?;
        let both = [status("one")?, status("two")?];
        ensure!(both == ["CHECK_COMPLETE", "CHECK_FAILED"], "{both:?}");
    }
    Ok(())
}

/// A stack with resources that are nothing; gives its name and id.
fn new_stack(cloud: &Cloud, token: &Token) -> anyhow::Result<String> {
    let nothing = json!({"type": "OS::Heat::None"});
    let template =
        json!({"heat_template_version": "2018-08-31", "resources": {"one": nothing, "two": nothing}});
    let name = format!("stack-{}", Timestamp::now().0);
    let body = json!({"stack_name": name, "template": template});
    let what = format!("POST /v1/{}/stacks", token.project);
    let made = cloud.services.ask(Part::Heat, token, &what, &[], Some(&body))?.expect(201)?;
    let id = made["stack"]["id"].as_str().context("a stack without an id")?;
    let stack = format!("GET /v1/{}/stacks/{name}/{id}", token.project);
    wait::until("the stack to be complete", SOON, || {
        let seen = cloud.services.ask(Part::Heat, token, &stack, &[], None)?.expect(200)?;
        Ok((seen["stack"]["stack_status"] == "CREATE_COMPLETE").then_some(()))
    })?;
    Ok(format!("{name}/{id}"))
}
