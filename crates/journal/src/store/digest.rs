//! The digest of a row: SQLite does not notice a flipped byte, and a changed host name names the wrong host.

use rusqlite::types::Value;
use rusqlite::{ParamsFromIter, params_from_iter};
use sha2::{Digest as _, Sha256};

/// Collects a row's columns in order. Every column is tagged and has its length, so that no two rows collide.
pub(crate) struct Digest(Sha256);

impl Digest {
    pub(crate) fn of(table: &str) -> Self {
        Self(Sha256::new()).text(table)
    }

    pub(crate) fn text(self, value: &str) -> Self {
        self.column(b't', value.as_bytes())
    }

    pub(crate) fn int(self, value: i64) -> Self {
        self.column(b'i', &value.to_le_bytes())
    }

    pub(crate) fn maybe_text(self, value: Option<&str>) -> Self {
        match value {
            Some(text) => self.text(text),
            None => self.column(b'n', &[]),
        }
    }

    fn value(self, value: &Value) -> Self {
        match value {
            Value::Null => self.column(b'n', &[]),
            Value::Integer(number) => self.int(*number),
            Value::Real(number) => self.column(b'r', &number.to_le_bytes()),
            Value::Text(text) => self.text(text),
            Value::Blob(bytes) => self.column(b'b', bytes),
        }
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.0.finalize().to_vec()
    }

    fn column(mut self, tag: u8, bytes: &[u8]) -> Self {
        self.0.update([tag]);
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }
}

/// The digest of a whole row.
pub(crate) fn of_row(table: &str, columns: &[Value]) -> Vec<u8> {
    columns.iter().fold(Digest::of(table), Digest::value).finish()
}

/// A row with its digest as the last column.
pub(crate) fn with_digest(table: &str, mut columns: Vec<Value>) -> ParamsFromIter<Vec<Value>> {
    columns.push(of_row(table, &columns).into());
    params_from_iter(columns)
}

/// A text column.
pub(crate) fn text(text: &str) -> Value {
    text.to_owned().into()
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
        let ab = Digest::of("x").text("ab").text("c").finish();
        let bc = Digest::of("x").text("a").text("bc").finish();
        assert_ne!(ab, bc);
        assert_ne!(Digest::of("x").maybe_text(None).finish(), Digest::of("x").text("").finish());
        assert_ne!(Digest::of("x").int(1).finish(), Digest::of("y").int(1).finish());
    }
}
