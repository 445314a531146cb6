//! What Nova's database has of compute services that nobody is behind.

use std::path::Path;
use std::time::Duration;

use anyhow::ensure;
use rusqlite::{Connection, OpenFlags};

/// Has a compute service report, so long ago.
pub(super) fn report(room: &Path, host: &str, ago: Duration) -> anyhow::Result<()> {
    let database = Connection::open_with_flags(room.join("nova/nova.db"), OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    database.busy_timeout(Duration::from_secs(10))?;
    let change = "UPDATE services SET last_seen_up = datetime('now', ?1), updated_at = datetime('now', ?1)
        WHERE host = ?2 AND binary = 'nova-compute'";
    let changed = database.execute(change, [&format!("-{} seconds", ago.as_secs()), host])?;
    ensure!(changed == 1, "Nova has no compute service {host}");
    Ok(())
}
