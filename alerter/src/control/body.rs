//! A request's JSON, read strictly and within bounds: what is too much, too slow or not as asked for changes nothing.

use std::sync::Arc;

use axum::body::{Bytes, to_bytes};
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::http::header::CONTENT_LENGTH;
use serde::de::DeserializeOwned;

use super::answer::{Refusal, TIME};
use crate::state::Shared;
use crate::words::plain;

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
    match tokio::time::timeout(TIME, to_bytes(request.into_body(), BYTES)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => Err(Refusal::bad("request", &format!("the body is incomplete, or {too_large}"))),
        Err(_) => {
            let seconds = TIME.as_secs();
            let message = format!("the body did not come within {seconds} s");
            Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "timeout", &message))
        }
    }
}
