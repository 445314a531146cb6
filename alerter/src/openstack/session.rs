//! Exchanges with a service of a cloud: a token that is kept, one fetch at a time, and one new token after a 401.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, DATE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Method, RequestBuilder, Response, Url};
use secrecy::ExposeSecret as _;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use super::auth::{self, Token};
use super::catalog::{self, Service};
use super::client;
use super::site::{Cloud, Options};
use super::trouble::{self, Trouble};
use crate::drivers::http::{self, Fault, Files, Kept, Unusable, fault, is_too_large, wish};

const AUTH_TOKEN: HeaderName = HeaderName::from_static("x-auth-token");
const SUBJECT_TOKEN: HeaderName = HeaderName::from_static("x-subject-token");
const API_VERSION: HeaderName = HeaderName::from_static("openstack-api-version");
/// Keystone gets so much of an exchange's time at most.
const TOKEN_TIME: Duration = Duration::from_secs(10);
/// A catalog of many regions fits; more is no answer.
const BODY_BYTES: usize = 1024 * 1024;
/// How long the body of what was taken is read: an acknowledgement does not wait for its rest.
const BODY_TIME: Duration = Duration::from_secs(2);

/// A cloud with the client that speaks with it.
struct Site {
    cloud: Cloud,
    client: Client,
}

/// What is kept of Keystone's answers.
#[derive(Default)]
struct State {
    current: Option<Current>,
    /// How the newest fetch failed, and when: those that waited for it do not try once more, one behind the other.
    failed: Option<(Instant, Trouble)>,
}

struct Current {
    /// Whose it is: a cloud whose files have changed gets another.
    site: Arc<Site>,
    token: Arc<Token>,
    until: Instant,
}

/// A cloud that is spoken with.
pub(crate) struct Session {
    options: Options,
    /// The service that the route's own `endpoint` is for; where unset, every one.
    own: Option<Service>,
    shown: String,
    site: Kept<Arc<Site>>,
    state: Mutex<State>,
}

/// What a service is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask<'a> {
    /// How.
    pub(crate) method: &'a Method,
    /// What, behind the service's address; it begins with a slash.
    pub(crate) path: &'a str,
    /// Which of it.
    pub(crate) query: &'a [(&'a str, &'a str)],
    /// With what; JSON.
    pub(crate) body: Option<&'a [u8]>,
    /// In which microversion, with the service's type before it; where unset, the service's oldest.
    pub(crate) version: Option<&'a str>,
}

impl<'a> Ask<'a> {
    /// A look at something.
    pub(crate) fn get(path: &'a str, query: &'a [(&'a str, &'a str)]) -> Self {
        Self { method: &Method::GET, path, query, body: None, version: None }
    }
}

/// What it answered, whole to the end of its header section.
pub(crate) struct Answer {
    /// The status.
    pub(crate) status: u16,
    /// How long it asks to be left alone.
    pub(crate) wish: Option<Duration>,
    /// What came of the body.
    pub(crate) body: Vec<u8>,
    /// What the service was shown, so that nobody repeats it.
    token: Arc<Token>,
}

impl Session {
    /// Reads the cloud's files and makes its client.
    ///
    /// # Errors
    /// They cannot be used.
    pub(crate) fn new(options: Options) -> Result<Self, Unusable> {
        let cloud = Cloud::read(&options)?;
        let shown = format!("cloud {} at {}", cloud.name, people(&cloud.token_url));
        let files = Files { what: "files", endpoint: shown.clone(), paths: cloud.files() };
        let again = options.clone();
        let site = Kept::new(files, move || {
            let cloud = Cloud::read(&again)?;
            Ok(Arc::new(Site { client: client::build(&cloud, &again)?, cloud }))
        })?;
        Ok(Self { options, own: None, shown, site, state: Mutex::default() })
    }

    /// The same, where the route's `endpoint` is that of this service alone, and others are asked too.
    pub(crate) fn mainly(self, own: Service) -> Self {
        Self { own: Some(own), ..self }
    }

    /// The cloud for people.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// Limit of a whole exchange.
    pub(crate) fn limit(&self) -> Duration {
        self.options.timeout
    }

    /// What endangers the exchanges with `endpoint`, one sentence each.
    pub(crate) fn warnings(&self, endpoint: &str) -> Vec<String> {
        let sentence = "insecure = true: anybody on the way can read the password and forge the answers of";
        let warning = || format!("{sentence} {endpoint}: set cacert in the cloud's file instead");
        self.options.insecure.then(warning).into_iter().collect()
    }

    /// One exchange with a service until `end`. After a 401 there is one new token and one repetition: the service has
    /// taken nothing then.
    ///
    /// # Errors
    /// There is no answer.
    pub(crate) async fn send(
        &self,
        service: &Service,
        ask: &Ask<'_>,
        end: Instant,
    ) -> Result<Answer, Trouble> {
        let site = self.site.get();
        let token = self.token(&site, end, None).await?;
        let answer = self.once(&site, &token, service, ask, end).await;
        if leads_nowhere(&answer) {
            self.forget().await;
        }
        let answer = answer?;
        if answer.status != 401 {
            return Ok(answer);
        }
        let token = self.token(&site, end, Some(&token)).await?;
        self.once(&site, &token, service, ask, end).await
    }

    /// Whether there is a token, and the catalog has the service where it may be spoken with. The service is asked nothing.
    ///
    /// # Errors
    /// There is none, or it has not.
    pub(crate) async fn reach(&self, service: &Service, end: Instant) -> Result<(), Trouble> {
        let site = self.site.get();
        let token = self.token(&site, end, None).await?;
        let nothing = Ask { method: &Method::GET, path: "", query: &[], body: None, version: None };
        self.url(&site, &token, service, &nothing).map(|_| ())
    }

    /// The next exchange looks into the catalog anew.
    async fn forget(&self) {
        self.state.lock().await.current = None;
    }

    /// A token, and never the one that was refused. However many wait for one, Keystone is asked once.
    async fn token(
        &self,
        site: &Arc<Site>,
        end: Instant,
        refused: Option<&Arc<Token>>,
    ) -> Result<Arc<Token>, Trouble> {
        let asked = Instant::now();
        let mut state = timeout_at(end, self.state.lock()).await.map_err(|_| Trouble::Late)?;
        if let Some(token) = state.usable(site, refused) {
            return Ok(token);
        }
        if let Some((_, trouble)) = state.failed.as_ref().filter(|(at, _)| *at >= asked) {
            return Err(trouble.clone());
        }
        state.current = None;
        let began = Instant::now();
        match timeout_at(end, fetch(site)).await.unwrap_or(Err(Trouble::Late)) {
            Ok(token) => {
                let token = Arc::new(token);
                let until = began + token.use_for;
                state.current = Some(Current { site: Arc::clone(site), token: Arc::clone(&token), until });
                Ok(token)
            }
            Err(trouble) => {
                state.failed = Some((Instant::now(), trouble.clone()));
                Err(trouble)
            }
        }
    }

    async fn once(
        &self,
        site: &Site,
        token: &Arc<Token>,
        service: &Service,
        ask: &Ask<'_>,
        end: Instant,
    ) -> Result<Answer, Trouble> {
        let url = self.url(site, token, service, ask)?;
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Trouble::Late);
        }
        let request =
            site.client.request(ask.method.clone(), url).timeout(left).header(AUTH_TOKEN, value(token)?);
        let request = ask.version.into_iter().fold(request, |all, version| all.header(API_VERSION, version));
        let response =
            with_body(request, ask.body).send().await.map_err(|error| Trouble::Fault(fault::of(&error)))?;
        let (status, wish) = head(&response).map_err(Trouble::Fault)?;
        let patience =
            if (200..300).contains(&status) && *ask.method != Method::GET { BODY_TIME } else { left };
        let body = read(response, end.min(Instant::now() + patience)).await;
        Ok(Answer { status, wish, body, token: Arc::clone(token) })
    }

    fn url(&self, site: &Site, token: &Token, service: &Service, ask: &Ask<'_>) -> Result<Url, Trouble> {
        let is_own = self.own.is_none_or(|own| own == *service);
        let choice = site.cloud.choice(self.options.endpoint.as_ref().filter(|_| is_own), service);
        let base = catalog::address(&token.found, service, &choice).map_err(Trouble::Nowhere)?;
        let wrong = |why: String| Trouble::Nowhere(format!("the address of {}: {why}", service.name()));
        let mut url =
            http::address(&format!("{base}{}", ask.path), self.options.allow_http).map_err(wrong)?;
        if !ask.query.is_empty() {
            url.query_pairs_mut().extend_pairs(ask.query);
        }
        Ok(url)
    }
}

impl State {
    fn usable(&self, site: &Arc<Site>, refused: Option<&Arc<Token>>) -> Option<Arc<Token>> {
        let current = self.current.as_ref()?;
        let is_good = Arc::ptr_eq(&current.site, site)
            && Instant::now() < current.until
            && refused.is_none_or(|refused| !Arc::ptr_eq(refused, &current.token));
        is_good.then(|| Arc::clone(&current.token))
    }
}

/// Whether what the token knows of the catalog may be what is wrong.
fn leads_nowhere(answer: &Result<Answer, Trouble>) -> bool {
    match answer {
        Ok(answer) => answer.status == 404,
        Err(trouble) => matches!(trouble, Trouble::Nowhere(_)),
    }
}

/// Asks Keystone.
async fn fetch(site: &Site) -> Result<Token, Trouble> {
    let Cloud { token_url, credentials, .. } = &site.cloud;
    let request = site.client.post(token_url.clone()).timeout(TOKEN_TIME);
    let sent = with_body(request, Some(&auth::request(credentials))).send().await;
    let response = sent.map_err(|error| Trouble::Away(fault::of(&error)))?;
    let (status, wish) = head(&response).map_err(Trouble::Away)?;
    let token =
        response.headers().get(SUBJECT_TOKEN).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let body = read(response, Instant::now() + TOKEN_TIME).await;
    if status != 201 {
        let secret = credentials.secret().expose_secret();
        return Err(Trouble::NoToken(trouble::no_token(status, &body, wish, secret)));
    }
    auth::read(token.as_deref(), &body).map_err(|why| Trouble::Nowhere(format!("Keystone {why}")))
}

fn with_body(request: RequestBuilder, body: Option<&[u8]>) -> RequestBuilder {
    let json = HeaderValue::from_static("application/json");
    let request = request.header(reqwest::header::ACCEPT, json.clone());
    match body {
        Some(body) => request.header(CONTENT_TYPE, json).body(body.to_vec()),
        None => request,
    }
}

fn value(token: &Token) -> Result<HeaderValue, Trouble> {
    let mut value = HeaderValue::try_from(token.value.expose_secret())
        .map_err(|_| Trouble::Nowhere("Keystone gave a token that is none".to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}

/// The status and the wish of an answer whose header section is not too large.
fn head(response: &Response) -> Result<(u16, Option<Duration>), Fault> {
    let headers = response.headers();
    if is_too_large(headers) {
        return Err(Fault::TooLarge);
    }
    Ok((response.status().as_u16(), wish(text(headers, RETRY_AFTER), text(headers, DATE))))
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// As much of a body as comes in time.
async fn read(mut response: Response, end: Instant) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Ok(Some(chunk))) = timeout_at(end, response.chunk()).await {
        if body.len() + chunk.len() > BODY_BYTES {
            break;
        }
        body.extend_from_slice(&chunk);
    }
    body
}

fn people(url: &Url) -> String {
    url.as_str().trim_end_matches("/auth/tokens").to_owned()
}

impl Answer {
    /// Its body; null where it is no JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// What it says in an error's body.
    pub(crate) fn message(&self) -> String {
        super::said::message(&self.body)
    }

    /// The same for people: `: …`, or nothing.
    pub(crate) fn said(&self) -> String {
        super::said::shown(&self.message(), &[self.token.value.expose_secret()])
    }
}

#[cfg(test)]
impl Answer {
    /// An answer as a table of answers wants it.
    pub(crate) fn of(status: u16, body: &str, wish: Option<Duration>) -> Self {
        let token =
            Token { value: "t0ken".into(), use_for: Duration::ZERO, found: catalog::Found::default() };
        Self { status, wish, body: body.as_bytes().to_vec(), token: Arc::new(token) }
    }
}

impl fmt::Debug for Answer {
    /// A service may repeat the token in its body.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").field("status", &self.status).finish_non_exhaustive()
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("cloud", &self.shown).finish_non_exhaustive()
    }
}
