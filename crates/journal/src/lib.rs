//! The journal: SQLite on each controller, with what this controller knows and the alerter's queue.
//!
//! WAL with `synchronous=FULL`: the only mode that lost no acknowledged mark in the power-loss simulation, at one flush
//! for each mark. The agent never checkpoints when it closes; the alerter does that.
//!
//! [`Agent`] is the part for `fence_mark`; [`Journal`] has that and everything for the alerter and the commands. A
//! statement's module is that of its purpose, and each module uses only those before it: `store` (the file and its rows),
//! `history`, `row` (of a mark), `queue` (deliveries), `intake` (fencings, sightings, marks), `register`, then
//! `retention` and `views` (read only).

mod error;
mod history;
mod intake;
mod queue;
mod register;
mod retention;
mod row;
mod store;
mod views;

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use marks::time::Timestamp;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::geteuid;
use rusqlite::{Connection, OpenFlags, Params, Row, Transaction, TransactionBehavior};
use uuid::Uuid;

pub use error::{Done, JournalError};
pub use history::words::{WORDS, Word, is_word};
pub use history::{HistoryFilter, HistoryRow, NewHistory, Page};
pub use intake::account::key_of;
pub use intake::marks::{PAGE, Position, Resolved, Taken};
pub use intake::sightings::KeptSighting;
pub use queue::attempts::{Dispatched, Ended, Recorded, Verdict};
pub use queue::callbacks::{Callback, Heard, Says};
pub use queue::chains::Advanced;
pub use queue::deliveries::{NewDelivery, SLOWEST, Tried};
pub use queue::due::{Capacity, DueDelivery, RegisterWait};
pub use queue::endings::LeftRoute;
pub use queue::holds::HeldMark;
pub use queue::returns::Over;
pub use retention::{Bounds, Round};
use store::digest::Checked;
pub use store::digest::{Damage, Rows};
pub use store::lock::{Holder, Lock};
use store::place::Place;
pub use views::figures::{Counts, Figures, HeldCount, PASSING};
pub use views::recent::Recent;

/// SQLite before this version can lose committed pages when two connections write and checkpoint at once. If it is not
/// built in, its version is known only at run time. A few older versions were fixed too; they are refused, since they are
/// untested.
const SQLITE_FLOOR: i32 = 3_051_003;
/// A quarter of the shortest time that the fencer gives the agent.
const AGENT_BUSY: Duration = Duration::from_secs(5);
/// Short, because the alerter asks again, and its stop waits for it.
const ALERTER_BUSY: Duration = Duration::from_secs(2);
/// Above this size the agent checkpoints after the mark is safe: without an alerter nothing else does.
const WAL_LIMIT: u64 = 4 << 20;
/// The journal has fewer statements: none is compiled twice.
const STATEMENTS: usize = 128;
/// Less free space than this is too little for a mark.
const ROOM_FLOOR: u64 = 1 << 20;

/// The role of the process that opens the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// `fence_mark`: creates a missing journal, and never checkpoints on close.
    Agent,
    /// The daemon: creates a missing journal, and checkpoints.
    Alerter,
    /// A command that only reads.
    Reader,
}

/// The part of a journal for `fence_mark`.
#[derive(Debug)]
pub struct Agent {
    connection: Connection,
    place: Place,
    role: Role,
}

/// A journal for the alerter and the commands, including everything for the agent.
#[derive(Debug)]
pub struct Journal {
    agent: Agent,
    /// Every fencing was folded when this was the version of other connections' writes, and none was added here since.
    all_folded: Cell<Option<i64>>,
    /// Damaged rows that were quarantined since the last [`Journal::turn`], which returns them.
    met: Vec<Damage>,
}

impl Agent {
    /// Opens the journal at an absolute path, after checking that no other user could have written it, and creates a
    /// missing one.
    ///
    /// # Errors
    /// See [`JournalError`].
    pub fn open(path: &Path) -> Done<Self> {
        Self::open_as(path, Role::Agent)
    }

    /// The same where a missing journal is not created: somebody may have mistyped its path.
    ///
    /// # Errors
    /// See [`JournalError`]; `NotMade` if there is none.
    pub fn open_existing(path: &Path) -> Done<Self> {
        match Place::check(path)? {
            place if place.exists() => Self::open_as(path, Role::Agent),
            place => Err(JournalError::NotMade { path: place.file }),
        }
    }

    fn open_as(path: &Path, role: Role) -> Done<Self> {
        refuse_old_sqlite(rusqlite::version_number())?;
        let place = Place::check(path)?;
        if !place.exists() {
            if role == Role::Reader {
                return Err(JournalError::Missing { path: place.file });
            }
            make(&place)?;
        }
        let sqlite = |e| JournalError::sqlite(&place.file, e);
        let connection = Connection::open_with_flags(&place.file, flags(role)).map_err(sqlite)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        let busy = if role == Role::Alerter { ALERTER_BUSY } else { AGENT_BUSY };
        connection.busy_timeout(busy).map_err(sqlite)?;
        store::settings::configure(&connection, &place.file, role)?;
        for (function, table) in [("fold_digest", "folded"), ("published_digest", "published")] {
            store::digest::add_function(&connection, function, table).map_err(sqlite)?;
        }
        if role != Role::Reader {
            connection.execute_batch(store::stirred::STIRRED).map_err(sqlite)?;
        }
        // The first read creates a missing WAL; the agent syncs its name with each mark.
        store::schema::check(&connection, &place.file)?;
        if role != Role::Reader {
            store::settings::use_wal(&connection, &place.file, busy)?;
        }
        if role == Role::Alerter {
            place.sync(&place.handle()?)?;
        }
        Ok(Self { connection, place, role })
    }

    /// Whether a mark could be written now: the write lock is available, and there is room. Nothing is changed.
    ///
    /// # Errors
    /// `Busy`, `Full` or `ReadOnly`, as a mark would meet it.
    pub fn check_writable(&mut self) -> Done {
        let path = self.place.file.clone();
        self.transaction()?.rollback().map_err(|e| JournalError::sqlite(&path, e))?;
        let room = statvfs(&self.place.directory).map_err(|e| JournalError::io(&path, e.into()))?;
        if room.flags().contains(FsFlags::ST_RDONLY) {
            return Err(JournalError::ReadOnly { path });
        }
        // A file system that does not count inodes reports zero of zero.
        let inodes = room.files() == 0 || room.files_available() > 0;
        let bytes = room.blocks_available().saturating_mul(room.fragment_size());
        if bytes < ROOM_FLOOR || !inodes { Err(JournalError::Full { path }) } else { Ok(()) }
    }

    /// A write transaction that takes the lock at once: a deferred one could fail half way without waiting.
    fn transaction(&mut self) -> Done<Transaction<'_>> {
        let begun = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
        begun.map_err(|e| JournalError::sqlite(&self.place.file, e))
    }

    /// Runs `work` in one write transaction.
    fn write<T>(&mut self, work: impl FnOnce(&Transaction<'_>) -> Wrote<T>) -> Done<T> {
        let path = self.place.file.clone();
        let transaction = self.transaction()?;
        let done = work(&transaction).map_err(|fault| fault.at(&path))?;
        transaction.commit().map_err(|e| JournalError::sqlite(&path, e))?;
        Ok(done)
    }

    /// The same for what is written at a time.
    fn write_at<T>(&mut self, now: Timestamp, work: impl FnOnce(Writing<'_>) -> Wrote<T>) -> Done<T> {
        self.write(|transaction| work(Writing { transaction, now }))
    }

    fn sqlite<T>(&self, result: rusqlite::Result<T>) -> Done<T> {
        result.map_err(|e| JournalError::sqlite(&self.place.file, e))
    }

    /// Reads rows, and separates the damaged ones.
    fn rows<T>(
        &self,
        sql: &str,
        parameters: impl Params,
        decode: impl Fn(&Row<'_>) -> Checked<T>,
    ) -> Done<Rows<T>> {
        let (mut sound, mut damaged) = (Vec::new(), Vec::new());
        self.each(sql, parameters, |row| {
            match decode(row) {
                Ok(row) => sound.push(row),
                Err(damage) => damaged.push(damage),
            }
            Ok(())
        })?;
        Ok(Rows { sound, damaged })
    }

    /// Passes on row after row, for a caller that keeps few of many.
    fn each(&self, sql: &str, parameters: impl Params, mut take: impl FnMut(&Row<'_>) -> Done) -> Done {
        let read = || {
            let mut query = self.connection.prepare_cached(sql)?;
            let mut found = query.query(parameters)?;
            while let Some(row) = found.next()? {
                take(row).map_err(Fault::Journal)?;
            }
            Ok(())
        };
        read().map_err(|fault: Fault| fault.at(&self.place.file))
    }

    /// Reads rows of which nothing has to be checked.
    fn list<T>(
        &self,
        sql: &str,
        parameters: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Done<Vec<T>> {
        let all = || self.connection.prepare_cached(sql)?.query_map(parameters, read)?.collect();
        self.sqlite(all())
    }

    fn wal(&self) -> PathBuf {
        self.place.beside("-wal")
    }

    /// Keeps the WAL bounded without an alerter. The mark is safe already, so a failure does not count for it.
    fn checkpoint_if_large(&self) {
        let large = fs::metadata(self.wal()).is_ok_and(|wal| wal.len() > WAL_LIMIT);
        if large {
            let _best_effort = self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        }
    }
}

impl Journal {
    /// Opens the journal at an absolute path, after checking that no other user could have written it.
    ///
    /// # Errors
    /// See [`JournalError`]; a reader gets `Missing` if nothing was marked yet.
    pub fn open(path: &Path, role: Role) -> Done<Self> {
        let agent = Agent::open_as(path, role)?;
        Ok(Self { agent, all_folded: Cell::new(None), met: Vec::new() })
    }

    /// Whether an alerter could open the journal at an absolute path, or create it there; nothing is created.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub fn check(path: &Path) -> Done {
        let place = Place::check(path)?;
        let file = place.file.clone();
        let room = statvfs(place.nearest()).map_err(|e| JournalError::io(&file, e.into()))?;
        if room.flags().contains(FsFlags::ST_RDONLY) {
            return Err(JournalError::ReadOnly { path: file });
        }
        place.check_room()?;
        // Only root can see into it.
        if !geteuid().is_root() {
            return Ok(());
        }
        match Self::open(path, Role::Reader) {
            Ok(_) | Err(JournalError::Missing { .. } | JournalError::Busy { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The database file, symlinks resolved.
    pub fn path(&self) -> &Path {
        &self.place.file
    }

    /// The directory to watch.
    pub fn directory(&self) -> &Path {
        &self.place.directory
    }

    /// The files' sizes together, in bytes.
    pub fn size(&self) -> u64 {
        ["", "-wal"].iter().filter_map(|s| fs::metadata(self.place.beside(s)).ok()).map(|m| m.len()).sum()
    }

    /// Two numbers that stay the same until the next write: SQLite's `data_version`, which counts other connections'
    /// writes, and the changes through this one.
    ///
    /// # Errors
    /// As any read.
    pub fn version(&self) -> Done<(i64, i64)> {
        let ours = i64::try_from(self.connection.total_changes()).unwrap_or(i64::MAX);
        Ok((self.others_version()?, ours))
    }

    /// A number that stays the same until another connection writes.
    fn others_version(&self) -> Done<i64> {
        self.sqlite(self.connection.pragma_query_value(None, "data_version", |row| row.get(0)))
    }
}

impl Deref for Journal {
    type Target = Agent;

    fn deref(&self) -> &Agent {
        &self.agent
    }
}

impl DerefMut for Journal {
    fn deref_mut(&mut self) -> &mut Agent {
        &mut self.agent
    }
}

/// A write transaction, and the time of what it writes.
#[derive(Clone, Copy)]
struct Writing<'t> {
    transaction: &'t Transaction<'t>,
    now: Timestamp,
}

impl Writing<'_> {
    /// The same for another time.
    fn at(self, now: Timestamp) -> Self {
        Self { now, ..self }
    }
}

impl<'t> Deref for Writing<'t> {
    type Target = Transaction<'t>;

    fn deref(&self) -> &Transaction<'t> {
        self.transaction
    }
}

/// A row of the history: its event, sentence and actor.
type News<'n> = (&'n str, &'n str, &'n str);

/// What a part of a write returned.
type Wrote<T = ()> = Result<T, Fault>;

/// The errors inside a transaction.
enum Fault {
    Sqlite(rusqlite::Error),
    Journal(JournalError),
}

impl Fault {
    fn at(self, path: &Path) -> JournalError {
        match self {
            Self::Sqlite(e) => JournalError::sqlite(path, e),
            Self::Journal(e) => e,
        }
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(e: rusqlite::Error) -> Self {
        Self::Sqlite(e)
    }
}

impl From<JournalError> for Fault {
    fn from(e: JournalError) -> Self {
        Self::Journal(e)
    }
}

fn refuse_old_sqlite(version: i32) -> Done {
    if version >= SQLITE_FLOOR {
        return Ok(());
    }
    let found = format!("{}.{}.{}", version / 1_000_000, version / 1000 % 1000, version % 1000);
    Err(JournalError::SqliteTooOld { found })
}

fn flags(role: Role) -> OpenFlags {
    let access = match role {
        Role::Agent | Role::Alerter => OpenFlags::SQLITE_OPEN_READ_WRITE,
        Role::Reader => OpenFlags::SQLITE_OPEN_READ_ONLY,
    };
    access | OpenFlags::SQLITE_OPEN_NOFOLLOW | OpenFlags::SQLITE_OPEN_NO_MUTEX
}

/// Creates a whole journal under a name of its own and then moves it into place, so that no reader sees half of one.
fn make(place: &Place) -> Done {
    place.make_directory()?;
    let draft = place.beside(&format!(".{}.new", Uuid::now_v7()));
    let made = fill(&draft).and_then(|()| publish(&draft, place));
    for suffix in ["", "-wal", "-shm"] {
        let mut name = draft.clone().into_os_string();
        name.push(suffix);
        let _gone_already = fs::remove_file(name);
    }
    made?;
    place.sync(&place.handle()?)
}

fn fill(draft: &Path) -> Done {
    let sqlite = |e| JournalError::sqlite(draft, e);
    Place::make_file(draft)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let mut connection = Connection::open_with_flags(draft, flags).map_err(sqlite)?;
    store::settings::use_wal(&connection, draft, Duration::ZERO)?;
    store::settings::configure(&connection, draft, Role::Agent)?;
    let filled = (|| {
        let transaction = connection.transaction()?;
        store::schema::create(&transaction)?;
        transaction.commit()?;
        // Closing would move the log into the database as well, but hide a fault: then an empty file would be published.
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
    })();
    filled.map_err(sqlite)?;
    connection.close().map_err(|(_, e)| sqlite(e))
}

/// Gives the draft its name. A name that is there stays: another process was faster, and its journal serves as well. The lock on the
/// directory is for this moment alone; whoever makes a journal there takes it.
fn publish(draft: &Path, place: &Place) -> Done {
    let failed = |e: io::Error| JournalError::io(&place.file, e);
    let turn = Flock::lock(place.handle()?, FlockArg::LockExclusive);
    let _turn = turn.map_err(|(_, errno)| failed(errno.into()))?;
    match fs::symlink_metadata(&place.file) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => fs::rename(draft, &place.file).map_err(failed),
        found => found.map(drop).map_err(failed),
    }
}

#[cfg(test)]
mod tests;
