//! The register in a real cluster: what one controller wrote, the other one reads, whatever happens in between.

use std::time::Duration;

use anyhow::{Context, ensure};
use marks::id::FencingId;
use marks::register::{Entries, Entry, Key, Register};
use register::NAME;
use serde_json::Value;
use tests::lab::cib::HOME;
use tests::lab::{Ended, LIFETIME, wait};

use crate::Scenario;
use crate::cloud::{Cloud, HOST};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("the_register_in_attrd_is_read_on_the_other_controller", in_attrd),
    ("the_register_in_the_cib_is_read_on_the_other_controller", in_the_cib),
    ("the_register_is_the_copy_where_no_journal_can_be_written", without_a_journal),
    ("the_register_gets_by_the_next_monitor_what_it_missed", published_later),
    ("pages_outlive_ten_thousand_fencings_in_attrd", |cloud| outlives(cloud, Register::Attrd, 10_000)),
    ("pages_outlive_a_thousand_fencings_in_the_cib", |cloud| outlives(cloud, Register::Cib, 1_000)),
];

/// The controller that has neither the mark device nor the alerter.
const OTHER: &str = "ctl2";
/// A host that the cluster does not know: for calls from a shell.
const STRANGER: &str = "compute9";
const AGENT: &str = "/run/lab/bin/fence_mark.real";
/// Half of what one message takes, packed as Pacemaker packs it; what is sealed and packed already, it packs by a quarter.
const HALF: u64 = 64 << 10;
/// So many fencings stay open in the end.
const OPEN: usize = 2_000;
const PATIENCE: Duration = Duration::from_secs(60);

/// It survives the cleanup of the fenced host and the death of the attribute managers; what stands under the host's own
/// name does not. S1-27, S1-53
fn in_attrd(cloud: &mut Cloud) -> anyhow::Result<()> {
    let before = cloud.begin()?;
    cloud.set_register(Register::Attrd)?;
    write_under_the_hosts_own_name(cloud)?;
    cloud.lab.power_off(HOST)?;
    let mark = cloud.wait_for_mark(&before)?;
    let key = key_of(&mark.id)?;
    shows(cloud, Register::Attrd, &key)?;
    cloud.host_returns()?;
    cloud.wait_acknowledged(&mark.id)?;
    shows(cloud, Register::Attrd, &key)?;
    ensure!(!under_the_hosts_own_name(cloud)?, "Pacemaker kept what stood under the name of the fenced host");
    for node in [HOME, OTHER] {
        kill_attrd(cloud, node)?;
        shows(cloud, Register::Attrd, &key)?;
    }
    Ok(())
}

/// It survives the cleanup of the fenced host, and stands on the disk of each controller. S1-28, S1-53
fn in_the_cib(cloud: &mut Cloud) -> anyhow::Result<()> {
    let before = cloud.begin()?;
    cloud.set_register(Register::Cib)?;
    cloud.lab.power_off(HOST)?;
    let mark = cloud.wait_for_mark(&before)?;
    let key = key_of(&mark.id)?;
    cloud.host_returns()?;
    cloud.wait_acknowledged(&mark.id)?;
    shows(cloud, Register::Cib, &key)?;
    for node in [HOME, OTHER] {
        wait::until("the entry to be on disk", PATIENCE, || {
            let stored = cloud.lab.exec(node, &["cat", "/var/lib/pacemaker/cib/cib.xml"])?.success()?;
            let stored = cloud.lab.register_in(node, &stored)?;
            Ok(stored.sound.contains_key(&key).then_some(()))
        })?;
    }
    Ok(())
}

/// A journal that cannot be written: the register is the copy, and `off` succeeds, with an error for people. Without a
/// register it fails. S1-26
fn without_a_journal(cloud: &mut Cloud) -> anyhow::Result<()> {
    cloud.begin()?;
    for register in [Register::Attrd, Register::Cib] {
        let known = entries(cloud, register, OTHER)?;
        let ended = agent(cloud, "off", register, "/proc/none/marks.db")?;
        ensure!(ended.rc == 0 && ended.err.contains("alone"), "{ended:?}");
        let new =
            entries(cloud, register, OTHER)?.sound.into_iter().filter(|(k, _)| !known.sound.contains_key(k));
        let hosts: Vec<String> = new.map(|(_, entry)| host(&entry)).collect();
        ensure!(hosts == [STRANGER], "{hosts:?}");
    }
    let ended = agent(cloud, "off", Register::None, "/proc/none/marks.db")?;
    ensure!(ended.rc == 1 && ended.err.contains("is not marked"), "{ended:?}");
    Ok(())
}

/// The tool is missing, or the attribute manager hangs: the journal has it, `off` succeeds, and the next monitor
/// publishes it. S1-26, S1-51
fn published_later(cloud: &mut Cloud) -> anyhow::Result<()> {
    cloud.begin()?;
    let store = "/var/lib/nova-host-alerter/later/marks.db";
    let known = entries(cloud, Register::Attrd, OTHER)?.sound.len();
    let missing = format!(
        "mount --bind /dev/null /usr/sbin/attrd_updater && exec {AGENT} -o off -n {STRANGER} --register=attrd --store={store} --create-store"
    );
    cloud.run(&["unshare", "--mount", "sh", "-c", &missing])?;
    cloud.run(&["sh", "-c", "kill -STOP $(pidof pacemaker-attrd)"])?;
    let ended = agent(cloud, "off", Register::Attrd, store);
    // Pacemaker may have killed it by now because it hung.
    cloud.lab.exec(HOME, &["sh", "-c", "kill -CONT $(pidof pacemaker-attrd)"])?;
    ensure!(ended.as_ref().is_ok_and(|ended| ended.rc == 0), "{ended:?}");
    let count = || Ok::<_, anyhow::Error>(entries(cloud, Register::Attrd, OTHER)?.sound.len());
    ensure!(count()? == known, "it was published though nothing could");
    wait::until("the monitor to succeed", PATIENCE, || {
        Ok((agent(cloud, "monitor", Register::Attrd, store)?.rc == 0).then_some(()))
    })?;
    ensure!(count()? == known + 2, "{} of 2 were published", count()? - known);
    Ok(())
}

/// However much happened, no answer is longer than half of what one message of attrd takes, and all of it is read.
fn outlives(cloud: &mut Cloud, register: Register, fencings: usize) -> anyhow::Result<()> {
    cloud.begin()?;
    let (fencings, open) = (fencings.to_string(), OPEN.to_string());
    let life = [LIFETIME, register.as_str(), &fencings, &open];
    // It would take each of them for a host that died.
    cloud.set_device("alerter", false)?;
    let figures = cloud.lab.exec(HOME, &life)?.success();
    cloud.set_device("alerter", true)?;
    let figures = figures?;
    eprintln!("{} {fencings}: {figures}", register.as_str());
    let figures: Value = serde_json::from_str(&figures)?;
    for when in ["settled", "all"] {
        let longest = figures[when]["longest_answer"].as_u64().context("no figure")?;
        ensure!(longest <= HALF, "an answer of {longest} bytes: {figures}");
    }
    Ok(())
}

fn agent(cloud: &Cloud, action: &str, register: Register, store: &str) -> anyhow::Result<Ended> {
    let register = format!("--register={}", register.as_str());
    let store = format!("--store={store}");
    cloud.lab.exec(HOME, &[AGENT, "-v", "-o", action, "-n", STRANGER, &register, &store, "--create-store"])
}

/// Waits until both controllers show the entry, with the fenced host in it.
fn shows(cloud: &Cloud, register: Register, key: &Key) -> anyhow::Result<()> {
    for node in [HOME, OTHER] {
        let entry = wait::until(&format!("{key} to be seen on {node}"), PATIENCE, || {
            Ok(entries(cloud, register, node)?.sound.remove(key))
        })?;
        ensure!(host(&entry) == HOST, "{entry:?}");
    }
    Ok(())
}

fn entries(cloud: &Cloud, register: Register, node: &str) -> anyhow::Result<Entries> {
    cloud.lab.register(node, register)
}

fn host(entry: &Entry) -> String {
    match entry {
        Entry::Fencing(fencing) => fencing.node.to_string(),
        other => panic!("no fencing: {other:?}"),
    }
}

fn key_of(mark: &str) -> anyhow::Result<Key> {
    Ok(Key::Fencing(FencingId::parse(mark)?))
}

/// The broken variant: an entry under the name of the host that will be fenced.
fn write_under_the_hosts_own_name(cloud: &Cloud) -> anyhow::Result<()> {
    let name = format!("--name={NAME}");
    cloud.run(&["attrd_updater", &name, "--private", &format!("--node={HOST}"), "--update=1"])?;
    wait::until("the entry of the broken variant", PATIENCE, || {
        Ok(under_the_hosts_own_name(cloud)?.then_some(()))
    })
}

fn under_the_hosts_own_name(cloud: &Cloud) -> anyhow::Result<bool> {
    let apart = entries(cloud, Register::Attrd, OTHER)?.apart;
    Ok(apart.iter().any(|apart| apart.key == HOST))
}

fn kill_attrd(cloud: &Cloud, node: &str) -> anyhow::Result<()> {
    let killed = pid_of_attrd(cloud, node)?;
    cloud.lab.exec(node, &["kill", "-KILL", &killed])?.success().context("killing the attribute manager")?;
    wait::until("another attribute manager", PATIENCE, || {
        let now = pid_of_attrd(cloud, node)?;
        Ok((!now.is_empty() && now != killed).then_some(()))
    })
}

fn pid_of_attrd(cloud: &Cloud, node: &str) -> anyhow::Result<String> {
    Ok(cloud.lab.exec(node, &["pidof", "pacemaker-attrd"])?.out.trim().to_owned())
}
