//! The whole path: a host is lost, is fenced, and is reported until the recovery controller acknowledges.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use marks::register::Register;
use serde_json::Value;
use tests::lab::{Fault, MarkMode, cib};
use tests::receiver::Answer;

use crate::Scenario;
use crate::cloud::{Cloud, HOST, holds_for};
use crate::event;

pub(crate) const SCENARIOS: &[Scenario] = &[
    (
        "a_killed_host_is_reported_once_though_the_endpoint_is_dead",
        a_killed_host_is_reported_once_though_the_endpoint_is_dead,
    ),
    ("a_refused_attempt_is_repeated_byte_for_byte", a_refused_attempt_is_repeated_byte_for_byte),
    ("a_frozen_host_and_a_cut_off_host_are_reported", a_frozen_host_and_a_cut_off_host_are_reported),
    ("fifty_hosts_die_at_once", fifty_hosts_die_at_once),
];

/// Hosts of a rack.
const RACK: usize = 50;
/// As many mark devices as `setup` makes for them.
const DEVICES: usize = 5;
/// Longer than a busy machine needs to send to an endpoint that can be reached again.
const PROMPT: Duration = Duration::from_secs(10);

/// A killed host, and nobody listens for ten seconds: one event, sent once, when somebody does; with the real agent and
/// nothing beside it. S1-1, S1-2, S1-3, S1-13, S1-15, S1-16, S1-30, S1-35, S1-36, S1-37, S1-38, S1-39, S1-41, S1-42, S4-52. Nobody
/// but the cluster fences: S1-9, S4-18, S4-48
fn a_killed_host_is_reported_once_though_the_endpoint_is_dead(cloud: &mut Cloud) -> anyhow::Result<()> {
    let before = cloud.begin()?;
    cloud.lab.bmc().set_mark(MarkMode::Real)?;
    cloud.receiver.down();
    let died = event::now();
    cloud.lab.power_off(HOST)?;
    let mark = cloud.wait_for_mark(&before)?;
    holds_for(10, || {
        let state = cloud.mark(&mark.id)?.state;
        ensure!(state == "open", "nobody listens, but the mark is {state}");
        Ok(())
    })?;
    cloud.wait_until_mark(&mark.id, "tried", |mark| mark.attempts >= 1)?;
    cloud.receiver.up()?;
    let mark = cloud.wait_acknowledged(&mark.id)?;
    cloud.host_returns()?;
    cloud.the_cluster_alone_has_fenced(&before)?;
    let requests = cloud.requests_since(&before);
    ensure!(requests.len() == 1, "sent {} times: {requests:?}", requests.len());
    event::check(&requests[0], &mark, died)?;
    event::another_is_noticed(&requests[0], &mark, died)?;
    let marks = cloud.marks_since(&before)?;
    ensure!(marks.len() == 1, "one outage, {} marks: {marks:?}", marks.len());
    Ok(())
}

/// A recovery controller that answers 503, and then nothing at all, gets the same bytes until it takes them. S1-16, S1-40
fn a_refused_attempt_is_repeated_byte_for_byte(cloud: &mut Cloud) -> anyhow::Result<()> {
    let before = cloud.begin()?;
    cloud.receiver.answer_next(Answer::Status(503));
    cloud.receiver.answer_next(Answer::Raw(Vec::new()));
    let died = event::now();
    cloud.lab.power_off(HOST)?;
    let mark = cloud.wait_for_mark(&before)?;
    let mark = cloud.wait_acknowledged(&mark.id)?;
    cloud.host_returns()?;
    let requests = cloud.requests_since(&before);
    ensure!(requests.len() == 3, "sent {} times: {requests:?}", requests.len());
    for request in &requests {
        event::check(request, &mark, died)?;
        ensure!(request.body == requests[0].body, "{requests:?}");
        let key = "idempotency-key";
        ensure!(request.header(key) == requests[0].header(key), "{requests:?}");
    }
    Ok(())
}

/// A host that hangs, and a host that nobody can reach, are fenced and reported like one that crashed. S1-1, S1-13
fn a_frozen_host_and_a_cut_off_host_are_reported(cloud: &mut Cloud) -> anyhow::Result<()> {
    for cut_off in [false, true] {
        let before = cloud.begin()?;
        let died = event::now();
        if cut_off {
            cloud.lab.partition(HOST)?;
        } else {
            cloud.lab.freeze(HOST)?;
        }
        let mark = cloud.wait_for_mark(&before)?;
        let mark = cloud.wait_acknowledged(&mark.id)?;
        event::check(&cloud.wait_for_requests(&before, 1)?[0], &mark, died)?;
    }
    Ok(())
}

/// The fencer calls each host's power device and then its mark device, which marks one host after the other. The endpoint is away
/// meanwhile. Fenced again, by power alone, the hosts are still in the same outage. Printed is how long all that takes. S1-2, S1-16
fn fifty_hosts_die_at_once(_other: &mut Cloud) -> anyhow::Result<()> {
    let mut cloud = Cloud::boot()?;
    a_rack_dies(&mut cloud).with_context(|| cloud.lab.keep_logs())
}

fn a_rack_dies(cloud: &mut Cloud) -> anyhow::Result<()> {
    cloud.write_own_site(Register::Attrd)?;
    cloud.run(&["crm_resource", "--restart", "--resource", "alerter"])?;
    // The cluster would fence by itself what it has never seen.
    cloud.run(&["crm_attribute", "--name", "startup-fencing", "--update", "false"])?;
    let hosts: Vec<String> = (1..=RACK).map(|number| format!("rack{number}")).collect();
    hosts.iter().for_each(|host| cloud.lab.bmc().break_for(host, Fault::Lying));
    cloud.lab.bmc().set_mark(MarkMode::Real)?;
    let [resources, levels] = cib::rack(&hosts, DEVICES);
    cloud.run(&["cibadmin", "--modify", "--scope", "resources", "--xml-text", &resources])?;
    cloud.receiver.down();
    let marked = fence_at_once(cloud, &hosts, &levels)?;
    // The route has failed, and waits as long as it may.
    holds_for(15, || Ok(()))?;
    let reached = reached(cloud)?;
    let [_, power_alone] = cib::rack(&hosts, 0);
    let floor = fence_at_once(cloud, &hosts, &power_alone)?;
    eprintln!(
        "{RACK} hosts at once: fenced and marked after {marked:.2?}, by power alone after {floor:.2?}; {reached}"
    );
    let received = cloud.receiver.received();
    let bodies = received.iter().map(|request| serde_json::from_slice::<Value>(&request.body));
    let sent = bodies.map(|body| body.map(|body| body["payload"]["hostname"].to_string()));
    let sent: BTreeSet<String> = sent.collect::<Result<_, _>>()?;
    ensure!([sent.len(), received.len()] == [RACK; 2], "{} in {} requests", sent.len(), received.len());
    Ok(())
}

/// The endpoint can be reached again. The broken variant waits for its backoff, up to 30 s, once for each of some marks.
fn reached(cloud: &mut Cloud) -> anyhow::Result<String> {
    cloud.receiver.up()?;
    let begun = Instant::now();
    cloud.receiver.wait_for(1, PROMPT)?;
    let first = begun.elapsed();
    cloud.receiver.wait_for(RACK, PROMPT)?;
    Ok(format!("reachable again, first {first:.2?}, last {:.2?}", begun.elapsed()))
}

/// How long it takes until the last of them is fenced.
fn fence_at_once(cloud: &Cloud, hosts: &[String], levels: &str) -> anyhow::Result<Duration> {
    cloud.lab.replace_section("fencing-topology", levels)?;
    cloud.lab.wait_until_ready()?;
    let all = "for host in \"$@\"; do stonith_admin --reboot \"$host\" --timeout 60 || echo \"$host: $?\" & done; wait";
    let command: Vec<&str> =
        ["sh", "-c", all, "sh"].into_iter().chain(hosts.iter().map(String::as_str)).collect();
    let begun = Instant::now();
    let failed = cloud.run(&command)?;
    ensure!(failed.is_empty(), "{failed}");
    Ok(begun.elapsed())
}
