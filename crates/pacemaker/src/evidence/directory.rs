//! The directory of evidence: the cluster's user writes it, and root reads it as hostile input.
//!
//! All access goes through one handle of the checked directory: its name may lead elsewhere a moment later.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, Metadata};
use std::io::{self, Read as _, Write as _};
use std::ops::Bound;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat, renameat};
use nix::sys::stat::Mode;
use nix::unistd::{Uid, UnlinkatFlags, unlinkat};

use super::event::{Evidence, Join};
use super::record::{self, EventName, Flaw, MAX_FILE};

const DIRECTORY_MODE: u32 = 0o700;

/// How many entries one reading lists.
const MAX_ENTRIES: usize = 10_000;
/// How many broken entries are read again at each reading, in turn: somebody may have repaired them in place.
const AGAIN: usize = 100;

/// Why the directory could not be used. Every message names it and says what to do.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// Not there.
    #[error("there is no directory {path}: create it for the user who writes evidence, with mode 0700", path = .path.display())]
    Missing {
        /// The directory.
        path: PathBuf,
    },
    /// A symlink or something else.
    #[error("{path} is not a plain directory (a symlink or something else is in its place): remove it", path = .path.display())]
    NotPlain {
        /// The path.
        path: PathBuf,
    },
    /// Somebody else could write it.
    #[error("{path} must belong to user {wanted} alone (now mode {mode:04o}, owner {owner}): run `chown {wanted} {path}` and `chmod 0700 {path}`", path = .path.display())]
    Insecure {
        /// The directory.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
        /// Its owner's user id.
        owner: u32,
        /// The user id that should own it.
        wanted: u32,
    },
    /// No room.
    #[error("there is no room in {path}: free space on its file system", path = .path.display())]
    Full {
        /// The directory.
        path: PathBuf,
    },
    /// Any other fault of the system.
    #[error("{path}: {source}", path = .path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl EvidenceError {
    /// A stable machine word.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "missing",
            Self::NotPlain { .. } => "not-plain",
            Self::Insecure { .. } => "insecure",
            Self::Full { .. } => "full",
            Self::Io { .. } => "io",
        }
    }

    fn io(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                Self::Full { path }
            }
            _ => Self::Io { path, source },
        }
    }

    fn opening(path: &Path, errno: Errno) -> Self {
        match errno {
            Errno::ENOENT => Self::Missing { path: path.to_owned() },
            Errno::ENOTDIR | Errno::ELOOP => Self::NotPlain { path: path.to_owned() },
            _ => Self::io(path, errno.into()),
        }
    }
}

/// The evidence directory, open and checked.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    handle: File,
    owner: Uid,
}

/// The result of one reading.
#[derive(Debug, Default)]
pub struct Reading {
    /// Whole events, in the order of their times.
    pub sound: Vec<Found>,
    /// Nodes that have joined, in the order of their times.
    pub joins: Vec<FoundJoin>,
    /// Broken files, untouched.
    pub broken: Vec<Broken>,
    /// Whether there are more entries than one reading lists.
    pub more: bool,
    /// How many entries were read, not only listed.
    pub read: usize,
}

/// What earlier readings found broken. Each such entry is read once, and then in turn: thousands cost no more than their
/// names.
#[derive(Debug, Default)]
pub struct Known {
    /// By name, with the inode: a file that replaced another is a new one.
    broken: BTreeMap<Vec<u8>, (u64, Broken)>,
    /// How far they were read again.
    turn: Vec<u8>,
}

impl Known {
    /// Those whose turn it is.
    fn due(&mut self) -> BTreeSet<Vec<u8>> {
        let behind = (Bound::Excluded(&self.turn), Bound::Unbounded);
        let due: BTreeSet<Vec<u8>> =
            self.broken.range::<Vec<u8>, _>(behind).take(AGAIN).map(|(name, _)| name.clone()).collect();
        self.turn = due.last().cloned().unwrap_or_default();
        due
    }
}

/// An event and its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The file.
    pub name: EventName,
    /// Its content.
    pub evidence: Evidence,
}

/// A node that has joined, and its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundJoin {
    /// The file.
    pub name: EventName,
    /// Its content.
    pub join: Join,
}

/// An entry that is no event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Its name with everything unprintable escaped.
    pub name: String,
    /// What is wrong with it.
    pub flaw: Flaw,
}

/// Names with their inodes, and whether there are more.
type Listing = (Vec<(Vec<u8>, u64)>, bool);

impl Directory {
    /// Opens a directory that must belong to `owner` alone (mode 0700); its own name must not be a symlink.
    ///
    /// # Errors
    /// [`EvidenceError`]; nothing is made or changed.
    pub fn open(path: &Path, owner: Uid) -> Result<Self, EvidenceError> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let handle = open(path, flags, Mode::empty()).map_err(|e| EvidenceError::opening(path, e))?;
        let directory = Self { path: path.to_owned(), handle: handle.into(), owner };
        let found = directory.handle.metadata().map_err(|e| directory.fault(e))?;
        let mode = found.mode() & 0o7777;
        // The set-group-id bit only sets the group of new files.
        if found.uid() != owner.as_raw() || mode & 0o777 != DIRECTORY_MODE {
            let (owner, wanted) = (found.uid(), owner.as_raw());
            return Err(EvidenceError::Insecure { path: path.to_owned(), mode, owner, wanted });
        }
        Ok(directory)
    }

    /// Writes an event so that its file is whole or missing, and survives a power cut. The same event again replaces its
    /// file.
    ///
    /// # Errors
    /// [`EvidenceError`]; the event may then be there or not, but never in part.
    pub fn write(&self, evidence: &Evidence) -> Result<EventName, EvidenceError> {
        self.put(EventName::of(evidence), &record::encode(evidence))
    }

    /// The same for a node that has joined.
    ///
    /// # Errors
    /// Those of [`Directory::write`].
    pub fn write_join(&self, join: &Join) -> Result<EventName, EvidenceError> {
        self.put(EventName::of_join(join), &record::encode_join(join))
    }

    fn put(&self, name: EventName, bytes: &[u8]) -> Result<EventName, EvidenceError> {
        let draft = name.draft(std::process::id());
        let file = self.make(&draft).map_err(|e| self.fault(e))?;
        let kept = self.keep(&file, &draft, &name, bytes);
        if kept.is_err() {
            let _renamed_or_lost = unlinkat(&self.handle, draft.as_str(), UnlinkatFlags::NoRemoveDir);
        }
        kept.map_err(|e| self.fault(e))?;
        Ok(name)
    }

    fn make(&self, draft: &str) -> io::Result<File> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        Ok(openat(&self.handle, draft, flags, Mode::S_IRUSR | Mode::S_IWUSR)?.into())
    }

    /// The file stays open until it has its name: its close (`IN_CLOSE_WRITE`) wakes the alerter.
    fn keep(&self, mut file: &File, draft: &str, name: &EventName, bytes: &[u8]) -> io::Result<()> {
        file.write_all(bytes)?;
        file.sync_all()?;
        renameat(&self.handle, draft, &self.handle, name.as_str())?;
        self.handle.sync_all()
    }

    /// Reads all events. A broken entry is set apart and disturbs no other; names that begin with a dot are ignored.
    /// Links are not followed, and nothing is awaited, changed or removed.
    ///
    /// # Errors
    /// The directory itself cannot be listed.
    pub fn read_all(&self) -> Result<Reading, EvidenceError> {
        self.read_new(&mut Known::default())
    }

    /// The same, but an entry that is known to be broken is read again only when its turn has come.
    ///
    /// # Errors
    /// The directory itself cannot be listed.
    pub fn read_new(&self, known: &mut Known) -> Result<Reading, EvidenceError> {
        let (names, more) = self.names(|name| !name.starts_with(b"."))?;
        let due = known.due();
        let mut former = std::mem::take(&mut known.broken);
        former.retain(|name, _| !due.contains(name));
        let mut reading = Reading { more, ..Reading::default() };
        for (name, inode) in names {
            let remembered = former.remove(&name).filter(|(same, _)| *same == inode);
            let broken = match remembered {
                Some((_, broken)) => Some(broken),
                None => self.read_one(&name, &mut reading),
            };
            if let Some(broken) = broken {
                reading.broken.push(broken.clone());
                known.broken.insert(name, (inode, broken));
            }
        }
        reading.sound.sort_by(|a, b| a.name.cmp(&b.name));
        reading.joins.sort_by(|a, b| a.name.cmp(&b.name));
        reading.broken.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(reading)
    }

    /// Reads an entry, and returns it if it is broken.
    fn read_one(&self, name: &[u8], reading: &mut Reading) -> Option<Broken> {
        reading.read += 1;
        let flaw = self.read_into(reading, name).err()?;
        Some(Broken { name: name.escape_ascii().to_string(), flaw })
    }

    /// One entry; `None` if it is gone by now.
    fn read_into(&self, reading: &mut Reading, name: &[u8]) -> Result<(), Flaw> {
        let name = std::str::from_utf8(name).ok().and_then(EventName::parse).ok_or(Flaw::Name)?;
        let Some(bytes) = self.read(&name)? else { return Ok(()) };
        if name.is_join() {
            let join = record::decode_join(&name, &bytes)?;
            reading.joins.push(FoundJoin { name, join });
        } else {
            let evidence = record::decode(&name, &bytes)?;
            reading.sound.push(Found { name, evidence });
        }
        Ok(())
    }

    fn read(&self, name: &EventName) -> Result<Option<Vec<u8>>, Flaw> {
        // Without O_NONBLOCK a FIFO would block the alerter forever.
        let flags =
            OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let file: File = match openat(&self.handle, name.as_str(), flags, Mode::empty()) {
            Ok(handle) => handle.into(),
            Err(Errno::ENOENT) => return Ok(None),
            Err(Errno::ELOOP | Errno::ENXIO) => return Err(Flaw::NotPlain),
            Err(_) => return Err(Flaw::Unreadable),
        };
        let found = file.metadata().map_err(|_| Flaw::Unreadable)?;
        self.check(&found)?;
        bounded(file).map(Some)
    }

    fn check(&self, found: &Metadata) -> Result<(), Flaw> {
        if !found.is_file() {
            return Err(Flaw::NotPlain);
        }
        // A link to another user's file would make that file's content evidence.
        if found.uid() != self.owner.as_raw() {
            return Err(Flaw::Owner);
        }
        match found.nlink() {
            0 | 1 => Ok(()),
            _ => Err(Flaw::Linked),
        }
    }

    /// Removes the file of an event that was taken in; a missing one is no error.
    ///
    /// # Errors
    /// It still exists.
    pub fn remove(&self, name: &EventName) -> Result<(), EvidenceError> {
        match unlinkat(&self.handle, name.as_str(), UnlinkatFlags::NoRemoveDir) {
            Ok(()) | Err(Errno::ENOENT) => Ok(()),
            Err(e) => Err(self.fault(e.into())),
        }
    }

    /// Removes files of writers that were killed longer than `age` ago, and returns how many.
    ///
    /// # Errors
    /// The directory cannot be listed, or one of them cannot be removed.
    pub fn remove_drafts(&self, age: Duration) -> Result<usize, EvidenceError> {
        let is_draft = |name: &[u8]| std::str::from_utf8(name).is_ok_and(EventName::is_draft);
        let (names, _) = self.names(is_draft)?;
        let mut removed = 0;
        for (name, _) in names {
            if self.is_older(&name, age) {
                unlinkat(&self.handle, name.as_slice(), UnlinkatFlags::NoRemoveDir)
                    .map_err(|e| self.fault(e.into()))?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    fn is_older(&self, name: &[u8], age: Duration) -> bool {
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let found = openat(&self.handle, name, flags, Mode::empty()).map(File::from);
        let found = found.map_err(io::Error::from).and_then(|file| file.metadata());
        let changed = found.ok().filter(Metadata::is_file).and_then(|found| found.modified().ok());
        changed.and_then(|at| SystemTime::now().duration_since(at).ok()).is_some_and(|since| since >= age)
    }

    /// Up to [`MAX_ENTRIES`] names with their inodes, and whether there are more.
    fn names(&self, wanted: impl Fn(&[u8]) -> bool) -> Result<Listing, EvidenceError> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        // Opened again: a duplicate would continue where the last listing ended.
        let listed: OwnedFd =
            openat(&self.handle, ".", flags, Mode::empty()).map_err(|e| self.fault(e.into()))?;
        let mut names = Vec::new();
        for entry in Dir::from_fd(listed).map_err(|e| self.fault(e.into()))?.iter() {
            let entry = entry.map_err(|e| self.fault(e.into()))?;
            let name = entry.file_name().to_bytes();
            if !wanted(name) {
                continue;
            }
            if names.len() == MAX_ENTRIES {
                return Ok((names, true));
            }
            names.push((name.to_owned(), entry.ino()));
        }
        Ok((names, false))
    }

    fn fault(&self, source: io::Error) -> EvidenceError {
        EvidenceError::io(&self.path, source)
    }
}

/// The content, but never more than one byte above the limit, however the file grows meanwhile.
fn bounded(file: File) -> Result<Vec<u8>, Flaw> {
    let mut bytes = Vec::with_capacity(MAX_FILE + 1);
    file.take(MAX_FILE as u64 + 1).read_to_end(&mut bytes).map_err(|_| Flaw::Unreadable)?;
    Ok(bytes)
}
