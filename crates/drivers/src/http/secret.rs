//! Files that hold one secret each.

use std::path::Path;

use secrecy::{ExposeSecret as _, SecretSlice};
use site::{must_be_absolute, read_private};

/// Reads the one line of a file that only its owner can read, without the white space around it. What was read is wiped
/// afterwards.
///
/// # Errors
/// One sentence, without anything that stands in the file.
pub(super) fn read_with<T>(path: &Path, parse: impl FnOnce(&str) -> Result<T, String>) -> Result<T, String> {
    must_be_absolute(path)?;
    let bytes = SecretSlice::from(read_private(path)?);
    let text = std::str::from_utf8(bytes.expose_secret()).map_err(|_| "the file holds no text".to_owned())?;
    match text.trim() {
        "" => Err("the file is empty".to_owned()),
        text => parse(text),
    }
}
