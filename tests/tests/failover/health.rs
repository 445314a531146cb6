//! Compute hosts with failures that their connection does not show, and the agent that sees them: which of them are fenced.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use nix::sys::signal::Signal;
use serde_json::Value;
use tests::audit::Excused;
use tests::lab::wait;

use crate::cluster::{Before, Cluster, FENCED_WITHIN, QUIET};
use crate::{Scenario, truth};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("a_host_whose_disk_hangs_is_fenced", |it| counted(it, a_host_whose_disk_hangs)),
    ("a_host_without_its_link_is_fenced_once", |it| counted(it, a_host_without_its_link)),
    ("of_thirty_hosts_that_fail_at_once_none_is_fenced", |it| counted(it, of_thirty_of_sixty_hosts)),
    ("while_three_hosts_are_being_fenced_no_further_one_is", |it| counted(it, while_three_are_being_fenced)),
    ("a_host_that_lies_has_no_other_one_fenced", |it| counted(it, a_host_that_lies)),
    ("a_host_without_the_package_is_left_alone", a_host_without_the_package),
    ("a_host_that_starts_no_agent_is_fenced_by_pacemaker", a_host_that_starts_no_agent),
    ("a_checker_that_is_gone_has_no_host_fenced", a_checker_that_is_gone),
    ("a_host_that_is_only_observed_is_shown", |it| counted(it, a_host_that_is_only_observed)),
];

const CLONE: &str = r#"<clone id="health-clone"><primitive id="health" class="ocf" provider="openstack" type="compute-health">
  <instance_attributes id="health-settings"><nvpair id="health-links" name="links" value="store"/>
    <nvpair id="health-links-for" name="links_for" value="5"/><nvpair id="health-interval" name="interval" value="2"/><nvpair id="health-reaction" name="reaction" value="fence"/></instance_attributes>
  <operations><op id="health-monitor" name="monitor" interval="2s" timeout="20s" on-fail="fence"/></operations></primitive></clone>"#;
const RULE: &str = r##"<rsc_location id="health-there" rsc="health-clone" resource-discovery="exclusive"><rule id="health-rule" score="0">
  <expression id="health-kind" attribute="#kind" operation="eq" value="remote"/></rule></rsc_location>"##;
/// Where Pacemaker has the agent from.
const AGENTS: &str = "/usr/lib/ocf/resource.d/openstack";
/// Another file in the agent's place. The directory is read-only here: what dpkg and rpm rename is mounted.
const UPGRADE: &str =
    "cd /usr/lib/ocf/resource.d/openstack; cp compute-health /run/new; mount --bind /run/new compute-health";
/// A network beside the cluster's, and the instances' directory.
const FURNISH: &str = "mkdir -p /var/lib/nova/instances; ip link show store >/dev/null 2>&1 ||
    ip link add store type veth peer name switch; ip link set store up; ip link set switch up";
/// The host's own disk, in the room of the lab; mounted here too, it can be thawed when the host is gone.
const DISK: &str = "truncate --size 16M own.disk; mkfs.ext4 -q -F own.disk; mkdir -p own; mount -o loop own.disk own; findmnt -no MAJ:MIN own";

/// Every host has the agent, and is well by its word.
fn watched(cluster: &mut Cluster, reaction: &str) -> anyhow::Result<Before> {
    let before = cluster.begin_again()?;
    watched_are(cluster, reaction, 12)?;
    Ok(before)
}

fn watched_are(cluster: &Cluster, reaction: &str, hosts: usize) -> anyhow::Result<()> {
    cluster.lab.remotes().try_for_each(|host| in_host(cluster, host, FURNISH))?;
    let clone = CLONE.replace("value=\"fence\"", &format!("value=\"{reaction}\""));
    let parts = format!("<resources>{clone}</resources><constraints>{RULE}</constraints>");
    let both = format!("<configuration>{parts}</configuration>");
    cluster.run(&["cibadmin", "--modify", "--scope", "configuration", "--xml-text", &both])?;
    cluster.lab.wait_until_ready()?;
    wait::until("the hosts' words", FENCED_WITHIN, || {
        let said = cluster.run(&["attrd_updater", "-n", "host-health", "-Q", "-A"])?;
        Ok((said.matches("value=\"ok\"").count() == hosts).then_some(()))
    })
}

/// A story of hosts that hear each other. With Pacemaker 2.0 a remote node is told its own word alone: that is shown, and none is fenced.
fn counted(cluster: &mut Cluster, story: fn(&mut Cluster) -> anyhow::Result<()>) -> anyhow::Result<()> {
    if !cluster.run(&["pacemakerd", "--version"])?.contains("Pacemaker 2.0.") {
        return story(cluster);
    }
    let before = watched(cluster, "fence")?;
    lose_link(cluster, "compute7")?;
    wait_degraded(cluster, 1, "the cluster does not show what the hosts say; none is fenced")?;
    ended(cluster, before, 0)
}

fn lose_link(cluster: &Cluster, host: &str) -> anyhow::Result<()> {
    in_host(cluster, host, "ip link set switch down")
}

fn in_host(cluster: &Cluster, host: &str, script: &str) -> anyhow::Result<()> {
    cluster.lab.exec(host, &["sh", "-ec", script])?.success().map(drop).context(host.to_owned())
}

/// Waits until so many hosts are degraded for this reason.
fn wait_degraded(cluster: &Cluster, count: usize, reason: &str) -> anyhow::Result<()> {
    let query = ["cibadmin", "--query", "--xpath", "//lrm_rsc_op[@rc-code='190']"];
    let mut said = String::new();
    let seen = wait::until(reason, FENCED_WITHIN, || {
        said = cluster.run(&query)?;
        Ok((said.matches(reason).count() == count).then_some(()))
    });
    seen.with_context(|| said)
}

/// Waits until `status` has one problem of this cause, with so many hosts, and the history a line that each began.
fn wait_shown(cluster: &Cluster, (first, count): (&str, usize), reason: &str) -> anyhow::Result<()> {
    let mut found = Vec::new();
    let is_shown = |one: &Value| {
        let what = one["what"].as_str().unwrap_or_default();
        let hosts = one["hosts"].as_array().map(Vec::len);
        what.starts_with(first) && what.ends_with(reason) && hosts == Some(count)
    };
    let seen = wait::until(reason, FENCED_WITHIN, || {
        let status = cluster.on_active(&["nova-host-alerter", "status", "--json"])?;
        let status: Value = serde_json::from_str(&status)?;
        found.clone_from(status["problems"].as_array().context("no problems")?);
        found.retain(|one| one["kind"] == "host-health");
        Ok(matches!(&found[..], [one] if is_shown(one)).then_some(()))
    });
    seen.with_context(|| format!("{found:?}"))?;
    cluster.wait_history(reason, |rows| {
        let is_it = |row: &Value| row["detail"].as_str().is_some_and(|it| it.ends_with(reason));
        rows.iter().filter(|row| row["event"] == "unhealthy" && is_it(row)).count() == count
    })
}

/// The agent goes, and so many hosts were fenced.
fn ended(cluster: &mut Cluster, before: Before, fenced: usize) -> anyhow::Result<()> {
    cluster.audit_now(&before, &Excused::default())?;
    cluster.quiet(&before, QUIET)?;
    let offs = truth::offs(&cluster.lab, before.events);
    ensure!(offs.len() == fenced, "fenced: {offs:?}");
    for ours in ["//rsc_location[@id='health-there']", "//clone[@id='health-clone']"] {
        cluster.run(&["cibadmin", "--delete-all", "--force", "--xpath", ours])?;
    }
    cluster.audit(before, Excused::default())
}

/// Its writer hangs in the kernel, and its connection stands. S1-1
fn a_host_whose_disk_hangs(cluster: &mut Cluster) -> anyhow::Result<()> {
    let room = cluster.lab.directory().to_owned();
    let here = |script: &str| Command::new("sh").args(["-ec", script]).current_dir(&room).output();
    let device = String::from_utf8(here(DISK)?.stdout)?.trim().replace(':', " ");
    let mount = format!(
        "mkdir -p /var/lib/nova/instances; mknod /dev/own b {device}; mount /dev/own /var/lib/nova/instances"
    );
    in_host(cluster, "compute1", &mount)?;
    let before = watched(cluster, "fence")?;
    ensure!(here("fsfreeze --freeze own")?.status.success(), "it cannot be frozen");
    let frozen = Instant::now();
    let asked = wait::until("its fencing", FENCED_WITHIN, || {
        Ok(cluster.lab.fencings("compute1")?.iter().any(|one| one.status == "pending").then_some(()))
    });
    let seconds = frozen.elapsed().as_secs();
    // No power device ends a process that the kernel holds.
    here("fsfreeze --unfreeze own; umount --lazy own")?;
    asked?;
    // 30 s are the check's; the next look, the next monitor and what is on the way take 2, 2 and 3 s at most.
    ensure!((30..37).contains(&seconds), "its fencing was asked for after {seconds} s");
    cluster.wait_marked(&before, "compute1")?;
    let cause = "its health check had failed: /var/lib/nova/instances has not answered for";
    wait::until(cause, FENCED_WITHIN, || {
        Ok(cluster.on_active(&["nova-host-alerter", "show", "compute1"])?.contains(cause).then_some(()))
    })?;
    ended(cluster, before, 1)
}

/// It fails once more when it is back: nothing new, and no reason to fence it in circles. S1-1
fn a_host_without_its_link(cluster: &mut Cluster) -> anyhow::Result<()> {
    let before = watched(cluster, "fence")?;
    // An upgrade: the checker that runs goes on.
    in_host(cluster, "compute2", UPGRADE)?;
    lose_link(cluster, "compute2")?;
    cluster.wait_back(&before, "compute2")?;
    wait_degraded(cluster, 1, "it did when the checker began; none is fenced")?;
    ended(cluster, before, 1)
}

/// A switch is down: they hear of each other. Six are real; of the others there are the words. S1-1
fn of_thirty_of_sixty_hosts(cluster: &mut Cluster) -> anyhow::Result<()> {
    let before = watched(cluster, "fence")?;
    let others = |what: &str| {
        let script =
            format!("for n in $(seq 13 60); do attrd_updater -n host-health -N compute$n {what}; done");
        cluster.run(&["sh", "-ec", &script])
    };
    others("-p -U \"$([ $n -lt 37 ] && echo link store || echo ok)\"")?;
    cluster.lab.remotes().take(6).try_for_each(|host| lose_link(cluster, host))?;
    let reason = "30 of 60 hosts fail the same check: a common cause; none is fenced";
    wait_degraded(cluster, 6, reason)?;
    wait_shown(cluster, ("compute1, compute2, compute3 and 3 more: ", 6), reason)?;
    others("-D")?;
    ended(cluster, before, 0)
}

/// Their marks take long. S1-1
fn while_three_are_being_fenced(cluster: &mut Cluster) -> anyhow::Result<()> {
    let before = watched(cluster, "fence")?;
    cluster.lab.bmc().hold_marks(true);
    let three = ["compute1", "compute2", "compute3"];
    three.iter().try_for_each(|host| cluster.crash(host))?;
    three.iter().try_for_each(|host| cluster.wait_fenced(&before, host))?;
    lose_link(cluster, "compute9")?;
    let held = wait_degraded(cluster, 1, "hosts fail or are out after a fencing; none is fenced");
    cluster.lab.bmc().hold_marks(false);
    held?;
    three.iter().try_for_each(|host| cluster.wait_back(&before, host))?;
    let offs = truth::offs(&cluster.lab, before.events);
    ensure!(offs.iter().all(|(host, _)| three.contains(&host.as_str())), "fenced: {offs:?}");
    // A mark that took too long is tried again, with the power.
    ended(cluster, before, offs.len())
}

/// Root of a host writes the words of others: it has none of them fenced and keeps them from it, and of two that fail it lets one through.
/// S1-46
fn a_host_that_lies(cluster: &mut Cluster) -> anyhow::Result<()> {
    let before = watched(cluster, "fence")?;
    let lie = |host: &str, word: &str| {
        in_host(cluster, "compute1", &format!("attrd_updater -n host-health -N {host} -p -U '{word}'"))
    };
    lie("compute2", "link store")?;
    lose_link(cluster, "compute3")?;
    wait_degraded(cluster, 1, "2 of 12 hosts fail the same check: a common cause; none is fenced")?;
    lose_link(cluster, "compute4")?;
    wait_degraded(cluster, 1, "3 of 12 hosts fail the same check: a common cause; none is fenced")?;
    ensure!(truth::offs(&cluster.lab, before.events).is_empty(), "a host was fenced for a lie");
    lie("compute2", "ok")?;
    lie("compute4", "ok")?;
    cluster.wait_fenced(&before, "compute3")?;
    ended(cluster, before, 1)
}

/// Pacemaker says so of it, and the others are watched. S1-46
fn a_host_without_the_package(cluster: &mut Cluster) -> anyhow::Result<()> {
    let before = cluster.begin_again()?;
    in_host(cluster, "compute6", &format!("mount -t tmpfs none {AGENTS}"))?;
    watched_are(cluster, "fence", 11)?;
    let absent = "//node_state[@uname='compute6']//lrm_resource[@id='health']/lrm_rsc_op[@rc-code='5']";
    cluster.run(&["cibadmin", "--query", "--xpath", absent])?;
    in_host(cluster, "compute6", &format!("umount {AGENTS}"))?;
    ended(cluster, before, 0)
}

/// Its package was removed under the clone: Pacemaker's own reaction, which counts nothing. The book says so. S1-1
fn a_host_that_starts_no_agent(cluster: &mut Cluster) -> anyhow::Result<()> {
    let before = watched(cluster, "fence")?;
    in_host(cluster, "compute8", &format!("mount -t tmpfs none {AGENTS}"))?;
    cluster.wait_back(&before, "compute8")?;
    ended(cluster, before, 1)
}

/// Killed, or stopped. S1-1
fn a_checker_that_is_gone(cluster: &mut Cluster) -> anyhow::Result<()> {
    let before = watched(cluster, "fence")?;
    for (host, signal) in [("compute3", Signal::SIGKILL), ("compute4", Signal::SIGSTOP)] {
        ensure!(cluster.lab.signal(host, &["exe", "watch"], signal)? == 1, "{host} has no checker");
    }
    wait_degraded(cluster, 2, "was started again")?;
    ended(cluster, before, 0)
}

fn a_host_that_is_only_observed(cluster: &mut Cluster) -> anyhow::Result<()> {
    let before = watched(cluster, "observe")?;
    lose_link(cluster, "compute5")?;
    let reason = "it would be fenced (reaction=observe)";
    wait_degraded(cluster, 1, reason)?;
    wait_shown(cluster, ("compute5: store has had no carrier for ", 1), reason)?;
    // The lab's root is read-only, and crmsh keeps things at home.
    let setup = ["env", "HOME=/tmp", "nova-host-alerter", "setup", "--health=fence", "--tool", "crmsh"];
    let fence = cluster.on_active(&setup)?;
    ensure!(fence.contains("it would fence at this moment: compute5 (store has had no carrier"), "{fence}");
    in_host(cluster, "compute5", "ip link set switch up")?;
    cluster.wait_history("the end of it", |rows| {
        rows.iter().rfind(|row| row["host"] == "compute5").is_some_and(|row| row["event"] == "healthy")
    })?;
    ended(cluster, before, 0)
}
