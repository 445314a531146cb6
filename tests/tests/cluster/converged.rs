//! A compute host that is a cluster node too, and dies again as soon as it is back: each outage is notified.

use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::Value;
use tests::lab::cib::{self, Spread};
use tests::lab::{Lab, Products, Shape, wait};
use tests::receiver::Receiver;

use crate::Scenario;
use crate::cloud::Cloud;

pub(crate) const SCENARIOS: &[Scenario] =
    &[("a_cluster_node_that_dies_again_is_reported_again", a_cluster_node_that_dies_again_is_reported_again)];

const SHAPE: Shape = Shape { controllers: 3, remotes: 1 };
/// The controller that runs machines too.
const NODE: &str = "ctl3";
const PORT: u16 = 8080;
/// Longer than it takes Pacemaker to fence a controller, and the alerter to start elsewhere and to wait for evidence.
const SOON: Duration = Duration::from_secs(120);

/// Fenced, a member again, and fenced again, three times and within `coalesce`: three marks, and three notifications. The
/// last time nothing asks the mark device: Pacemaker's own word of the fencing must not join the outage before.
fn a_cluster_node_that_dies_again_is_reported_again(_: &mut Cloud) -> anyhow::Result<()> {
    let lab = Lab::boot(SHAPE, Some(&Products::built()?))?;
    let receiver = Receiver::listen(lab.listener(PORT))?;
    let played = play(&lab, &receiver);
    played.with_context(|| lab.keep_logs())
}

fn play(lab: &Lab, receiver: &Receiver) -> anyhow::Result<()> {
    configure(lab)?;
    let started = std::time::Instant::now();
    for count in 1..=3 {
        if count == 3 {
            set_levels(lab, &["power-ctl3"])?;
        }
        lab.power_off(NODE)?;
        wait_fenced(lab, count)?;
        wait_member(lab)?;
    }
    ensure!(started.elapsed() < Duration::from_secs(180), "this took longer than coalesce");
    let received = receiver.wait_for(3, SOON)?;
    let ids = received.iter().map(|request| {
        let event: Value = serde_json::from_slice(&request.body)?;
        ensure!(event["payload"]["hostname"] == "ctl3.my.cloud.com", "{event}");
        Ok(event["id"].as_str().context("no id")?.to_owned())
    });
    let ids: std::collections::BTreeSet<String> = ids.collect::<anyhow::Result<_>>()?;
    ensure!(ids.len() == 3, "three outages, and these ids: {ids:?}");
    Ok(())
}

fn configure(lab: &Lab) -> anyhow::Result<()> {
    let url = format!("http://{}:{PORT}/v1/host-failures", lab.own_address());
    let site = format!(
        "[store]\nregister = \"attrd\"\n\n[hosts]\nmatch = [\"compute*\", \"{NODE}\"]\ndomain = \"my.cloud.com\"\non-shared-storage = true\n\n\
         [http.recovery]\nurl = \"{url}\"\nallow-http = true\n"
    );
    lab.write_site("alerter.toml", &site)?;
    lab.configure(&cib::Configuration { shape: SHAPE, alerter: true, spread: Spread::Everywhere })?;
    let hosts = format!("compute1 {NODE}");
    let set = ["crm_resource", "--resource", "mark", "--set-parameter", "pcmk_host_list"];
    run(lab, &[&set[..], &["--parameter-value", &hosts]].concat())?;
    // An alerter that is lost together with the node holds what it finds: nobody knows what the lost one notified.
    run(lab, &["crm_resource", "--ban", "--resource", "alerter", "--node", NODE])?;
    set_levels(lab, &["power-ctl3,mark", "power-ctl3"])?;
    lab.wait_until_ready()
}

fn set_levels(lab: &Lab, levels: &[&str]) -> anyhow::Result<()> {
    lab.replace_section("fencing-topology", &cib::topology(&[NODE.to_owned()], levels))
}

fn run(lab: &Lab, command: &[&str]) -> anyhow::Result<String> {
    lab.exec(lab.spokesman(), command)?.success().with_context(|| command.join(" "))
}

/// Waits until the node was fenced so often.
fn wait_fenced(lab: &Lab, count: usize) -> anyhow::Result<()> {
    wait::until(&format!("fencing {count} of {NODE}"), SOON, || {
        let done = lab.fencings(NODE)?.into_iter().filter(|fencing| fencing.status == "success").count();
        Ok((done >= count).then_some(()))
    })
}

/// Waits until the node is a member again. One that learns that it was fenced shuts itself down and stays down: somebody has
/// to push its button.
fn wait_member(lab: &Lab) -> anyhow::Result<()> {
    let everyone: Vec<&str> = lab.controllers().collect();
    wait::until(&format!("{NODE} to be a member"), SOON, || {
        if lab.view().is_ok_and(|view| view.settled(&everyone)) {
            return Ok(Some(()));
        }
        if lab.is_on(NODE) && is_shut_down(lab)? {
            lab.power_off(NODE)?;
            lab.power_on(NODE)?;
        }
        Ok(None)
    })?;
    lab.wait_until_ready()
}

/// For so long that it is no node that is still booting.
fn is_shut_down(lab: &Lab) -> anyhow::Result<bool> {
    for _ in 0..30 {
        let runs = |program: &str| Ok::<_, anyhow::Error>(!lab.processes(NODE, &[program])?.is_empty());
        if runs("pacemakerd")? || runs("corosync")? {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(true)
}
