//! The disk of the alerter's controller fills up, or hangs, while a host dies.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::ensure;
use rusqlite::Connection;
use tests::lab::wait;

use crate::Scenario;
use crate::cluster::{ALERTER, Before, Cluster, FENCED_WITHIN, QUIET};
use crate::truth;

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("the_alerter_leaves_a_controller_whose_disk_is_full", |cluster| leaves(cluster, Disk::fill)),
    ("the_alerter_leaves_a_controller_whose_disk_hangs", |cluster| leaves(cluster, Disk::freeze)),
    ("the_alerter_stays_where_no_controller_could_do_better", stays),
];

/// The journal, and all that lies beside it, on a disk of its own.
const OWN: &str = "set -e
    truncate --size 16M \"$1.disk\"
    mkfs.ext4 -q \"$1.disk\"
    mkdir \"$1.new\"
    mount -o loop \"$1.disk\" \"$1.new\"
    cp -a \"$1/.\" \"$1.new/\"
    umount \"$1.new\"
    mount -o loop \"$1.disk\" \"$1\"";
const FILL: &str = "dd if=/dev/zero of=\"$1/fill\" bs=4k 2>/dev/null || :";
const FREEZE: &str = "fsfreeze --freeze \"$1\"";
const MEND: &str = "fsfreeze --unfreeze \"$1\" 2>/dev/null || :; rm -f \"$1/fill\"";
const TAKE_AWAY: &str = "umount --lazy \"$1\"; rm -f \"$1.disk\"; rmdir \"$1.new\"";

/// Longer than a disk may be unwritable before the monitor says so.
const SAID_WITHIN: Duration = Duration::from_secs(90);

/// A disk of a controller, as the host sees it. A controller that runs loses it with its power.
struct Disk(PathBuf);

impl Disk {
    /// Leaves no room, nor in the journal's log for more.
    fn fill(&self) -> anyhow::Result<()> {
        let journal = Connection::open(self.0.join("marks.db"))?;
        let is_busy: bool = journal.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        ensure!(!is_busy, "somebody reads the journal");
        self.play(FILL)
    }

    fn freeze(&self) -> anyhow::Result<()> {
        self.play(FREEZE)
    }

    fn play(&self, script: &str) -> anyhow::Result<()> {
        let done = Command::new("sh").args(["-c", script, "disk"]).arg(&self.0).status()?;
        ensure!(done.success(), "{script}");
        Ok(())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        for script in [MEND, TAKE_AWAY] {
            let _what_failed_has_said_so = self.play(script);
        }
    }
}

/// Nothing can be written for 30 s while a mark waits: the monitor fails, Pacemaker moves the alerter, and the next one notifies once.
/// S1-16, S1-27
fn leaves(cluster: &mut Cluster, breaks: fn(&Disk) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let before = cluster.begin_again()?;
    let (broken, disk) = on_a_disk_of_its_own(cluster, &before)?;
    breaks(&disk)?;
    cluster.crash("compute1")?;
    cluster.wait_for_alerter_off(&broken)?;
    cluster.wait_mark(&before, "compute1", "acknowledged", |mark| mark.state == "acknowledged")?;
    let offs = truth::offs(&cluster.lab, before.events).into_iter().filter(|(off, _)| *off == broken).count();
    ensure!(offs == 1, "{broken} was fenced {offs} times, once for its disk");
    disk.play(MEND)?;
    ensure!(cluster.notified(&before) == 2, "{} requests, for one host", cluster.notified(&before));
    Ok(())
}

/// The same where the other controllers are in standby: the same process goes on, says so, and notifies when there is room.
fn stays(cluster: &mut Cluster) -> anyhow::Result<()> {
    let before = cluster.begin_again()?;
    let (broken, disk) = on_a_disk_of_its_own(cluster, &before)?;
    let others: Vec<String> = cluster.names().into_iter().filter(|name| *name != broken).collect();
    others.iter().try_for_each(|name| standby(cluster, name, "on"))?;
    cluster.lab.wait_until_ready()?;
    let process = cluster.lab.processes(&broken, &ALERTER)?;
    disk.fill()?;
    cluster.crash("compute2")?;
    wait::until("the alerter to say that it stays", SAID_WITHIN, || {
        let said = cluster.lab.exec(&broken, &["nova-host-alerter", "status"])?.out;
        Ok(said.contains("no other controller is online to run the alerter").then_some(()))
    })?;
    cluster.quiet(&before, QUIET)?;
    ensure!(cluster.lab.processes(&broken, &ALERTER)? == process, "the alerter was started again");
    disk.play(MEND)?;
    cluster.wait_mark(&before, "compute2", "acknowledged", |mark| mark.state == "acknowledged")?;
    others.iter().try_for_each(|name| standby(cluster, name, "off"))?;
    ensure!(cluster.notified(&before) == 2, "{} requests, for one host", cluster.notified(&before));
    Ok(())
}

/// A controller with a disk of its own, and the alerter on it.
fn on_a_disk_of_its_own(cluster: &mut Cluster, before: &Before) -> anyhow::Result<(String, Disk)> {
    let name = cluster.other_than(&[&cluster.wait_for_alerter()?])?;
    let disk = Disk(cluster.lab.directory().join("nodes").join(&name).join("var-lib/nova-host-alerter"));
    disk.play(OWN)?;
    cluster.is_undead(&name);
    cluster.lab.power_off(&name)?;
    cluster.wait_fenced(before, &name)?;
    cluster.wait_for_controllers()?;
    let resource = ["crm_resource", "--resource", "alerter"];
    for other in cluster.names().iter().filter(|other| **other != name) {
        cluster.run(&[&resource[..], &["--ban", "--node", other]].concat())?;
    }
    wait::until("the alerter to come", FENCED_WITHIN, || {
        Ok((cluster.wait_for_alerter()? == name).then_some(()))
    })?;
    cluster.run(&[&resource[..], &["--clear"]].concat())?;
    cluster.lab.wait_until_ready()?;
    Ok((name, disk))
}

fn standby(cluster: &Cluster, name: &str, word: &str) -> anyhow::Result<()> {
    let named = ["crm_attribute", "--node", name, "--name", "standby", "--lifetime", "reboot"];
    cluster.run(&[&named[..], &["--update", word]].concat()).map(drop)
}
