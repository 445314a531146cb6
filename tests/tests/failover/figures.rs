//! How fast a mark comes through the register, and how fast a killed alerter is back. Figures, not assertions: they are
//! made only with `NHA_SCENARIOS=figures` (`make bench-cluster`).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, ensure};
use marks::register::Register;
use pacemaker::evidence::EventName;
use tests::lab::wait;

use crate::Scenario;
use crate::cluster::{Cluster, NOTIFIED_WITHIN};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("from_the_evidence_to_the_post_with_attrd_and_polling", polled),
    ("from_the_evidence_to_the_post_with_cib_and_alerts", woken),
    ("a_killed_alerter_is_back", killed),
];

const ROUNDS: usize = 10;
/// A wait of up to 2 s scatters: fewer rounds say little of its median.
const POLLED_ROUNDS: usize = 30;
/// A directory for alerts that the alerter does not read.
const ELSEWHERE: &str = "/var/lib/nova-host-alerter/elsewhere";
const EVIDENCE: &str = "/var/lib/nova-host-alerter/evidence";

/// The alerter sees neither alerts nor a change of the CIB: it finds entry and fencing history by its poll of 2 s.
fn polled(cluster: &mut Cluster) -> anyhow::Result<()> {
    cluster.begin_with(Register::Attrd)?;
    for name in cluster.names() {
        let make = ["install", "-d", "-m", "0700", "-o", "hacluster", "-g", "haclient", ELSEWHERE];
        cluster.lab.exec(&name, &make)?.success()?;
    }
    send_alerts(cluster, Some(ELSEWHERE))?;
    let measured = measure(cluster, ELSEWHERE, POLLED_ROUNDS);
    send_alerts(cluster, None)?;
    say("attrd, poll of 2 s, no alerts", measured?);
    Ok(())
}

fn woken(cluster: &mut Cluster) -> anyhow::Result<()> {
    cluster.begin_with(Register::Cib)?;
    let measured = measure(cluster, EVIDENCE, ROUNDS)?;
    say("cib, inotify, alert_mark", measured);
    Ok(())
}

fn send_alerts(cluster: &Cluster, to: Option<&str>) -> anyhow::Result<()> {
    let recipient = to.map(|to| format!(r#"<recipient id="elsewhere" value="{to}"/>"#)).unwrap_or_default();
    let alerts = format!(
        r#"<alerts><alert id="alert-mark" path="/usr/share/pacemaker/alerts/alert_mark"><select><select_fencing/></select>{recipient}</alert></alerts>"#
    );
    cluster.lab.replace_section("alerts", &alerts)
}

/// From the moment when a controller was notified of the fencing (the register's entry is older) to the POST.
fn measure(cluster: &mut Cluster, directory: &str, rounds: usize) -> anyhow::Result<Vec<Duration>> {
    let active = cluster.wait_for_alerter()?;
    // The record is made on another controller, so the register is the only way.
    cluster.run(&["crm_resource", "--ban", "--resource", "mark", "--node", &active])?;
    let hosts: Vec<String> = cluster.lab.remotes().map(str::to_owned).collect();
    let witness = cluster.other_than(&[&active])?;
    let mut all = Vec::new();
    for host in hosts.iter().cycle().take(rounds) {
        all.push(one(cluster, host, &witness, directory)?);
        cluster.lab.wait_until_ready()?;
    }
    cluster.run(&["crm_resource", "--clear", "--resource", "mark"])?;
    ensure!(cluster.wait_for_alerter()? == active, "the alerter has moved meanwhile");
    Ok(all)
}

fn one(cluster: &Cluster, host: &str, witness: &str, directory: &str) -> anyhow::Result<Duration> {
    let known = cluster.receivers[0].received().len();
    let begun = SystemTime::now();
    cluster.run(&["stonith_admin", "--reboot", host, "--timeout", "60"])?;
    let notified = cluster.receivers[0].wait_for(known + 1, NOTIFIED_WITHIN)?;
    let notified = notified.last().context("nobody was notified")?.at;
    let at = wait::until("the evidence", NOTIFIED_WITHIN, || newest(cluster, witness, directory, begun))?;
    Ok(notified.duration_since(at).unwrap_or_default())
}

/// When the newest event since then was reported to the controller.
fn newest(
    cluster: &Cluster,
    controller: &str,
    directory: &str,
    since: SystemTime,
) -> anyhow::Result<Option<SystemTime>> {
    let listed = cluster.lab.exec(controller, &["ls", directory])?.success()?;
    let moment = |name: &str| {
        let micros = EventName::parse(name)?.as_str().split_once('-')?.0.parse().ok()?;
        Some(UNIX_EPOCH + Duration::from_micros(micros))
    };
    Ok(listed.lines().filter_map(moment).max().filter(|at| *at >= since))
}

fn killed(cluster: &mut Cluster) -> anyhow::Result<()> {
    cluster.begin()?;
    let mut all = Vec::new();
    for _ in 0..ROUNDS {
        let active = cluster.wait_for_alerter()?;
        let pid = pid(cluster, &active)?;
        let begun = SystemTime::now();
        cluster.lab.exec(&active, &["kill", "-KILL", &pid])?.success()?;
        wait::until("another alerter", NOTIFIED_WITHIN, || {
            let is_new = self::pid(cluster, &active).is_ok_and(|now| now != pid);
            let answers = is_new
                && matches!(
                    cluster.lab.exec(&active, &["nova-host-alerter", "status", "--ocf"])?.rc,
                    0 | 190
                );
            Ok(answers.then_some(()))
        })?;
        all.push(begun.elapsed()?);
        cluster.run(&["crm_resource", "--cleanup", "--resource", "alerter"])?;
        cluster.lab.wait_until_ready()?;
    }
    say("a killed alerter answers again (monitor interval 2 s)", all);
    Ok(())
}

fn pid(cluster: &Cluster, active: &str) -> anyhow::Result<String> {
    let lock = "/var/lib/nova-host-alerter/marks.db.lock";
    let held = cluster.lab.exec(active, &["cat", lock])?.success()?;
    Ok(held.split_whitespace().next().context("an empty lock")?.to_owned())
}

fn say(what: &str, mut all: Vec<Duration>) {
    all.sort_unstable();
    let at = |share: usize| all[(all.len() - 1) * share / 100].as_millis();
    println!(
        "\n{what}: p50 {} ms, p90 {} ms, slowest {} ms of {} rounds",
        at(50),
        at(90),
        at(100),
        all.len()
    );
}
