//! The digest of a row: SQLite does not notice a flipped byte, and a changed host name names the wrong host.

use rusqlite::functions::FunctionFlags;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, ParamsFromIter, Row, params_from_iter};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// The digest of a row's columns in order. Every column is tagged and has its length, so that no two rows collide.
pub(crate) fn of_row(table: &str, columns: &[Value]) -> Vec<u8> {
    let mut digest = Sha256::new();
    let mut column = |tag: u8, bytes: &[u8]| {
        digest.update([tag]);
        digest.update((bytes.len() as u64).to_le_bytes());
        digest.update(bytes);
    };
    column(b't', table.as_bytes());
    for value in columns {
        match value {
            Value::Null => column(b'n', &[]),
            Value::Integer(number) => column(b'i', &number.to_le_bytes()),
            Value::Real(number) => column(b'r', &number.to_le_bytes()),
            Value::Text(text) => column(b't', text.as_bytes()),
            Value::Blob(bytes) => column(b'b', bytes),
        }
    }
    digest.finalize().to_vec()
}

/// A row with its digest as the last column.
pub(crate) fn with_digest(table: &str, mut columns: Vec<Value>) -> ParamsFromIter<Vec<Value>> {
    columns.push(of_row(table, &columns).into());
    params_from_iter(columns)
}

/// Lets SQL ignore a row of two columns with a wrong digest.
pub(crate) fn add_function(connection: &Connection, name: &str, table: &'static str) -> rusqlite::Result<()> {
    let flags =
        FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_DIRECTONLY;
    connection
        .create_scalar_function(name, 2, flags, move |call| Ok(of_row(table, &[call.get(0)?, call.get(1)?])))
}

/// A text column.
pub(crate) fn text(text: &str) -> Value {
    text.to_owned().into()
}

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

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Self { sound: Vec::new(), damaged: Vec::new() }
    }
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
    read.filter(|value| kept.is_some_and(|kept| kept == of_row(table, &columns(value))))
        .ok_or_else(|| Damage { table, key: printable_key(row) })
}

/// The first column in printable form: a damaged key may have any bytes.
pub(crate) fn printable_key(row: &Row<'_>) -> String {
    let key = match row.get_ref(0) {
        Ok(ValueRef::Integer(number)) => number.to_string(),
        _ => row.get(0).unwrap_or_default(),
    };
    key.chars().filter(char::is_ascii_graphic).take(64).collect()
}

/// A raw text: damage may have made it none.
pub(crate) fn raw_text(row: &Row<'_>, column: usize) -> rusqlite::Result<Vec<u8>> {
    Ok(row.get_ref(column)?.as_bytes().unwrap_or_default().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Old rows stay sound. The broken variant is a column of another type.
    #[test]
    fn a_row_keeps_its_digest_for_ever() {
        let hex =
            |row: &[Value]| of_row("x", row).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let row = [text("a"), 7.into(), Value::Null, vec![1_u8, 2].into()];
        assert_eq!(hex(&row), "9b1de43d0f3a801c0b6f702368062178192c184761e3ed83a242fd510150c307");
        assert_ne!(hex(&[vec![b'a'].into(), 7.into(), Value::Null, vec![1_u8, 2].into()]), hex(&row));
    }

    #[test]
    fn columns_cannot_run_into_each_other() {
        assert_ne!(of_row("x", &[text("ab"), text("c")]), of_row("x", &[text("a"), text("bc")]));
        assert_ne!(of_row("x", &[Value::Null]), of_row("x", &[text("")]));
        assert_ne!(of_row("x", &[1.into()]), of_row("y", &[1.into()]));
    }
}
