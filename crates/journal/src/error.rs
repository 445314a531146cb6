//! The faults of a journal, each with a message and a machine word.

use std::path::{Path, PathBuf};
use std::{fs, io};

use rusqlite::ErrorCode;

/// What a use of the journal returned.
pub type Done<T = ()> = Result<T, JournalError>;

/// Why the journal could not be used. Every message names the file and says what to do.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another user could write it.
    #[error("others than its owner can change {path} (mode {mode:04o}, owner {owner}): run `chown root: {path}` and `chmod {wanted:04o} {path}`", path = .path.display())]
    Insecure {
        /// The file or directory.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
        /// Its owner's user id.
        owner: u32,
        /// The required bits.
        wanted: u32,
    },
    /// Not a plain file or directory.
    #[error("{path} is not a plain {what} (a symlink, a hard link or something else is in its place): remove it", path = .path.display())]
    NotPlain {
        /// The path.
        path: PathBuf,
        /// `file` or `directory`.
        what: &'static str,
    },
    /// Another program made the file.
    #[error("{path} is not a journal of nova-host-alerter ({reason}): move it away, it was not changed", path = .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What was found instead.
        reason: String,
    },
    /// Another state of this program made the file, or somebody has changed it.
    #[error(
        "{path} has not the tables of this release: wait until `list` of the other one is empty, stop the alerter, remove the journal, then start it",
        path = .path.display()
    )]
    OtherForm {
        /// The file.
        path: PathBuf,
    },
    /// Written by a newer release.
    #[error("{path} has schema {found}, but this release supports only {known}: install the newer release again", path = .path.display())]
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest supported version.
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
    /// Another process locks it for too long.
    #[error("another process has locked {path} for longer than the limit: find it with `fuser {path}`", path = .path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// Its disk hangs.
    #[error("the disk of {path} does not answer: check it, see `dmesg`", path = .path.display())]
    Hung {
        /// The file.
        path: PathBuf,
    },
    /// No room.
    #[error("there is no room for {path}: free space on its file system", path = .path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// It may not be written.
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
        /// SQLite's message or our own.
        reason: String,
    },
    /// The journal does not exist yet.
    #[error("there is no journal at {path}: nothing was marked here yet", path = .path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// There is none at a path that is not the configured one.
    #[error("there is no journal at {path}, and only the configured one is created: correct store, or pass create_store=1", path = .path.display())]
    NotMade {
        /// The file.
        path: PathBuf,
    },
    /// SQLite does not keep the journal as it has to be kept.
    #[error("SQLite does not set {name} to {wanted} for {path} (it answers {found:?}): check the file system", path = .path.display())]
    Setting {
        /// The file.
        path: PathBuf,
        /// The pragma.
        name: &'static str,
        /// Its value.
        wanted: &'static str,
        /// SQLite's answer.
        found: String,
    },
    /// Another alerter has the lock.
    #[error("another nova-host-alerter holds {path} ({holder}): stop it first", path = .path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// The holder, from its own line in the file.
        holder: String,
    },
    /// A transition that is not in the table.
    #[error("a delivery that is {from} cannot become {to}")]
    Transition {
        /// The present state.
        from: &'static str,
        /// The wanted state.
        to: &'static str,
    },
    /// Any other fault of the system.
    #[error("{path}: {source}", path = .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's message.
        source: io::Error,
    },
    /// Any other fault of SQLite.
    #[error("{path}: {source}", path = .path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// SQLite's message.
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
            Self::OtherForm { .. } => "other-form",
            Self::NewerSchema { .. } => "newer-schema",
            Self::SqliteTooOld { .. } => "sqlite-too-old",
            Self::Busy { .. } => "busy",
            Self::Hung { .. } => "hung",
            Self::Full { .. } => "full",
            Self::ReadOnly { .. } => "read-only",
            Self::Damaged { .. } => "damaged",
            Self::Missing { .. } | Self::NotMade { .. } => "missing",
            Self::Setting { .. } => "setting",
            Self::Locked { .. } => "locked",
            Self::Transition { .. } => "transition",
            Self::Io { .. } | Self::Sqlite { .. } => "io",
        }
    }

    /// Whether the fault may pass by itself: no room, a lock, a file system that cannot be written at the moment.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Full { .. } | Self::Busy { .. } | Self::Hung { .. } | Self::ReadOnly { .. })
    }

    /// Turns SQLite's error into one that an operator can act on.
    pub(crate) fn sqlite(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) if hangs(&path) => Self::Hung { path },
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

    /// The same for the system's error.
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

/// Whether somebody who has the file open waits in the kernel: then its disk hangs, and no lock is to blame.
fn hangs(path: &Path) -> bool {
    let waits = |process: &Path| {
        let stat = fs::read_to_string(process.join("stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with('D'))
    };
    let name = path.as_os_str().as_encoded_bytes();
    let is_ours = |link: PathBuf| {
        fs::read_link(link).is_ok_and(|to| to.as_os_str().as_encoded_bytes().starts_with(name))
    };
    let all =
        |directory: &Path| fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    all(Path::new("/proc"))
        .filter(|process| waits(process))
        .any(|process| all(&process.join("fd")).any(is_ours))
}
