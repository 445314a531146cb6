//! Controllers whose clocks are wrong.

use anyhow::{Context as _, ensure};
use serde_json::Value;
use tests::lab::Fault;

use crate::cluster::{Cluster, Mark, QUIET};
use crate::{Scenario, truth};

pub(crate) const SCENARIOS: &[Scenario] =
    &[("the_alerter_moves_to_a_clock_that_is_an_hour_wrong", the_alerter_moves_to_a_wrong_clock)];

/// By how many seconds the clocks of the two controllers are ahead to which the alerter can move.
const AHEAD: [i64; 2] = [-3600, 3600];

/// One host was notified and is back, one is still down, and a pause holds the mark of a third when the alerter's controller is lost.
/// Nothing is sent again, and the pause holds; what fails then is notified. S1-16, S1-27
fn the_alerter_moves_to_a_wrong_clock(cluster: &mut Cluster) -> anyhow::Result<()> {
    let before = cluster.begin_again()?;
    let active = cluster.wait_for_alerter()?;
    let others: Vec<String> = cluster.names().into_iter().filter(|name| *name != active).collect();
    for (name, ahead) in others.iter().zip(AHEAD) {
        cluster.lab.set_clock(name, Some(ahead))?;
        cluster.is_undead(name);
        cluster.lab.power_off(name)?;
        cluster.wait_fenced(&before, name)?;
        cluster.wait_for_controllers()?;
    }
    cluster.lab.wait_until_ready()?;
    let acknowledged = |mark: &Mark| mark.state == "acknowledged";
    cluster.crash("compute1")?;
    cluster.wait_mark(&before, "compute1", "acknowledged", acknowledged)?;
    cluster.wait_back(&before, "compute1")?;
    cluster.lab.bmc().break_for("compute2", Fault::NoBoot);
    cluster.crash("compute2")?;
    cluster.wait_mark(&before, "compute2", "acknowledged", acknowledged)?;
    let pause = ["nova-host-alerter", "pause", "--for", "30m", "--reason", "a new switch"];
    cluster.on_active(&pause)?;
    cluster.crash("compute3")?;
    let id = cluster.wait_mark(&before, "compute3", "held", |mark| mark.holds == ["pause"])?.id;
    // Whose alert it is nobody could tell later, had this controller not said so; a second word is answered when all know what it knows.
    let is_sighted = |row: &Value| row["event"] == "sighted" && row["mark"] == *id;
    cluster.wait_history("its alert", |rows| rows.iter().any(is_sighted))?;
    cluster.on_active(&pause)?;
    // The lost controller's connections move: a host that dies before its own stands is not fenced, and some are without dying.
    let view = cluster.lab.view()?;
    let stays = |host: &String| view.location(host).is_some_and(|at| at != active);
    let last = (4..=12).map(|number| format!("compute{number}")).find(stays);
    let last = last.context("each connection is of the alerter's controller")?;
    cluster.lab.bmc().break_for(&active, Fault::NoBoot);
    cluster.lab.power_off(&active)?;
    cluster.wait_for_alerter_off(&active)?;
    cluster.wait_mark(&before, "compute3", "held elsewhere", |mark| mark.holds == ["pause"])?;
    cluster.quiet(&before, QUIET)?;
    ensure!(cluster.notified(&before) == 4, "{} requests", cluster.notified(&before));
    cluster.on_active(&["nova-host-alerter", "resume"])?;
    cluster.wait_mark(&before, "compute3", "acknowledged", acknowledged)?;
    cluster.lab.bmc().repair();
    cluster.crash(&last)?;
    cluster.wait_mark(&before, &last, "acknowledged", acknowledged)?;
    let sent = truth::notified(cluster, &before)?;
    for host in ["compute1", "compute2", "compute3", &last] {
        let own = sent.iter().filter(|one| one.node == host).count();
        ensure!(own == 2, "{own} requests for {host}, by two routes");
    }
    let is_held = |mark: &Mark| !mark.holds.is_empty();
    let held: Vec<Mark> = cluster.marks_since(&before)?.into_iter().filter(is_held).collect();
    ensure!(held.is_empty(), "{held:?}");
    Ok(())
}
