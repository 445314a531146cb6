//! Exchanges with a service of a cloud, with a token, and with one new token after a 401.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Client, ClientBuilder, Method, StatusCode, Url, tls};
use secrecy::ExposeSecret as _;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::auth::Token;
use super::catalog::{self, Service};
use super::cloud::{Cloud, CloudOptions};
use super::tokens::Site;
use super::trouble::{Trouble, found};
use super::versions;
use crate::driver::{About, Outcome, holds};
use crate::kept::{Kept, Seen, Unusable};
use crate::web::{self, Answer, Ask, Fault, authorities, careful, fault, unpaired, wire};

const AUTH_TOKEN: HeaderName = HeaderName::from_static("x-auth-token");
const API_VERSION: HeaderName = HeaderName::from_static("openstack-api-version");
/// How long a service may take to say where its current version is.
const VERSION_TIME: Duration = Duration::from_secs(10);
/// How long the body of an acknowledgement is read: nothing waits for its rest.
const BODY_TIME: Duration = Duration::from_secs(2);

/// A cloud, ready for requests.
pub(crate) struct Session {
    options: CloudOptions,
    /// The service that the route's own `endpoint` is for.
    own: Service,
    shown: String,
    site: Kept<Arc<Site>>,
}

impl Session {
    /// Reads the cloud's files and makes its client.
    ///
    /// # Errors
    /// They cannot be used.
    pub(crate) fn new(options: CloudOptions, own: Service) -> Result<Self, Unusable> {
        let Cloud { name, token_url, .. } = Cloud::read(&options, &mut Seen::default())?;
        let shown = format!("cloud {name} at {}", people(&token_url));
        let again = options.clone();
        let site = Kept::new("files", shown.clone(), move |seen| {
            let cloud = Cloud::read(&again, seen)?;
            let client = build(&cloud, &again)?;
            Ok(Arc::new(Site::new(cloud, client)))
        })?;
        Ok(Self { options, own, shown, site })
    }

    /// What is known of a driver of the service: it might act on a host that is well again.
    pub(crate) fn about(&self, kind: &'static str) -> About {
        let endpoint = format!("{} of {}", self.own.who, self.shown);
        About { terms: holds(None), ..About::new(kind, endpoint, self.options.timeout) }
    }

    /// Which cloud it is, as its files are now.
    pub(crate) fn target(&self) -> String {
        self.site.get().cloud.target(&self.options)
    }

    /// An exchange that begins now.
    pub(crate) fn exchange(&self) -> Exchange<'_> {
        let began = Instant::now();
        let end = began + self.options.timeout;
        Exchange { session: self, service: self.own, soon: end.min(began + self.options.patience), end }
    }
}

/// One exchange: all requests of a delivery, or of a check. Its mark was allowed just before it began, so a token that takes long
/// is left to the next exchange.
#[derive(Clone, Copy)]
pub(crate) struct Exchange<'s> {
    session: &'s Session,
    /// Who is asked.
    service: Service,
    /// A token is awaited until then.
    soon: Instant,
    /// It is over then.
    pub(crate) end: Instant,
}

impl<'s> Exchange<'s> {
    /// The same with another service of the cloud.
    pub(crate) fn with(self, service: Service) -> Self {
        Self { service, ..self }
    }

    /// One request.
    ///
    /// # Errors
    /// There is no answer.
    pub(crate) async fn send(self, ask: &Ask<'_>) -> Result<Answer, Outcome> {
        self.sending().send(ask).await.map_err(|trouble| trouble.outcome())
    }

    /// What the service has under a path, by the key in its answer; `None` if the service says that it does not exist.
    ///
    /// # Errors
    /// The answer is unknown.
    pub(crate) async fn get(self, ask: &Ask<'_>, key: &str) -> Result<Option<Value>, Outcome> {
        found(self.service.who, &self.send(ask).await?, key)
    }

    /// Whether there is a token and the catalog has the service at a usable address. The service is asked for its version
    /// at most, and no mark waits: a token may take its time.
    ///
    /// # Errors
    /// There is no token, or no usable address.
    pub(crate) async fn reach(self) -> Result<(), Outcome> {
        let sending = Self { soon: self.end, ..self }.sending();
        let base = async {
            let token = sending.token(None).await?;
            sending.base(&token).await
        };
        base.await.map(drop).map_err(|trouble| trouble.outcome())
    }

    fn sending(self) -> Sending<'s> {
        // The beginning of an exchange takes this long only after an earlier request.
        let has_sent = Instant::now() > self.soon;
        Sending { exchange: self, site: self.session.site.get(), has_sent }
    }
}

/// One request, and what it takes.
struct Sending<'s> {
    exchange: Exchange<'s>,
    site: Arc<Site>,
    /// Whether a request may have arrived that was not refused for its token.
    has_sent: bool,
}

impl Sending<'_> {
    /// A 401 is followed by one repetition if there is a new token soon: the service has taken nothing then.
    async fn send(&mut self, ask: &Ask<'_>) -> Result<Answer, Trouble> {
        let token = self.token(None).await?;
        let answer = self.once(&token, ask).await;
        if leads_nowhere(&answer) {
            self.site.forget(&token);
            self.site.versions.lock().await.clear();
        }
        if !is_unauthorized(&answer) {
            return answer;
        }
        // The new password may be what ended the token.
        self.site = self.exchange.session.site.get();
        let token = self.token(Some(&token)).await?;
        self.once(&token, ask).await
    }

    async fn token(&self, refused: Option<&Arc<Token>>) -> Result<Arc<Token>, Trouble> {
        let found = self.site.token(self.exchange.soon, refused).await;
        found.map_err(|trouble| match trouble {
            Trouble::Late(_) if self.has_sent => Trouble::Over,
            other => other,
        })
    }

    async fn once(&mut self, token: &Token, ask: &Ask<'_>) -> Result<Answer, Trouble> {
        let base = self.base(token).await?;
        let Exchange { end, service, .. } = self.exchange;
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(if self.has_sent { Trouble::Over } else { Trouble::Late(None) });
        }
        let request = ask.to(&self.site.client, base.clone()).header(AUTH_TOKEN, value(token)?);
        let request = ask.version.into_iter().fold(request, |all, version| all.header(API_VERSION, version));
        let sent = request.timeout(left).send().await;
        self.has_sent |= !sent.as_ref().is_ok_and(|response| response.status() == StatusCode::UNAUTHORIZED);
        let is_change = *ask.method != Method::GET;
        let patience = |status| match (200..300).contains(&status) && is_change {
            true => end.min(Instant::now() + BODY_TIME),
            false => end,
        };
        let at = shown(&base);
        let whose = || format!("{} at {at}", service.who);
        let came = wire::came(sent, patience).await.map_err(|fault| Trouble::Fault(whose(), fault))?;
        match (200..300).contains(&came.status) && came.is_page() {
            true => Err(Trouble::Page(whose())),
            false => Ok(came.answer(at, token.value.clone())),
        }
    }

    /// The address of the service's API. If the catalog names no version, the service is asked for it, once for all.
    async fn base(&self, token: &Token) -> Result<Url, Trouble> {
        let (service, address) = (self.exchange.service, self.address(token)?);
        if !service.is_versioned || versions::has_one(&address) {
            return Ok(address);
        }
        let asked = versions::question(&address);
        let late = || Trouble::NoVersion(versions::late(&service, &asked));
        let mut known = timeout_at(self.exchange.end, self.site.versions.lock()).await.map_err(|_| late())?;
        if let Some(found) = known.get(&address) {
            return Ok(found.clone());
        }
        let found = self.version(token, &address, &asked).await?;
        known.insert(address, found.clone());
        // The mark was allowed just before the exchange began.
        if Instant::now() > self.exchange.soon && !self.has_sent { Err(late()) } else { Ok(found) }
    }

    /// Asks a service where its current version is.
    async fn version(&self, token: &Token, address: &Url, asked: &Url) -> Result<Url, Trouble> {
        let service = &self.exchange.service;
        let end = self.exchange.end.min(Instant::now() + VERSION_TIME);
        let left = end.saturating_duration_since(Instant::now());
        let request = Ask::get("/", &[]).to(&self.site.client, address.clone());
        let request = request.timeout(left).header(AUTH_TOKEN, value(token)?);
        let came = wire::came(request.send().await, |_| end).await;
        let unanswered = |fault: Fault| Trouble::NoVersion(versions::unanswered(service, asked, &fault));
        let wire::Came { status, wish, body, .. } = came.map_err(unanswered)?;
        let said = serde_json::from_slice(&body).unwrap_or_default();
        let found = if matches!(status, 200 | 300) { versions::current(address, &said) } else { None };
        found.ok_or_else(|| Trouble::NoVersion(versions::without(service, asked, status, wish)))
    }

    /// The address that the catalog, or the configuration, has for a service.
    fn address(&self, token: &Token) -> Result<Url, Trouble> {
        let (Session { own, options, .. }, service) = (self.exchange.session, &self.exchange.service);
        let is_own = own == service;
        let choice = self.site.cloud.choice(options.endpoint.as_ref().filter(|_| is_own), service);
        let base = catalog::address(&token.found, service, &choice).map_err(Trouble::Nowhere)?;
        let wrong = |why: String| Trouble::Nowhere(format!("the address of {}: {why}", service.name()));
        web::address(&base, options.allow_http).map_err(wrong)
    }
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
