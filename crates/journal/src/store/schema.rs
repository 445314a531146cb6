//! The journal's tables, and the check that a file has these and nothing else.
//!
//! Until the first release the schema changes in place. A file with any other table, trigger or view is refused: a
//! planted trigger could rewrite a mark.

use std::path::Path;

use rusqlite::{Connection, Transaction};

use crate::{Done, JournalError};

/// "NHA1" in the header of every journal.
pub(crate) const APPLICATION_ID: i64 = 0x4e48_4131;
/// The only schema so far.
pub(crate) const VERSION: i64 = 1;

/// Name and exact text of every object, in the order of creation. SQLite stores the text as given.
const OBJECTS: [(&str, &str); 37] = [
    (
        "fencing",
        "CREATE TABLE fencing (
  id TEXT NOT NULL PRIMARY KEY, node TEXT NOT NULL, plug TEXT, asked_at INTEGER NOT NULL,
  committed_at INTEGER NOT NULL, seen_by TEXT NOT NULL, origin TEXT NOT NULL, incarnation TEXT,
  given_domain TEXT, given_shared_storage INTEGER, already_down INTEGER, cause TEXT, digest BLOB NOT NULL
) STRICT, WITHOUT ROWID",
    ),
    (
        "mark",
        "CREATE TABLE mark (
  id TEXT NOT NULL PRIMARY KEY, node TEXT NOT NULL COLLATE NOCASE, fqdn TEXT, on_shared_storage INTEGER,
  failure_time INTEGER NOT NULL, generated_time INTEGER NOT NULL, settlement TEXT, settled_at INTEGER,
  source TEXT NOT NULL, incarnation TEXT, standing TEXT NOT NULL, made_by TEXT NOT NULL, made_at INTEGER NOT NULL,
  returned_at INTEGER, return_known_at INTEGER, digest BLOB NOT NULL
) STRICT, WITHOUT ROWID",
    ),
    // Separate from the fencing, which is written once and never changed.
    (
        "folded",
        "CREATE TABLE folded (
  fencing TEXT NOT NULL PRIMARY KEY REFERENCES fencing(id), mark TEXT, rule TEXT, digest BLOB NOT NULL
) STRICT, WITHOUT ROWID",
    ),
    // Which fencings are another controller's, read from the register.
    (
        "imported",
        "CREATE TABLE imported (
  fencing TEXT NOT NULL PRIMARY KEY REFERENCES fencing(id), digest BLOB NOT NULL
) STRICT, WITHOUT ROWID",
    ),
    // Which entries are known to be in which register. It only saves work: a lost row is written again.
    (
        "published",
        "CREATE TABLE published (
  entry TEXT NOT NULL, register TEXT NOT NULL, digest BLOB NOT NULL, PRIMARY KEY (entry, register)
) STRICT, WITHOUT ROWID",
    ),
    (
        "delivery",
        "CREATE TABLE delivery (
  mark TEXT NOT NULL REFERENCES mark(id), route TEXT NOT NULL, state TEXT NOT NULL, body BLOB NOT NULL,
  attempts INTEGER NOT NULL, ambiguous INTEGER NOT NULL, next_due INTEGER NOT NULL, last_at INTEGER,
  last_kind TEXT, last_detail TEXT, reference TEXT, ended_at INTEGER, required INTEGER NOT NULL,
  failure_time INTEGER NOT NULL, released_at INTEGER, step INTEGER, step_limit INTEGER, step_until INTEGER,
  step_left INTEGER, exhausted_at INTEGER, reached INTEGER NOT NULL, targets TEXT NOT NULL, digest BLOB NOT NULL,
  PRIMARY KEY (mark, route)
) STRICT, WITHOUT ROWID",
    ),
    (
        "sighting",
        "CREATE TABLE sighting (
  key TEXT NOT NULL PRIMARY KEY, node TEXT NOT NULL, witness TEXT NOT NULL, operation TEXT, at INTEGER NOT NULL,
  by_human INTEGER NOT NULL, mark TEXT REFERENCES mark(id), rule TEXT, digest BLOB NOT NULL
) STRICT, WITHOUT ROWID",
    ),
    (
        "decision",
        "CREATE TABLE decision (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, mark TEXT REFERENCES mark(id),
  scope TEXT, until INTEGER, at INTEGER NOT NULL, actor TEXT NOT NULL, reason TEXT NOT NULL, here INTEGER,
  digest BLOB NOT NULL
) STRICT",
    ),
    // Separate from the decision, which is written once. It may arrive before the decision.
    (
        "ending",
        "CREATE TABLE ending (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, decision TEXT NOT NULL UNIQUE, at INTEGER NOT NULL, actor TEXT NOT NULL,
  reason TEXT NOT NULL, digest BLOB NOT NULL
) STRICT",
    ),
    (
        "hold",
        "CREATE TABLE hold (
  mark TEXT NOT NULL PRIMARY KEY REFERENCES mark(id), words TEXT NOT NULL, until INTEGER, why TEXT NOT NULL,
  since INTEGER NOT NULL, scope TEXT, decision TEXT
) STRICT, WITHOUT ROWID",
    ),
    (
        "connection",
        "CREATE TABLE connection (
  node TEXT NOT NULL COLLATE NOCASE, incarnation TEXT NOT NULL, digest BLOB NOT NULL, PRIMARY KEY (node, incarnation)
) STRICT, WITHOUT ROWID",
    ),
    (
        "watermark",
        "CREATE TABLE watermark (
  id TEXT NOT NULL PRIMARY KEY, at INTEGER NOT NULL, made_by TEXT NOT NULL, digest BLOB NOT NULL
) STRICT, WITHOUT ROWID",
    ),
    // One row: the routes for which every open mark has its deliveries. It only saves work at a start.
    (
        "served",
        "CREATE TABLE served (
  id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1), routes TEXT NOT NULL, digest BLOB NOT NULL
) STRICT",
    ),
    // One row: the boot in which an alerter last looked at the clock.
    (
        "boot",
        "CREATE TABLE boot (
  one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1), id TEXT NOT NULL, began INTEGER NOT NULL, digest BLOB NOT NULL
) STRICT",
    ),
    (
        "history",
        "CREATE TABLE history (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, event TEXT NOT NULL, mark TEXT, node TEXT,
  route TEXT, outcome TEXT, detail TEXT NOT NULL, actor TEXT NOT NULL, digest BLOB NOT NULL
) STRICT",
    ),
    ("mark_open", "CREATE INDEX mark_open ON mark (node, failure_time) WHERE settlement IS NULL"),
    // Of many open marks and deliveries few need an operator: a query for these reads no other.
    (
        "mark_held",
        "CREATE INDEX mark_held ON mark (failure_time, id)
  WHERE settlement IS NULL AND (fqdn IS NULL OR on_shared_storage IS NULL OR standing IN ('unconfirmed', 'unproven', 'outcome-unknown', 'fenced-again'))",
    ),
    (
        "delivery_parked",
        "CREATE INDEX delivery_parked ON delivery (mark, route, next_due) WHERE state = 'parked'",
    ),
    (
        "delivery_quarantined",
        "CREATE INDEX delivery_quarantined ON delivery (mark, route) WHERE state = 'quarantined'",
    ),
    ("mark_returned", "CREATE INDEX mark_returned ON mark (returned_at) WHERE returned_at IS NOT NULL"),
    // Marks that an operator ended, of hosts that were not seen to come back: they may never have been away.
    (
        "mark_dismissed",
        "CREATE INDEX mark_dismissed ON mark (settled_at) WHERE settlement = 'dismissed' AND returned_at IS NULL",
    ),
    ("mark_node", "CREATE INDEX mark_node ON mark (node, failure_time)"),
    // In the order of sending, with their state, so that they are counted without reading their rows.
    (
        "delivery_waiting",
        "CREATE INDEX delivery_waiting ON delivery (route, failure_time, mark, state) WHERE state IN ('pending', 'parked')",
    ),
    (
        "delivery_due",
        "CREATE INDEX delivery_due ON delivery (route, next_due) WHERE state IN ('pending', 'parked')",
    ),
    (
        "delivery_in_flight",
        "CREATE INDEX delivery_in_flight ON delivery (mark, route, state) WHERE state IN ('in-flight', 'held')",
    ),
    (
        "delivery_tried",
        "CREATE INDEX delivery_tried ON delivery (route, last_at) WHERE last_at IS NOT NULL AND state NOT IN ('acknowledged', 'dismissed', 'cancelled')",
    ),
    ("decision_mark", "CREATE INDEX decision_mark ON decision (mark) WHERE mark IS NOT NULL"),
    ("decision_here", "CREATE INDEX decision_here ON decision (here) WHERE mark IS NULL"),
    // Held, and not by its chain.
    (
        "delivery_kept",
        "CREATE INDEX delivery_kept ON delivery (mark, route) WHERE state = 'held' AND last_kind <> 'chain'",
    ),
    // Everything that decides whether a chain goes on: a pass over every open one reads no row.
    (
        "delivery_chain",
        "CREATE INDEX delivery_chain ON delivery (mark, step, step_limit, step_until, step_left, exhausted_at, state, last_kind)
  WHERE step IS NOT NULL AND state NOT IN ('acknowledged', 'dismissed', 'cancelled')",
    ),
    (
        "delivery_step_until",
        "CREATE INDEX delivery_step_until ON delivery (step_until) WHERE step_until IS NOT NULL AND exhausted_at IS NULL AND state IN ('pending', 'parked', 'held') AND last_kind IS NOT 'chain'",
    ),
    (
        "delivery_exhausted",
        "CREATE INDEX delivery_exhausted ON delivery (mark, route) WHERE exhausted_at IS NOT NULL AND state NOT IN ('acknowledged', 'dismissed', 'cancelled')",
    ),
    ("folded_mark", "CREATE INDEX folded_mark ON folded (mark)"),
    ("sighting_mark", "CREATE INDEX sighting_mark ON sighting (mark)"),
    // Hosts have few of these.
    (
        "history_health",
        "CREATE INDEX history_health ON history (node, seq) WHERE event IN ('healthy', 'unhealthy')",
    ),
    (
        "history_is_kept",
        "CREATE TRIGGER history_is_kept BEFORE UPDATE ON history BEGIN SELECT RAISE(ABORT, 'history is append-only'); END",
    ),
    (
        "fencing_is_kept",
        "CREATE TRIGGER fencing_is_kept BEFORE UPDATE ON fencing BEGIN SELECT RAISE(ABORT, 'a fencing is never changed'); END",
    ),
];

/// Creates every object in an empty database.
pub(crate) fn create(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    for (_, sql) in OBJECTS {
        transaction.execute(sql, [])?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", VERSION)
}

/// Refuses a database that is not exactly ours.
pub(crate) fn check(connection: &Connection, path: &Path) -> Done {
    let sqlite = |e| JournalError::sqlite(path, e);
    let application: i64 =
        connection.pragma_query_value(None, "application_id", |r| r.get(0)).map_err(sqlite)?;
    if application != APPLICATION_ID {
        let reason = "another application's database".to_owned();
        return Err(JournalError::Foreign { path: path.to_owned(), reason });
    }
    let found: i64 = connection.pragma_query_value(None, "user_version", |r| r.get(0)).map_err(sqlite)?;
    if found > VERSION {
        return Err(JournalError::NewerSchema { path: path.to_owned(), found, known: VERSION });
    }
    if objects(connection).map_err(sqlite)? != expected() {
        return Err(JournalError::OtherForm { path: path.to_owned() });
    }
    Ok(())
}

fn expected() -> Vec<(String, String)> {
    let mut all: Vec<_> = OBJECTS.iter().map(|(name, sql)| ((*name).to_owned(), (*sql).to_owned())).collect();
    all.sort();
    all
}

fn objects(connection: &Connection) -> rusqlite::Result<Vec<(String, String)>> {
    // Only SQLite's own objects have no text or a reserved name.
    let mut query = connection.prepare(
        "SELECT name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name",
    )?;
    query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}
