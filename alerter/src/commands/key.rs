//! The register's key on this controller, as `setup` checks it: people compare its digest; the key itself is never shown.

use std::path::Path;

use marks::register::Register;
use nix::unistd::geteuid;
use serde::Serialize;
use site::{CLUSTER_KEY, own_keys, seal_keys, sealing_file};

/// What can be said of it.
#[derive(Serialize)]
pub(super) struct KeyLine {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    pub(super) message: String,
}

/// The key for the checks, and what is said of it; nothing where a finding says it, and where the register is no cluster's.
pub(super) fn take(config: &Path, register: Register) -> (Option<setup::Key>, Option<KeyLine>) {
    if register == Register::None {
        return (None, None);
    }
    if !geteuid().is_root() {
        let message = "The register's key was not checked: only root can read it.".to_owned();
        return (None, Some(KeyLine { file: None, digest: None, message }));
    }
    let (key, digest) = check(&own_keys(config), Path::new(CLUSTER_KEY));
    let line = key.sealing.clone().zip(digest).map(|(file, digest)| KeyLine {
        message: sentence(&file, &digest),
        file: Some(file),
        digest: Some(digest),
    });
    (Some(key), line)
}

fn sentence(file: &str, digest: &str) -> String {
    let whose = if file == CLUSTER_KEY { "corosync's authkey" } else { file };
    format!("The register's key is {whose}, digest {digest}: it must be the same on every controller.")
}

fn check(own: &Path, cluster: &Path) -> (setup::Key, Option<String>) {
    let (keys, complaints) = seal_keys(own, cluster);
    let sealing = sealing_file(own, cluster).map(|file| file.display().to_string());
    // Also a link to nowhere is something.
    let is_own_there = own.symlink_metadata().is_ok();
    (setup::Key { sealing, complaints, own: own.display().to_string(), is_own_there }, keys.digest())
}

#[cfg(test)]
mod tests {

    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_is_there_is_never_written_over() {
        let dir = tempfile::tempdir().unwrap();
        let (own, none) = (dir.path().join("register.key"), dir.path().join("authkey"));
        let is_there = || check(&own, &none).0.is_own_there;
        assert!(!is_there());
        symlink("nowhere", &own).unwrap();
        assert!(is_there());
    }
}
