//! How SQLite keeps the journal: set at every open, and each answer checked. Another program may have written the file, as a copy
//! that `VACUUM INTO` made and that somebody put in its place.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension};

use crate::{Done, JournalError, Role};

/// A pragma, its value, and the answer when it is asked for.
type Setting = (&'static str, &'static str, &'static str);

const SETTINGS: [Setting; 5] = [
    ("synchronous", "FULL", "2"),
    ("mmap_size", "0", "0"),
    ("temp_store", "MEMORY", "2"),
    ("cell_size_check", "ON", "1"),
    ("foreign_keys", "ON", "1"),
];
/// The agent and the commands leave the log to the alerter, which moves it into the database at this many pages: half of what
/// the agent tolerates.
const CHECKPOINT: Setting = ("wal_autocheckpoint", "512", "512");
const NO_CHECKPOINT: Setting = ("wal_autocheckpoint", "0", "0");
/// In KiB, which SQLite writes with a minus: a reader reads the whole file once and needs no cache.
const READER_CACHE: Setting = ("cache_size", "-512", "-512");

/// Everything that holds of a connection and changes nothing in the file.
pub(crate) fn configure(connection: &Connection, path: &Path, role: Role) -> Done {
    let alerter = role == Role::Alerter;
    let flags = [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        // Otherwise SQLite compiles a statement again for each value of its limit: a quarter of the alerter's work, measured.
        (DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true),
        (DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !alerter),
    ];
    for (flag, value) in flags {
        connection.set_db_config(flag, value).map_err(|e| JournalError::sqlite(path, e))?;
    }
    let cache = (role == Role::Reader).then_some(READER_CACHE);
    let checkpoint = if alerter { CHECKPOINT } else { NO_CHECKPOINT };
    SETTINGS
        .into_iter()
        .chain(cache)
        .chain([checkpoint])
        .try_for_each(|setting| set(connection, path, setting))
}

/// Only with a log neither side waits for the other: a reader and `fence_mark`. While somebody reads a file that has none, it stays so
/// until the next open; nobody waits for that. To be called once the file is known to be ours.
pub(crate) fn use_wal(connection: &Connection, path: &Path, busy: Duration) -> Done {
    if answer(connection, path, "journal_mode")? == "wal" {
        return Ok(());
    }
    let sqlite = |e| JournalError::sqlite(path, e);
    connection.busy_timeout(Duration::ZERO).map_err(sqlite)?;
    let changed = set(connection, path, ("journal_mode", "wal", "wal"));
    connection.busy_timeout(busy).map_err(sqlite)?;
    match changed {
        Err(JournalError::Busy { .. }) => Ok(()),
        changed => changed,
    }
}

fn set(connection: &Connection, path: &Path, (name, value, wanted): Setting) -> Done {
    connection.pragma_update(None, name, value).map_err(|e| JournalError::sqlite(path, e))?;
    match answer(connection, path, name)? {
        found if found == wanted => Ok(()),
        found => Err(JournalError::Setting { path: path.to_owned(), name, wanted: value, found }),
    }
}

/// SQLite's answer; empty where it knows no such pragma.
fn answer(connection: &Connection, path: &Path, name: &str) -> Done<String> {
    let read = connection.pragma_query_value(None, name, |row| row.get::<_, Value>(0)).optional();
    Ok(match read.map_err(|e| JournalError::sqlite(path, e))? {
        Some(Value::Integer(number)) => number.to_string(),
        Some(Value::Text(text)) => text,
        _ => String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SQLite ignores a pragma that it does not know, and a value that it does not take, without an error.
    #[test]
    fn an_answer_that_is_not_the_wanted_one_is_an_error() {
        let (connection, path) = (Connection::open_in_memory().unwrap(), Path::new("/x/marks.db"));
        for setting in SETTINGS.into_iter().chain([CHECKPOINT, NO_CHECKPOINT, READER_CACHE]) {
            if setting.0 != "mmap_size" {
                set(&connection, path, setting).unwrap();
            }
        }
        for wrong in [("no_such_pragma", "1", "1"), ("journal_mode", "wal", "wal")] {
            assert_eq!(set(&connection, path, wrong).unwrap_err().kind(), "setting", "{wrong:?}");
        }
    }
}
