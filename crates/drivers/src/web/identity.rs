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

impl IdentityFiles {
    /// Reads both.
    pub(crate) fn read(&self) -> Result<Identity, Unusable> {
        let said = |key: &'static str| move |why: String| Unusable::new(key, format!("{key}: {why}"));
        let mut pem = read_trusted(&self.certificate).map_err(said("certificate-file"))?;
        if !Certificate::from_pem_bundle(&pem).is_ok_and(|found| !found.is_empty()) {
            return Err(Unusable::new("certificate-file", "certificate-file holds no certificate in PEM"));
        }
        pem.push(b'\n');
        pem.extend(read_private(&self.key).map_err(said("key-file"))?);
        let no_key = "key-file holds no private key in PEM; a key with a passphrase cannot be used";
        Identity::from_pem(&pem).map_err(|_| Unusable::new("key-file", no_key))
    }
}

/// Reads the certificates of `ca-file`. A person who can write the file can pretend to be the endpoint.
///
/// # Errors
/// One sentence for the operator.
pub fn authorities(file: &Path) -> Result<Vec<Certificate>, String> {
    must_be_absolute(file)?;
    let bytes = read_trusted(file).map_err(|why| format!("ca-file: {why}"))?;
    match Certificate::from_pem_bundle(&bytes) {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err("ca-file holds no certificate in PEM".to_owned()),
    }
}
