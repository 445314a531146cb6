//! `setup --apply` on a running cluster that knows of compute hosts and power devices alone.

use anyhow::{Context, ensure};
use tests::lab::cib::{HOME, topology};
use tests::lab::{Ended, Event, wait};

use crate::Scenario;
use crate::cloud::{Cloud, HOST, NOTIFIED_WITHIN};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("setup_makes_a_cluster_that_marks", setup_makes_a_cluster_that_marks),
    ("the_first_hour_is_as_the_book_says", the_first_hour_is_as_the_book_says),
];

const START: &str = include_str!("../../../docs/start.md");
const SHIPPED: &str = include_str!("../../../packaging/alerter.toml");

/// What a site does not have before it knows of us; what refers to others comes first.
const OURS: [&str; 5] = [
    "//rsc_location[@rsc='mark' or @rsc='alerter']",
    "//alert",
    "//nvpair[@name='concurrent-fencing']",
    "//primitive[@id='mark']",
    "//primitive[@id='alerter']",
];

/// With each tool: from nothing to a cluster that is right, and stays as it is when it is set up again. Then a host is killed,
/// and it is marked behind its power device and reported. S1-1, S1-3, S1-21, S1-22, S1-24, S1-48
fn setup_makes_a_cluster_that_marks(cloud: &mut Cloud) -> anyhow::Result<()> {
    cloud.begin()?;
    for tool in ["pcs", "crmsh"] {
        forget(cloud)?;
        ensure!(setup(cloud, &["--check"])?.rc == 1, "a cluster without any of ours passes for right");
        let applied = setup(cloud, &["--apply", "--tool", tool])?.success()?;
        ensure!(applied.contains("Done: create the mark device mark for compute1"), "{applied}");
        cloud.lab.wait_until_ready()?;
        let again = setup(cloud, &["--apply", "--tool", tool])?.success()?;
        ensure!(again == "Nothing to do.\n", "{again}");
        setup(cloud, &["--check"])?.success().context(tool)?;
    }
    a_killed_host_is_marked(cloud)?;
    forget(cloud)?;
    cloud.configure()
}

/// The book's first file behind the shipped one and its commands, word by word, on a cluster of its own that has seen nothing; only the
/// receiver has another address. S1-48
fn the_first_hour_is_as_the_book_says(_other: &mut Cloud) -> anyhow::Result<()> {
    let mut cloud = Cloud::boot()?;
    first_hour(&mut cloud).with_context(|| cloud.lab.keep_logs())
}

fn first_hour(cloud: &mut Cloud) -> anyhow::Result<()> {
    let before = cloud.begin()?;
    forget(cloud)?;
    let (_, file) = START.split_once("```toml\n").context("no file")?;
    let (file, commands) = file.split_once("```").context("the file has no end")?;
    cloud.lab.write_site("alerter.toml", &format!("{SHIPPED}\n{}", cloud.with_own_receiver(file)))?;
    let (commands, _) = commands.split_once("## Next").context("no end")?;
    let all: Vec<&str> = commands.lines().filter_map(|line| line.strip_prefix("    ")).collect();
    let (show, others) = all.split_last().context("no command")?;
    ensure!(others.len() == 5, "{all:?}");
    for command in others {
        typed(cloud, command)?.success().with_context(|| (*command).to_owned())?;
        cloud.lab.wait_until_ready()?;
    }
    wait::until("the host to be acknowledged", NOTIFIED_WITHIN, || {
        let shown = typed(cloud, show)?.success()?;
        Ok(shown.contains("acknowledged").then_some(()))
    })?;
    // `check-config --online` asked it too, without a body.
    let events = cloud.requests_since(&before).into_iter().filter(|request| !request.body.is_empty()).count();
    ensure!(events == 1, "the receiver has {events} events");
    Ok(())
}

/// As root in a shell.
fn typed(cloud: &Cloud, command: &str) -> anyhow::Result<Ended> {
    cloud.lab.exec(HOME, &["env", "HOME=/tmp", "sh", "-c", command])
}

fn setup(cloud: &Cloud, options: &[&str]) -> anyhow::Result<Ended> {
    // The lab's root is read-only, and the tools keep things at home.
    let command = ["env", "HOME=/tmp", "nova-host-alerter", "setup"];
    cloud.lab.exec(HOME, &[&command[..], options].concat())
}

/// The levels of power alone stay: `setup` does not know what the lab's own agent does.
fn forget(cloud: &Cloud) -> anyhow::Result<()> {
    cloud.lab.replace_section("fencing-topology", &topology(&[HOST.to_owned()], &["power"]))?;
    for path in OURS {
        cloud.lab.exec(HOME, &["cibadmin", "--delete-all", "--force", "--xpath", path])?;
    }
    cloud.lab.wait_until_ready()
}

/// There is no register in this lab: the mark device and the alerter must be on one controller.
fn a_killed_host_is_marked(cloud: &mut Cloud) -> anyhow::Result<()> {
    for (resource, controller) in
        ["mark", "alerter"].into_iter().flat_map(|r| cloud.lab.controllers().map(move |c| (r, c)))
    {
        if controller != HOME {
            cloud.run(&["crm_resource", "--ban", "--resource", resource, "--node", controller])?;
        }
    }
    let before = cloud.begin_as_it_is()?;
    cloud.lab.power_off(HOST)?;
    let mark = cloud.wait_for_mark(&before)?;
    cloud.wait_acknowledged(&mark.id)?;
    let events = cloud.events_since(&before);
    let off = events.iter().position(|event| matches!(event, Event::Power { action, .. } if action == "off"));
    let marked =
        events.iter().position(|event| matches!(event, Event::Called(call) if call.action() == "off"));
    ensure!(off.is_some() && off < marked, "{events:#?}");
    cloud.host_returns()
}
