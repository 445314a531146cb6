//! One alerter for each journal: an exclusive lock on `<journal>.lock`, which names its holder.

use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fmt, process, thread};

use nix::fcntl::{Flock, FlockArg};
use nix::libc::O_NOFOLLOW;

use crate::store::place::Place;
use crate::{Done, JournalError};

/// A killed daemon's programs end within moments; they are awaited this long.
const LEFT_BEHIND: Duration = Duration::from_secs(5);
/// How often the lock is tried.
const RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// The held lock. Dropping it removes the file and releases the lock.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    held: Flock<File>,
}

impl Lock {
    /// Takes the lock of the journal at `journal`, whose directory must exist. If its holder was killed, its remaining
    /// programs, which share the lock, are awaited.
    ///
    /// # Errors
    /// `Locked` names the holder.
    pub fn take(journal: &Path) -> Done<Self> {
        let place = Place::check(journal)?;
        let path = place.beside(".lock");
        let end = Instant::now() + LEFT_BEHIND;
        loop {
            let file = open(&path)?;
            let mut held = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(held) => held,
                Err((file, _)) => {
                    let holder = named(file);
                    if holder.as_ref().is_some_and(Holder::is_alive) || Instant::now() >= end {
                        return Err(locked(path, holder.as_ref()));
                    }
                    thread::sleep(RETRY_INTERVAL);
                    continue;
                }
            };
            // A holder that ended between our open and our lock removed the name: try the new file then.
            if still_named(&held, &path) {
                write_holder(&mut held).map_err(|e| JournalError::io(&path, e))?;
                return Ok(Self { path, held });
            }
        }
    }

    /// The lock file for programs that must end before another daemon begins: the lock is held as long as this file is
    /// open anywhere, unless this `Lock` is dropped.
    ///
    /// # Errors
    /// There is no room for another open file.
    pub fn share(&self) -> std::io::Result<File> {
        self.held.try_clone()
    }

    /// The holder of the lock of the journal at `journal`, if any, from its own line.
    ///
    /// This takes no lock: that could make a starting daemon fail. A process with that id and start time is the one that
    /// wrote the line, and holds the lock as long as it lives.
    ///
    /// # Errors
    /// The place is not safe, or the lock file cannot be read.
    pub fn holder(journal: &Path) -> Done<Option<Holder>> {
        let path = Place::check(journal)?.beside(".lock");
        match fs::read_to_string(&path) {
            Ok(line) => Ok(Holder::parse(&line).filter(Holder::is_alive)),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(JournalError::io(&path, e)),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Before the lock is released: afterwards the name may be another daemon's.
        let _already_gone = fs::remove_file(&self.path);
    }
}

fn open(path: &Path) -> Done<File> {
    let opened = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(O_NOFOLLOW)
        .open(path);
    opened.map_err(|e| JournalError::io(path, e))
}

fn still_named(held: &Flock<File>, path: &Path) -> bool {
    match (held.metadata(), fs::symlink_metadata(path)) {
        (Ok(ours), Ok(named)) => ours.ino() == named.ino() && ours.dev() == named.dev(),
        _ => false,
    }
}

fn write_holder(held: &mut Flock<File>) -> std::io::Result<()> {
    held.set_len(0)?;
    held.rewind()?;
    let id = process::id();
    let start = start_time(&id.to_string()).unwrap_or_else(|| "0".to_owned());
    writeln!(held, "{id} {start}")
}

/// Field 22 of `/proc/PID/stat`: it distinguishes a reused process id. A zombie has none here: it holds no lock any more,
/// although its exit code was not read yet.
fn start_time(pid: &str) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The process name before it may have any characters, also spaces and brackets.
    let (_, after_name) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let gone = matches!(fields.first(), Some(&("Z" | "X")));
    fields.get(19).filter(|_| !gone).map(|field| (*field).to_owned())
}

/// A process that holds a lock, from its line in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its id.
    pub pid: String,
    /// Its start time in the kernel's ticks: an id is reused.
    start: String,
}

impl Holder {
    /// `None` if the line names no process.
    fn parse(line: &str) -> Option<Self> {
        let line: String = line.trim().chars().filter(|c| c.is_ascii_digit() || *c == ' ').take(64).collect();
        let (pid, start) = line.split_once(' ').unwrap_or((&line, ""));
        (!pid.is_empty()).then(|| Self { pid: pid.to_owned(), start: start.to_owned() })
    }

    fn is_alive(&self) -> bool {
        start_time(&self.pid).as_ref() == Some(&self.start)
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.pid, self.start)
    }
}

fn locked(path: PathBuf, holder: Option<&Holder>) -> JournalError {
    let pid = holder.map_or("of unknown id", |holder| &holder.pid);
    let holder = match holder.is_some_and(Holder::is_alive) {
        true => format!("process {pid}"),
        false => format!("programs of the ended process {pid}"),
    };
    JournalError::Locked { path, holder }
}

fn named(mut file: File) -> Option<Holder> {
    let mut text = String::new();
    let _unreadable_is_unknown = file.rewind().and_then(|()| file.read_to_string(&mut text));
    Holder::parse(&text)
}
