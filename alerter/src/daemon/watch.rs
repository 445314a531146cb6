//! Wakes the daemon when somebody has written the journal, evidence or the CIB.
//!
//! `IN_CLOSE_WRITE` comes when the agent closes the WAL, after its commit is visible; `IN_MODIFY` would come before.
//! It comes also when the agent is killed after the commit: the kernel closes its files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{io, thread};

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use tokio::sync::Notify;

/// How often a directory is checked if inotify is not available.
const SCAN: Duration = Duration::from_secs(1);

/// Waits for changes in one directory.
#[derive(Debug)]
pub enum Watch {
    /// The kernel reports changes.
    Inotify(Arc<Notify>),
    /// Nothing reports changes: check once a second.
    Scan,
}

impl Watch {
    /// Watches directories.
    pub fn directories(paths: &[PathBuf]) -> Self {
        match inotify(paths) {
            Ok(woken) => Self::Inotify(woken),
            Err(error) => {
                tracing::warn!(%error, "inotify is not available: {paths:?} are checked once a second");
                Self::Scan
            }
        }
    }

    /// Returns when something may have changed. Never misses a change, may report one that is none.
    pub async fn changed(&self) {
        match self {
            Self::Inotify(woken) => woken.notified().await,
            Self::Scan => tokio::time::sleep(SCAN).await,
        }
    }
}

/// A thread that sleeps in the kernel: the runtime takes a file descriptor only through unsafe code.
fn inotify(paths: &[PathBuf]) -> io::Result<Arc<Notify>> {
    let inotify = Inotify::init(InitFlags::IN_CLOEXEC)?;
    let removed = AddWatchFlags::IN_DELETE | AddWatchFlags::IN_MOVED_FROM;
    for path in paths {
        inotify.add_watch(path, AddWatchFlags::IN_CLOSE_WRITE | AddWatchFlags::IN_MOVED_TO | removed)?;
    }
    let woken = Arc::new(Notify::new());
    let wake = Arc::clone(&woken);
    thread::Builder::new().name("watch".into()).spawn(move || follow(&inotify, &wake))?;
    Ok(woken)
}

/// The events' content does not matter: the journal is read. An overflow wakes as well.
fn follow(inotify: &Inotify, woken: &Notify) {
    loop {
        match inotify.read_events() {
            Ok(_) | Err(Errno::EINTR) => woken.notify_one(),
            Err(error) => {
                tracing::error!(%error, "inotify failed: the journal is checked once a second");
                thread::sleep(SCAN);
                woken.notify_one();
            }
        }
    }
}

/// Whether the file at a path is still the one that was opened: a journal that was moved, or restored from a backup under a running
/// daemon, must not be written any more.
#[derive(Clone, Debug)]
pub struct Identity {
    path: PathBuf,
    seen: Option<(u64, u64)>,
}

impl Identity {
    /// Remembers which file is there now.
    pub fn of(path: &Path) -> Self {
        Self { seen: stamp(path), path: path.to_owned() }
    }

    /// Whether it is still there.
    pub fn holds(&self) -> bool {
        stamp(&self.path) == self.seen
    }
}

fn stamp(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::symlink_metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_file_is_another_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("marks.db");
        std::fs::write(&path, "a").unwrap();
        let identity = Identity::of(&path);
        assert!(identity.holds());
        std::fs::write(directory.path().join("other"), "b").unwrap();
        std::fs::rename(directory.path().join("other"), &path).unwrap();
        assert!(!identity.holds());
    }

    #[tokio::test]
    async fn a_closed_write_wakes() {
        let directory = tempfile::tempdir().unwrap();
        let watch = Watch::directories(&[directory.path().to_owned()]);
        assert!(matches!(watch, Watch::Inotify(_)));
        std::fs::write(directory.path().join("marks.db-wal"), "frame").unwrap();
        watch.changed().await;
    }
}
