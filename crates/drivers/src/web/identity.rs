//! Certificates in files: the trusted ones, and our own.

use std::path::{Path, PathBuf};

use reqwest::{Certificate, Identity};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use site::{must_be_absolute, read_private, read_trusted};

use super::certificate::{self, Unfit};
use super::fault;
use crate::kept::Unusable;

/// `certificate-file` and `key-file`: our identity in TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityFiles {
    /// Our certificate and the intermediate ones up to the endpoint's CA; PEM.
    pub certificate: PathBuf,
    /// Its key, without a passphrase; PEM. Only its owner may read it.
    pub key: PathBuf,
}

/// Which of the two cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    /// It holds no certificate in PEM.
    Certificate,
    /// Its first certificate is one that the TLS library does not take.
    Unfit(Unfit),
    /// It holds no private key in PEM, or one with a passphrase.
    Key,
}

impl Half {
    /// What is wrong, with the names of both halves where they were given.
    pub(crate) fn why(self, certificate: &str, key: &str) -> String {
        match self {
            Self::Certificate => format!("{certificate} holds no certificate in PEM"),
            Self::Unfit(unfit) => format!("the first certificate in {certificate} {unfit}"),
            Self::Key => format!("{key} holds no private key in PEM; a key with a passphrase cannot be used"),
        }
    }
}

impl IdentityFiles {
    /// Reads both, which have these keys in the configuration.
    pub(crate) fn read(&self, [certificate, key]: [&'static str; 2]) -> Result<Identity, Unusable> {
        let said = |name: &'static str| move |why: String| Unusable::new(name, format!("{name}: {why}"));
        let of_certificate = read_trusted(&self.certificate).map_err(said(certificate))?;
        let of_key = read_private(&self.key).map_err(said(key))?;
        identity_of(of_certificate, &of_key).map_err(|half| {
            let wrong = if half == Half::Key { key } else { certificate };
            Unusable::new(wrong, half.why(certificate, key))
        })
    }
}

/// Our identity of a certificate and its key, both in PEM.
///
/// # Errors
/// The half that cannot be used.
pub(crate) fn identity_of(certificate: Vec<u8>, key: &[u8]) -> Result<Identity, Half> {
    certificates_of(&certificate).ok_or(Half::Certificate)?;
    if let Some(unfit) = unfit(&certificate) {
        return Err(Half::Unfit(unfit));
    }
    let mut pem = certificate;
    pem.push(b'\n');
    pem.extend(key);
    Identity::from_pem(&pem).map_err(|_| Half::Key)
}

/// Why a client with this pair cannot be made, where the certificate itself is fit.
pub(crate) fn unpaired(error: &reqwest::Error, certificate: &str, key: &str) -> String {
    match fault::is_of_two(error) {
        true => format!("{key} does not hold the key of the first certificate in {certificate}"),
        false => format!(
            "the key in {key} cannot be used: it must be RSA of 2048 to 8192 bits, ECDSA (P-256, P-384, P-521) or Ed25519, and the certificate in {certificate} of X.509 version 3 (sign it again with an extension)"
        ),
    }
}

/// Why the first certificate of a text in PEM cannot be used, although others may take it.
fn unfit(pem: &[u8]) -> Option<Unfit> {
    certificate::unfit(&CertificateDer::pem_slice_iter(pem).next()?.ok()?)
}

/// The certificates of a text in PEM; `None` if it has none.
pub(crate) fn certificates_of(pem: &[u8]) -> Option<Vec<Certificate>> {
    Certificate::from_pem_bundle(pem).ok().filter(|found| !found.is_empty())
}

/// Reads the certificates of `ca-file`. A person who can write the file can pretend to be the endpoint.
///
/// # Errors
/// One sentence for the operator.
pub fn authorities(file: &Path) -> Result<Vec<Certificate>, String> {
    must_be_absolute(file)?;
    let bytes = read_trusted(file).map_err(|why| format!("ca-file: {why}"))?;
    let found = certificates_of(&bytes).ok_or_else(|| "ca-file holds no certificate in PEM".to_owned())?;
    let each: Vec<_> =
        CertificateDer::pem_slice_iter(&bytes).flatten().map(|der| certificate::short(&der)).collect();
    // A bundle may have old ones that nobody needs.
    match each.first().copied().flatten().filter(|_| each.iter().all(Option::is_some)) {
        Some(unfit) => Err(format!("the CA certificate in ca-file {unfit}")),
        None => Ok(found),
    }
}
