//! The evidence directory, as the alerter uses it: made where it is missing, read as hostile input, emptied of what has
//! been taken in.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use marks::evidence::{Directory, EventName, EvidenceError, OWNER, Reading};
use nix::unistd::{User, chown};

/// A writer that has not ended after this time was killed.
const DRAFT_AGE: Duration = Duration::from_secs(600);

/// Where the evidence of a journal lies.
pub fn directory_of(journal: &Path) -> PathBuf {
    journal.with_file_name("evidence")
}

/// Makes the directory where it is missing and the cluster's user exists, and removes what killed writers left in it.
///
/// # Errors
/// Why it cannot be used, in a sentence.
pub fn prepare(directory: &Path) -> Result<(), String> {
    let Some(owner) = User::from_name(OWNER).map_err(|e| e.to_string())? else {
        return Err(format!("there is no user {OWNER}: Pacemaker is not installed on this controller"));
    };
    if !directory.exists() {
        let made = DirBuilder::new().mode(0o700).create(directory).map_err(|e| e.to_string());
        let owned =
            made.and_then(|()| chown(directory, Some(owner.uid), Some(owner.gid)).map_err(|e| e.to_string()));
        owned.map_err(|why| format!("{} cannot be made: {why}", directory.display()))?;
    }
    let opened = Directory::open(directory, owner.uid);
    opened.and_then(|open| open.remove_drafts(DRAFT_AGE)).map(drop).map_err(|e| e.to_string())
}

/// What lies there, and the handle to remove it by.
///
/// # Errors
/// [`EvidenceError`]; `Missing` also where the cluster's user does not exist.
pub(super) fn read(directory: &Path) -> Result<(Directory, Reading), EvidenceError> {
    let missing = || EvidenceError::Missing { path: directory.to_owned() };
    let owner = User::from_name(OWNER).ok().flatten().ok_or_else(missing)?;
    let open = Directory::open(directory, owner.uid)?;
    let reading = open.read_all()?;
    Ok((open, reading))
}

/// Removes a file whose content is in the journal now; what cannot be removed is found known the next time.
pub(super) fn remove(directory: &Directory, name: &EventName) {
    if let Err(error) = directory.remove(name) {
        tracing::warn!(kind = error.kind(), "the evidence {name} is taken in and cannot be removed: {error}");
    }
}
