//! What a handler of the API is given, and what it gives back.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::{Bytes, to_bytes};
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::http::header::CONTENT_LENGTH;
use axum::response::{IntoResponse, Response};
use journal::JournalError;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::api::{self, ErrorAnswer};
use super::caller::Caller;
use crate::state::Shared;
use crate::words::plain;

/// No request's body takes longer to come.
pub(super) const TIME: Duration = Duration::from_secs(10);

/// An answer that is no success.
pub(super) struct Refusal(StatusCode, ErrorAnswer);

impl Refusal {
    pub(super) fn new(status: StatusCode, kind: &str, message: &str) -> Self {
        Self(status, ErrorAnswer { kind: kind.to_owned(), message: message.to_owned() })
    }

    pub(super) fn bad(kind: &str, message: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, kind, message)
    }

    /// What an operator means was not found, while it may stand in a register that was not read since the start.
    pub(super) fn unread() -> Self {
        let message = "this is not known yet: the alerter has not read the register since it started; run this again in some seconds";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "register-unread", message)
    }

    pub(super) fn absent(message: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", message)
    }
}

impl From<JournalError> for Refusal {
    fn from(error: JournalError) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, error.kind(), &error.to_string())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.0, Json(self.1)).into_response()
    }
}

pub(super) type Answer<T> = Result<Json<T>, Refusal>;

/// An operator's request.
pub(super) struct Asked {
    /// Who asks, for the history.
    pub(super) user: String,
    /// Why, for the history; may be empty.
    pub(super) reason: String,
    pub(super) request: api::Request,
}

impl FromRequest<Arc<Shared>> for Asked {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &Arc<Shared>) -> Result<Self, Refusal> {
        let user = request.extensions().get().map(Caller::actor).unwrap_or_default();
        let Strict(request) = Strict::<api::Request>::from_request(request, state).await?;
        Ok(Self { user, reason: plain(&request.reason), request })
    }
}

impl Asked {
    /// Refuses a request without a reason; `why` says what it is for.
    pub(super) fn needs_reason(&self, why: &str) -> Result<(), Refusal> {
        if self.reason.trim().is_empty() { Err(Refusal::bad("reason", why)) } else { Ok(()) }
    }
}

/// No request of the API is larger.
const BYTES: usize = 64 * 1024;

/// A body that is exactly what was asked for.
pub(super) struct Strict<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Arc<Shared>> for Strict<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, _: &Arc<Shared>) -> Result<Self, Refusal> {
        let bytes = whole(request).await?;
        let wrong = |why: serde_json::Error| {
            Refusal::bad("request", &plain(&format!("the body does not fit this request: {why}")))
        };
        serde_json::from_slice(&bytes).map(Self).map_err(wrong)
    }
}

async fn whole(request: Request) -> Result<Bytes, Refusal> {
    let too_large = format!("the body is larger than {BYTES} bytes");
    let length = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: u64| length > BYTES as u64) {
        return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", &too_large));
    }
    match timeout(TIME, to_bytes(request.into_body(), BYTES)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => Err(Refusal::bad("request", &format!("the body is incomplete, or {too_large}"))),
        Err(_) => {
            let seconds = TIME.as_secs();
            let message = format!("the body did not come within {seconds} s");
            Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "timeout", &message))
        }
    }
}
