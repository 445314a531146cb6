//! How soon a host is notified where one controller fences and another one runs the alerter, while the power device still switches on.

use std::time::{Duration, SystemTime};

use anyhow::{Context, ensure};
use marks::register::Register;
use tests::audit::Excused;
use tests::lab::{Event, Fault};

use crate::Scenario;
use crate::cluster::{Before, Cluster};
use crate::upgrade::move_alerter;

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("a_host_is_reported_before_it_is_on_again_with_the_register_in_attrd", |cluster| {
        prompt(cluster, Register::Attrd)
    }),
    ("a_host_is_reported_before_it_is_on_again_with_the_register_in_the_cib", |cluster| {
        prompt(cluster, Register::Cib)
    }),
    ("a_host_is_reported_before_it_is_on_again_with_the_register_in_etcd", |cluster| {
        prompt(cluster, Register::Etcd)
    }),
];

/// From the end of `fence_mark off` to the request.
const PROMPT: Duration = Duration::from_secs(2);
const HOSTS: [&str; 4] = ["compute1", "compute2", "compute3", "compute4"];

/// The switch takes 20 s to give the power back, and Pacemaker says nothing of the fencing before that. What `fence_mark` has sealed is
/// proof enough: both routes have the host within 2 s of its `off`. S1-16
fn prompt(cluster: &mut Cluster, register: Register) -> anyhow::Result<()> {
    let before = cluster.begin_with(register)?;
    for host in HOSTS {
        cluster.lab.bmc().break_for(host, Fault::SlowOn);
        let alerter = cluster.wait_for_alerter()?;
        cluster.crash(host)?;
        let fenced_on = cluster.wait_marked(&before, host)?;
        cluster.wait_mark(&before, host, "acknowledged", |mark| mark.state == "acknowledged")?;
        if fenced_on == alerter {
            let next = cluster.other_than(&[&alerter])?;
            move_alerter(cluster, &next)?;
            continue;
        }
        let marked = marked_at(cluster, &before, host).context("its off has not ended")?;
        let (first, last) = notified_at(cluster, &before, host)?;
        let took = last.duration_since(marked).unwrap_or_default();
        eprintln!(
            "{}: {host}, fenced on {fenced_on}, was reported by {alerter} {took:?} after its off",
            register.as_str()
        );
        ensure!(took <= PROMPT, "{host} was reported {took:?} after its off");
        let on = switched_on(cluster, &before, host);
        ensure!(on.is_none_or(|on| first < on), "{host} was reported only when it was on again");
        cluster.lab.bmc().repair();
        return cluster.audit(before, Excused::default());
    }
    anyhow::bail!("the alerter's controller fenced each of {HOSTS:?}")
}

fn marked_at(cluster: &Cluster, before: &Before, host: &str) -> Option<SystemTime> {
    let record = cluster.lab.bmc().timed_record();
    let is_off = |event: &Event| matches!(event, Event::Called(call) if call.action() == "off" && call.given("nodename") == Some(host));
    let called = record.iter().enumerate().skip(before.events).find(|(_, (_, event))| is_off(event))?.0;
    record.iter().find_map(|(at, event)| match event {
        Event::Returned { call, rc: 0 } if *call == called => Some(*at),
        _ => None,
    })
}

fn switched_on(cluster: &Cluster, before: &Before, host: &str) -> Option<SystemTime> {
    let record = cluster.lab.bmc().timed_record();
    record.into_iter().skip(before.events).find_map(|(at, event)| match event {
        Event::Power { action, target, worked: true } if action == "on" && target == host => Some(at),
        _ => None,
    })
}

/// When the first route had it, and when the last.
fn notified_at(cluster: &Cluster, before: &Before, host: &str) -> anyhow::Result<(SystemTime, SystemTime)> {
    let name = format!("\"{host}.");
    let mut times = Vec::new();
    for (receiver, seen) in cluster.receivers.iter().zip(&before.requests) {
        let received = receiver.received();
        let own = received.iter().skip(*seen).find(|it| String::from_utf8_lossy(&it.body).contains(&name));
        times.push(own.context("a route was not notified")?.at);
    }
    times.sort();
    Ok((times[0], times[times.len() - 1]))
}
