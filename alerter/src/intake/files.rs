//! The evidence directory: made where it is missing, read as hostile input, emptied of what was taken in.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::unistd::{Gid, Uid, User, chown, getegid, geteuid};
use pacemaker::evidence::{Directory, EventName, EvidenceError, Known, OWNER, Reading};

/// A writer that has not ended after this time was killed.
const DRAFT_AGE: Duration = Duration::from_secs(600);

/// So many broken files are named: each is a sentence in the log and in `status`.
const NAMED: usize = 10;

/// Whose the directory is: Pacemaker's user's; where there is none, or another one may not be served, one's own.
fn owner() -> Result<(Uid, Gid), Errno> {
    let cluster = User::from_name(OWNER)?.filter(|_| geteuid().is_root());
    Ok(cluster.map_or_else(|| (geteuid(), getegid()), |user| (user.uid, user.gid)))
}

/// Makes the directory where it is missing, and removes what killed writers left in it.
///
/// # Errors
/// Why it cannot be used, in a sentence.
pub fn prepare(directory: &Path) -> Result<(), String> {
    let (user, group) =
        owner().map_err(|e| format!("whether there is the user {OWNER} is not known: {e}"))?;
    if !directory.exists() {
        let made = DirBuilder::new().mode(0o700).create(directory).map_err(|e| e.to_string());
        let owned = made.and_then(|()| chown(directory, Some(user), Some(group)).map_err(|e| e.to_string()));
        owned.map_err(|why| format!("{} cannot be made: {why}", directory.display()))?;
    }
    let opened = Directory::open(directory, user);
    opened.and_then(|open| open.remove_drafts(DRAFT_AGE)).map(drop).map_err(|e| e.to_string())
}

/// The files there, and the handle to remove them by.
///
/// # Errors
/// [`EvidenceError`]
pub(super) fn read(directory: &Path, known: &mut Known) -> Result<(Directory, Reading), EvidenceError> {
    let unknown = |e: Errno| EvidenceError::Io { path: directory.to_owned(), source: e.into() };
    let open = Directory::open(directory, owner().map_err(unknown)?.0)?;
    let reading = open.read_new(known)?;
    Ok((open, reading))
}

/// What is wrong with it: the first broken files by name, the others by their number.
pub(super) fn complaints(reading: &Reading) -> Vec<String> {
    let broken = reading.broken.iter().take(NAMED).map(|broken| {
        format!("the evidence file {} is not used: {}; check it, then remove it", broken.name, broken.flaw)
    });
    let others = reading.broken.len().saturating_sub(NAMED);
    // A round number: each new sentence is a line in the log.
    let others = others.checked_ilog2().map(|power| {
        let round = 1_usize << power;
        format!(
            "at least {round} more evidence files are not used: find out who writes them, and remove them"
        )
    });
    let more =
        reading.more.then(|| "the evidence directory holds more files than are read at once".to_owned());
    broken.chain(others).chain(more).collect()
}

/// Removes a file whose content is in the journal now; one that cannot be removed is recognised the next time.
pub(super) fn remove(directory: &Directory, name: &EventName) {
    if let Err(error) = directory.remove(name) {
        tracing::warn!(
            kind = error.kind(),
            "the evidence file {name} was taken in, but cannot be removed: {error}"
        );
    }
}
