//! The HTTP client of a cloud, for Keystone and the service, with the settings that must not be left to defaults.

use reqwest::{Client, ClientBuilder, tls};

use super::cloud::{Cloud, CloudOptions};
use crate::kept::Unusable;
use crate::web::{authorities, careful, fault, unpaired};

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
