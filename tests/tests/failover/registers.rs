//! The register in the CIB: what the others show with attrd, and what can only happen to a configuration.

use anyhow::ensure;
use marks::id::FencingId;
use marks::register::{Entries, Key, Register};
use tests::audit::Excused;
use tests::lab::wait;

use crate::Scenario;
use crate::cluster::{Cluster, FENCED_WITHIN};
use crate::whole::{self, Stop};
use crate::{controllers, doubt};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("the_controller_that_marked_is_lost_with_the_register_in_the_cib", |cluster| {
        controllers::the_controller_that_marked(cluster, Register::Cib)
    }),
    ("the_whole_cluster_is_stopped_with_the_register_in_the_cib", |cluster| {
        whole::cib(cluster, Stop::Orderly)
    }),
    ("the_whole_cluster_loses_its_power_with_the_register_in_the_cib", |cluster| {
        whole::cib(cluster, Stop::PowerCut)
    }),
    ("a_forged_entry_in_the_cib_is_held", |cluster| doubt::a_forged_entry(cluster, Register::Cib)),
    ("forgeries_in_the_cib_have_no_effect", |cluster| doubt::forgeries(cluster, Register::Cib)),
    ("an_administrator_loads_an_old_configuration", an_administrator_loads_an_old_configuration),
];

/// An old configuration replaces the one with the register's entries: the alerter publishes them again, and the alerter that is
/// active next sends the mark, once. S1-16, S1-28
fn an_administrator_loads_an_old_configuration(cluster: &mut Cluster) -> anyhow::Result<()> {
    let before = cluster.begin_with(Register::Cib)?;
    let old = cluster.run(&["cibadmin", "--query", "--scope", "configuration"])?;
    cluster.all_down();
    cluster.crash("compute9")?;
    cluster.wait_back(&before, "compute9")?;
    let mark = cluster.wait_open(&before, "compute9")?;
    let key = Key::Fencing(FencingId::parse(&mark.id)?);
    let active = cluster.wait_for_alerter()?;
    let stands = |entries: Entries| entries.sound.contains_key(&key);
    let is_there = || Ok::<_, anyhow::Error>(stands(cluster.lab.register(&active, Register::Cib)?));
    ensure!(is_there()?, "the register has no {key}: this scenario shows nothing");
    ensure!(!stands(cluster.lab.register_in(&active, &old)?), "the old configuration is not old");
    cluster.run(&["cibadmin", "--replace", "--scope", "configuration", "--xml-text", &old])?;
    wait::until("the entry to be published again", FENCED_WITHIN, || Ok(is_there()?.then_some(())))?;
    cluster.lab.power_off(&active)?;
    // It may come back before another takes over: either way a new alerter sends the mark.
    cluster.wait_fenced(&before, &active)?;
    cluster.wait_for_alerter()?;
    cluster.all_up()?;
    cluster.audit(before, Excused::default())
}
