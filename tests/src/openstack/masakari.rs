//! Masakari's own database, read and corrected from outside: its API is slower, and shows less.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::ensure;
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

use super::seed::MAINTAINED;

/// A notification that Masakari has stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Notification {
    /// Masakari's name for it.
    pub uuid: String,
    /// The host, by its name in Masakari.
    pub host: String,
    /// As Masakari stores it: `2026-11-20 15:33:32.000000`, UTC.
    pub generated_time: String,
    /// `event`, `cluster_status`, `host_status`.
    pub payload: Value,
    /// `new`, until an engine takes it up.
    pub status: String,
}

pub(super) fn notifications(room: &Path) -> anyhow::Result<Vec<Notification>> {
    let database = Connection::open_with_flags(path(room), OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    database.busy_timeout(Duration::from_secs(10))?;
    let mut rows = database.prepare(
        "SELECT n.notification_uuid, h.name, n.generated_time, n.payload, n.status
         FROM notifications n JOIN hosts h ON h.uuid = n.source_host_uuid ORDER BY n.id",
    )?;
    let read = rows.query_map((), |row| {
        let payload: String = row.get(3)?;
        Ok(Notification {
            uuid: row.get(0)?,
            host: row.get(1)?,
            generated_time: row.get(2)?,
            payload: serde_json::from_str(&payload).unwrap_or_default(),
            status: row.get(4)?,
        })
    })?;
    Ok(read.collect::<Result<_, _>>()?)
}

pub(super) fn reset(room: &Path) -> anyhow::Result<()> {
    let mut database = writable(room)?;
    let change = database.transaction()?;
    change.execute("DELETE FROM notifications", ())?;
    change.execute("UPDATE hosts SET on_maintenance = (name = ?1)", [MAINTAINED])?;
    Ok(change.commit()?)
}

pub(super) fn maintain(room: &Path, host: &str) -> anyhow::Result<()> {
    let changed = writable(room)?.execute("UPDATE hosts SET on_maintenance = 1 WHERE name = ?1", [host])?;
    ensure!(changed == 1, "Masakari has no host {host}");
    Ok(())
}

fn writable(room: &Path) -> anyhow::Result<Connection> {
    let database = Connection::open_with_flags(path(room), OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    database.busy_timeout(Duration::from_secs(10))?;
    Ok(database)
}

fn path(room: &Path) -> PathBuf {
    room.join("masakari/masakari.db")
}
