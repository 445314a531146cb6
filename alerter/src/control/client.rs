//! A command's end of the control socket.

use std::path::Path;
use std::time::Duration;

use reqwest::header::HeaderValue;
use reqwest::{Client, Method};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::api::ErrorAnswer;
use super::caller::OPERATOR;

/// What the daemon may take for anything but an exchange with an endpoint.
pub const PATIENCE: Duration = Duration::from_secs(40);

/// The same for a command that only reads, and has the journal to read where the daemon hangs.
pub const READING: Duration = Duration::from_secs(3);

/// Why the daemon could not be asked, or what it answered.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens.
    #[error(
        "the daemon does not answer at {0}: start it (under Pacemaker: `crm_resource --cleanup --resource NAME`), and run this as root"
    )]
    Silent(String),
    /// The daemon refused, with a word and a sentence.
    #[error("{message}")]
    Refused {
        /// The machine word.
        kind: String,
        /// The sentence.
        message: String,
    },
}

impl ClientError {
    /// A word for machines.
    pub fn kind(&self) -> &str {
        match self {
            Self::Silent(_) => "silent",
            Self::Refused { kind, .. } => kind,
        }
    }
}

/// A connection to the daemon of one journal.
pub struct Daemon {
    client: Client,
    socket: String,
}

impl Daemon {
    /// Connects when it is asked something.
    pub fn at(socket: &Path) -> Self {
        Self::patient(socket, PATIENCE)
    }

    /// For a command that only reads.
    pub fn reading(socket: &Path) -> Self {
        Self::patient(socket, READING)
    }

    /// The same with another patience.
    pub fn patient(socket: &Path, patience: Duration) -> Self {
        let builder = Client::builder().unix_socket(socket).no_proxy().timeout(patience);
        // No certificates: a unix socket has no TLS, and a host without a store of them must not fail here.
        let client = builder
            .tls_certs_only([])
            .build()
            .expect("a client without TLS roots, proxy and DNS has nothing to fail at");
        Self { client, socket: socket.display().to_string() }
    }

    /// Asks for something that changes nothing.
    ///
    /// # Errors
    /// Nobody answers, or the daemon refuses.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.ask(Method::GET, path, None::<&()>).await
    }

    /// Asks for a change.
    ///
    /// # Errors
    /// Nobody answers, or the daemon refuses.
    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        request: &impl Serialize,
    ) -> Result<T, ClientError> {
        self.ask(Method::POST, path, Some(request)).await
    }

    /// Asks for a change of one thing, in the name of the person who runs the command.
    ///
    /// # Errors
    /// Nobody answers, or the daemon refuses.
    pub async fn patch<T: DeserializeOwned>(
        &self,
        path: &str,
        operator: &str,
        request: &impl Serialize,
    ) -> Result<T, ClientError> {
        let name = HeaderValue::from_bytes(operator.as_bytes()).ok();
        self.ask_as(Method::PATCH, path, name, Some(request)).await
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<T, ClientError> {
        self.ask_as(method, path, None, body).await
    }

    async fn ask_as<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        operator: Option<HeaderValue>,
        body: Option<&impl Serialize>,
    ) -> Result<T, ClientError> {
        let silent = |_| ClientError::Silent(self.socket.clone());
        let mut request = self.client.request(method, format!("http://localhost{path}"));
        if let Some(operator) = operator {
            request = request.header(OPERATOR, operator);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = request.send().await.map_err(silent)?;
        if answer.status().is_success() {
            return answer.json().await.map_err(silent);
        }
        let ErrorAnswer { kind, message } = answer.json().await.map_err(silent)?;
        Err(ClientError::Refused { kind, message })
    }
}
