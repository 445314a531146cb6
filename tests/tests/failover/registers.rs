//! The register in the CIB: what the others show with attrd, and what can only happen to a configuration.

use anyhow::{Context as _, ensure};
use marks::id::MarkId;
use marks::register::{Key, Register};
use register::PAGES;
use register::pages::HEAD;
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
    ("a_forged_entry_in_the_cib_counts_for_nothing", |cluster| doubt::a_forged_entry(cluster, Register::Cib)),
    ("forgeries_in_the_cib_have_no_effect", |cluster| doubt::forgeries(cluster, Register::Cib)),
    ("an_administrator_loads_an_old_configuration", an_administrator_loads_an_old_configuration),
];

/// Stands in the configuration that is replaced, and not in the old one.
const NEWER: &str = "newer-than-the-old";

/// An old configuration replaces the one with the register's entries: the alerter publishes them again, and the alerter that is
/// active next sends the mark, once. An alerter may write at that moment what it read just before: its head, put beside the old
/// pages, names a page that is gone, and it corrects that. The broken variant holds the mark. S1-16, S1-28
fn an_administrator_loads_an_old_configuration(cluster: &mut Cluster) -> anyhow::Result<()> {
    let before = cluster.begin_with(Register::Cib)?;
    let configuration = ["cibadmin", "--query", "--scope", "configuration"];
    let old = cluster.run(&configuration)?;
    cluster.all_down();
    cluster.crash("compute9")?;
    cluster.wait_back(&before, "compute9")?;
    let mark = cluster.wait_open(&before, "compute9")?;
    // The mark, which the alerter alone writes: an agent may write its fencing again meanwhile.
    let key = Key::Mark(MarkId::parse(&mark.id)?);
    let active = cluster.wait_for_alerter()?;
    let stands = |xml: &str| {
        let entries = cluster.lab.register_in(&active, xml)?;
        Ok::<_, anyhow::Error>((entries.sound.contains_key(&key), entries.is_partial))
    };
    for is_late in [true, false] {
        // At that moment: an agent may have written since.
        let new = cluster.run(&configuration)?;
        ensure!(stands(&new)? == (true, false), "the register has no {key}: this scenario shows nothing");
        let loaded = if is_late { with_head_of(&active, &old, &new)? } else { old.clone() };
        ensure!(stands(&loaded)? == (is_late, is_late), "the old configuration has or lacks too much");
        cluster.run(&["crm_attribute", "--name", NEWER, "--update", "1"])?;
        cluster.run(&["cibadmin", "--replace", "--scope", "configuration", "--xml-text", &loaded])?;
        wait::until(&format!("the entry to be published again, late: {is_late}"), FENCED_WITHIN, || {
            let here = cluster.lab.exec(&active, &configuration)?.success()?;
            Ok((!here.contains(NEWER) && stands(&here)? == (true, false)).then_some(()))
        })?;
    }
    cluster.lab.power_off(&active)?;
    // It may come back before another takes over: either way a new alerter sends the mark.
    cluster.wait_fenced(&before, &active)?;
    cluster.wait_for_alerter()?;
    cluster.all_up()?;
    cluster.audit(before, Excused::default())
}

/// A configuration with this alerter's head from another one.
fn with_head_of(controller: &str, into: &str, from: &str) -> anyhow::Result<String> {
    let begin = format!("<cluster_property_set id=\"{PAGES}.{HEAD}.alerter.{controller}\"");
    let end = "</cluster_property_set>";
    let parts = |xml: &str| {
        let (before, rest) = xml.split_once(&begin)?;
        let (head, after) = rest.split_once(end)?;
        Some([before, head, after].map(str::to_owned))
    };
    let [before, _, after] = parts(into).context("no head in the old configuration")?;
    let [_, head, _] = parts(from).context("no head in the new configuration")?;
    Ok([before.as_str(), &begin, &head, end, &after].concat())
}
