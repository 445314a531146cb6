//! What all requests and answers have in common.

use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, DATE, HeaderMap, HeaderName, RETRY_AFTER};
use reqwest::{Client, Method, RequestBuilder, Response, Url};
use secrecy::SecretString;
use tokio::time::{Instant, timeout_at};

use super::answer::{self, Answer, is_too_large, wish};
use super::fault::{self, Fault};
use super::page::{self, Start};

/// The longest body that is read. A catalog of many regions fits.
pub(crate) const BODY_BYTES: usize = 1024 * 1024;

/// The type of most bodies.
pub(crate) const JSON: &str = "application/json";

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

/// A request to a service.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask<'a> {
    /// Its method.
    pub(crate) method: &'a Method,
    /// The path behind the service's address, with a slash in front. It is encoded already.
    path: &'a str,
    query: &'a [(&'a str, &'a str)],
    /// The content, and its type.
    body: Option<(&'static str, &'a [u8])>,
    /// The microversion of a service of OpenStack, with its type before it; if unset, the service's oldest.
    pub(crate) version: Option<&'a str>,
}

impl<'a> Ask<'a> {
    /// A question.
    pub(crate) fn get(path: &'a str, query: &'a [(&'a str, &'a str)]) -> Self {
        Self { method: &Method::GET, path, query, body: None, version: None }
    }

    /// A change. `docs/writes.md` lists it.
    pub(crate) fn write(method: &'a Method, path: &'a str, body: &'a [u8]) -> Self {
        Self { method, path, query: &[], body: Some((JSON, body)), version: None }
    }

    /// The same with content of this type.
    pub(crate) fn of_type(self, kind: &'static str) -> Self {
        Self { body: self.body.map(|(_, body)| (kind, body)), ..self }
    }

    /// The same in this microversion.
    pub(crate) fn in_version(self, version: Option<&'a str>) -> Self {
        Self { version, ..self }
    }

    /// The request below the service's address.
    pub(crate) fn to(&self, client: &Client, mut address: Url) -> RequestBuilder {
        address.set_path(&format!("{}{}", address.path().trim_end_matches('/'), self.path));
        if !self.query.is_empty() {
            address.query_pairs_mut().extend_pairs(self.query);
        }
        let request = client.request(self.method.clone(), address).header(ACCEPT, JSON);
        match self.body {
            Some((kind, body)) => request.header(CONTENT_TYPE, kind).body(body.to_vec()),
            None => request,
        }
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
fn begun(body: &[u8], is_over: bool) -> Option<&[u8]> {
    (is_over || !body.is_empty()).then_some(body)
}

/// An answer with its whole header section, and the part of its body that came in time.
pub(crate) struct Came {
    /// The status.
    pub(crate) status: u16,
    /// `Retry-After`.
    pub(crate) wish: Option<Duration>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    /// Why the rest of the body is missing if HTTP can say so. Many bodies end with the connection, so their own form must be
    /// checked too.
    pub(crate) cut: Option<Cut>,
}

impl Came {
    /// Whether it is a page for people.
    pub(crate) fn is_page(&self) -> bool {
        page::is_one(&self.headers, begun(&self.body, self.cut.is_none()))
    }

    /// The same as the answer of a service at this address, which got this token.
    pub(crate) fn answer(self, at: String, secret: SecretString) -> Answer {
        let date = answer::date(text(&self.headers, DATE));
        Answer { status: self.status, wish: self.wish, date, body: self.body, at, secret }
    }
}

/// The answer to what was sent; `end` says of a status until when its body is read.
///
/// # Errors
/// There is none, or its header section is too large.
pub(crate) async fn came(
    sent: reqwest::Result<Response>,
    end: impl FnOnce(u16) -> Instant,
) -> Result<Came, Fault> {
    let response = sent.map_err(|error| fault::of(&error))?;
    let (status, wish) = head(&response)?;
    let headers = response.headers().clone();
    let (body, cut) = read(response, end(status)).await;
    Ok(Came { status, wish, headers, body, cut })
}

async fn read(mut response: Response, end: Instant) -> (Vec<u8>, Option<Cut>) {
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
