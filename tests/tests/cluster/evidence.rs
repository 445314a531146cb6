//! What Pacemaker's alerts say of a fencing, kept on every controller.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use nix::unistd::User;
use pacemaker::evidence::{self, Directory, Evidence, Outcome};
use tests::lab::{Lab, wait};

use crate::Scenario;
use crate::cloud::{Before, Cloud, FENCED_WITHIN, HOST};

pub(crate) const SCENARIOS: &[Scenario] =
    &[("every_controller_keeps_the_evidence_of_a_fencing", every_controller_keeps_the_evidence_of_a_fencing)];

/// As a site would write it; without a recipient, so that the directory is the default one.
const ALERTS: &str = r#"<configuration><alerts><alert id="alert-mark" path="/usr/share/pacemaker/alerts/alert_mark">
  <select><select_fencing/></select>
</alert></alerts></configuration>"#;

/// Longer than an alert takes that comes after the host was switched on again.
const NOTIFIED_WITHIN: Duration = Duration::from_secs(30);

/// One file for each operation, on every controller, with the same ids: of a fencing by the cluster, and of one that an
/// operator only confirms.
fn every_controller_keeps_the_evidence_of_a_fencing(cloud: &mut Cloud) -> anyhow::Result<()> {
    forget_earlier_rounds(&cloud.lab)?;
    without_the_alert_there_is_none(cloud)?;
    let before = cloud.begin()?;
    cloud.run(&["cibadmin", "--modify", "--scope", "configuration", "--xml-text", ALERTS])?;
    fence(cloud, &before)?;
    wait::until("the evidence", NOTIFIED_WITHIN, || complete(cloud, &before).map(Some))?;
    cloud.run(&["stonith_admin", "--confirm", HOST])?;
    let all = wait::until("the evidence of the confirmation", NOTIFIED_WITHIN, || {
        let all = complete(cloud, &before)?;
        Ok(all.iter().any(|one| one.executor.as_str() == "a human").then_some(all))
    })?;
    ensure!(all.iter().any(|one| one.executor.as_str() != "a human"), "{all:#?}");
    cloud.run(&["cibadmin", "--delete", "--xml-text", r#"<alert id="alert-mark"/>"#])?;
    cloud.host_returns()
}

/// Nothing takes evidence in here: what an earlier round of this scenario left would still lie there.
fn forget_earlier_rounds(lab: &Lab) -> anyhow::Result<()> {
    for controller in lab.controllers() {
        for left in fs::read_dir(directory(lab, controller)?)? {
            fs::remove_file(left?.path())?;
        }
    }
    Ok(())
}

/// The broken variant: a cluster that was given no alert. The check below must see that.
fn without_the_alert_there_is_none(cloud: &mut Cloud) -> anyhow::Result<()> {
    let before = cloud.begin()?;
    fence(cloud, &before)?;
    // An alert is sent, if at all, before the host is back.
    cloud.host_returns()?;
    for controller in cloud.lab.controllers() {
        ensure!(read(&cloud.lab, controller)?.is_empty(), "{controller} has evidence that nobody wrote");
    }
    ensure!(complete(cloud, &before).is_err(), "a cluster without the alert passes this scenario");
    Ok(())
}

fn fence(cloud: &Cloud, before: &Before) -> anyhow::Result<()> {
    cloud.lab.power_off(HOST)?;
    wait::until("the host to be fenced", Duration::from_secs(FENCED_WITHIN), || {
        let fencings = cloud.fencings_since(before)?;
        Ok(fencings.iter().any(|fencing| fencing.status == "success").then_some(()))
    })
}

/// The evidence of all ended operations since `before`, if every controller has it.
fn complete(cloud: &Cloud, before: &Before) -> anyhow::Result<Vec<Evidence>> {
    let fencings = cloud.fencings_since(before)?;
    let mut operations = BTreeSet::new();
    let mut last = Vec::new();
    for controller in cloud.lab.controllers() {
        last = read(&cloud.lab, controller).with_context(|| format!("the evidence on {controller}"))?;
        ensure!(last.len() == fencings.len(), "{controller}: {last:#?} of {fencings:#?}");
        let done = last.iter().filter(|one| one.outcome == Outcome::Success).count();
        ensure!(done == fencings.iter().filter(|one| one.status == "success").count(), "{last:#?}");
        operations.extend(last.iter().map(|one| one.operation));
    }
    ensure!(operations.len() == fencings.len(), "the controllers name different operations: {operations:?}");
    Ok(last)
}

/// As the alerter on that controller will read it.
fn read(lab: &Lab, controller: &str) -> anyhow::Result<Vec<Evidence>> {
    let owner = User::from_name(evidence::OWNER)?.context("the cluster's user is missing")?.uid;
    let reading = Directory::open(&directory(lab, controller)?, owner)?.read_all()?;
    ensure!(reading.broken.is_empty() && !reading.more, "{reading:?}");
    let all: Vec<Evidence> = reading.sound.into_iter().map(|found| found.evidence).collect();
    ensure!(all.iter().all(|one| one.target.as_str() == HOST), "{all:#?}");
    Ok(all)
}

fn directory(lab: &Lab, controller: &str) -> anyhow::Result<PathBuf> {
    let path = evidence::DIRECTORY.strip_prefix("/var/lib/").context("not below /var/lib")?;
    Ok(lab.directory().join("nodes").join(controller).join("var-lib").join(path))
}
