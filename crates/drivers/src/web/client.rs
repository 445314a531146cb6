//! The HTTP client: the settings that must not be left to defaults, each with its reason.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{CONNECTION, HeaderMap, HeaderValue};
use reqwest::{Certificate, Client, ClientBuilder, Identity, Url, redirect, retry, tls};

use super::identity::{IdentityFiles, authorities, unpaired};
use super::url::host;
use crate::kept::{Kept, Unusable};
use crate::peer::CONNECT_TIME;

/// The longest time limit of an exchange.
pub(crate) const LONGEST: Duration = Duration::from_secs(30);
/// Our user agent.
const USER_AGENT: &str = concat!("nova-host-alerter/", env!("CARGO_PKG_VERSION"));
/// The most header fields of an answer; the client itself stops reading them at 408 KiB.
const HEADER_FIELDS: usize = 64;
/// An idle connection is closed after this time, before the endpoint closes it and leaves the next message unanswered.
const IDLE: Duration = Duration::from_secs(1);

/// A client's settings, and its endpoint.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// Where to send: `http` or `https`, without userinfo.
    pub url: Url,
    /// The file with the CAs for the endpoint's certificate; if unset, the system's.
    pub ca_file: Option<PathBuf>,
    /// Our certificate and key in TLS.
    pub identity: Option<IdentityFiles>,
    /// The name that the endpoint's certificate must have, and the SNI; if unset, the url's host.
    pub server_name: Option<String>,
    /// The oldest TLS version.
    pub tls_min: tls::Version,
    /// Whether the endpoint's certificate is checked; a route always checks it.
    pub verify: bool,
    /// Whether a connection may be used for several exchanges.
    pub keep_alive: bool,
    /// Whether an answer in HTML acknowledges like any other.
    pub html_acknowledges: bool,
    /// Limit of the whole exchange.
    pub timeout: Duration,
}

impl ClientOptions {
    /// A client for `url` with defaults alone.
    pub fn to(url: Url) -> Self {
        Self {
            url,
            ca_file: None,
            identity: None,
            server_name: None,
            tls_min: tls::Version::TLS_1_2,
            verify: true,
            keep_alive: false,
            html_acknowledges: false,
            timeout: LONGEST,
        }
    }

    /// Makes the client, and makes it again when the files of its certificates have changed. `endpoint` is for people.
    ///
    /// # Errors
    /// The certificates cannot be used.
    pub fn client(self, endpoint: String) -> Result<Kept<Client>, Unusable> {
        Kept::new("certificates", endpoint, move |seen| {
            let own = self.identity.iter().flat_map(|files| [&files.certificate, &files.key]);
            self.ca_file.iter().chain(own).for_each(|file| seen.note(file));
            build(&self)
        })
    }

    /// A client with these certificates, whatever files are named.
    ///
    /// # Errors
    /// A CA, or our own pair, cannot be used.
    pub(crate) fn with(
        &self,
        ca: Option<Vec<Certificate>>,
        identity: Option<Identity>,
    ) -> reqwest::Result<Client> {
        let client = trusting(careful(self.timeout, self.keep_alive).timeout(self.timeout), self, ca);
        let client = match self.server_name {
            Some(_) => client.dns_resolver(Host(host(&self.url).to_owned())),
            None => client,
        };
        identity.into_iter().fold(client, ClientBuilder::identity).build()
    }

    /// The url for the client, which takes the TLS name from there.
    pub(crate) fn target(&self) -> Url {
        let mut url = self.url.clone();
        if self.server_name.is_some() {
            url.set_host(self.server_name.as_deref()).expect("the name was read as a url's host before");
        }
        url
    }
}

/// Makes the client. The files of its certificates are read here.
fn build(options: &ClientOptions) -> Result<Client, Unusable> {
    let unusable = |why: String| Unusable::new("ca-file", why);
    let ca = options.ca_file.as_deref().map(authorities).transpose().map_err(unusable)?;
    let alone = options.with(ca.clone(), None).map_err(|_| no_ca(options))?;
    let Some(files) = &options.identity else { return Ok(alone) };
    let names = ["certificate-file", "key-file"];
    let with_identity = options.with(ca, Some(files.read(names)?));
    with_identity.map_err(|error| Unusable::new("key-file", unpaired(&error, names[0], names[1])))
}

fn no_ca(options: &ClientOptions) -> Unusable {
    match options.ca_file {
        Some(_) => Unusable::new(
            "ca-file",
            "a certificate in ca-file cannot be used: it must hold CA certificates in PEM",
        ),
        None => Unusable::new(
            "url",
            "the system has no CA certificates: install them (ca-certificates), or set ca-file",
        ),
    }
}

/// The settings for TCP: an exchange may take long.
pub(crate) fn careful(limit: Duration, keep_alive: bool) -> ClientBuilder {
    let client = Client::builder()
        .user_agent(USER_AGENT)
        // A followed redirect turns the POST into a GET, and its 200 into a false acknowledgement.
        .redirect(redirect::Policy::none())
        // The daemon's environment is no configuration.
        .no_proxy()
        // Every attempt is one exchange, counted and journalled; the client must make none of its own.
        .retry(retry::never())
        .http1_only()
        .http1_max_headers(HEADER_FIELDS)
        .connect_timeout(CONNECT_TIME.min(limit / 2));
    connecting(client, keep_alive)
}

/// By default a connection is used for one exchange: what an endpoint sends unasked acknowledges nothing.
fn connecting(client: ClientBuilder, keep_alive: bool) -> ClientBuilder {
    if keep_alive {
        return client.pool_idle_timeout(IDLE);
    }
    let close = HeaderMap::from_iter([(CONNECTION, HeaderValue::from_static("close"))]);
    client.default_headers(close).pool_max_idle_per_host(0)
}

fn trusting(client: ClientBuilder, options: &ClientOptions, ca: Option<Vec<Certificate>>) -> ClientBuilder {
    let tls = options.url.scheme() == "https";
    let client = client.https_only(tls).tls_version_min(options.tls_min);
    match ca {
        _ if tls && !options.verify => client.tls_danger_accept_invalid_certs(true),
        Some(certificates) => client.tls_certs_only(certificates),
        // Without TLS no certificates are needed, and a system without any would make no client.
        None if !tls => client.tls_certs_only([]),
        None => client,
    }
}

/// Resolves the url's host, whatever name the client asks for: that name is only for TLS.
struct Host(String);

impl Resolve for Host {
    fn resolve(&self, _name: Name) -> Resolving {
        let host = self.0.clone();
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((host, 0)).await?.collect();
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}
