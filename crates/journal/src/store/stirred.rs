//! The marks of which something was written that may let their chains go on.

use rusqlite::Transaction;

/// Where it is kept which marks were written: in this connection's memory, and undone with what was undone.
pub(crate) const STIRRED: &str = "CREATE TEMP TABLE stirred (mark TEXT NOT NULL PRIMARY KEY) WITHOUT ROWID";

/// Something was written that may let the mark's chain go on.
pub(crate) fn stir(transaction: &Transaction<'_>, mark: &str) -> rusqlite::Result<()> {
    let sql = "INSERT OR IGNORE INTO temp.stirred VALUES (?1)";
    transaction.prepare_cached(sql)?.execute([mark]).map(drop)
}
