//! Files that hold one secret each.

use std::path::Path;

use reqwest::header::HeaderValue;
use secrecy::{ExposeSecret as _, SecretSlice};
use site::{must_be_absolute, read_private};

/// Reads the one line of a file that only its owner can read, without surrounding white space. The buffer is wiped
/// afterwards.
///
/// # Errors
/// One sentence, without any part of the file.
pub(crate) fn read_with<T>(path: &Path, parse: impl FnOnce(&str) -> Result<T, String>) -> Result<T, String> {
    must_be_absolute(path)?;
    line(read_private(path)?, parse)
}

/// The same of a file's content.
///
/// # Errors
/// As [`read_with`].
pub(crate) fn line<T>(content: Vec<u8>, parse: impl FnOnce(&str) -> Result<T, String>) -> Result<T, String> {
    let bytes = SecretSlice::from(content);
    let text = std::str::from_utf8(bytes.expose_secret()).map_err(|_| "the file holds no text".to_owned())?;
    match text.trim() {
        "" => Err("the file is empty".to_owned()),
        text => parse(text),
    }
}

/// The value of the header `Authorization` for a token. It is hidden where headers are shown.
///
/// # Errors
/// One sentence, without the token.
pub(crate) fn bearer(token: &str) -> Result<HeaderValue, String> {
    token_of("Bearer", token)
}

/// The same with another scheme than `Bearer`.
///
/// # Errors
/// As [`bearer`].
pub(crate) fn token_of(scheme: &str, token: &str) -> Result<HeaderValue, String> {
    let value = token.bytes().all(|b| b.is_ascii_graphic()).then(|| format!("{scheme} {token}"));
    let wrong = || "the token must be one word of printable ASCII".to_owned();
    let mut value = HeaderValue::try_from(value.ok_or_else(wrong)?).map_err(|_| wrong())?;
    value.set_sensitive(true);
    Ok(value)
}
