//! The `http` driver: the event as one request to an endpoint.

mod credentials;
mod headers;
mod keys;
mod layout;
mod signature;

use std::sync::Arc;
use std::time::Duration;

use marks::id::MarkId;
use marks::mark::Mark;
use marks::time::Timestamp;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, RequestBuilder, Response};
use site::Section;
use tokio::sync::Semaphore;

use crate::driver::{
    About, Beside, Check, Driver, Exchange, Failure, Finding, Kind, Message, Outcome, Step, ends, returns,
    usable,
};
use crate::event::Event;
use crate::kept::{Kept, Unusable};
use crate::web::{self, Endpoint, Said, shown};
use crate::which::Named;

pub use self::credentials::Credentials;
pub use self::keys::Options;
pub use self::layout::Layout;
pub use self::signature::Signing;
use self::signature::SigningKey;

/// The driver in the registry.
pub const KIND: Kind = Kind { word: "http", configure };

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// How much of an answer's body is read, and for how long; no outcome depends on it.
const BODY_BYTES: usize = 64 * 1024;
const BODY_TIME: Duration = Duration::from_secs(2);
/// How many bodies are read at once. An endpoint that does not end them gets its next message after one has ended.
const BODIES: usize = 32;

/// One `http` route.
pub struct Http {
    options: Options,
    endpoint: Endpoint,
    signing_keys: Kept<Arc<[SigningKey]>>,
    bodies: Arc<Semaphore>,
    about: About,
}

impl Http {
    /// Makes the route's client.
    ///
    /// # Errors
    /// The certificates or secrets cannot be used.
    pub fn new(options: Options) -> Result<Self, Unusable> {
        let endpoint = Endpoint::new(options.client.clone())?;
        let files = options.secret_files.clone();
        let signing_keys = Kept::new("secrets", shown(&options.client.url), move |seen| {
            files.iter().for_each(|file| seen.note(file));
            signature::read(&files)
        })?;
        let bodies = Arc::new(Semaphore::new(BODIES));
        let about = About {
            secret_file: options.credentials.as_ref().map(|credentials| credentials.file().to_owned()),
            steps: returns(options.notifies_return),
            ends_each: true,
            confirms_later: options.confirmed_within.is_some(),
            ..About::new(KIND.word, shown(&options.client.url), options.client.timeout)
        };
        Ok(Self { endpoint, signing_keys, bodies, options, about })
    }

    /// The exchange of one attempt, signed in another way if wanted, and the receiver's own answer: for a check of a
    /// receiver.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn ask(&self, message: Message<'_>, signing: Signing) -> Result<Said, Outcome> {
        let authorization = self.authorization().map_err(Outcome::Refused)?;
        self.endpoint.said(self.request(message, signing).headers(authorization)).await
    }

    async fn exchange(&self, message: Message<'_>) -> Result<Outcome, Outcome> {
        let authorization = self.authorization().map_err(Outcome::Refused)?;
        match self.request(message, Signing::Right).headers(authorization).send().await {
            Ok(response) => Ok(self.answered(message.step, response).await),
            Err(error) => Err(self.endpoint.fault(&error).outcome()),
        }
    }

    /// A question begins nothing at the endpoint.
    async fn findings(&self) -> Option<Vec<Finding>> {
        let mut headers = match self.authorization() {
            Ok(authorization) => authorization,
            Err(why) => return Some(vec![Finding { host: None, why }]),
        };
        headers.extend(self.options.headers.clone());
        self.endpoint.reach(headers, !self.options.secret_files.is_empty()).await
    }

    /// The rest of the body is read beside the mark's way.
    async fn answered(&self, step: Step, mut response: Response) -> Outcome {
        let outcome = self.confirmed_later(step, self.endpoint.outcome(&mut response).await);
        let place = tokio::time::timeout(BODY_TIME, Arc::clone(&self.bodies).acquire_owned());
        if let Ok(Ok(place)) = place.await {
            tokio::spawn(async move {
                let _reading = place;
                tokio::time::timeout(BODY_TIME, read_out(response)).await
            });
        }
        outcome
    }

    /// If the receiver confirms a mark later, its answer only says that the message arrived. A return is never confirmed.
    fn confirmed_later(&self, step: Step, outcome: Outcome) -> Outcome {
        match (outcome, self.options.confirmed_within) {
            (Outcome::Acknowledged { .. }, Some(within)) if step == Step::Failure => {
                Outcome::Accepted { within }
            }
            (outcome, _) => outcome,
        }
    }

    /// Without its credentials nothing is sent: an endpoint that accepts everybody would hide that they are missing.
    fn authorization(&self) -> Result<HeaderMap, Failure> {
        let Some(credentials) = &self.options.credentials else { return Ok(HeaderMap::new()) };
        credentials
            .headers()
            .map_err(|why| Failure::new("credentials", &format!("{}: {why}", credentials.key())))
    }

    fn request(&self, message: Message<'_>, signing: Signing) -> RequestBuilder {
        let key = message.key();
        let quoted = HeaderValue::try_from(format!("\"{key}\"")).expect("a quoted key is a header value");
        let signed = signing.headers(&self.signing_keys.get(), &key, message.body, Timestamp::now());
        self.endpoint
            .request(Method::POST)
            .headers(self.options.headers.clone())
            .headers(signed)
            .header(CONTENT_TYPE, "application/json")
            .header(IDEMPOTENCY_KEY, quoted)
            .body(message.body.to_vec())
    }
}

/// Reads a short body to its end, so that the endpoint sees an orderly close. The outcome is known already.
async fn read_out(mut response: Response) {
    let mut left = BODY_BYTES;
    while let Ok(Some(chunk)) = response.chunk().await {
        let Some(rest) = left.checked_sub(chunk.len()) else { return };
        left = rest;
    }
}

impl Driver for Http {
    fn about(&self) -> &About {
        &self.about
    }

    /// What is not shown of it may lead elsewhere.
    fn target(&self) -> String {
        web::target(&self.options.client.url)
    }

    fn body(&self, mark: &Mark) -> Vec<u8> {
        self.options.body.write(Event::of_mark(mark, self.options.time_format))
    }

    fn body_with(&self, mark: &Mark, beside: &Beside<'_>) -> Vec<u8> {
        self.options.body.write(Event::of_mark(mark, self.options.time_format).because(beside.cause))
    }

    fn return_body(&self, mark: &Mark, _sent: &[u8], returned: Timestamp) -> Vec<u8> {
        self.options.body.write(Event::of_return(mark, returned, self.options.time_format))
    }

    fn test_body(&self, id: &MarkId, now: Timestamp) -> Vec<u8> {
        self.options.body.write(Event::of_test(id, now, self.options.time_format))
    }

    fn check<'a>(&'a self, _hosts: &'a [Named]) -> Check<'a> {
        Box::pin(self.findings())
    }

    fn deliver<'a>(&'a self, message: Message<'a>) -> Exchange<'a> {
        ends(self.exchange(message))
    }
}

/// Reads `[http.NAME]`.
fn configure(table: &mut Section<'_, '_>) -> Option<Arc<dyn Driver>> {
    let options = keys::read(table)?;
    usable(table, Http::new(options))
}

#[cfg(test)]
mod tests {
    use reqwest::Url;

    use super::*;

    /// The endpoint is shown to people; its query may be a token.
    #[test]
    fn what_people_see_of_an_endpoint_has_no_query() {
        let url = Url::parse("http://127.0.0.1:8080/v1/x?token=s3kr1t").unwrap();
        let driver = Http::new(Options::to(url)).unwrap();
        assert_eq!(driver.about().endpoint, "http://127.0.0.1:8080/v1/x");
        assert!(!format!("{:?}", &driver as &dyn Driver).contains("s3kr1t"));
    }
}
