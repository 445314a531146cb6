//! Certificates in files: the trusted ones, and our own.

use std::path::{Path, PathBuf};

use reqwest::{Certificate, Identity};
use site::{must_be_absolute, read_private, read_trusted};

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
    /// It holds no private key in PEM, or one with a passphrase.
    Key,
}

impl IdentityFiles {
    /// Reads both.
    pub(crate) fn read(&self) -> Result<Identity, Unusable> {
        let said = |key: &'static str| move |why: String| Unusable::new(key, format!("{key}: {why}"));
        let certificate = read_trusted(&self.certificate).map_err(said("certificate-file"))?;
        let key = read_private(&self.key).map_err(said("key-file"))?;
        let no_certificate = "certificate-file holds no certificate in PEM";
        let no_key = "key-file holds no private key in PEM; a key with a passphrase cannot be used";
        identity_of(certificate, &key).map_err(|half| match half {
            Half::Certificate => Unusable::new("certificate-file", no_certificate),
            Half::Key => Unusable::new("key-file", no_key),
        })
    }
}

/// Our identity of a certificate and its key, both in PEM.
///
/// # Errors
/// The half that cannot be used.
pub(crate) fn identity_of(certificate: Vec<u8>, key: &[u8]) -> Result<Identity, Half> {
    certificates_of(&certificate).ok_or(Half::Certificate)?;
    let mut pem = certificate;
    pem.push(b'\n');
    pem.extend(key);
    Identity::from_pem(&pem).map_err(|_| Half::Key)
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
    certificates_of(&bytes).ok_or_else(|| "ca-file holds no certificate in PEM".to_owned())
}
