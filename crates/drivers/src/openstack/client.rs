//! The HTTP client of a cloud: for Keystone and for the service, with the settings that must not be left to defaults.

use std::time::Duration;

use reqwest::header::{CONNECTION, HeaderMap, HeaderValue};
use reqwest::{Client, ClientBuilder, redirect, retry, tls};

use super::cloud::{Cloud, Options};
use crate::kept::Unusable;
use crate::web::{CONNECT_TIME, HEADER_FIELDS, IDLE, USER_AGENT, authorities};

/// Makes the client. The files of its certificates are read here.
pub(super) fn build(cloud: &Cloud, options: &Options) -> Result<Client, Unusable> {
    let wrong = |why: String| Unusable::new("cloud", format!("cloud {}: {why}", cloud.name));
    let client = trusting(builder(options), cloud, options).map_err(wrong)?;
    let client = match &cloud.identity {
        None => client,
        Some(files) => client.identity(files.read().map_err(|why| wrong(why.to_string()))?),
    };
    let fits = "there is no client for it: key must belong to the first certificate in cert, cacert must hold CA certificates, and without cacert the system must have some";
    client.build().map_err(|_| wrong(fits.to_owned()))
}

/// The reasons are those of the `http` driver's client.
fn builder(options: &Options) -> ClientBuilder {
    let client = Client::builder()
        .user_agent(USER_AGENT)
        .redirect(redirect::Policy::none())
        .no_proxy()
        .retry(retry::never())
        .http1_only()
        .http1_max_headers(HEADER_FIELDS)
        .tls_version_min(tls::Version::TLS_1_2)
        .connect_timeout(connect_time(options.timeout));
    if options.keep_alive {
        return client.pool_idle_timeout(IDLE);
    }
    let close = HeaderMap::from_iter([(CONNECTION, HeaderValue::from_static("close"))]);
    client.default_headers(close).pool_max_idle_per_host(0)
}

fn connect_time(limit: Duration) -> Duration {
    CONNECT_TIME.min(limit / 2)
}

fn trusting(client: ClientBuilder, cloud: &Cloud, options: &Options) -> Result<ClientBuilder, String> {
    match &cloud.ca_file {
        _ if options.insecure => Ok(client.tls_danger_accept_invalid_certs(true)),
        Some(file) => Ok(client.tls_certs_only(authorities(file)?)),
        // Without TLS no certificates are needed, and a host without any would refuse to make a client.
        None if options.allow_http || cloud.token_url.scheme() == "http" => Ok(system_or_none(client)),
        None => Ok(client),
    }
}

/// The system's CAs where there are any: Keystone may speak plain text, and the service TLS.
fn system_or_none(client: ClientBuilder) -> ClientBuilder {
    match Client::builder().build() {
        Ok(_) => client,
        Err(_) => client.tls_certs_only([]),
    }
}
