//! Whether this machine has the programs of these servers.

use std::path::PathBuf;

use anyhow::ensure;

use crate::lab::machine::in_path;
use crate::lab::target_directory;

/// Debian's.
const TOOLS: [&str; 4] = ["etcd", "etcdctl", "setpriv", "curl"];
/// What `tests/deps/kubernetes.sh` puts below the target directory.
const BUILT: [&str; 2] = ["kube-apiserver", "kubectl"];

/// Says why this machine cannot run a Kubernetes API server, or `None` if it can.
#[must_use]
pub fn cannot() -> Option<String> {
    check().err().map(|why| format!("{why:#}"))
}

fn check() -> anyhow::Result<()> {
    for tool in TOOLS {
        ensure!(in_path(tool).is_some(), "{tool} is not installed: run `make deps`");
    }
    BUILT.into_iter().try_for_each(|name| program(name).map(drop))
}

/// One of the programs that are built for this.
pub(super) fn program(name: &str) -> anyhow::Result<PathBuf> {
    let path = target_directory()?.join("lab-deps/kubernetes").join(name);
    ensure!(path.is_file(), "{name} is missing: run `tests/deps/kubernetes.sh`");
    Ok(path.canonicalize()?)
}
