//! What lets us in at an API server: a token, or the client's certificate.

use reqwest::Client;
use reqwest::header::HeaderValue;
use secrecy::{ExposeSecret as _, SecretString};

use crate::web::secret;

/// The client with our certificate, if we have one, and our token.
pub(super) struct Pass {
    /// The client.
    pub(super) client: Client,
    /// The header with the token.
    pub(super) bearer: Option<HeaderValue>,
    /// The token again, because an answer may repeat it; empty if there is none.
    pub(super) token: SecretString,
}

impl Pass {
    /// A pass with this token.
    ///
    /// # Errors
    /// One sentence, without the token.
    pub(super) fn new(client: Client, token: Option<SecretString>) -> Result<Self, String> {
        let bearer = token.as_ref().map(|token| secret::bearer(token.expose_secret())).transpose()?;
        Ok(Self { client, bearer, token: token.unwrap_or_default() })
    }
}
