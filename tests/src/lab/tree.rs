//! A node whose root is another system than this machine's: one of another release (`tests/roots.sh`), read-only like the
//! machine's own would be; or a Debian of its own, a layer of its disk over a tree that the controllers share, so that a package can
//! be installed into it. What is written there stays over a loss of power.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::unistd::pivot_root;

use super::{disk, parts};

/// In the node's directory, where its root is a tree of which it changes nothing.
const RELEASE: &str = "release";
/// In the node's directory, where its root is a layer over a tree.
const SYSTEM: &str = "system";
const AUTHKEY: &str = "etc/pacemaker/authkey";
const CIB: &str = "var/lib/pacemaker/cib/cib.xml";
const FILES: [&str; 4] = ["etc/hosts", "etc/hostname", "etc/corosync/corosync.conf", AUTHKEY];

/// What a node's root is.
pub(super) enum Tree {
    /// A system of another release.
    Release(PathBuf),
    /// A system that this node may change for itself.
    Own(PathBuf),
}

/// Notes for every boot of a node what its root is.
pub(super) fn choose(node: &Path, tree: &Tree) -> anyhow::Result<()> {
    let (name, system) = match tree {
        Tree::Release(system) => (RELEASE, system),
        Tree::Own(system) => (SYSTEM, system),
    };
    let system = fs::canonicalize(system)
        .with_context(|| format!("{} is missing: run tests/roots.sh", system.display()))?;
    let _former = fs::remove_file(node.join(name));
    Ok(symlink(system, node.join(name))?)
}

/// The tree of this node, if it has one.
pub(super) fn of(node: &Path) -> Option<Tree> {
    let at = |name: &str| fs::canonicalize(node.join(name)).ok();
    at(RELEASE).map(Tree::Release).or_else(|| at(SYSTEM).map(Tree::Own))
}

/// Mounts the node's root, and puts there what makes it a node of this lab; gives where it is.
pub(super) fn lay_out(system: &Path, node: &Path) -> anyhow::Result<PathBuf> {
    let [root, upper, work] = ["root", "upper", "work"].map(|name| node.join(name));
    for directory in [&root, &upper, &work] {
        fs::create_dir_all(directory)?;
    }
    let layers =
        format!("lowerdir={},upperdir={},workdir={}", system.display(), upper.display(), work.display());
    mount(Some("overlay"), &root, Some("overlay"), MsFlags::empty(), Some(layers.as_str()))
        .with_context(|| format!("overlay over {}", system.display()))?;
    for file in FILES {
        copy(&node.join(file), &root.join(file))?;
    }
    if !root.join(CIB).exists() {
        copy(&node.join("var-lib/pacemaker/cib/cib.xml"), &root.join(CIB))?;
    }
    copy(&std::env::current_exe()?, &root.join("usr/sbin").join(parts::POWER_AGENT))?;
    Ok(root)
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to.parent().unwrap_or(to))?;
    fs::copy(from, to).map(drop).with_context(|| format!("{} to {}", from.display(), to.display()))
}

/// Makes `root` the root of this mount namespace, also for processes that enter it.
pub(super) fn enter(root: &Path) -> anyhow::Result<()> {
    ensure!(root.is_absolute(), "{} is not absolute", root.display());
    pivot_root(root, &root.join("mnt"))?;
    std::env::set_current_dir("/")?;
    umount2("/mnt", MntFlags::MNT_DETACH).context("leaving the former root")
}

/// What was laid out with this machine's accounts belongs to those of the node's own system from here on.
pub(super) fn give_to_own_accounts() -> anyhow::Result<()> {
    disk::give_to_cluster(&Path::new("/").join(AUTHKEY))?;
    disk::give_to_cluster(&Path::new("/").join(CIB))
}
