//! The keys of a client, the same wherever one is configured.

use std::path::Path;
use std::time::Duration;

use reqwest::{Url, tls};
use site::{Section, absolute};

use super::client::{ClientOptions, LONGEST};
use super::identity::{IdentityFiles, authorities};
use super::url::address;

/// A route's endpoint and TLS. It asks for every key, so that each is checked whatever is wrong with the others.
pub fn read(table: &mut Section<'_, '_>) -> Option<ClientOptions> {
    let allow_http = table.flag("allow-http").unwrap_or(false);
    let url = table.text("url", |text| address(text, allow_http));
    let ca_file = table.text("ca-file", |text| authorities(Path::new(text)).map(|_| text.into()));
    let identity = identity(table);
    let server_name = table.text("server-name", server_name);
    let tls_min = tls_min(table);
    let keep_alive = table.flag("keep-alive").unwrap_or(false);
    let html_acknowledges = table.flag("html-acknowledges").unwrap_or(false);
    let longest = u32::try_from(LONGEST.as_secs()).expect("half a minute");
    let seconds = table.number("timeout", 1..=longest).unwrap_or(longest);
    table.needs("url", "set it to the address of the recovery controller");
    let url = url?;
    if table.is_sound() && url.scheme() != "https" {
        without_tls(table, &["ca-file", "certificate-file", "key-file", "server-name", "tls-min"]);
    }
    let timeout = Duration::from_secs(seconds.into());
    Some(ClientOptions {
        url,
        ca_file,
        identity,
        server_name,
        tls_min,
        verify: true,
        keep_alive,
        html_acknowledges,
        timeout,
    })
}

/// A DNS name; an address would be verified as the url's host anyway.
pub(crate) fn server_name(text: &str) -> Result<String, String> {
    let url = Url::parse(&format!("https://{text}/")).ok();
    let name = url.as_ref().and_then(Url::domain).filter(|name| name.eq_ignore_ascii_case(text));
    name.map(str::to_owned).ok_or_else(|| "must be the DNS name in the endpoint's certificate".to_owned())
}

/// The oldest TLS version.
pub fn tls_min(table: &mut Section<'_, '_>) -> tls::Version {
    let versions = [("1.2", tls::Version::TLS_1_2), ("1.3", tls::Version::TLS_1_3)];
    table.choice("tls-min", &versions).unwrap_or(tls::Version::TLS_1_2)
}

/// `certificate-file` and `key-file`; the client reads them.
pub fn identity(table: &mut Section<'_, '_>) -> Option<IdentityFiles> {
    let certificate = table.text("certificate-file", absolute);
    let key = table.text("key-file", absolute);
    table.both_or_neither("certificate-file", "key-file");
    Some(IdentityFiles { certificate: certificate?, key: key? })
}

/// Reports keys that have no effect without TLS.
pub fn without_tls(table: &mut Section<'_, '_>, keys: &[&str]) {
    for key in keys {
        let why = format!("{key} has no effect with an http url: use https, or remove {key}");
        table.complain_if(true, key, &why);
    }
}
