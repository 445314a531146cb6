//! One endpoint over plain HTTP: a driver adds only its message and the meaning of the answer.

use std::time::Duration;

use reqwest::header::{HOST, HeaderMap, HeaderValue};
use reqwest::{Client, Method, RequestBuilder, Response, Url};
use tokio::time::Instant;

use super::client::ClientOptions;
use super::{Fault, fault, page, peer, plain, shown, wire};
use crate::driver::{Failure, Finding, Outcome};
use crate::kept::{Kept, Unusable};

/// What to do about a page for people.
const PAGE: &str = "check url, and whether a proxy wants a sign-in there; if the receiver itself answers in HTML, set html-acknowledges = true";
/// The limit of a check.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// The endpoint of a route.
pub struct Endpoint {
    options: ClientOptions,
    /// The client's url.
    target: Url,
    clients: Kept<Client>,
}

/// An answer.
pub struct Said {
    /// Its status.
    pub status: u16,
    wish: Option<Duration>,
    /// Whether it is a page for people, which acknowledges nothing.
    pub is_page: bool,
    /// The part of its body that came in time.
    pub body: Vec<u8>,
}

impl Said {
    /// Its outcome: each 2xx acknowledges, but for a page for people.
    pub fn outcome(&self) -> Outcome {
        outcome(self.status, self.wish, self.is_page)
    }
}

impl Endpoint {
    /// Makes the client.
    ///
    /// # Errors
    /// The certificates cannot be used.
    pub fn new(options: ClientOptions) -> Result<Self, Unusable> {
        let clients = options.clone().client(shown(&options.url))?;
        let target = options.target();
        Ok(Self { options, target, clients })
    }

    /// The endpoint for people: its query and parts of its path may be a secret.
    pub fn shown(&self) -> String {
        shown(&self.options.url)
    }

    /// Limit of a whole exchange.
    pub fn limit(&self) -> Duration {
        self.options.timeout
    }

    /// Why a request to it has no answer.
    pub(crate) fn fault(&self, error: &reqwest::Error) -> Fault {
        self.at(fault::of(error))
    }

    fn at(&self, fault: Fault) -> Fault {
        fault.at(peer(&self.options.url))
    }

    /// A request to it.
    pub fn request(&self, method: Method) -> RequestBuilder {
        self.ask(method, self.target.clone())
    }

    fn ask(&self, method: Method, target: Url) -> RequestBuilder {
        self.clients.get().request(method, target).header(HOST, authority(&self.options.url))
    }

    /// Sends a request to it, and reads the answer.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn said(&self, request: RequestBuilder) -> Result<Said, Outcome> {
        let end = Instant::now() + self.limit();
        let came =
            wire::came(request.send().await, |_| end).await.map_err(|fault| self.at(fault).outcome())?;
        let is_page = self.minds(came.status) && came.is_page();
        Ok(Said { status: came.status, wish: came.wish, is_page, body: came.body })
    }

    /// The outcome of an answer whose body nobody needs. It is known with the header section, and with the body's first
    /// bytes where these have come.
    pub(crate) async fn outcome(&self, response: &mut Response) -> Outcome {
        match wire::head(response) {
            Ok((status, wish)) => outcome(status, wish, self.minds(status) && wire::is_page(response).await),
            Err(fault) => fault.outcome(),
        }
    }

    /// Whether a page with this status would be mistaken for an acknowledgement.
    fn minds(&self, status: u16) -> bool {
        (200..300).contains(&status) && !self.options.html_acknowledges
    }

    /// What is wrong with the endpoint's answer to a `HEAD` with these headers, which has neither body nor query: it begins nothing
    /// there. `None` if that shows nothing, since messages have a query, or are signed.
    pub async fn reach(&self, headers: HeaderMap, signs: bool) -> Option<Vec<Finding>> {
        let mut target = self.target.clone();
        let lacks_something = signs || target.query().is_some();
        target.set_query(None);
        let request = self.ask(Method::HEAD, target).headers(headers);
        let outcome = match request.timeout(CHECK_INTERVAL.min(self.limit())).send().await {
            Err(error) => self.fault(&error).outcome(),
            Ok(response) => match response.status().as_u16() {
                401 | 403 | 404 if lacks_something => return None,
                // It is there, and takes another method or wants a body.
                405 | 406 | 415 | 501 => return Some(Vec::new()),
                status => {
                    let is_page = self.minds(status) && page::is_one(response.headers(), None);
                    outcome(status, None, is_page)
                }
            },
        };
        let wrong = outcome.failure().filter(|_| !matches!(outcome, Outcome::Rejected(_)));
        let said = |why: &Failure| Failure::new(why.kind, &format!("asked with HEAD: {}", why.detail));
        Some(wrong.map(|why| Finding { host: None, why: said(why) }).into_iter().collect())
    }
}

/// What an answer over plain HTTP means. A page for people in the receiver's place acknowledges nothing.
fn outcome(status: u16, wish: Option<Duration>, is_page: bool) -> Outcome {
    match plain(status, wish) {
        Outcome::Acknowledged { .. } if is_page => Outcome::Unknown(page::failure(PAGE).after(wish)),
        outcome => outcome,
    }
}

/// The url's own host, whatever the TLS name is.
pub(crate) fn authority(url: &Url) -> HeaderValue {
    let host = url.host_str().unwrap_or_default();
    let text = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    HeaderValue::try_from(text).expect("a url's host and port are plain text")
}
