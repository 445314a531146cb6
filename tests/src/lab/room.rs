//! A lab's own directory below the target directory: locked while its owner lives, cleaned up by a later lab if not.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use anyhow::Context;
use nix::fcntl::{Flock, FlockArg};

/// Says that a failure is explained by what is in a room.
const KEPT: &str = "kept";
/// Longer than all tests take, and the analysis of a failure afterwards.
const KEPT_FOR: Duration = Duration::from_secs(24 * 60 * 60);

static LABS_OF_THIS_PROCESS: AtomicU32 = AtomicU32::new(0);

pub(super) struct Room {
    path: PathBuf,
    keep: AtomicBool,
    _lock: Flock<File>,
}

impl Room {
    pub(super) fn new() -> anyhow::Result<Self> {
        Self::below(&target_directory()?.join("lab"))
    }

    fn below(all: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(all)?;
        // A new directory has no lock for a moment: another lab that begins then would take it for a killed owner's.
        let turn = File::create(all.join("turn"))?;
        let _turn = Flock::lock(turn, FlockArg::LockExclusive).map_err(|(_, why)| why)?;
        sweep(all);
        let number = LABS_OF_THIS_PROCESS.fetch_add(1, Ordering::Relaxed);
        let path = all.join(format!("{}-{number}", std::process::id()));
        fs::create_dir(&path).with_context(|| format!("making the lab's directory {}", path.display()))?;
        let _lock = lock(&path)?.context("the new lab's directory is locked by another")?;
        Ok(Self { path, keep: AtomicBool::new(false), _lock })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn keep(&self) {
        self.keep.store(true, Ordering::Relaxed);
        let _only_a_help = File::create(self.path.join(KEPT));
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if !self.keep.load(Ordering::Relaxed) {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

fn lock(room: &Path) -> anyhow::Result<Option<Flock<File>>> {
    let file = File::create(room.join("lock"))?;
    Ok(Flock::lock(file, FlockArg::LockExclusiveNonblock).ok())
}

/// Removes what labs of killed owners left, and logs that were kept for long enough: nobody holds their lock any more.
fn sweep(all: &Path) {
    let rooms = fs::read_dir(all).into_iter().flatten().flatten().map(|entry| entry.path());
    for room in rooms {
        if is_still_kept(&room) {
            continue;
        }
        if let Ok(Some(_lock)) = lock(&room) {
            let _ = fs::remove_dir_all(&room);
        }
    }
}

fn is_still_kept(room: &Path) -> bool {
    let since = fs::metadata(room.join(KEPT)).and_then(|kept| kept.modified());
    since.is_ok_and(|since| SystemTime::now().duration_since(since).is_ok_and(|age| age < KEPT_FOR))
}

/// The target directory that this very program was built into.
pub(crate) fn target_directory() -> anyhow::Result<PathBuf> {
    let exe = std::env::current_exe()?;
    // TARGET/PROFILE/NAME, of a test TARGET/PROFILE/deps/NAME, as cargo lays it out.
    let profile = exe.ancestors().skip(1).find(|directory| directory.file_name() != Some("deps".as_ref()));
    let target = profile.and_then(Path::parent).filter(|target| *target != Path::new("/"));
    target.map(Path::to_owned).with_context(|| format!("{} is in no target directory", exe.display()))
}
