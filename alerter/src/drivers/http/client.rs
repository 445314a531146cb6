//! The HTTP client of a route: the settings that must not be left to defaults, each with its reason.

use std::time::Duration;

use reqwest::header::{CONNECTION, HeaderMap, HeaderValue};
use reqwest::{Client, ClientBuilder, redirect, retry};

use super::Options;

const USER_AGENT: &str = concat!("nova-host-alerter/", env!("CARGO_PKG_VERSION"));
/// Name resolution, TCP and TLS together; at most half of the route's limit, so that an endpoint that takes no
/// connection is told from one that does not answer.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// More header fields are no answer; the client itself stops reading them at 408 KiB.
const HEADER_FIELDS: usize = 64;

/// Makes the client.
///
/// # Errors
/// One sentence: the certificates cannot be used.
pub(super) fn build(options: &Options) -> Result<Client, String> {
    builder(options).build().map_err(|_| match options.ca {
        Some(_) => "a certificate in ca-file cannot be used: it must hold CA certificates in PEM".to_owned(),
        None => {
            "the system has no CA certificates: install them (ca-certificates), or set ca-file".to_owned()
        }
    })
}

fn builder(options: &Options) -> ClientBuilder {
    let client = Client::builder()
        .user_agent(USER_AGENT)
        .default_headers(HeaderMap::from_iter([(CONNECTION, HeaderValue::from_static("close"))]))
        // A followed redirect turns the POST into a GET, and its 200 into a false acknowledgement.
        .redirect(redirect::Policy::none())
        // The environment of whoever started the daemon is no configuration.
        .no_proxy()
        // Every attempt is one exchange, counted and journalled; the client makes none of its own.
        .retry(retry::never())
        // A connection serves one exchange: what an endpoint said before it was asked acknowledges nothing.
        .pool_max_idle_per_host(0)
        .http1_only()
        .http1_max_headers(HEADER_FIELDS)
        .connect_timeout(CONNECT_TIME.min(options.timeout / 2))
        .timeout(options.timeout);
    trusting(client, options)
}

fn trusting(client: ClientBuilder, options: &Options) -> ClientBuilder {
    let tls = options.url.scheme() == "https";
    let client = client.https_only(tls);
    match &options.ca {
        Some(certificates) => client.tls_certs_only(certificates.clone()),
        // Without TLS no certificates are needed, and a host without any would refuse to make a client.
        None if !tls => client.tls_certs_only([]),
        None => client,
    }
}
