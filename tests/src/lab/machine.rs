//! What a machine must offer for a lab, and the reason where it does not.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};

use super::room::target_directory;

const TOOLS: [&str; 11] = [
    "unshare",
    "nsenter",
    "ip",
    "corosync",
    "corosync-cfgtool",
    "pacemakerd",
    "crm_mon",
    "crmadmin",
    "cibadmin",
    "stonith_admin",
    "crm_resource",
];

/// Everything that a lab needs of the kernel, tried in namespaces that end with the trial.
const TRIAL: &str = "
    mount -t proc proc /proc
    mount -t sysfs sysfs /sys
    mount -t tmpfs tmpfs /tmp
    touch /tmp/file
    chown hacluster:haclient /tmp/file
    mount -t overlay -o lowerdir=/usr/sbin:/usr/bin overlay /usr/sbin
    ip link add name br0 type bridge
    ip link add name v0 type veth peer name v1";

/// Says whether a lab can be booted here.
///
/// # Errors
/// The first thing that is missing, in a few words.
pub fn check() -> anyhow::Result<()> {
    ensure!(nix::unistd::geteuid().is_root(), "not root");
    for tool in TOOLS {
        ensure!(in_path(tool).is_some(), "{tool} is not installed");
    }
    pacemaker_remoted()?;
    let trial = Command::new("unshare")
        .args(["--mount", "--uts", "--ipc", "--net", "--pid", "--fork", "--propagation", "private", "--"])
        .args(["sh", "-ec", TRIAL])
        .stdin(Stdio::null())
        .output()?;
    let complaint = String::from_utf8_lossy(&trial.stderr);
    ensure!(trial.status.success(), "no namespaces: {}", complaint.lines().next().unwrap_or("refused"));
    Ok(())
}

/// The remote daemon: the distribution's where it can be installed beside Pacemaker, else the one that
/// `tests/deps/pacemaker-remoted.sh` put below the target directory.
pub(super) fn pacemaker_remoted() -> anyhow::Result<PathBuf> {
    if let Some(installed) = in_path("pacemaker-remoted") {
        return Ok(installed);
    }
    let fetched = target_directory()?.join("lab-deps/usr/sbin/pacemaker-remoted");
    if !fetched.exists() {
        bail!("pacemaker-remoted is missing: run `make deps`");
    }
    fetched.canonicalize().context("pacemaker-remoted")
}

/// Where a program is that a node would find.
pub(crate) fn in_path(program: &str) -> Option<PathBuf> {
    let directories = super::node::PATH.split(':').map(Path::new);
    directories.map(|directory| directory.join(program)).find(|path| path.exists())
}
