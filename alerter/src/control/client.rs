//! A command's end of the control socket.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reqwest::header::HeaderValue;
use reqwest::{Client, Method, StatusCode};
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

/// What the daemon says to a question.
pub type Said<T> = Result<T, ClientError>;

/// A connection to the daemon of one journal.
pub struct Daemon {
    client: Client,
    socket: String,
    operator: Option<HeaderValue>,
    accepted_alone: AtomicBool,
}

impl Daemon {
    /// For a command that only reads.
    pub fn reading(socket: &Path) -> Self {
        Self::patient(socket, "", READING)
    }

    /// Connects when it is asked something, in the name of `operator`.
    pub fn patient(socket: &Path, operator: &str, patience: Duration) -> Self {
        let builder = Client::builder().unix_socket(socket).no_proxy().timeout(patience);
        // No certificates: a unix socket has no TLS, and a host without a store of them must not fail here.
        let client = builder
            .tls_certs_only([])
            .build()
            .expect("a client without TLS roots, proxy and DNS has nothing to fail at");
        let operator = HeaderValue::from_bytes(operator.as_bytes()).ok();
        Self {
            client,
            socket: socket.display().to_string(),
            operator,
            accepted_alone: AtomicBool::new(false),
        }
    }

    /// Asks for something that changes nothing.
    ///
    /// # Errors
    /// Nobody answers, or the daemon refuses.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Said<T> {
        self.ask(Method::GET, path, None::<&()>).await
    }

    /// Asks for a change.
    ///
    /// # Errors
    /// Nobody answers, or the daemon refuses.
    pub async fn post<T: DeserializeOwned>(&self, path: &str, request: &impl Serialize) -> Said<T> {
        self.ask(Method::POST, path, Some(request)).await
    }

    /// Asks for a change of one thing.
    ///
    /// # Errors
    /// Nobody answers, or the daemon refuses.
    pub async fn patch<T: DeserializeOwned>(&self, path: &str, request: &impl Serialize) -> Said<T> {
        self.ask(Method::PATCH, path, Some(request)).await
    }

    /// Whether something that was done stands in this controller's journal and not in the register yet.
    pub fn has_accepted_alone(&self) -> bool {
        self.accepted_alone.load(Ordering::Relaxed)
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Said<T> {
        let silent = |_| ClientError::Silent(self.socket.clone());
        let mut request = self.client.request(method, format!("http://localhost{path}"));
        if let Some(operator) = &self.operator {
            request = request.header(OPERATOR, operator);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = request.send().await.map_err(silent)?;
        if answer.status() == StatusCode::ACCEPTED {
            self.accepted_alone.store(true, Ordering::Relaxed);
        }
        if answer.status().is_success() {
            return answer.json().await.map_err(silent);
        }
        let ErrorAnswer { kind, message } = answer.json().await.map_err(silent)?;
        Err(ClientError::Refused { kind, message })
    }
}
