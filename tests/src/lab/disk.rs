//! What lies on the disks of the nodes: written once below the lab's directory, mounted by each node's PID 1.
//!
//! ```text
//!   sbin/  ocf/  alerts/   over /usr/sbin, /usr/lib/ocf/resource.d and /usr/share/pacemaker/alerts of every node, read-only
//!   remote/                the remote daemon of this machine's release, over /usr/sbin too
//!   shared/                /run/lab of every node: the service's socket, and bin/ that a test may change
//!   nodes/NAME/etc         over /etc, read-only
//!   nodes/NAME/site        /etc/nova-host-alerter
//!   nodes/NAME/var-lib     /var/lib
//!   nodes/NAME/var-log     /var/log
//! ```

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use nix::unistd::{Gid, Group, Uid, User, chown};

use super::machine;
use super::parts;
use super::plan::{Kind, NodePlan, Products, Shape};

const COROSYNC: &str = include_str!("assets/corosync.conf");
const CIB: &str = include_str!("assets/cib.xml");

/// Where the nodes find a program that a test may exchange at run time.
const CHANGEABLE: &str = "/run/lab/bin";

pub(super) fn lay_out(
    lab: &Path,
    shape: Shape,
    plans: &[NodePlan],
    products: Option<&Products>,
) -> anyhow::Result<()> {
    let text = lab.to_string_lossy();
    ensure!(!text.contains([':', ',', '\\']), "{text}: overlay mounts cannot name such a path");
    install(lab, products)?;
    let key = random_bytes(4096)?;
    let corosync = corosync_conf(shape, plans);
    for plan in plans {
        let node = node_directory(lab, &plan.name);
        etc(&node.join("etc"), plan, plans, &corosync, &key)
            .and_then(|()| var(&node, plan))
            .with_context(|| format!("writing the disk of {}", plan.name))?;
    }
    Ok(())
}

pub(super) fn node_directory(lab: &Path, node: &str) -> PathBuf {
    lab.join("nodes").join(node)
}

/// Where a node finds its own clock, if it has one.
fn clock(node: &str) -> String {
    format!("clock-{node}")
}

/// Gives a node a clock of its own from its next start on, so many seconds ahead of the real one; or takes it away.
pub(super) fn set_clock(lab: &Path, node: &str, ahead: Option<i64>) -> anyhow::Result<()> {
    let path = lab.join("shared").join(clock(node));
    match ahead {
        Some(seconds) => file(&path, format!("{seconds:+}\n").as_bytes(), 0o644),
        None if path.exists() => Ok(fs::remove_file(path)?),
        None => Ok(()),
    }
}

/// What a node's programs have in their environment for its clock.
pub(super) fn clock_of(lab: &Path, node: &str) -> Vec<(OsString, OsString)> {
    let has_one = lab.join("shared").join(clock(node)).exists();
    let library = crate::clock::library().filter(|_| has_one);
    let at = Path::new("/run/lab").join(clock(node));
    library.map(|library| crate::clock::environment(&library, &at)).unwrap_or_default()
}

pub(super) fn write_site(
    lab: &Path,
    node: &str,
    (name, mode): (&str, u32),
    text: &str,
) -> anyhow::Result<()> {
    let path = node_directory(lab, node).join("site").join(name);
    directory(path.parent().unwrap_or(&path), 0o755)?;
    file(&path, text.as_bytes(), mode)
}

fn install(lab: &Path, products: Option<&Products>) -> anyhow::Result<()> {
    let [sbin, remote, ocf, alerts, bin] =
        ["sbin", "remote", "ocf", "alerts", "shared/bin"].map(|name| lab.join(name));
    for path in [&sbin, &remote, &ocf, &alerts, &bin] {
        directory(path, 0o755)?;
    }
    let myself = std::env::current_exe()?;
    place(&machine::pacemaker_remoted()?, &remote.join("pacemaker-remoted"))?;
    place(&myself, &sbin.join(parts::POWER_AGENT))?;
    place(&myself, &sbin.join(parts::LIFETIME))?;
    place(&myself, &bin.join(parts::MARK_AGENT))?;
    symlink(format!("{CHANGEABLE}/{}", parts::MARK_AGENT), sbin.join(parts::MARK_AGENT))?;
    let Some(products) = products else { return Ok(()) };
    place(&products.programs.join(parts::MARK_AGENT), &bin.join(parts::REAL_MARK_AGENT))?;
    let openstack = ocf.join("openstack");
    directory(&openstack, 0o755)?;
    for (program, place_of) in
        [("nova-host-alerter", &sbin), ("alert_mark", &alerts), ("compute-health", &openstack)]
    {
        place(&products.programs.join(program), &place_of.join(program))?;
    }
    place(&products.ocf_agent, &openstack.join("nova-host-alerter"))
}

/// Exchanges the program that the nodes call `fence_mark`: the recorder, or the real agent and nothing beside it.
pub(super) fn choose_mark_agent(lab: &Path, recorded: bool) -> anyhow::Result<()> {
    let bin = lab.join("shared/bin");
    let chosen = if recorded { std::env::current_exe()? } else { bin.join(parts::REAL_MARK_AGENT) };
    // Renaming one of two links to a file over the other does nothing: the last one may still be there.
    let new = bin.join("new");
    let _ = fs::remove_file(&new);
    place(&chosen, &new)?;
    Ok(fs::rename(&new, bin.join(parts::MARK_AGENT))?)
}

/// A hard link where the file system allows it: these programs are large, and a test run has many labs.
fn place(from: &Path, to: &Path) -> anyhow::Result<()> {
    let from =
        fs::canonicalize(from).with_context(|| format!("{} is missing: build first", from.display()))?;
    match fs::hard_link(&from, to) {
        Err(error) if error.kind() == ErrorKind::CrossesDevices => fs::copy(&from, to).map(drop),
        done => done,
    }
    .with_context(|| format!("installing {}", from.display()))
}

fn etc(etc: &Path, plan: &NodePlan, plans: &[NodePlan], corosync: &str, key: &[u8]) -> anyhow::Result<()> {
    for name in ["corosync", "pacemaker", "nova-host-alerter"] {
        directory(&etc.join(name), 0o755)?;
    }
    let hosts = plans.iter().map(|plan| format!("{} {}\n", plan.address(), plan.name));
    let hosts = format!("127.0.0.1 localhost\n{}", hosts.collect::<String>());
    file(&etc.join("hosts"), hosts.as_bytes(), 0o644)?;
    file(&etc.join("hostname"), format!("{}\n", plan.name).as_bytes(), 0o644)?;
    file(&etc.join("corosync/corosync.conf"), corosync.as_bytes(), 0o644)?;
    // The register's key, too: `corosync-keygen` makes such a file.
    file(&etc.join("corosync/authkey"), &key[..256], 0o400)?;
    file(&etc.join("pacemaker/authkey"), key, 0o640)?;
    Ok(chown(&etc.join("pacemaker/authkey"), None, Some(cluster_group()?))?)
}

fn corosync_conf(shape: Shape, plans: &[NodePlan]) -> String {
    let controllers = plans.iter().filter(|plan| plan.kind == Kind::Controller);
    let nodes = controllers.map(|plan| {
        let (name, id, address) = (&plan.name, plan.number, plan.address());
        format!(
            "    node {{\n        name: {name}\n        nodeid: {id}\n        ring0_addr: {address}\n    }}\n"
        )
    });
    let two_node = if shape.controllers == 2 { "1" } else { "0" };
    COROSYNC.replace("@TWO_NODE@", two_node).replace("@NODES@", &nodes.collect::<String>())
}

fn var(node: &Path, plan: &NodePlan) -> anyhow::Result<()> {
    let (library, log) = (node.join("var-lib"), node.join("var-log"));
    directory(&node.join("site"), 0o755)?;
    for name in ["corosync", "pacemaker"] {
        directory(&library.join(name), 0o755)?;
        directory(&log.join(name), 0o755)?;
    }
    // As the package makes it.
    directory(&library.join("nova-host-alerter"), 0o711)?;
    directory_of_cluster(&library.join("nova-host-alerter/evidence"), 0o700)?;
    directory(&log.join("crmsh"), 0o755)?;
    for name in ["cib", "pengine", "cores", "blackbox"] {
        directory_of_cluster(&library.join("pacemaker").join(name), 0o750)?;
    }
    directory_of_cluster(&log.join("pacemaker"), 0o770)?;
    directory_of_cluster(&log.join("pacemaker/bundles"), 0o770)?;
    if plan.kind == Kind::Controller { seed_cib(&library.join("pacemaker/cib/cib.xml")) } else { Ok(()) }
}

/// Only properties that must hold before there is a cluster; the rest is loaded by the test.
fn seed_cib(path: &Path) -> anyhow::Result<()> {
    file(path, CIB.as_bytes(), 0o600)?;
    give_to_cluster(path)
}

fn directory(path: &Path, mode: u32) -> anyhow::Result<()> {
    fs::create_dir_all(path).with_context(|| format!("making {}", path.display()))?;
    Ok(fs::set_permissions(path, Permissions::from_mode(mode))?)
}

fn directory_of_cluster(path: &Path, mode: u32) -> anyhow::Result<()> {
    directory(path, mode)?;
    give_to_cluster(path)
}

fn file(path: &Path, bytes: &[u8], mode: u32) -> anyhow::Result<()> {
    fs::write(path, bytes).with_context(|| format!("writing {}", path.display()))?;
    Ok(fs::set_permissions(path, Permissions::from_mode(mode))?)
}

pub(super) fn give_to_cluster(path: &Path) -> anyhow::Result<()> {
    Ok(chown(path, Some(cluster_user()?), Some(cluster_group()?))?)
}

fn cluster_user() -> anyhow::Result<Uid> {
    Ok(User::from_name("hacluster")?.context("the user hacluster is missing")?.uid)
}

fn cluster_group() -> anyhow::Result<Gid> {
    Ok(Group::from_name("haclient")?.context("the group haclient is missing")?.gid)
}

fn random_bytes(count: usize) -> anyhow::Result<Vec<u8>> {
    let mut bytes = vec![0; count];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}
