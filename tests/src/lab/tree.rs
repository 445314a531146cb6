//! A controller whose root is a Debian of its own: a layer of its disk over a tree that the controllers share, so that a package
//! can be installed into it. What is written there stays over a loss of power.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::unistd::pivot_root;

use super::{disk, parts};

/// In the lab's directory, where there is such a tree.
const SYSTEM: &str = "system";
const AUTHKEY: &str = "etc/pacemaker/authkey";
const CIB: &str = "var/lib/pacemaker/cib/cib.xml";
const FILES: [&str; 4] = ["etc/hosts", "etc/hostname", "etc/corosync/corosync.conf", AUTHKEY];

/// Notes for every boot of a controller what its tree is.
pub(super) fn choose(lab: &Path, system: &Path) -> anyhow::Result<()> {
    let system = fs::canonicalize(system).with_context(|| format!("{} is missing", system.display()))?;
    Ok(symlink(system, lab.join(SYSTEM))?)
}

/// The tree of this node, if it has one.
pub(super) fn of(lab: &Path, kind: &str) -> Option<PathBuf> {
    if kind == parts::CONTROLLER { fs::canonicalize(lab.join(SYSTEM)).ok() } else { None }
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

/// Makes `root` the root of this mount namespace, for whoever enters it too. The accounts are those of the tree from here on.
pub(super) fn enter(root: &Path) -> anyhow::Result<()> {
    ensure!(root.is_absolute(), "{} is not absolute", root.display());
    pivot_root(root, &root.join("mnt"))?;
    std::env::set_current_dir("/")?;
    umount2("/mnt", MntFlags::MNT_DETACH)?;
    disk::give_to_cluster(&Path::new("/").join(AUTHKEY))?;
    disk::give_to_cluster(&Path::new("/").join(CIB))
}
