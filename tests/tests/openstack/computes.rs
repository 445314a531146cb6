//! The `nova` and `mistral` drivers, and the probe `hypervisor`, against the real services.

use std::time::Duration;

use alerter::probes::{Hypervisor, Probe, State, Tries, Way};

use anyhow::{Context as _, ensure};
use drivers::mistral::{self, Mistral};

use drivers::nova::{self, Nova};

use drivers::{WhichName, openstack};

use drivers::{Named, Outcome};

use marks::id::MarkId;
use marks::mark::Mark;
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::openstack::{NOVA_ALONE, Part, Who};

use crate::Scenario;
use crate::cloud::{Cloud, LONG, Sender, expect, mark, word};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("a_host_is_forced_down_and_comes_back", a_host_is_forced_down_and_comes_back),
    ("what_somebody_disabled_stays_disabled", what_somebody_disabled_stays_disabled),
    ("nova_takes_no_other_host_and_no_reader", nova_takes_no_other_host_and_no_reader),
    ("the_probe_sees_a_compute_service_as_nova_does", the_probe_sees_a_compute_service_as_nova_does),
    ("a_mark_starts_one_workflow", a_mark_starts_one_workflow),
    ("mistral_refuses_what_does_not_fit", mistral_refuses_what_does_not_fit),
];

fn compute(cloud: &mut Cloud, who: Who) -> anyhow::Result<Sender> {
    cloud.put_right()?;
    cloud.services.also(Part::Nova)?;
    cloud.sender_of(who, LONG, |cloud| {
        let reason = "nova-host-alerter: fenced, down since {failure_time}".to_owned();
        let disabled_reason = Some(reason);
        let options = nova::Options {
            cloud,
            host_name: WhichName::Fqdn.into(),
            disabled_reason,
            up_when_returned: true,
        };
        Ok(Nova::new(options)?)
    })
}

/// What Nova shows of a host's service.
fn service(cloud: &Cloud, change: Option<&Value>) -> anyhow::Result<Value> {
    let version = [("OpenStack-API-Version", "compute 2.53")];
    let token = cloud.services.token()?;
    let list = format!("GET /v2.1/os-services?host={NOVA_ALONE}&binary=nova-compute");
    let found = cloud.services.ask(Part::Nova, &token, &list, &version, None)?.expect(200)?;
    let service = found["services"][0].clone();
    let Some(change) = change else { return Ok(service) };
    let put = format!("PUT /v2.1/os-services/{}", service["id"].as_str().context("no id")?);
    Ok(cloud.services.ask(Part::Nova, &token, &put, &version, Some(change))?.expect(200)?["service"].clone())
}

fn a_host_is_forced_down_and_comes_back(cloud: &mut Cloud) -> anyhow::Result<()> {
    let nova = compute(cloud, Who::Admin)?;
    let mark = mark(NOVA_ALONE);
    expect(&nova.test(), "acknowledged")?;
    ensure!(nova.check(&mark), "it has nothing against this host");
    let before = service(cloud, None)?;
    for _again in 0..2 {
        expect(&nova.down(&mark), "acknowledged")?;
        let seen = service(cloud, None)?;
        let reason = "nova-host-alerter: fenced, down since 2026-07-21T02:13:20Z";
        ensure!(seen["forced_down"] == true && seen["disabled_reason"] == reason, "{seen}");
    }
    for reference in ["", " left-alone"] {
        let id = before["id"].as_str().context("no id")?;
        let expected = Outcome::Acknowledged { reference: Some(format!("{id}{reference}")) };
        let outcome = nova.back(&mark);
        ensure!(outcome == expected, "{outcome:?}");
        let seen = service(cloud, None)?;
        ensure!(seen["forced_down"] == false && seen["status"] == "enabled", "{seen}");
    }
    Ok(())
}

fn what_somebody_disabled_stays_disabled(cloud: &mut Cloud) -> anyhow::Result<()> {
    let nova = compute(cloud, Who::Application)?;
    let mark = mark(NOVA_ALONE);
    service(cloud, Some(&json!({"status": "disabled", "disabled_reason": "alice: bad memory"})))?;
    expect(&nova.down(&mark), "acknowledged")?;
    expect(&nova.back(&mark), "rejected not-ours")?;
    let seen = service(cloud, Some(&json!({"status": "enabled", "forced_down": false})));
    ensure!(seen.as_ref().is_ok_and(|seen| seen["forced_down"] == false), "{seen:?}");
    Ok(())
}

fn nova_takes_no_other_host_and_no_reader(cloud: &mut Cloud) -> anyhow::Result<()> {
    let nova = compute(cloud, Who::Admin)?;
    for stranger in ["nosuch.my.cloud.com", "COMPUTE7.my.cloud.com"] {
        expect(&nova.down(&mark(stranger)), "rejected unknown-host")?;
        ensure!(!nova.check(&mark(stranger)), "{stranger}");
    }
    let reader = compute(cloud, Who::Reader)?;
    expect(&reader.down(&mark(NOVA_ALONE)), "refused forbidden")?;
    ensure!(service(cloud, None)?["forced_down"] == false, "nothing was changed");
    Ok(())
}

/// What the probe `hypervisor` says of a host, asked as somebody.
fn probed(cloud: &Cloud, who: Who, host: &str) -> anyhow::Result<State> {
    let files = TempDir::new()?;
    let file = cloud.services.clouds(who, files.path())?;
    let options =
        openstack::CloudOptions { timeout: LONG, patience: LONG, ..openstack::CloudOptions::of_file(file) };
    let tries = Tries { retries: 0, interval: Duration::ZERO, timeout: LONG };
    let way = Way::Hypervisor(Box::new(Hypervisor::new(options, WhichName::Fqdn, tries)?));
    let probe = Probe { name: "hypervisor.nova".to_owned(), way };
    let mark = mark(host);
    let host = Named { node: mark.node, fqdn: mark.fqdn };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(probe.ask(&host)).state)
}

/// S0-18: up while it reports, down when it does not; what somebody has forced down proves nothing until it is silent. A
/// reader and a host that is not there are not known.
fn the_probe_sees_a_compute_service_as_nova_does(cloud: &mut Cloud) -> anyhow::Result<()> {
    cloud.put_right()?;
    cloud.services.also(Part::Nova)?;
    let seen = |cloud: &Cloud, ago: u64, expected: State| {
        cloud.services.compute_reports(NOVA_ALONE, Duration::from_secs(ago))?;
        let state = probed(cloud, Who::Admin, NOVA_ALONE)?;
        ensure!(state == expected, "{ago} s after its report: {state:?}, not {expected:?}");
        Ok(())
    };
    seen(cloud, 0, State::Healthy)?;
    seen(cloud, 90, State::Unhealthy)?;
    ensure!(probed(cloud, Who::Reader, NOVA_ALONE)? == State::Unknown, "a reader may not ask");
    ensure!(probed(cloud, Who::Admin, "nosuch.my.cloud.com")? == State::Unknown, "a host that is not there");
    service(cloud, Some(&json!({"forced_down": true})))?;
    let forced = probed(cloud, Who::Admin, NOVA_ALONE);
    let fresh = seen(cloud, 10, State::Unknown);
    let silent = seen(cloud, 600, State::Unhealthy);
    service(cloud, Some(&json!({"forced_down": false})))?;
    ensure!(forced? == State::Unknown, "it was forced down just now");
    fresh.and(silent)
}

fn engine(cloud: &mut Cloud, who: Who, workflow: &str) -> anyhow::Result<Sender> {
    cloud.put_right()?;
    cloud.services.also(Part::Mistral)?;
    cloud.sender_of(who, LONG, |cloud| Ok(Mistral::new(mistral::Options::of(cloud, workflow))?))
}

/// With what the driver gives to a workflow by itself.
fn a_mark_starts_one_workflow(cloud: &mut Cloud) -> anyhow::Result<()> {
    let token = |cloud: &Cloud| cloud.services.token();
    let mark = Mark { id: MarkId::parse("0197a1b2-c3d4-7e5f-8a6b-00000000a001")?, ..mark(NOVA_ALONE) };
    // The default policy asks for no role but one on the project.
    for who in [Who::Admin, Who::Reader] {
        let mistral = engine(cloud, who, "host-evacuate")?;
        expect(&mistral.test(), "acknowledged")?;
        ensure!(mistral.check(&mark), "it has nothing against this");
        let outcome = mistral.down(&mark);
        ensure!(outcome == Outcome::Acknowledged { reference: Some(mark.id.to_string()) }, "{outcome:?}");
    }
    let token = token(cloud)?;
    let all = cloud.services.ask(Part::Mistral, &token, "GET /v2/executions", &[], None)?.expect(200)?;
    let ours: Vec<&Value> = all["executions"]
        .as_array()
        .context("no list")?
        .iter()
        .filter(|row| row["id"] == mark.id.to_string())
        .collect();
    ensure!(ours.len() == 1 && ours[0]["workflow_name"] == "host-evacuate", "{all}");
    let what = format!("GET /v2/executions/{}", mark.id);
    let seen = cloud.services.ask(Part::Mistral, &token, &what, &[], None)?.expect(200)?;
    let input: Value = serde_json::from_str(seen["input"].as_str().context("no input")?)?;
    ensure!(input == json!({"search_opts": {"host": NOVA_ALONE}, "on_shared_storage": true}), "{input}");
    Ok(())
}

fn mistral_refuses_what_does_not_fit(cloud: &mut Cloud) -> anyhow::Result<()> {
    let mark = Mark { id: MarkId::parse("0197a1b2-c3d4-7e5f-8a6b-00000000a002")?, ..mark(NOVA_ALONE) };
    let other = engine(cloud, Who::Admin, "host_down")?;
    let outcome = other.down(&mark);
    ensure!(word(&outcome) == "rejected rejected", "{outcome:?}");
    let detail = outcome.failure().context("no failure")?.detail.clone();
    ensure!(detail.contains("missing=['host']") && detail.contains("search_opts"), "{detail}");
    let none = engine(cloud, Who::Admin, "nosuch")?;
    for outcome in [none.down(&mark), none.test()] {
        expect(&outcome, "refused misconfigured")?;
        ensure!(format!("{outcome:?}").contains("Workflow not found"), "{outcome:?}");
    }
    Ok(())
}
