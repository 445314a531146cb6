//! The keys of a client that are the same wherever one is configured.

use reqwest::tls;
use site::{Section, absolute};

use super::identity::IdentityFiles;

/// The oldest TLS that is spoken.
pub fn tls_min(table: &mut Section<'_, '_>) -> tls::Version {
    let versions = [("1.2", tls::Version::TLS_1_2), ("1.3", tls::Version::TLS_1_3)];
    table.choice("tls-min", &versions).unwrap_or(tls::Version::TLS_1_2)
}

/// `certificate-file` and `key-file`; the client reads them.
pub fn identity(table: &mut Section<'_, '_>) -> Option<IdentityFiles> {
    let certificate = table.text("certificate-file", absolute);
    let key = table.text("key-file", absolute);
    both_or_neither(table, "certificate-file", "key-file");
    Some(IdentityFiles { certificate: certificate?, key: key? })
}

/// Says which of two keys is missing.
pub(crate) fn both_or_neither(table: &mut Section<'_, '_>, one: &'static str, other: &'static str) {
    for (there, missing) in [(one, other), (other, one)] {
        if table.has(there) && !table.has(missing) {
            table.complain(there, format!("{there} has no meaning without {missing}: set both, or neither"));
        }
    }
}

/// Says which of these keys have no meaning without TLS.
pub fn without_tls(table: &mut Section<'_, '_>, keys: &[&str]) {
    for key in keys {
        if table.has(key) {
            table.complain(key, format!("{key} says nothing about an http url: use https, or remove {key}"));
        }
    }
}
