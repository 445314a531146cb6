//! What really happened, from the power devices and the hosts themselves, beside what was sent.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, ensure};
use serde_json::Value;
use tests::audit::{Fact, Notified, Story, outages};
use tests::lab::{Event, Lab};
use tests::receiver::{Answer, Received};

use crate::cluster::{Before, Cluster, DOMAIN, ROUTES, failures};

/// What a host's own daemon logs when the cluster's connection stands.
const CONNECTED: &str = "Remote client connection accepted";

/// Everything since a scenario began.
pub(crate) fn story(cluster: &Cluster, before: &Before) -> anyhow::Result<Story> {
    Ok(Story {
        outages: outages(facts(&cluster.lab, before)?),
        notified: notified(cluster, before)?,
        marks: cluster.marks_since(before)?.into_iter().map(crate::cluster::Mark::listed).collect(),
        routes: ROUTES.map(|(name, _)| name.to_owned()).to_vec(),
        unaccounted: unaccounted(cluster)?,
    })
}

/// Fencings for which the active alerter can show no end.
fn unaccounted(cluster: &Cluster) -> anyhow::Result<Vec<String>> {
    let status = cluster.on_active(&["nova-host-alerter", "status", "--json"])?;
    let status: Value = serde_json::from_str(&status)?;
    let gaps =
        status["daemon"]["unaccounted"].as_array().context("status does not say what does not add up")?;
    Ok(gaps.iter().map(ToString::to_string).collect())
}

/// Every `off` of a compute host that a power device did, and every return of such a host.
fn facts(lab: &Lab, before: &Before) -> anyhow::Result<Vec<Fact>> {
    let (since, mut facts) = (before.events, before.confirmed.clone());
    let offs: Vec<(String, i64)> =
        offs(lab, since).into_iter().filter(|(node, _)| lab.remotes().any(|host| host == node)).collect();
    for host in lab.remotes() {
        if offs.iter().any(|(node, _)| node == host) {
            facts.extend(connections(lab, host)?.into_iter().map(|at| Fact::Back(host.to_owned(), at)));
        }
    }
    facts.extend(offs.into_iter().map(|(node, at)| Fact::Off(node, at)));
    Ok(facts)
}

/// Whether the host's last `off` is newer than its last connection.
pub(crate) fn is_down(lab: &Lab, before: &Before, host: &str) -> anyhow::Result<bool> {
    let off = offs(lab, before.events).into_iter().filter(|(node, _)| node == host).map(|(_, at)| at).max();
    Ok(off >= connections(lab, host)?.into_iter().max())
}

/// Every node whose power a device took, and when.
pub(crate) fn offs(lab: &Lab, since: usize) -> Vec<(String, i64)> {
    let record = lab.bmc().timed_record().into_iter().skip(since);
    let offs = record.filter_map(|(at, event)| match event {
        Event::Power { action, target, worked: true } if matches!(action.as_str(), "off" | "reboot") => {
            Some((target, milliseconds(at)))
        }
        _ => None,
    });
    offs.collect()
}

/// When the host's daemon had a connection to the cluster. It logs in local time, without a year: `date` reads that.
fn connections(lab: &Lab, host: &str) -> anyhow::Result<Vec<i64>> {
    let log = lab.directory().join("nodes").join(host).join("var-log/pacemaker/pacemaker.log");
    let log = std::fs::read_to_string(&log).with_context(|| format!("reading {}", log.display()))?;
    let stamp = |line: &str| line.splitn(4, ' ').take(3).collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = log.lines().filter(|line| line.contains(CONNECTED)).map(stamp).collect();
    read_dates(&lines)
}

fn read_dates(stamps: &[String]) -> anyhow::Result<Vec<i64>> {
    let mut date = Command::new("date")
        .args(["--file", "-", "+%s%3N"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    // Dropped at the end of the statement: `date` reads to the end.
    date.stdin.take().context("no pipe to date")?.write_all(stamps.join("\n").as_bytes())?;
    let said = date.wait_with_output()?;
    ensure!(said.status.success(), "date cannot read {stamps:?}");
    let lines = String::from_utf8(said.stdout)?;
    Ok(lines.lines().map(str::parse).collect::<Result<_, _>>()?)
}

/// Every request since a scenario began, each route's in their order.
pub(crate) fn notified(cluster: &Cluster, before: &Before) -> anyhow::Result<Vec<Notified>> {
    let mut all = Vec::new();
    for ((receiver, (route, _)), known) in cluster.receivers.iter().zip(ROUTES).zip(&before.requests) {
        for request in failures(receiver, *known) {
            all.push(read(route, &request)?);
        }
    }
    Ok(all)
}

fn read(route: &str, request: &Received) -> anyhow::Result<Notified> {
    let event: Value = serde_json::from_slice(&request.body).context("a body that is no JSON")?;
    let hostname = event["payload"]["hostname"].as_str().context("no hostname")?;
    let node = hostname.strip_suffix(&format!(".{DOMAIN}")).unwrap_or(hostname);
    Ok(Notified {
        route: route.to_owned(),
        node: node.to_owned(),
        id: event["id"].as_str().context("no id")?.to_owned(),
        failure_time: event["payload"]["failure_time"].as_i64().context("no failure_time")?,
        body: request.body.clone(),
        acknowledged: matches!(request.answer, Answer::Status(200..=299)),
    })
}

/// Whether a request says that a host is back.
pub(crate) fn is_return(request: &Received) -> bool {
    event(request)["event_type"] == "host returned"
}

/// Whether it says so of this outage.
pub(crate) fn is_return_of(request: &Received, id: &str) -> bool {
    is_return(request) && event(request)["id"] == id
}

fn event(request: &Received) -> Value {
    serde_json::from_slice(&request.body).unwrap_or_default()
}

/// What is wrong with the returns among a receiver's requests since the `known` ones: each comes behind its acknowledged failure, with a key of its
/// own, and with the same bytes each time. `ended_by_hand`: marks of which an alerter does not know what another one had sent, so that
/// it sends the return in any case.
pub(crate) fn of_returns(
    requests: &[Received],
    known: usize,
    ended_by_hand: &BTreeSet<String>,
) -> Vec<String> {
    let mut wrong = Vec::new();
    for (at, request) in requests.iter().enumerate().skip(known).filter(|(_, request)| is_return(request)) {
        let (back, before) = (event(request), &requests[..at]);
        let id = back["id"].as_str().unwrap_or_default();
        let is_taken = |one: &&Received| matches!(one.answer, Answer::Status(200..=299));
        let failures = || before.iter().filter(|one| !is_return(one)).map(|one| (one, event(one)));
        let is_behind = failures().any(|(one, failure)| failure["id"] == id && is_taken(&one));
        if !is_behind && !ended_by_hand.contains(id) {
            wrong.push(format!("the return of {id} came before its failure was acknowledged"));
        }
        if request.header("idempotency-key") != Some(&format!("\"{id}.return\"")) {
            wrong.push(format!("the return of {id} has the key {:?}", request.header("idempotency-key")));
        }
        if before.iter().any(|one| is_return(one) && event(one)["id"] == id && one.body != request.body) {
            wrong.push(format!("the return of {id} has other bytes than before"));
        }
    }
    wrong
}

pub(crate) fn milliseconds(at: SystemTime) -> i64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A line of the record, for people; nothing for what happens all the time.
pub(crate) fn in_short(event: &Event) -> Option<String> {
    match event {
        Event::Power { action, .. } if action == "status" => None,
        Event::Power { action, target, worked } => {
            Some(format!("{action} {target}{}", if *worked { "" } else { " failed" }))
        }
        Event::Called(call) if call.action() == "off" => {
            Some(format!("mark {} on {}", call.given("nodename").unwrap_or_default(), call.node))
        }
        Event::Called(_) | Event::Returned { rc: 0, .. } => None,
        Event::Returned { rc, .. } => Some(format!("fence_mark returned {rc}")),
    }
}
