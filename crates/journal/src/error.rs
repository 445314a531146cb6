//! What can be wrong with a journal, in one sentence and one machine word.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// Why the journal could not be used. Every sentence names the file and what to do.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Somebody else could write it.
    #[error("{path} could be changed by others than its owner (mode {mode:04o}, owner {owner}): run `chown root: {path}` and `chmod {wanted:04o} {path}`", path = .path.display())]
    Insecure {
        /// The file or directory.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
        /// Its owner's user id.
        owner: u32,
        /// What the bits should be.
        wanted: u32,
    },
    /// Not a plain file or directory.
    #[error("{path} is no plain {what} (a symlink, a hard link or something else stands in its place): remove it", path = .path.display())]
    NotPlain {
        /// The path.
        path: PathBuf,
        /// `file` or `directory`.
        what: &'static str,
    },
    /// A file that this program did not make.
    #[error("{path} is not a journal of nova-host-alerter ({reason}): move it away, it is left untouched", path = .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What was found instead.
        reason: String,
    },
    /// Written by a newer release.
    #[error("{path} has schema {found}, newer than this release knows ({known}): install the newer release again", path = .path.display())]
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest one known here.
        known: i64,
    },
    /// The SQLite in use can lose committed data.
    #[error(
        "SQLite {found} can lose committed marks (fault fixed in 3.51.3): install a newer one, or a nova-host-alerter with SQLite built in"
    )]
    SqliteTooOld {
        /// Its version.
        found: String,
    },
    /// Another process holds it for too long.
    #[error("{path} is locked by another process for longer than the limit: look for a stuck process with `fuser {path}`", path = .path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// No room.
    #[error("there is no room for {path}: free space on its file system", path = .path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// May not be written.
    #[error("{path} cannot be written (read-only file system or missing permission): make it writable for root", path = .path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// SQLite found damage.
    #[error("{path} is damaged ({reason}): keep a copy, then restore or remove it", path = .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// SQLite's or our own word.
        reason: String,
    },
    /// The journal does not exist yet.
    #[error("there is no journal at {path}: nothing was marked here yet", path = .path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// Another alerter holds the lock.
    #[error("{path} is held by another nova-host-alerter ({holder}): end that first", path = .path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// Who holds it, as it wrote itself down.
        holder: String,
    },
    /// A transition that the table does not know.
    #[error("a delivery that is {from} cannot become {to}")]
    Transition {
        /// From where.
        from: &'static str,
        /// Where to.
        to: &'static str,
    },
    /// Any other fault of the system.
    #[error("{path}: {source}", path = .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// Any other fault of SQLite.
    #[error("{path}: {source}", path = .path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// SQLite's word.
        source: rusqlite::Error,
    },
}

impl JournalError {
    /// A stable machine word.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Insecure { .. } => "insecure",
            Self::NotPlain { .. } => "symlink",
            Self::Foreign { .. } => "foreign",
            Self::NewerSchema { .. } => "newer-schema",
            Self::SqliteTooOld { .. } => "sqlite-too-old",
            Self::Busy { .. } => "busy",
            Self::Full { .. } => "full",
            Self::ReadOnly { .. } => "read-only",
            Self::Damaged { .. } => "damaged",
            Self::Missing { .. } => "missing",
            Self::Locked { .. } => "locked",
            Self::Transition { .. } => "transition",
            Self::Io { .. } | Self::Sqlite { .. } => "io",
        }
    }

    /// Whether the fault may pass by itself: no room, a lock, a file system that cannot be written at the moment.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Full { .. } | Self::Busy { .. } | Self::ReadOnly { .. })
    }

    /// Sorts SQLite's answer into what an operator can act on.
    pub(crate) fn sqlite(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path },
            Some(ErrorCode::DiskFull) => Self::Full { path },
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Self::ReadOnly { path },
            Some(ErrorCode::DatabaseCorrupt) => {
                Self::Damaged { path, reason: "SQLite finds it malformed".into() }
            }
            Some(ErrorCode::NotADatabase) => Self::Foreign { path, reason: "no SQLite database".into() },
            _ => Self::Sqlite { path, source },
        }
    }

    /// Sorts the system's answer likewise.
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                Self::Full { path }
            }
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => Self::ReadOnly { path },
            _ => Self::Io { path, source },
        }
    }
}
