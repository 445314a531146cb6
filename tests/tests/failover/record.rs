//! Records of a cluster's CIB at the moments that matter for a host, kept for the unit tests of `marks`.

use std::path::Path;

use anyhow::Context;
use pacemaker::cib::Cib;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, Writer};
use tests::audit::Excused;

use crate::cluster::Cluster;
use crate::{Scenario, harm};

/// A list of its own, for each release: `NHA_SCENARIOS=record`.
pub(crate) const SCENARIOS: &[Scenario] = &[("the_moments_of_a_host_are_recorded", the_moments_of_a_host)];

/// It fails and comes back.
const FAILED: &str = "compute1";
/// It lives, and somebody says that it is off.
const ALIVE: &str = "compute2";
/// Where `crates/pacemaker/src/cib/recorded.rs` reads.
const ROOM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/pacemaker/src/cib/recorded");
/// Sections without a host's membership.
const LEFT_OUT: [&str; 9] = [
    "constraints",
    "op_defaults",
    "rsc_defaults",
    "alerts",
    "fencing-topology",
    "tags",
    "acls",
    "transient_attributes",
    "operations",
];

/// Each record is replaced by what this release's cluster says now.
fn the_moments_of_a_host(cluster: &mut Cluster) -> anyhow::Result<()> {
    let before = cluster.begin()?;
    let mut moments = vec![("connected", cib(cluster, FAILED)?)];
    cluster.crash(FAILED)?;
    cluster.wait_fenced(&before, FAILED)?;
    moments.push(("fenced", cib(cluster, FAILED)?));
    cluster.wait_back(&before, FAILED)?;
    moments.push(("back", cib(cluster, FAILED)?));
    cluster.run(&["crm_resource", "--cleanup", "--resource", FAILED])?;
    moments.push(("cleaned-up", cib(cluster, FAILED)?));
    harm::reconnect_after(cluster, ALIVE, "60s")?;
    harm::confirm(cluster, ALIVE)?;
    cluster.wait_mark(&before, ALIVE, "held as unconfirmed", |mark| mark.is_held_as("unconfirmed"))?;
    moments.push(("confirmed-but-alive", cib(cluster, ALIVE)?));
    harm::reconnect_after(cluster, ALIVE, "3s")?;
    let text: String = moments.iter().map(|(name, cib)| format!("== {name}\n{cib}\n")).collect();
    let [major, minor, patch] = Cib::parse(&moments[0].1)?.release().context("no release")?;
    std::fs::create_dir_all(ROOM)?;
    std::fs::write(Path::new(ROOM).join(format!("{major}.{minor}.{patch}.txt")), text)?;
    let not_notified = std::iter::once((ALIVE.to_owned(), "held".to_owned())).collect();
    cluster.audit(before, Excused { not_notified, ..Excused::default() })
}

fn cib(cluster: &Cluster, host: &str) -> anyhow::Result<String> {
    let (all, mut left_out) = (cluster.run(&["cibadmin", "--query"])?, 0_usize);
    let (mut reader, mut writer) = (Reader::from_str(&all), Writer::new(Vec::new()));
    reader.config_mut().trim_text(true);
    loop {
        match reader.read_event()? {
            Event::Eof => break,
            Event::Start(element) if left_out > 0 || !is_kept(&element, host)? => left_out += 1,
            Event::End(_) if left_out > 0 => left_out -= 1,
            Event::Empty(element) if left_out > 0 || !is_kept(&element, host)? => {}
            event if left_out == 0 => writer.write_event(event)?,
            _ => {}
        }
    }
    Ok(String::from_utf8(writer.into_inner())?)
}

/// The controllers, the host, and the connection to it.
fn is_kept(element: &BytesStart, host: &str) -> anyhow::Result<bool> {
    let of = |attribute: &str| -> anyhow::Result<String> {
        let value = element.try_get_attribute(attribute)?;
        Ok(value.map_or_else(String::new, |value| value.value.into_owned()))
    };
    Ok(match element.name().as_ref() {
        "primitive" | "lrm_resource" => of("id")? == host,
        "group" | "clone" | "template" => false,
        "node" => of("type")? != "remote" || of("uname")? == host,
        "node_state" => of("remote_node")? != "true" || of("uname")? == host,
        name => !LEFT_OUT.contains(&name),
    })
}
