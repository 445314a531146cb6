//! The installed package in a living cluster (`make test-packages`): `packaged DEBIAN PACKAGE NEWER KILLING`.
//!
//! Each of two controllers is a Debian of its own, a layer over the tree DEBIAN. PACKAGE is installed there, the book's three lines
//! configure the cluster with each tool, a compute host is killed and reported, NEWER and PACKAGE again are installed in the middle of
//! an outage, and at last all of it is taken out. KILLING is a faulty package that ends the running programs: the test must notice that.

mod cloud;
mod machine;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use cloud::{Cloud, Debs, HOST, Running};
use machine::listing;
use tests::lab::{self, wait};

fn main() -> ExitCode {
    if let Some(code) = lab::play_another_part() {
        return code;
    }
    match story() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("FAILED: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn story() -> anyhow::Result<()> {
    let arguments: Vec<String> = tests::process::words();
    let [debian, package, newer, killing] = &arguments[..] else {
        bail!("packaged DEBIAN PACKAGE NEWER KILLING")
    };
    let debs = Debs { package, newer, killing };
    let mut cloud = Cloud::boot(debian.as_ref(), &debs)?;
    played(&mut cloud).with_context(|| cloud.lab.keep_logs())
}

fn played(cloud: &mut Cloud) -> anyhow::Result<()> {
    let before = Trace::take(cloud)?;
    for controller in cloud.controllers() {
        cloud.install(&controller, "package")?;
        cloud.write_configuration(&controller)?;
    }
    ok("two controllers, each a fresh Debian with Pacemaker: the package installs");
    for tool in ["crmsh", "pcs"] {
        configured_by_three_lines(cloud, tool)?;
        a_killed_host_is_reported(cloud)?;
        ok(&format!("the book's three lines configure it by {tool}, and a killed host is reported"));
        taken_out(cloud, tool)?;
        before.assert_same_cluster(cloud).with_context(|| tool.to_owned())?;
        ok(&format!("it is taken out of the cluster by {tool} as docs/packaging.md says"));
    }
    configured_by_three_lines(cloud, "pcs")?;
    upgraded_in_an_outage(cloud)?;
    taken_out(cloud, "pcs")?;
    purged(cloud, &before)
}

/// The three lines of docs/start.md.
fn configured_by_three_lines(cloud: &Cloud, tool: &str) -> anyhow::Result<()> {
    let home = &cloud.controllers()[0];
    let printed = cloud.run(home, &format!("nova-host-alerter setup --tool {tool}"))?;
    ensure!(printed.contains(HOST), "setup prints no command for {HOST}: {printed}");
    ensure!(cloud.try_run(home, "nova-host-alerter setup --check")?.rc == 1, "it passes for right");
    cloud.run(home, &format!("nova-host-alerter setup --apply --tool {tool}"))?;
    cloud.lab.wait_until_ready()?;
    cloud.copy_key()?;
    for controller in cloud.controllers() {
        cloud.run(&controller, "nova-host-alerter setup --check")?;
    }
    cloud.wait_until_alerter_runs()
}

fn a_killed_host_is_reported(cloud: &mut Cloud) -> anyhow::Result<()> {
    let requests = cloud.receiver.received().len();
    let marks = cloud.marks()?;
    cloud.lab.power_off(HOST)?;
    let mark = cloud.wait_for_mark_beside(&marks)?;
    cloud.wait_until_mark(&mark, "acknowledged")?;
    let received = cloud.receiver.received().split_off(requests);
    let key = format!("\"{mark}\"");
    ensure!(received.len() == 1 && received[0].header("Idempotency-Key") == Some(&key), "{received:?}");
    cloud.host_returns()
}

/// The endpoint is down and a mark is open. The package is exchanged twice on every controller; then the alerter moves, which
/// starts what was installed last; then the endpoint is back.
fn upgraded_in_an_outage(cloud: &mut Cloud) -> anyhow::Result<()> {
    cloud.receiver.down();
    let (requests, marks) = (cloud.receiver.received().len(), cloud.marks()?);
    cloud.host_dies_for_good()?;
    let mark = cloud.wait_for_mark_beside(&marks)?;
    cloud.wait_until_tried(&mark)?;
    for version in ["newer", "package"] {
        exchanged(cloud, version, &mark).with_context(|| format!("installing {version}"))?;
    }
    ok(
        "an upgrade and a downgrade in an outage: the same process, no action of Pacemaker's, the mark is there",
    );
    let moved = cloud.move_alerter()?;
    ensure!(cloud.state(&mark)? == "open", "the mark has ended though nobody listens");
    ok(&format!("the alerter moves to {moved} and has the mark there"));
    cloud.receiver.up()?;
    cloud.wait_until_mark(&mark, "acknowledged")?;
    let received = cloud.receiver.received().split_off(requests);
    ensure!(received.len() == 1, "sent {} times", received.len());
    ok("the endpoint is back: sent once, under the id of before the upgrade");
    cloud.host_returns()?;
    what_runs_is_ended_by_a_package(cloud)
}

/// Installs it on every controller, and lets the agent that is installed then record one more fencing of the same outage.
fn exchanged(cloud: &Cloud, version: &str, mark: &str) -> anyhow::Result<()> {
    let (before, fencings) = (cloud.running()?, cloud.fence_count(mark)?);
    for controller in cloud.controllers() {
        let said = cloud.install(&controller, version)?;
        let running = controller == before.controller;
        ensure!(!running || said.contains("still uses the old program"), "nothing says so: {said}");
    }
    cloud.fence_by_hand()?;
    cloud.wait_until_counted(mark, fencings)?;
    untouched(cloud, &before)
}

fn untouched(cloud: &Cloud, before: &Running) -> anyhow::Result<()> {
    let now = cloud.running()?;
    ensure!(now == *before, "the package has touched what runs: {before:?} is {now:?}");
    let failures = cloud.lab.view()?.failures("alerter");
    ensure!(failures.is_empty(), "Pacemaker has noticed: {failures:?}");
    Ok(())
}

/// The broken variant.
fn what_runs_is_ended_by_a_package(cloud: &Cloud) -> anyhow::Result<()> {
    let before = cloud.running()?;
    untouched(cloud, &before)?;
    cloud.install(&before.controller, "killing")?;
    wait::until("a package that ends what runs to be noticed", Duration::from_secs(60), || {
        Ok(untouched(cloud, &before).is_err().then_some(()))
    })?;
    ok("a package that ends what runs is noticed");
    cloud.wait_until_alerter_runs()?;
    cloud.run(&before.controller, "crm_resource --cleanup --resource alerter").map(drop)
}

fn taken_out(cloud: &Cloud, tool: &str) -> anyhow::Result<()> {
    let home = &cloud.controllers()[0];
    for line in machine::documented("docs/packaging.md", tool)?.lines() {
        cloud.run(home, line)?;
    }
    cloud.lab.wait_until_ready()
}

fn purged(cloud: &Cloud, before: &Trace) -> anyhow::Result<()> {
    before.assert_same_cluster(cloud)?;
    for controller in cloud.controllers() {
        cloud.run(&controller, "DEBIAN_FRONTEND=noninteractive apt-get -q -y purge nova-host-alerter")?;
    }
    before.assert_same_files(cloud)?;
    let home = &cloud.controllers()[0];
    cloud.run(home, "touch /etc/left-behind")?;
    ensure!(before.assert_same_files(cloud).is_err(), "a file that is left is not noticed");
    ok("purged on every controller: no file is left, and the cluster's configuration is that of before");
    Ok(())
}

/// What there was before the first installation.
struct Trace {
    files: Vec<(String, String)>,
    configuration: String,
}

impl Trace {
    fn take(cloud: &Cloud) -> anyhow::Result<Self> {
        let files = cloud.controllers().into_iter().map(|name| Ok((name.clone(), listing(cloud, &name)?)));
        Ok(Self { files: files.collect::<anyhow::Result<_>>()?, configuration: cloud.configuration()? })
    }

    fn assert_same_files(&self, cloud: &Cloud) -> anyhow::Result<()> {
        for (controller, before) in &self.files {
            let differ = machine::difference(before, &listing(cloud, controller)?);
            ensure!(differ.is_empty(), "{controller}: {}", differ.join("\n"));
        }
        Ok(())
    }

    /// But for the levels: those of the power devices stay.
    fn assert_same_cluster(&self, cloud: &Cloud) -> anyhow::Result<()> {
        let now = cloud.configuration()?;
        ensure!(!now.contains("mark"), "there is a mark device yet: {now}");
        let level = |line: &String| line.contains("fencing") || line.contains("compute1: power-compute1");
        let mut differ = machine::difference(&self.configuration, &now);
        differ.retain(|line| !level(line));
        ensure!(differ.is_empty(), "the cluster's configuration: {}", differ.join("\n"));
        Ok(())
    }
}

fn ok(what: &str) {
    println!("ok: {what}");
}
