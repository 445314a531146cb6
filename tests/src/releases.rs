//! Changes that another release may make to a journal: there is only one so far.

/// The next one: a number, a table and a column more.
pub const NEXT: &str = "CREATE TABLE later (id TEXT NOT NULL PRIMARY KEY) STRICT;
    ALTER TABLE mark ADD COLUMN later TEXT; PRAGMA user_version = 2";
/// And its way back.
pub const BACK: &str = "DROP TABLE later; ALTER TABLE mark DROP COLUMN later; PRAGMA user_version = 1";
