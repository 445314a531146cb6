//! The built alerter with a real cloud behind it: from an operator's `mark` to a row in Masakari's database.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::Value;
use tempfile::TempDir;
use tests::lab::wait;
use tests::openstack::{ENABLED, Part, Who};
use tests::programs::Site;

use crate::Scenario;
use crate::cloud::Cloud;

pub(crate) const SCENARIOS: &[Scenario] =
    &[("a_mark_is_sent_and_settled_through_an_outage", a_mark_is_sent_and_settled_through_an_outage)];

/// An alerter, its two services, and whatever else this machine does.
const LIMIT: Duration = Duration::from_secs(60);

/// S1-16, S1-19: sent at once, or as soon as Masakari is back; settled then, and stored once.
fn a_mark_is_sent_and_settled_through_an_outage(cloud: &mut Cloud) -> anyhow::Result<()> {
    cloud.put_right()?;
    let files = TempDir::new()?;
    let clouds = cloud.services.clouds(Who::Admin, files.path())?;
    let mut site = Site::with(&format!("[masakari.cloud]\nclouds-file = \"{}\"\n", clouds.display()))?;
    site.start()?;
    said(&site, &["send-test"])?;
    ensure!(cloud.stored()? == 0, "a test left something");

    said(&site, &["mark", "compute1", "--fenced", "--reason", "a test"])?;
    settled(&site, "compute1")?;
    cloud.services.stop(&[Part::Masakari])?;
    said(&site, &["mark", "compute2", "--fenced", "--reason", "a test"])?;
    let tried =
        || Ok((mark(&site, "compute2")?["deliveries"][0]["attempts"].as_u64() >= Some(1)).then_some(()));
    wait::until("an attempt for compute2", LIMIT, tried)?;
    ensure!(mark(&site, "compute2")?["state"] == "open", "{}", mark(&site, "compute2")?);
    cloud.services.start(&[Part::Masakari])?;
    said(&site, &["retry", "compute2"])?;
    settled(&site, "compute2")?;

    let all = cloud.services.notifications()?;
    let hosts: Vec<&str> = all.iter().map(|row| row.host.as_str()).collect();
    ensure!(hosts == ENABLED[..2], "{all:?}");
    for (host, row) in ["compute1", "compute2"].into_iter().zip(&all) {
        let reference = mark(&site, host)?["deliveries"][0].to_string();
        ensure!(reference.contains(&row.uuid), "{reference} does not name {}", row.uuid);
    }
    Ok(())
}

fn settled(site: &Site, host: &str) -> anyhow::Result<()> {
    let is_settled = || Ok((mark(site, host)?["state"] == "acknowledged").then_some(()));
    wait::until(&format!("{host} to be settled"), LIMIT, is_settled)
        .with_context(|| mark(site, host).unwrap_or_default().to_string())
}

fn mark(site: &Site, host: &str) -> anyhow::Result<Value> {
    let shown: Value = serde_json::from_str(&said(site, &["show", host, "--json"])?)?;
    Ok(shown[0].clone())
}

fn said(site: &Site, words: &[&str]) -> anyhow::Result<String> {
    let output = site.alerter(words)?;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{}: {out}{err}", words.join(" "));
    Ok(out.into_owned())
}
