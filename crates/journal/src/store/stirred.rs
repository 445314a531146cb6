//! The marks that were written so that their chains may go on.

use rusqlite::Transaction;

/// The list of written marks: in this connection's memory, and undone with a rolled-back transaction.
pub(crate) const STIRRED: &str = "CREATE TEMP TABLE stirred (mark TEXT NOT NULL PRIMARY KEY) WITHOUT ROWID";

/// Something was written so that the mark's chain may go on.
pub(crate) fn stir(transaction: &Transaction<'_>, mark: &str) -> rusqlite::Result<()> {
    let sql = "INSERT OR IGNORE INTO temp.stirred VALUES (?1)";
    transaction.prepare_cached(sql)?.execute([mark]).map(drop)
}
