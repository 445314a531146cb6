//! What a handler of the API is given, and what it gives back.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use journal::JournalError;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::api::ErrorAnswer;
use crate::state::Shared;

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

    #[cfg(test)]
    pub(super) fn sentence(&self) -> &str {
        &self.1.message
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

impl From<JsonRejection> for Refusal {
    fn from(rejection: JsonRejection) -> Self {
        Self::bad("request", &rejection.body_text())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.0, Json(self.1)).into_response()
    }
}

pub(super) type Answer<T> = Result<Json<T>, Refusal>;

/// A JSON body whose faults come back as our own answer.
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Arc<Shared>> for JsonBody<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &Arc<Shared>) -> Result<Self, Refusal> {
        let late = |_| Refusal::new(StatusCode::REQUEST_TIMEOUT, "timeout", "the body did not come in time");
        let Json(body) = timeout(TIME, Json::from_request(request, state)).await.map_err(late)??;
        Ok(Self(body))
    }
}
