//! Living hosts that Pacemaker reports for a moment as if they were dead. Then an operator confirms by hand that
//! they are off: an alerter that reads the membership wrongly starts their machines twice.

use std::time::Duration;

use anyhow::{Context, ensure};
use tests::audit::Excused;
use tests::lab::wait;

use crate::cluster::{Before, Cluster, FENCED_WITHIN, QUIET};
use crate::{Scenario, truth};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("a_live_host_confirmed_after_a_cleanup_is_held", after_a_cleanup),
    ("a_live_host_confirmed_while_its_connection_moves_is_held", while_its_connection_moves),
    ("a_live_host_confirmed_after_a_short_cut_is_held", after_a_short_cut),
    ("a_live_host_confirmed_that_waits_for_its_connection_is_held", that_waits_for_its_connection),
    ("a_live_host_confirmed_that_the_cib_calls_lost_is_held", that_the_cib_calls_lost),
    ("live_hosts_confirmed_when_their_controller_dies_are_held", when_their_controller_dies),
];

/// Shorter than the monitor of a connection, and than what a connection outlives.
const SHORT_CUT: Duration = Duration::from_millis(1500);
/// Longer than a host has to be lost before its confirmation counts.
const LOST_FOR: Duration = Duration::from_secs(40);

/// `crm_resource --cleanup` erases what the controllers have on record of the connection, and probes it again. S1-3
fn after_a_cleanup(cluster: &mut Cluster) -> anyhow::Result<()> {
    let host = "compute1";
    let before = cluster.begin()?;
    cluster.run(&["crm_resource", "--cleanup", "--resource", host])?;
    confirm(cluster, host)?;
    all_held(cluster, before, &[host])
}

/// What `pcs resource move` does: the connection leaves its controller for another. S1-3
fn while_its_connection_moves(cluster: &mut Cluster) -> anyhow::Result<()> {
    let hosts = ["compute2", "compute3"];
    let before = cluster.begin()?;
    for host in hosts {
        let holder = holder_of(cluster, host)?;
        let other = cluster.other_than(&[&holder])?;
        cluster.run(&["crm_resource", "--move", "--resource", host, "--node", &other])?;
        if host == hosts[1] {
            wait_for_holder(cluster, host, &other)?;
        }
        confirm(cluster, host)?;
    }
    for host in hosts {
        cluster.run(&["crm_resource", "--clear", "--resource", host])?;
    }
    all_held(cluster, before, &hosts)
}

/// The host cannot be reached for a moment, and its connection outlives that. S1-3
fn after_a_short_cut(cluster: &mut Cluster) -> anyhow::Result<()> {
    let host = "compute4";
    let before = cluster.begin()?;
    cluster.lab.partition(host)?;
    std::thread::sleep(SHORT_CUT);
    cluster.lab.heal(host)?;
    confirm(cluster, host)?;
    all_held(cluster, before, &[host])
}

/// Pacemaker cuts the connection of a host that somebody confirmed, and makes no new one for `reconnect_interval`: the host is no
/// member for longer than the alerter waits for evidence. S1-3
fn that_waits_for_its_connection(cluster: &mut Cluster) -> anyhow::Result<()> {
    let host = "compute5";
    let before = cluster.begin()?;
    reconnect_after(cluster, host, "60s")?;
    confirm(cluster, host)?;
    let held = all_held(cluster, before, &[host]);
    reconnect_after(cluster, host, "3s")?;
    held
}

/// What a controller of 2.1.5 wrote when it had joined (`docs/pacemaker-releases.md`, 3), by hand: the host counts as lost for longer
/// than a confirmation wants it, and another controller is connected to it. S1-3
fn that_the_cib_calls_lost(cluster: &mut Cluster) -> anyhow::Result<()> {
    let host = "compute6";
    let before = cluster.begin()?;
    reconnect_after(cluster, host, "60s")?;
    let state = format!("<node_state id=\"{host}\" uname=\"{host}\" in_ccm=\"false\"/>");
    cluster.run(&["cibadmin", "--modify", "--scope=status", "--xml-text", &state])?;
    // A fixed time: the host must count as lost for so long.
    std::thread::sleep(LOST_FOR);
    let query = format!("--xpath=//node_state[@id='{host}' and @in_ccm='true']");
    let is_back = cluster.run(&["cibadmin", "--query", "--local", &query]).is_ok();
    ensure!(!is_back, "Pacemaker has put it right: this shows nothing");
    confirm(cluster, host)?;
    let held = all_held(cluster, before, &[host]);
    reconnect_after(cluster, host, "3s")?;
    held
}

pub(crate) fn reconnect_after(cluster: &Cluster, host: &str, time: &str) -> anyhow::Result<()> {
    let set = ["crm_resource", "--resource", host, "--set-parameter", "reconnect_interval"];
    cluster.run(&[&set[..], &["--parameter-value", time]].concat())?;
    cluster.lab.wait_until_ready()
}

/// One host is confirmed when its controller has lost its power, one when the cluster has noticed, one when that controller was
/// fenced. S1-3, S1-16
fn when_their_controller_dies(cluster: &mut Cluster) -> anyhow::Result<()> {
    let before = cluster.begin()?;
    let active = cluster.wait_for_alerter()?;
    let holder = cluster.other_than(&[&active])?;
    let hosts: Vec<String> = held_by(cluster, &holder)?.into_iter().take(3).collect();
    let [first, second, third] = hosts.as_slice() else {
        anyhow::bail!("{holder} holds too few connections: {hosts:?}");
    };
    cluster.lab.power_off(&holder)?;
    confirm_on(cluster, &active, first)?;
    // On a busy machine it is fenced before anybody looks.
    let is_fenced = || truth::offs(&cluster.lab, before.events).iter().any(|(off, _)| *off == holder);
    cluster.lab.wait_for("the controller to be missed", 60, |view| view.is_lost(&holder) || is_fenced())?;
    confirm_on(cluster, &active, second)?;
    cluster.wait_fenced(&before, &holder)?;
    confirm_on(cluster, &active, third)?;
    all_held(cluster, before, &[first, second, third])
}

/// An operator says by hand that the host is off.
pub(crate) fn confirm(cluster: &Cluster, host: &str) -> anyhow::Result<()> {
    cluster.run(&["stonith_admin", "--confirm", host]).map(drop)
}

fn confirm_on(cluster: &Cluster, controller: &str, host: &str) -> anyhow::Result<()> {
    cluster.lab.exec(controller, &["stonith_admin", "--confirm", host])?.success().map(drop)
}

/// Each host has a mark that is held, and nobody is notified.
pub(crate) fn all_held(cluster: &mut Cluster, before: Before, hosts: &[&str]) -> anyhow::Result<()> {
    for host in hosts {
        cluster.wait_mark(&before, host, "held as unconfirmed", |mark| mark.is_held_as("unconfirmed"))?;
    }
    cluster.quiet(&before, QUIET)?;
    let not_notified = hosts.iter().map(|host| ((*host).to_owned(), "held".to_owned())).collect();
    cluster.audit(before, Excused { not_notified, ..Excused::default() })
}

fn holder_of(cluster: &Cluster, host: &str) -> anyhow::Result<String> {
    cluster.lab.view()?.location(host).with_context(|| format!("nobody holds the connection to {host}"))
}

fn wait_for_holder(cluster: &Cluster, host: &str, holder: &str) -> anyhow::Result<()> {
    wait::until(&format!("{holder} to hold the connection to {host}"), FENCED_WITHIN, || {
        Ok((cluster.lab.view()?.location(host).as_deref() == Some(holder)).then_some(()))
    })
}

fn held_by(cluster: &Cluster, controller: &str) -> anyhow::Result<Vec<String>> {
    let view = cluster.lab.view()?;
    let is_held = |host: &&str| view.location(host).as_deref() == Some(controller);
    Ok(cluster.lab.remotes().filter(is_held).map(str::to_owned).collect())
}
