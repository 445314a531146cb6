//! Files that hold one secret each.

use std::path::{Path, PathBuf};

use reqwest::header::HeaderValue;
use secrecy::{ExposeSecret as _, SecretSlice};
use serde_json::{Map, Value};
use site::{Section, must_be_absolute, read_private};

use crate::driver::{Failure, Outcome};

/// A secret for a body: the stored bytes never have it. It is read for every attempt, and put into what is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodySecret {
    /// The key of the configuration that names the file.
    key: &'static str,
    /// Its file.
    file: PathBuf,
    /// Its name in the body.
    name: &'static str,
}

impl BodySecret {
    /// Reads the key; the file's content is checked too.
    pub fn read(table: &mut Section<'_, '_>, key: &'static str, name: &'static str) -> Option<Self> {
        let file = table.text(key, |file| read_with(Path::new(file), |_| Ok(file.into())));
        Some(Self { key, file: file?, name })
    }

    /// Its file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The stored object with the secret in it, ready to be sent.
    ///
    /// # Errors
    /// There is no secret, or no object.
    pub fn within(&self, body: &[u8]) -> Result<Vec<u8>, Outcome> {
        let secret = read_with(&self.file, |text| Ok(Value::from(text)))
            .map_err(|why| Outcome::Refused(Failure::new("credentials", &format!("{}: {why}", self.key))))?;
        let mut all: Map<String, Value> =
            serde_json::from_slice(body).map_err(|_| Outcome::Rejected(Failure::of_others()))?;
        all.insert(self.name.to_owned(), secret);
        Ok(Value::from(all).to_string().into_bytes())
    }
}

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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// What is sent has it, and what is stored and shown has not.
    #[test]
    fn a_secret_is_put_into_what_is_sent_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key");
        let secret = BodySecret { key: "key-file", file: file.clone(), name: "key" };
        let within = |body: &str| secret.within(body.as_bytes()).map_err(|outcome| outcome.words());
        assert_eq!(within("{}"), Err(("refused", "credentials")));
        fs::write(&file, "s3\"kr1t\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(within(r#"{"a":[1]}"#).unwrap(), br#"{"a":[1],"key":"s3\"kr1t"}"#);
        for body in ["", "[]", "null", "{"] {
            assert_eq!(within(body), Err(("rejected", "rejected")), "{body}");
        }
        assert!(!format!("{secret:?}").contains("kr1t"));
    }
}
