//! Credentials: read again for every attempt, so that a new token is used at once.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use site::text_if;

use crate::web::secret;

/// How we authenticate. It has no secret, only the file's path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// `bearer-file` and `bearer-scheme`.
    Bearer {
        /// The word before the token.
        scheme: String,
        /// The token stands in this file.
        file: PathBuf,
    },
    /// `username` and `password-file`.
    Basic {
        /// Without a colon.
        username: String,
        /// The password stands in this file.
        password_file: PathBuf,
    },
}

impl Credentials {
    /// Reads `bearer-file`; the file's content is checked too.
    ///
    /// # Errors
    /// One sentence, without a secret: the file cannot be read, or its content is wrong.
    pub fn bearer(scheme: &str, file: &str) -> Result<Self, String> {
        let bearer = Self::Bearer { scheme: scheme.to_owned(), file: file.into() };
        bearer.headers().map(|_| bearer)
    }

    /// The header of one attempt.
    ///
    /// # Errors
    /// One sentence, without a secret: the file cannot be read, or its content is wrong.
    pub(super) fn headers(&self) -> Result<HeaderMap, String> {
        let mut value = match self {
            Self::Bearer { scheme, file } => secret::read_with(file, |token| secret::token_of(scheme, token)),
            Self::Basic { username, password_file } => {
                secret::read_with(password_file, |password| basic(username, password))
            }
        }?;
        value.set_sensitive(true);
        Ok(HeaderMap::from_iter([(AUTHORIZATION, value)]))
    }

    /// The file.
    pub(super) fn file(&self) -> &Path {
        match self {
            Self::Bearer { file, .. } | Self::Basic { password_file: file, .. } => file,
        }
    }

    /// The key that names the file.
    pub(super) fn key(&self) -> &'static str {
        match self {
            Self::Bearer { .. } => "bearer-file",
            Self::Basic { .. } => "password-file",
        }
    }
}

/// Reads `bearer-scheme`: a word, as RFC 9110 has it.
pub(super) fn scheme(text: &str) -> Result<String, String> {
    let of_a_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    let is_good = (1..=32).contains(&text.len()) && text.bytes().all(of_a_token);
    text_if(is_good, text, "must be one word, such as \"GenieKey\"")
}

/// Reads `username`.
pub(super) fn username(text: &str) -> Result<String, String> {
    let is_good = !text.is_empty() && !text.contains(|c: char| c == ':' || c.is_control());
    text_if(
        is_good,
        text,
        "the user name must not be empty, and have neither a colon nor a control character",
    )
}

/// Reads `password-file`; the file's content is checked too.
pub(super) fn password_file(file: &str) -> Result<PathBuf, String> {
    secret::read_with(Path::new(file), |password| basic("", password)).map(|_| file.into())
}

fn basic(username: &str, password: &str) -> Result<HeaderValue, String> {
    match password.contains(char::is_control) {
        true => Err("the password must stand on one line".to_owned()),
        false => {
            Ok(HeaderValue::try_from(format!("Basic {}", STANDARD.encode(format!("{username}:{password}"))))
                .expect("base64 is plain text"))
        }
    }
}
