//! The journal's path, and whether only its owner can write there.
//!
//! Modes are read with `lstat` before SQLite opens a file: opening and closing it here would drop SQLite's POSIX locks of
//! this process.

use std::fs::{self, File, Metadata};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::libc::O_TMPFILE;
use nix::unistd::geteuid;

use crate::{Done, JournalError};

const DIRECTORY_MODE: u32 = 0o711;
const FILE_MODE: u32 = 0o600;
const WRITABLE_BY_OTHERS: u32 = 0o022;
const STICKY: u32 = 0o1000;
/// The lock and the log's files, in bytes.
const START: usize = 64 << 10;

/// A journal's directory and file, checked.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The directory, without symlinks in its ancestors.
    pub(crate) directory: PathBuf,
    /// The database in it.
    pub(crate) file: PathBuf,
}

impl Place {
    /// Checks what is there; nothing is opened or created.
    pub(crate) fn check(path: &Path) -> Done<Self> {
        let place = Self::resolve(path)?;
        let ancestors = place.directory.ancestors().skip(1);
        for ancestor in ancestors.filter(|a| !a.as_os_str().is_empty()) {
            check_ancestor(ancestor)?;
        }
        match lstat(&place.directory)? {
            Some(found) => check_directory(&place.directory, &found)?,
            None => return Ok(place),
        }
        for file in place.files() {
            if let Some(found) = lstat(&file)? {
                check_file(&file, &found)?;
            }
        }
        Ok(place)
    }

    /// Whether the database exists.
    pub(crate) fn exists(&self) -> bool {
        fs::symlink_metadata(&self.file).is_ok()
    }

    /// Whether there is room for what a start writes. It is tried with a file without a name; another fault than no room is no
    /// matter of this.
    pub(crate) fn check_room(&self) -> Done {
        let nameless =
            File::options().write(true).custom_flags(O_TMPFILE).mode(FILE_MODE).open(self.nearest());
        let written = nameless.and_then(|mut file| file.write_all(&[0; START]));
        match written.map_err(|e| JournalError::io(&self.file, e)) {
            Err(full @ JournalError::Full { .. }) => Err(full),
            _ => Ok(()),
        }
    }

    /// The directory, or its path if it is missing.
    pub(crate) fn nearest(&self) -> &Path {
        let above = self.directory.parent().filter(|_| !self.directory.is_dir());
        above.unwrap_or(&self.directory)
    }

    /// Creates a missing directory so that its entry survives a power cut.
    pub(crate) fn make_directory(&self) -> Done {
        let directory = &self.directory;
        match fs::DirBuilder::new().mode(DIRECTORY_MODE).create(directory) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
            Err(e) => return Err(JournalError::io(directory, e)),
        }
        let permissions = fs::Permissions::from_mode(DIRECTORY_MODE);
        fs::set_permissions(directory, permissions).map_err(|e| JournalError::io(directory, e))?;
        sync_directory(directory.parent().unwrap_or(Path::new("/")))
    }

    /// Creates an empty file with the right mode under a unique name.
    pub(crate) fn make_file(file: &Path) -> Done {
        let made = File::options().write(true).create_new(true).mode(FILE_MODE).open(file);
        made.map(drop).map_err(|e| JournalError::io(file, e))
    }

    /// Opens the directory for a later sync: a handle reports faults since it was opened, and a fault that another handle
    /// has reported already is not reported to a new one.
    pub(crate) fn handle(&self) -> Done<File> {
        File::open(&self.directory).map_err(|e| JournalError::io(&self.directory, e))
    }

    /// Syncs the directory, so that the names in it survive a power cut. SQLite does not do it: it would report success
    /// even when that sync fails (`.cargo/config.toml`).
    pub(crate) fn sync(&self, handle: &File) -> Done {
        handle.sync_all().map_err(|e| JournalError::io(&self.directory, e))
    }

    /// Every file that belongs to the journal.
    fn files(&self) -> impl Iterator<Item = PathBuf> + '_ {
        ["", "-wal", "-shm", ".lock"].into_iter().map(|suffix| self.beside(suffix))
    }

    /// The file's name with something behind it.
    pub(crate) fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = self.file.clone().into_os_string();
        name.push(suffix);
        name.into()
    }

    /// Resolves symlinks among the ancestors once, so that the checks and SQLite use the same place.
    fn resolve(path: &Path) -> Done<Self> {
        let invalid = || {
            JournalError::io(
                path,
                io::Error::new(io::ErrorKind::InvalidInput, "not an absolute path of a file"),
            )
        };
        let name = path.file_name().ok_or_else(invalid)?;
        let directory = path.parent().filter(|p| p.is_absolute()).ok_or_else(invalid)?;
        let directory_name = directory.file_name().ok_or_else(invalid)?;
        let above = directory.parent().ok_or_else(invalid)?;
        let above = fs::canonicalize(above).map_err(|e| JournalError::io(above, e))?;
        let directory = above.join(directory_name);
        Ok(Self { file: directory.join(name), directory })
    }
}

fn lstat(path: &Path) -> Done<Option<Metadata>> {
    match fs::symlink_metadata(path) {
        Ok(found) => Ok(still_there(found)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(JournalError::io(path, e)),
    }
}

/// The last connection that closes removes SQLite's two files; one that is removed at this very moment has no name left.
fn still_there(found: Metadata) -> Option<Metadata> {
    (found.nlink() > 0).then_some(found)
}

fn owned_by_us(found: &Metadata) -> bool {
    found.uid() == 0 || found.uid() == geteuid().as_raw()
}

fn insecure(path: &Path, found: &Metadata, wanted: u32) -> JournalError {
    JournalError::Insecure { path: path.to_owned(), mode: found.mode() & 0o7777, owner: found.uid(), wanted }
}

/// An ancestor may be writable by others only if it is sticky, as `/tmp` is: nobody can replace our directory there.
fn check_ancestor(path: &Path) -> Done {
    let found = fs::symlink_metadata(path).map_err(|e| JournalError::io(path, e))?;
    let open = found.mode() & WRITABLE_BY_OTHERS != 0 && found.mode() & STICKY == 0;
    if open || !owned_by_us(&found) { Err(insecure(path, &found, 0o755)) } else { Ok(()) }
}

fn check_directory(path: &Path, found: &Metadata) -> Done {
    if !found.is_dir() {
        return Err(JournalError::NotPlain { path: path.to_owned(), what: "directory" });
    }
    check_owner_and_mode(path, found, DIRECTORY_MODE)
}

fn check_file(path: &Path, found: &Metadata) -> Done {
    // A hard link would be a second name outside of the checked directory.
    if !found.is_file() || found.nlink() != 1 {
        return Err(JournalError::NotPlain { path: path.to_owned(), what: "file" });
    }
    check_owner_and_mode(path, found, FILE_MODE)
}

fn check_owner_and_mode(path: &Path, found: &Metadata, wanted: u32) -> Done {
    let open = found.mode() & WRITABLE_BY_OTHERS != 0;
    if open || !owned_by_us(found) { Err(insecure(path, found, wanted)) } else { Ok(()) }
}

fn sync_directory(directory: &Path) -> Done {
    let synced = File::open(directory).and_then(|handle| handle.sync_all());
    synced.map_err(|e| JournalError::io(directory, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The broken variant takes each number of names but one for a hard link: an agent that starts while another one ends refuses to
    /// mark its host.
    #[test]
    fn a_file_that_is_just_being_removed_is_not_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("marks.db-wal");
        let file = File::create(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let removed = file.metadata().unwrap();
        assert!(check_file(&path, &removed).is_err());
        assert!(still_there(removed).is_none());
        fs::write(&path, "").unwrap();
        fs::hard_link(&path, directory.path().join("other")).unwrap();
        let linked = lstat(&path).unwrap().unwrap();
        assert!(matches!(check_file(&path, &linked), Err(JournalError::NotPlain { .. })));
    }
}
