//! Alerts that fire, end, and come back after a restart.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use drivers::Step;
use marks::time::Timestamp;
use tests::lab::wait;
use tests::programs::Site;

use crate::Scenario;
use crate::journal::Controller;
use tests::alertmanager::Alertmanager;

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("a_failure_is_one_alert_until_its_return_ends_it", a_failure_is_one_alert_until_its_return_ends_it),
    ("a_test_is_no_alert", a_test_is_no_alert),
    ("a_restart_forgets_an_alert_and_the_refresher_brings_it_back", a_restart_forgets_an_alert),
    ("a_late_repetition_does_not_leave_an_ended_alert_open", a_late_repetition_is_ended_again),
    ("an_end_that_is_still_to_come_there_counts_in_the_end", an_end_that_is_still_to_come),
    ("the_daemon_brings_an_alert_back_after_a_restart", the_daemon_brings_an_alert_back),
];

/// For what is due at once.
const SOON: Duration = Duration::from_secs(20);
/// How far the clock of an Alertmanager is behind.
const BEHIND: Duration = Duration::from_secs(3);
/// The daemon's refresher comes round once a minute.
const A_MINUTE: Duration = Duration::from_secs(90);

/// S1-18, S4-34: labels as they are documented; a repetition changes nothing.
fn a_failure_is_one_alert_until_its_return_ends_it(alertmanager: &mut Alertmanager) -> anyhow::Result<()> {
    let (host, controller) = ("compute1.example.org", Controller::begin(alertmanager)?);
    let row = controller.mark("compute1")?;
    controller.deliver(Step::Failure)?;
    let alert = alertmanager.until_firing(host, 1, SOON)?.remove(0);
    let labels = serde_json::json!({"alertname": "HostFailed", "host": host, "node": "compute1",
        "id": row.id.to_string(), "severity": "critical"});
    ensure!(alert["labels"] == labels, "{alert}");
    let said = alertmanager.amtool()?;
    ensure!(said.contains("HostFailed") && said.contains(&row.id.to_string()), "{said}");
    let mark = row.to_mark().context("it has a name")?;
    controller.send(Step::Failure, row.id, &controller.driver().body(&mark))?;
    ensure!(alertmanager.firing(host)?.len() == 1, "{:?}", alertmanager.firing(host)?);
    controller.come_back(&row, Duration::ZERO)?;
    ensure!(alertmanager.firing(host)?.len() == 1, "the return was not sent yet");
    controller.deliver(Step::Return)?;
    alertmanager.until_firing(host, 0, SOON).map(drop)
}

/// The broken variant is the failure of a host, which the first scenario has.
fn a_test_is_no_alert(alertmanager: &mut Alertmanager) -> anyhow::Result<()> {
    let controller = Controller::begin(alertmanager)?;
    let row = samples::mark_of("compute2", Timestamp::now());
    controller.send(Step::Failure, row.id, &controller.driver().test_body(&row.id, Timestamp::now()))?;
    ensure!(alertmanager.firing("send-test.invalid")?.is_empty(), "{:?}", alertmanager.amtool());
    Ok(())
}

/// Nothing in Alertmanager outlives it: without the refresher nobody would know of a host that is still down.
fn a_restart_forgets_an_alert(alertmanager: &mut Alertmanager) -> anyhow::Result<()> {
    let (host, controller) = ("compute3.example.org", Controller::begin(alertmanager)?);
    let row = controller.mark("compute3")?;
    controller.deliver(Step::Failure)?;
    alertmanager.until_firing(host, 1, SOON)?;
    alertmanager.kill()?;
    alertmanager.start()?;
    ensure!(alertmanager.firing(host)?.is_empty(), "it remembers: what is this for?");
    controller.refresh()?;
    let alert = alertmanager.until_firing(host, 1, SOON)?.remove(0);
    ensure!(alert["labels"]["id"] == row.id.to_string(), "{alert}");
    // Once more, with the refresher at work while it is away.
    alertmanager.kill()?;
    alertmanager.start()?;
    alertmanager.until_firing(host, 1, SOON)?;
    controller.come_back(&row, Duration::ZERO)?;
    controller.deliver(Step::Return)?;
    alertmanager.until_firing(host, 0, SOON).map(drop)
}

/// A repetition that was under way for long arrives after the return. The broken variant stops with the return: the alert
/// stays, as it does here until the refresher begins.
fn a_late_repetition_is_ended_again(alertmanager: &mut Alertmanager) -> anyhow::Result<()> {
    let (host, controller) = ("compute4.example.org", Controller::begin(alertmanager)?);
    let row = controller.mark("compute4")?;
    controller.deliver(Step::Failure)?;
    controller.come_back(&row, Duration::ZERO)?;
    controller.deliver(Step::Return)?;
    alertmanager.until_firing(host, 0, SOON)?;
    let mark = row.to_mark().context("it has a name")?;
    controller.send(Step::Failure, row.id, &controller.driver().body(&mark))?;
    alertmanager.until_firing(host, 1, SOON)?;
    controller.refresh()?;
    alertmanager.until_firing(host, 0, SOON).map(drop)
}

/// A clock of Alertmanager that is behind: it takes an end that is still to come for a firing alert, and lets the later end
/// win, that of the failure. The broken variant sends the return once: the alert stays.
fn an_end_that_is_still_to_come(alertmanager: &mut Alertmanager) -> anyhow::Result<()> {
    let (host, controller) = ("compute6.example.org", Controller::begin(alertmanager)?);
    let row = controller.mark("compute6")?;
    controller.deliver(Step::Failure)?;
    controller.come_back(&row, BEHIND)?;
    controller.deliver(Step::Return)?;
    let alert = alertmanager.until_firing(host, 1, SOON)?.remove(0);
    let month = (Timestamp::now() + 25 * Duration::from_secs(86_400)).rfc3339();
    ensure!(alert["endsAt"].as_str() > Some(month.as_str()), "{alert}");
    controller.refresh()?;
    alertmanager.until_firing(host, 0, SOON).map(drop)
}

/// The built alerter: `mark`, the alert, a restart of Alertmanager, and within a minute the alert again.
fn the_daemon_brings_an_alert_back(alertmanager: &mut Alertmanager) -> anyhow::Result<()> {
    let host = "compute5.my.cloud.com";
    let mut site = Site::with(&alertmanager.route())?;
    site.start()?;
    site.said(&["mark", "compute5", "--fenced", "--reason", "a test"])?;
    alertmanager.until_firing(host, 1, SOON)?;
    // Alertmanager has the alert before the alerter has written down that it does.
    let history = wait::until("the acknowledgement in the history", SOON, || {
        let history = site.said(&["history", "--json"])?;
        Ok(history.contains("acknowledged").then_some(history))
    })?;
    alertmanager.kill()?;
    alertmanager.start()?;
    wait::until("the daemon's refresher", A_MINUTE, || {
        Ok((alertmanager.firing(host)?.len() == 1).then_some(()))
    })?;
    ensure!(site.said(&["history", "--json"])? == history, "it writes no history");
    Ok(())
}
