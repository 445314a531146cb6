//! Rows that were read: sound ones, and the keys of damaged ones.

use rusqlite::Row;
use rusqlite::types::Value;
use serde::Serialize;

use crate::store::digest;

/// A row whose digest does not fit: never sent, never dropped.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Damage {
    /// The table.
    pub table: &'static str,
    /// The row's key, as far as it is readable.
    pub key: String,
}

/// The separator of mark and route in a delivery's key.
const TO: &str = " to ";

impl Damage {
    /// Of a delivery.
    pub(crate) fn of_delivery(mark: &str, route: &str) -> Self {
        Self { table: "delivery", key: format!("{mark}{TO}{route}") }
    }

    /// The mark and the route of a delivery.
    pub(crate) fn delivery(&self) -> Option<(&str, &str)> {
        self.key.split_once(TO).filter(|_| self.table == "delivery")
    }

    /// The id for commands: the row's key, or its beginning.
    pub fn id(&self) -> &str {
        self.key.split([' ', '/']).next().unwrap_or_default()
    }
}

/// What was read: sound rows, and the keys of damaged ones.
#[derive(Clone, Debug)]
pub struct Rows<T> {
    /// Rows whose digest fits.
    pub sound: Vec<T>,
    /// Rows whose digest does not fit.
    pub damaged: Vec<Damage>,
}

impl<T> Rows<T> {
    /// How many were read, sound or damaged.
    pub fn count(&self) -> usize {
        self.sound.len() + self.damaged.len()
    }
}

/// A row that is readable but damaged.
pub(crate) type Checked<T> = Result<T, Damage>;

/// A row's value, if its digest in column `digest_at` fits its columns.
pub(crate) fn checked<T>(
    row: &Row<'_>,
    (table, digest_at): (&'static str, usize),
    read: Option<T>,
    columns: impl FnOnce(&T) -> Vec<Value>,
) -> Checked<T> {
    let kept: Option<Vec<u8>> = row.get(digest_at).ok();
    read.filter(|value| kept.is_some_and(|kept| kept == digest::of_row(table, &columns(value))))
        .ok_or_else(|| Damage { table, key: printable_key(row) })
}

/// The first column in printable form: a damaged key may have any bytes.
pub(crate) fn printable_key(row: &Row<'_>) -> String {
    let key: String = row.get(0).unwrap_or_default();
    key.chars().filter(char::is_ascii_graphic).take(64).collect()
}

/// A raw text: damage may have made it none.
pub(crate) fn raw_text(row: &Row<'_>, column: usize) -> rusqlite::Result<Vec<u8>> {
    Ok(row.get_ref(column)?.as_bytes().unwrap_or_default().to_vec())
}
