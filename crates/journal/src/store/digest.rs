//! The digest of a row: SQLite does not notice a flipped byte in a row, and a changed host name names the wrong host.

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

    pub(crate) fn blob(self, value: &[u8]) -> Self {
        self.column(b'b', value)
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

    pub(crate) fn maybe_int(self, value: Option<i64>) -> Self {
        match value {
            Some(number) => self.int(number),
            None => self.column(b'n', &[]),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_cannot_run_into_each_other() {
        let ab = Digest::of("x").text("ab").text("c").finish();
        let bc = Digest::of("x").text("a").text("bc").finish();
        assert_ne!(ab, bc);
        assert_ne!(Digest::of("x").maybe_text(None).finish(), Digest::of("x").text("").finish());
        assert_ne!(Digest::of("x").int(1).finish(), Digest::of("y").int(1).finish());
    }
}
