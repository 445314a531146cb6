//! The register's key on this controller, as `setup` checks it: people compare its digest; the key itself is never shown.

use std::path::Path;

use marks::register::Register;
use nix::unistd::geteuid;
use serde::Serialize;
use site::{CLUSTER_KEY, own_keys, seal_keys, sealing_file};

/// What can be said of it.
pub(super) enum Checked {
    /// The register is no cluster's.
    Unneeded,
    /// Only root can read a key, and somebody else asks.
    Unread,
    /// What there is.
    Here { key: setup::Key, digest: Option<String> },
}

/// What `--json` prints.
#[derive(Serialize)]
pub(super) struct KeyLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<&'a str>,
    message: String,
}

impl Checked {
    pub(super) fn take(config: &Path, register: Register) -> Self {
        if register == Register::None {
            Self::Unneeded
        } else if geteuid().is_root() {
            check(&own_keys(config), Path::new(CLUSTER_KEY))
        } else {
            Self::Unread
        }
    }

    pub(super) fn key(&self) -> Option<&setup::Key> {
        match self {
            Self::Unneeded | Self::Unread => None,
            Self::Here { key, .. } => Some(key),
        }
    }

    /// Nothing where a finding says it.
    pub(super) fn line(&self) -> Option<KeyLine<'_>> {
        let (file, digest, message) = match self {
            Self::Unneeded => return None,
            Self::Unread => {
                let message = "The register's key was not checked: only root can read it.";
                (None, None, message.to_owned())
            }
            Self::Here { key, digest } => {
                let (file, digest) = (key.sealing.as_deref()?, digest.as_deref()?);
                (Some(file), Some(digest), sentence(file, digest))
            }
        };
        Some(KeyLine { file, digest, message })
    }
}

impl KeyLine<'_> {
    pub(super) fn sentence(&self) -> &str {
        &self.message
    }
}

fn sentence(file: &str, digest: &str) -> String {
    let whose = if file == CLUSTER_KEY { "corosync's authkey" } else { file };
    format!("The register's key is {whose}, digest {digest}: it must be the same on every controller.")
}

fn check(own: &Path, cluster: &Path) -> Checked {
    let (keys, complaints) = seal_keys(own, cluster);
    let sealing = sealing_file(own, cluster).map(|file| file.display().to_string());
    // Also a link to nowhere is something.
    let is_own_there = own.symlink_metadata().is_ok();
    let key = setup::Key { sealing, complaints, own: own.display().to_string(), is_own_there };
    Checked::Here { key, digest: keys.digest() }
}

#[cfg(test)]
mod tests {

    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_is_there_is_never_written_over() {
        let dir = tempfile::tempdir().unwrap();
        let (own, none) = (dir.path().join("register.key"), dir.path().join("authkey"));
        let is_there = || check(&own, &none).key().unwrap().is_own_there;
        assert!(!is_there());
        symlink("nowhere", &own).unwrap();
        assert!(is_there());
    }
}
