//! Exchanges with a service of a cloud, with a token, and with one new token after a 401.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Client, ClientBuilder, Method, StatusCode, Url, tls};
use secrecy::ExposeSecret as _;
use tokio::time::{Instant, timeout_at};

use super::auth::Token;
use super::catalog::{self, Service};
use super::cloud::{Cloud, CloudOptions};
use super::tokens::{Site, Tokens};
use super::trouble::Trouble;
use super::versions;
use crate::driver::{Outcome, Request};
use crate::kept::{Kept, Seen, Unusable};
use crate::web::{self, Answer, Fault, authorities, careful, fault, page, unpaired, wire};

const AUTH_TOKEN: HeaderName = HeaderName::from_static("x-auth-token");
const API_VERSION: HeaderName = HeaderName::from_static("openstack-api-version");
/// How long a service may take to say where its current version is.
const VERSION_TIME: Duration = Duration::from_secs(10);
/// How long the body of an acknowledgement is read: nothing waits for its rest.
const BODY_TIME: Duration = Duration::from_secs(2);

/// A cloud, ready for requests.
pub(crate) struct Session {
    options: CloudOptions,
    /// The service that the route's own `endpoint` is for; all if unset.
    own: Option<Service>,
    shown: String,
    site: Kept<Arc<Site>>,
    tokens: Tokens,
}

/// A request to a service.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask<'a> {
    /// Its method.
    method: &'a Method,
    /// The path behind the service's address, with a slash in front.
    pub(crate) path: &'a str,
    /// The query.
    pub(crate) query: &'a [(&'a str, &'a str)],
    /// The body; JSON.
    pub(crate) body: Option<&'a [u8]>,
    /// The microversion, with the service's type before it; if unset, the service's oldest.
    pub(crate) version: Option<&'a str>,
}

impl<'a> Ask<'a> {
    /// A question.
    pub(crate) fn get(path: &'a str, query: &'a [(&'a str, &'a str)]) -> Self {
        Self { method: &Method::GET, path, query, body: None, version: None }
    }

    /// A change. `docs/writes.md` lists it.
    pub(crate) fn write(request: &'static Request, path: &'a str, body: &'a [u8]) -> Self {
        Self { method: &request.method, path, query: &[], body: Some(body), version: None }
    }

    /// The same in this microversion, with the service's type before it.
    pub(crate) fn in_version(self, version: Option<&'a str>) -> Self {
        Self { version, ..self }
    }
}

impl Session {
    /// Reads the cloud's files and makes its client.
    ///
    /// # Errors
    /// They cannot be used.
    pub(crate) fn new(options: CloudOptions) -> Result<Self, Unusable> {
        let Cloud { name, token_url, .. } = Cloud::read(&options, &mut Seen::default())?;
        let shown = format!("cloud {name} at {}", people(&token_url));
        let again = options.clone();
        let site = Kept::new("files", shown.clone(), move |seen| {
            let cloud = Cloud::read(&again, seen)?;
            let client = build(&cloud, &again)?;
            Ok(Arc::new(Site::new(cloud, client)))
        })?;
        Ok(Self { options, own: None, shown, site, tokens: Tokens::default() })
    }

    /// The same, if the route's `endpoint` is for this service alone and others are asked too.
    pub(crate) fn mainly(self, own: Service) -> Self {
        Self { own: Some(own), ..self }
    }

    /// The cloud, for people.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// Which cloud it is, as its files are now.
    pub(crate) fn target(&self) -> String {
        self.site.get().cloud.target(&self.options)
    }

    /// Limit of a whole exchange.
    pub(crate) fn limit(&self) -> Duration {
        self.options.timeout
    }

    /// An exchange that ends at `end`, which is [`Self::limit`] after its beginning.
    pub(crate) fn begin(&self, end: Instant) -> Exchange<'_> {
        let began = end.checked_sub(self.limit()).unwrap_or(end);
        let soon = end.min(began + self.options.patience);
        // The beginning of an exchange takes this long only after an earlier request.
        let has_sent = Instant::now() > soon;
        Exchange { session: self, site: self.site.get(), end, soon, token: None, has_sent }
    }

    /// One request of an exchange that ends at `end`.
    ///
    /// # Errors
    /// There is no answer.
    pub(crate) async fn send(
        &self,
        service: &Service,
        ask: &Ask<'_>,
        end: Instant,
    ) -> Result<Answer, Outcome> {
        self.begin(end).send(service, ask).await.map_err(|trouble| trouble.outcome())
    }

    /// Whether there is a token and the catalog has the service at a usable address. The service is asked for its version
    /// at most, and no mark waits: a token may take its time.
    ///
    /// # Errors
    /// There is no token, or no usable address.
    pub(crate) async fn reach(&self, service: &Service, end: Instant) -> Result<(), Trouble> {
        let mut exchange = Exchange { soon: end, ..self.begin(end) };
        let token = exchange.token(None).await?;
        exchange.base(&token, service).await.map(|_| ())
    }
}

/// One exchange: all requests of a delivery. Its mark was allowed just before it began, so a token that takes long is
/// left to the next exchange.
pub(crate) struct Exchange<'s> {
    session: &'s Session,
    site: Arc<Site>,
    end: Instant,
    /// A token is awaited until then.
    soon: Instant,
    token: Option<Arc<Token>>,
    /// Whether a request may have arrived that was not refused for its token.
    has_sent: bool,
}

impl Exchange<'_> {
    /// One request. A 401 is followed by one repetition if there is a new token soon: the service has taken nothing then.
    ///
    /// # Errors
    /// There is no answer.
    pub(crate) async fn send(&mut self, service: &Service, ask: &Ask<'_>) -> Result<Answer, Trouble> {
        let token = self.token(None).await?;
        let answer = self.once(&token, service, ask).await;
        if leads_nowhere(&answer) {
            self.session.tokens.forget(&token);
            self.site.versions.lock().await.clear();
        }
        if !is_unauthorized(&answer) {
            return answer;
        }
        // The new password may be what ended the token.
        self.site = self.session.site.get();
        let token = self.token(Some(&token)).await?;
        self.once(&token, service, ask).await
    }

    async fn token(&mut self, refused: Option<&Arc<Token>>) -> Result<Arc<Token>, Trouble> {
        if let Some(token) = self.token.as_ref().filter(|_| refused.is_none()) {
            return Ok(Arc::clone(token));
        }
        let found = self.session.tokens.get(&self.site, self.soon, refused).await;
        let token = found.map_err(|trouble| match trouble {
            Trouble::Late(_) if self.has_sent => Trouble::Over,
            other => other,
        })?;
        Ok(Arc::clone(self.token.insert(token)))
    }

    async fn once(
        &mut self,
        token: &Arc<Token>,
        service: &Service,
        ask: &Ask<'_>,
    ) -> Result<Answer, Trouble> {
        let base = self.base(token, service).await?;
        let url = with_path(&base, ask);
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(if self.has_sent { Trouble::Over } else { Trouble::Late(None) });
        }
        let request =
            self.site.client.request(ask.method.clone(), url).timeout(left).header(AUTH_TOKEN, value(token)?);
        let request = ask.version.into_iter().fold(request, |all, version| all.header(API_VERSION, version));
        let sent = wire::with_body(request, ask.body).send().await;
        self.has_sent |= !sent.as_ref().is_ok_and(|response| response.status() == StatusCode::UNAUTHORIZED);
        let at = || format!("{} at {}", service.who, shown(&base));
        let response = sent.map_err(|error| Trouble::Fault(at(), fault::of(&error)))?;
        let (status, wish) = wire::head(&response).map_err(|fault| Trouble::Fault(at(), fault))?;
        let date = wire::date(&response);
        let headers = response.headers().clone();
        let patience =
            if (200..300).contains(&status) && *ask.method != Method::GET { BODY_TIME } else { left };
        let (body, cut) = wire::read(response, self.end.min(Instant::now() + patience)).await;
        if (200..300).contains(&status) && page::is_one(&headers, wire::begun(&body, cut.is_none())) {
            return Err(Trouble::Page(at()));
        }
        Ok(Answer { status, wish, date, body, at: shown(&base), secret: token.value.clone() })
    }

    /// The address of the service's API. If the catalog names no version, the service is asked for it, once for all.
    async fn base(&mut self, token: &Token, service: &Service) -> Result<Url, Trouble> {
        let address = self.address(token, service)?;
        if !service.is_versioned || versions::has_one(&address) {
            return Ok(address);
        }
        let (site, asked) = (Arc::clone(&self.site), versions::question(&address));
        let late = || Trouble::NoVersion(versions::late(service, &asked));
        let mut known = timeout_at(self.end, site.versions.lock()).await.map_err(|_| late())?;
        if let Some(found) = known.get(&address) {
            return Ok(found.clone());
        }
        let found = self.version(token, service, &address, &asked).await?;
        known.insert(address, found.clone());
        // The mark was allowed just before the exchange began.
        if Instant::now() > self.soon && !self.has_sent { Err(late()) } else { Ok(found) }
    }

    /// Asks a service where its current version is.
    async fn version(
        &self,
        token: &Token,
        service: &Service,
        address: &Url,
        asked: &Url,
    ) -> Result<Url, Trouble> {
        let end = self.end.min(Instant::now() + VERSION_TIME);
        let left = end.saturating_duration_since(Instant::now());
        let request = self.site.client.get(asked.clone()).timeout(left).header(AUTH_TOKEN, value(token)?);
        let unanswered = |fault: Fault| Trouble::NoVersion(versions::unanswered(service, asked, &fault));
        let response =
            wire::with_body(request, None).send().await.map_err(|error| unanswered(fault::of(&error)))?;
        let (status, wish) = wire::head(&response).map_err(unanswered)?;
        let (body, _) = wire::read(response, end).await;
        let said = serde_json::from_slice(&body).unwrap_or_default();
        let found = if matches!(status, 200 | 300) { versions::current(address, &said) } else { None };
        found.ok_or_else(|| Trouble::NoVersion(versions::without(service, asked, status, wish)))
    }

    /// The address that the catalog, or the configuration, has for a service.
    fn address(&self, token: &Token, service: &Service) -> Result<Url, Trouble> {
        let Session { own, options, .. } = self.session;
        let is_own = own.is_none_or(|own| own == *service);
        let choice = self.site.cloud.choice(options.endpoint.as_ref().filter(|_| is_own), service);
        let base = catalog::address(&token.found, service, &choice).map_err(Trouble::Nowhere)?;
        let wrong = |why: String| Trouble::Nowhere(format!("the address of {}: {why}", service.name()));
        web::address(&base, options.allow_http).map_err(wrong)
    }
}

/// The address of a request.
fn with_path(base: &Url, ask: &Ask<'_>) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}{}", base.path().trim_end_matches('/'), ask.path));
    if !ask.query.is_empty() {
        url.query_pairs_mut().extend_pairs(ask.query);
    }
    url
}

/// An address for people.
fn shown(base: &Url) -> String {
    web::shown(base).trim_end_matches('/').to_owned()
}

/// Whether the token is what was refused.
fn is_unauthorized(answer: &Result<Answer, Trouble>) -> bool {
    match answer {
        Ok(answer) => answer.status == 401,
        Err(Trouble::NoVersion(outcome)) => {
            outcome.failure().is_some_and(|failure| failure.kind == "credentials")
        }
        Err(_) => false,
    }
}

/// Whether a 404 is the service's own word for a missing thing: then its address is right.
fn is_of_the_service(answer: &Answer) -> bool {
    answer.is_absent() || answer.json().get("itemNotFound").is_some()
}

/// Whether the token's catalog may be what is wrong.
fn leads_nowhere(answer: &Result<Answer, Trouble>) -> bool {
    match answer {
        Ok(answer) => match answer.status {
            300..=399 => true,
            status => status == 404 && !is_of_the_service(answer),
        },
        Err(trouble) => matches!(trouble, Trouble::Nowhere(_) | Trouble::NoVersion(_) | Trouble::Page(_)),
    }
}

fn value(token: &Token) -> Result<HeaderValue, Trouble> {
    let mut value = HeaderValue::try_from(token.value.expose_secret())
        .map_err(|_| Trouble::Nowhere("Keystone gave an unusable token".to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}

fn people(url: &Url) -> String {
    web::shown(url).trim_end_matches("/auth/tokens").to_owned()
}

impl Answer {
    /// Heat's and Senlin's own 404: another's means that the address is wrong.
    pub(crate) fn is_absent(&self) -> bool {
        let body = self.json();
        let kind = body["error"]["type"].as_str().unwrap_or_default();
        self.status == 404 && matches!(kind, "EntityNotFound" | "ResourceNotFound")
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("cloud", &self.shown).finish_non_exhaustive()
    }
}

/// Makes the client. The files of its certificates are read here.
pub(super) fn build(cloud: &Cloud, options: &CloudOptions) -> Result<Client, Unusable> {
    let wrong = |why: String| Unusable::new("cloud", format!("cloud {}: {why}", cloud.name));
    let builder = careful(options.timeout, false).tls_version_min(tls::Version::TLS_1_2);
    let client = trusting(builder, cloud, options).map_err(wrong)?;
    let client = match &cloud.identity {
        None => client,
        Some(files) => client.identity(files.read(["cert", "key"]).map_err(|why| wrong(why.to_string()))?),
    };
    client.build().map_err(|error| wrong(unmade(&error, cloud)))
}

/// Why no client can be made of files that were read.
fn unmade(error: &reqwest::Error, cloud: &Cloud) -> String {
    let cas = "cacert must hold CA certificates; without cacert the system must have some";
    match (&cloud.identity, fault::is_of_two(error)) {
        (None, _) => format!("no client can be made: {cas}"),
        (Some(_), true) => unpaired(error, "cert", "key"),
        (Some(_), false) => format!("no client can be made: {cas}; or {}", unpaired(error, "cert", "key")),
    }
}

fn trusting(client: ClientBuilder, cloud: &Cloud, options: &CloudOptions) -> Result<ClientBuilder, String> {
    match &cloud.ca_file {
        Some(file) => Ok(client.tls_certs_only(authorities(file)?)),
        // Without TLS no certificates are needed, and a system without any would make no client.
        None if options.allow_http || cloud.token_url.scheme() == "http" => Ok(system_or_none(client)),
        None => Ok(client),
    }
}

/// The system's CAs if there are any: Keystone may use plain http, and the service TLS.
fn system_or_none(client: ClientBuilder) -> ClientBuilder {
    match Client::builder().build() {
        Ok(_) => client,
        Err(_) => client.tls_certs_only([]),
    }
}
