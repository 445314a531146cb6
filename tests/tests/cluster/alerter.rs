//! The alerter as a resource of the cluster.

use std::fs;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::Value;
use tests::installed::source;
use tests::lab::cib::HOME;
use tests::lab::wait;

use crate::Scenario;
use crate::cloud::{Before, Cloud, HOST};
use crate::event;

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("a_killed_alerter_is_restarted_and_sends", a_killed_alerter_is_restarted_and_sends),
    ("a_hold_and_its_end_call_the_alert_agent", a_hold_and_its_end_call_the_alert_agent),
];

/// Killed with an open mark: Pacemaker starts it again, and the mark is sent under its old id. S1-16, S1-32
fn a_killed_alerter_is_restarted_and_sends(cloud: &mut Cloud) -> anyhow::Result<()> {
    let before = cloud.begin()?;
    cloud.receiver.down();
    let died = event::now();
    cloud.lab.power_off(HOST)?;
    let mark = cloud.wait_for_mark(&before)?;
    let killed = pid(cloud)?;
    cloud.run(&["kill", "-KILL", &killed])?;
    cloud.lab.wait_for("Pacemaker to see that the alerter is gone", 60, |view| {
        !view.failures("alerter").is_empty()
    })?;
    cloud.host_returns()?;
    ensure!(pid(cloud)? != killed, "the killed alerter still answers");
    ensure!(cloud.mark(&mark.id)?.state == "open", "the mark was settled though nobody listens");
    cloud.receiver.up()?;
    let mark = cloud.wait_acknowledged(&mark.id)?;
    let requests = cloud.requests_since(&before);
    ensure!(requests.len() == 1, "sent {} times", requests.len());
    event::check(&requests[0], &mark, died)
}

/// What the example of an alert agent mails: the controllers' own directory is hacluster's, as which the agent runs.
const MAILS: &str = "/var/log/pacemaker/mails";
const ALERTS: &str = r#"<configuration><alerts><alert id="alert-mail" path="/var/log/pacemaker/alert-mail.sh">
  <select><select_resources/></select>
  <instance_attributes id="alert-mail-attributes">
    <nvpair id="alert-mail-sendmail" name="sendmail" value="/var/log/pacemaker/sendmail"/>
  </instance_attributes>
  <recipient id="alert-mail-oncall" value="oncall@my.cloud.com"/>
</alert></alerts></configuration>"#;

/// A mark is held for a person, and goes: Pacemaker calls the site's own alert agent for both, once each. S1-5
fn a_hold_and_its_end_call_the_alert_agent(cloud: &mut Cloud) -> anyhow::Result<()> {
    let agent = fs::read_to_string(source("docs/examples/alert-mail.sh"))?;
    let mailer = format!("#!/bin/sh\nexec cat >> {MAILS}\n");
    for (name, text) in [("alert-mail.sh", &agent), ("sendmail", &mailer)] {
        let lay = "printf %s \"$2\" > \"$1\" && chmod 755 \"$1\"";
        cloud.run(&["sh", "-c", lay, "sh", &format!("/var/log/pacemaker/{name}"), text])?;
    }
    let before = cloud.begin()?;
    cloud.run(&["cibadmin", "--modify", "--scope", "configuration", "--xml-text", ALERTS])?;
    // Pacemaker 2.1.7 and 2.1.8 read new alerts at the next change of this section.
    cloud.run(&["crm_attribute", "--type", "crm_config", "--name", "cluster-name", "--update", "lab"])?;
    let played = held_and_sent(cloud, &before);
    cloud.run(&["cibadmin", "--delete", "--xml-text", "<alert id=\"alert-mail\"/>"])?;
    played
}

fn held_and_sent(cloud: &Cloud, before: &Before) -> anyhow::Result<()> {
    cloud.run(&["nova-host-alerter", "pause", "--reason", "works"])?;
    let known = subjects(cloud)?.len();
    cloud.lab.power_off(HOST)?;
    let mark = cloud.wait_for_mark(before)?;
    wait_mailed(cloud, known, &["needs a person"])?;
    cloud.run(&["nova-host-alerter", "resume"])?;
    cloud.wait_acknowledged(&mark.id)?;
    wait_mailed(cloud, known, &["needs a person", "needs nobody"])
}

/// Waits until these mails have come since then, and no others.
fn wait_mailed(cloud: &Cloud, known: usize, wanted: &[&str]) -> anyhow::Result<()> {
    let wanted: Vec<String> =
        wanted.iter().map(|what| format!("Subject: nova-host-alerter on {HOME} {what}")).collect();
    let mut last = Vec::new();
    let mailed = wait::until("the mails of the alert agent", Duration::from_secs(60), || {
        last = subjects(cloud)?.split_off(known);
        Ok((last == wanted).then_some(()))
    });
    mailed.with_context(|| format!("{last:?} instead of {wanted:?}"))
}

fn subjects(cloud: &Cloud) -> anyhow::Result<Vec<String>> {
    let mails = cloud.run(&["sh", "-c", &format!("touch {MAILS} && chmod 666 {MAILS} && cat {MAILS}")])?;
    Ok(mails.lines().filter(|line| line.starts_with("Subject: ")).map(str::to_owned).collect())
}

fn pid(cloud: &Cloud) -> anyhow::Result<String> {
    let status: Value = serde_json::from_str(&cloud.run(&["nova-host-alerter", "status", "--json"])?)?;
    let pid = status["daemon"]["pid"].as_u64().context("the alerter does not answer")?;
    Ok(pid.to_string())
}
