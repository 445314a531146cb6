//! What all requests and answers have in common.

use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, DATE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{RequestBuilder, Response};
use tokio::time::{Instant, timeout_at};

use super::answer::{self, is_too_large, wish};
use super::fault::Fault;
use super::page::{self, Start};

/// The longest body that is read. A catalog of many regions fits.
pub(crate) const BODY_BYTES: usize = 1024 * 1024;

/// Why a body was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// It did not come in time.
    Late,
    /// The connection ended.
    Broken,
    /// It is longer than [`BODY_BYTES`].
    TooLong,
}

/// The request with its JSON body, if there is one.
pub(crate) fn with_body(request: RequestBuilder, body: Option<&[u8]>) -> RequestBuilder {
    let json = HeaderValue::from_static("application/json");
    let request = request.header(ACCEPT, json.clone());
    match body {
        Some(body) => request.header(CONTENT_TYPE, json).body(body.to_vec()),
        None => request,
    }
}

/// The status and `Retry-After` of an answer, unless its header section is too large.
///
/// # Errors
/// It is too large.
pub(crate) fn head(response: &Response) -> Result<(u16, Option<Duration>), Fault> {
    let headers = response.headers();
    if is_too_large(headers) {
        return Err(Fault::TooLarge);
    }
    Ok((response.status().as_u16(), wish(text(headers, RETRY_AFTER), text(headers, DATE))))
}

/// An answer's `Date`: seconds since the epoch by the endpoint's own clock.
pub(crate) fn date(response: &Response) -> Option<i64> {
    answer::date(text(response.headers(), DATE))
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// How long an answer's first bytes are awaited. They usually come with its header section.
const FIRST_TIME: Duration = Duration::from_millis(100);

/// Whether an answer is a page for people, as far as its first bytes have come. A body that shows what it is ends the wait.
pub(crate) async fn is_page(response: &mut Response) -> bool {
    let end = Instant::now() + FIRST_TIME;
    let mut body = Vec::new();
    let mut is_over = response.content_length() == Some(0);
    while !is_over && page::start(&body) == Start::Unknown {
        match timeout_at(end, response.chunk()).await {
            Ok(Ok(Some(chunk))) => body.extend_from_slice(&chunk),
            Ok(Ok(None)) => is_over = true,
            Ok(Err(_)) | Err(_) => break,
        }
    }
    page::is_one(response.headers(), begun(&body, is_over))
}

/// A body without a byte is empty only if it has ended.
pub(crate) fn begun(body: &[u8], is_over: bool) -> Option<&[u8]> {
    (is_over || !body.is_empty()).then_some(body)
}

/// The part of a body that comes in time, and why the rest is missing if HTTP can say so. Many bodies end with the
/// connection, so their own form must be checked too.
pub(crate) async fn read(mut response: Response, end: Instant) -> (Vec<u8>, Option<Cut>) {
    let mut body = Vec::new();
    loop {
        let cut = match timeout_at(end, response.chunk()).await {
            Ok(Ok(Some(chunk))) if body.len() + chunk.len() <= BODY_BYTES => {
                body.extend_from_slice(&chunk);
                continue;
            }
            Ok(Ok(None)) => None,
            Ok(Ok(Some(_))) => Some(Cut::TooLong),
            Ok(Err(error)) if error.is_timeout() => Some(Cut::Late),
            Ok(Err(_)) => Some(Cut::Broken),
            Err(_) => Some(Cut::Late),
        };
        return (body, cut);
    }
}
