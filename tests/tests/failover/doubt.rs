//! Events that only seem fencings: they are held or skipped, and never sent.

use std::time::Duration;

use anyhow::Context;
use marks::id::{MarkId, NoteId};
use marks::mark::Settlement;
use marks::register::{About, Acknowledgement, Decision, Entry, Part, Register, Scope, Settled, Writer};
use marks::time::Timestamp;
use register::pages::{self, HEAD, Head, Line};
use register::{NAME, PAGES, SealKeys};
use tests::audit::Excused;
use tests::lab::{Event, Fault, wait};

use crate::Scenario;
use crate::cluster::{Cluster, FENCED_WITHIN, QUIET, ROUTES};
use crate::harm::{all_held, confirm};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("a_dead_host_that_is_confirmed_is_reported", a_dead_host_that_is_confirmed_is_reported),
    ("a_live_host_that_is_confirmed_is_held", a_live_host_that_is_confirmed_is_held),
    ("a_forged_entry_in_attrd_counts_for_nothing", |cluster| a_forged_entry(cluster, Register::Attrd)),
    ("forgeries_in_attrd_have_no_effect", |cluster| forgeries(cluster, Register::Attrd)),
];

/// Longer than an alerter wants a host to have been lost before it believes an operator.
const LOST_FOR: Duration = Duration::from_secs(40);

/// Its power device is dead, and an operator checks it and confirms that it is off: the cluster believes it, and it is reported. S1-13
fn a_dead_host_that_is_confirmed_is_reported(cluster: &mut Cluster) -> anyhow::Result<()> {
    let host = "compute1";
    let mut before = cluster.begin()?;
    cluster.lab.bmc().break_for(host, Fault::Dead);
    cluster.lab.power_off(host)?;
    wait::until("the fencing to fail", FENCED_WITHIN, || {
        let record = cluster.lab.bmc().record();
        let failed =
            |event: &Event| matches!(event, Event::Power { target, worked: false, .. } if target == host);
        Ok(record.iter().skip(before.events).any(failed).then_some(()))
    })?;
    std::thread::sleep(LOST_FOR);
    before.confirmed(host);
    cluster.run(&["stonith_admin", "--confirm", host])?;
    cluster.lab.bmc().repair();
    cluster.audit(before, Excused::default())
}

/// An operator confirms the wrong host, which lives: the mark is held, and nobody is notified. S0-35, S1-3
fn a_live_host_that_is_confirmed_is_held(cluster: &mut Cluster) -> anyhow::Result<()> {
    let host = "compute2";
    let before = cluster.begin()?;
    confirm(cluster, host)?;
    all_held(cluster, before, &[host])
}

/// A member of `haclient` writes a fencing of a live host into the register, and its mark, well-formed: both count for nothing, and
/// `status` names them. S0-35
pub(crate) fn a_forged_entry(cluster: &mut Cluster, register: Register) -> anyhow::Result<()> {
    let host = "compute3";
    let before = cluster.begin_with(register)?;
    let (fencing, mark) = forged(host)?;
    for (key, value) in [&fencing, &mark] {
        write(cluster, register, key, value)?;
    }
    let active = cluster.wait_for_alerter()?;
    let said = |words: &[&str]| -> anyhow::Result<String> { Ok(cluster.lab.exec(&active, words)?.out) };
    wait::until("status to name the entries", FENCED_WITHIN, || {
        Ok(said(&["nova-host-alerter", "status"])?.contains("it has no seal").then_some(()))
    })?;
    cluster.quiet(&before, QUIET)?;
    let listed = said(&["nova-host-alerter", "list"])?;
    anyhow::ensure!(!listed.contains(host), "a host that nobody fenced has a mark: {listed}");
    for (key, _) in [&fencing, &mark] {
        remove(cluster, register, (NAME, &format!("{NAME}."), key))?;
    }
    cluster.audit(before, Excused::default())
}

/// A member of `haclient` says of an open mark that it was taken and ended, as an entry of its own, on a page in the name of another
/// controller, and on one with the seal of another cluster; it pauses everything, and puts back what the alerter's page said before. The
/// mark is sent, once. S0-35
pub(crate) fn forgeries(cluster: &mut Cluster, register: Register) -> anyhow::Result<()> {
    let host = "compute4";
    let before = cluster.begin_with(register)?;
    let (active, other) = (cluster.wait_for_alerter()?, "ctl9".to_owned());
    let old = page_of(cluster, register, &active)?;
    cluster.all_down();
    cluster.crash(host)?;
    let mark = cluster.wait_open(&before, host)?;
    let forged = ends(&mark.id, &active)?;
    for entry in &forged {
        write(cluster, register, &entry.key().to_string(), &entry.value())?;
    }
    for (controller, keys) in
        [(&other, SealKeys::default()), (&other, SealKeys::derive([&b"the key of another cluster"[..]]))]
    {
        let (writer, lines) = (alerter_on(controller), forged.iter().map(Entry::line).collect::<Vec<Line>>());
        let head = Head { at: Timestamp::now(), ..Head::default() };
        write_page(cluster, register, &writer, &pages::write(&writer, HEAD, &head, &lines, &keys))?;
    }
    write_page(cluster, register, &alerter_on(&active), &old)?;
    cluster.quiet(&before, QUIET)?;
    let said = cluster.lab.exec(&active, &["nova-host-alerter", "status"])?.out;
    anyhow::ensure!(said.contains("it has no seal"), "nobody says that an entry is forged: {said}");
    cluster.all_up()?;
    let notified = cluster.wait_mark(&before, host, "acknowledged", |mark| mark.state == "acknowledged")?;
    anyhow::ensure!(notified.id == mark.id, "sent as {}, marked as {}", notified.id, mark.id);
    remove(
        cluster,
        register,
        (&format!("{PAGES}-0"), &format!("{PAGES}.0."), &alerter_on(&other).to_string()),
    )?;
    for entry in &forged {
        remove(cluster, register, (NAME, &format!("{NAME}."), &entry.key().to_string()))?;
    }
    cluster.audit(before, Excused::default())
}

fn alerter_on(controller: &str) -> Writer {
    Part::Alerter.on(controller)
}

/// Entries that would end the mark, and hold everything.
fn ends(mark: &str, by: &str) -> anyhow::Result<Vec<Entry>> {
    let (mark, at, by) = (MarkId::parse(mark)?, Timestamp::now(), by.to_owned());
    let taken = |(route, _): (&str, u16)| {
        Entry::Acknowledged(Acknowledgement { mark, route: route.to_owned(), at, by: by.clone() })
    };
    let about = About::Pause { scope: Scope::All, until: None };
    let (id, reason) = (NoteId::generate(), "forged".to_owned());
    let mut all: Vec<Entry> = ROUTES.map(taken).into();
    all.push(Entry::Settled(Settled { mark, how: Settlement::Dismissed, at, by: by.clone() }));
    all.push(Entry::Decision(Decision { id, about, at, actor: by, reason }));
    Ok(all)
}

/// The text of the head of this controller's alerter.
fn page_of(cluster: &Cluster, register: Register, controller: &str) -> anyhow::Result<String> {
    let writer = alerter_on(controller);
    let (name, node) = (format!("--name={PAGES}-0"), format!("--node={writer}"));
    let said = match register {
        Register::Attrd => cluster.run(&["attrd_updater", &name, &node, "--query"])?,
        Register::Cib | Register::Etcd | Register::None => cluster.run(&[
            "cibadmin",
            "--query",
            "--xpath",
            &format!("//nvpair[@name='{PAGES}.0.{writer}']"),
        ])?,
    };
    let text = said.split("value=\"").nth(1).and_then(|rest| rest.split('"').next());
    Ok(text.context("the alerter has no page")?.to_owned())
}

fn write_page(cluster: &Cluster, register: Register, writer: &Writer, text: &str) -> anyhow::Result<()> {
    let (name, node) = (format!("--name={PAGES}-0"), format!("--node={writer}"));
    let (update, id) = (format!("--update={text}"), format!("{PAGES}.0.{writer}"));
    let set = format!(
        r#"<cluster_property_set id="{id}"><nvpair id="{id}.value" name="{id}" value="{text}"/></cluster_property_set>"#
    );
    let command: &[&str] = match register {
        Register::Attrd => &["attrd_updater", &name, "--private", &node, &update],
        Register::Cib | Register::Etcd | Register::None => {
            &["cibadmin", "--modify", "--allow-create", "--scope=crm_config", "--xml-text", &set]
        }
    };
    cluster.run(command).map(drop)
}

/// The attribute's name, what is before the key in the CIB, and the key.
fn remove(cluster: &Cluster, register: Register, (name, id, key): (&str, &str, &str)) -> anyhow::Result<()> {
    let (name, node) = (format!("--name={name}"), format!("--node={key}"));
    let only = format!("--xpath=//cluster_property_set[@id='{id}{key}']");
    let command: &[&str] = match register {
        Register::Attrd => &["attrd_updater", &name, "--private", &node, "--delete"],
        Register::Cib | Register::Etcd | Register::None => &["cibadmin", "--delete-all", "--force", &only],
    };
    cluster.run(command).map(drop)
}

/// Keys and values of a fencing and of its mark, as the agent and an alerter would have written them.
fn forged(host: &str) -> anyhow::Result<((String, String), (String, String))> {
    let fencing = samples::fencing(host, Timestamp::now());
    let (id, now) = (fencing.id, fencing.committed_at.0);
    let mark = format!("1;{host};{host}.my.cloud.com;y;{now};{now};fencing;;ctl1;{now}");
    let entry = Entry::Fencing(fencing);
    Ok(((entry.key().to_string(), entry.value()), (format!("m.{id}"), mark)))
}

fn write(cluster: &Cluster, register: Register, key: &str, value: &str) -> anyhow::Result<()> {
    let (name, node, update) =
        (format!("--name={NAME}"), format!("--node={key}"), format!("--update={value}"));
    let id = format!("{NAME}.{key}");
    let set = format!(
        r#"<cluster_property_set id="{id}"><nvpair id="{id}.value" name="{id}" value="{value}"/></cluster_property_set>"#
    );
    let command: &[&str] = match register {
        Register::Attrd => &["attrd_updater", &name, "--private", &node, &update],
        Register::Cib | Register::Etcd | Register::None => {
            &["cibadmin", "--create", "--scope=crm_config", "--xml-text", &set]
        }
    };
    cluster.run(command).map(drop)
}
