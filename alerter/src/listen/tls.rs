//! The API's certificate and its key, in files.

use std::path::PathBuf;
use std::sync::Arc;

use drivers::{Unusable, web};
use site::{read_private, read_trusted};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// `certificate` and `key`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// Our certificate, and those between it and the clients' CA; PEM.
    pub certificate: PathBuf,
    /// Its key, without a passphrase; PEM. Only its owner may read it.
    pub key: PathBuf,
}

/// Reads both files. TLS 1.2 and 1.3 are spoken, and clients show tokens instead of certificates.
///
/// # Errors
/// One sentence for the operator, with the key of the configuration.
pub fn read(files: &TlsFiles) -> Result<Arc<ServerConfig>, Unusable> {
    let said = |key: &'static str| move |why: String| Unusable::new(key, format!("{key}: {why}"));
    let pem = read_trusted(&files.certificate).map_err(said("certificate"))?;
    let chain: Result<Vec<CertificateDer<'static>>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let chain = chain.ok().filter(|chain| !chain.is_empty());
    let chain =
        chain.ok_or_else(|| Unusable::new("certificate", "certificate holds no certificate in PEM"))?;
    if let Some(unfit) = web::unfit(&pem) {
        return Err(Unusable::new("certificate", format!("the first certificate in certificate {unfit}")));
    }
    let pem = read_private(&files.key).map_err(said("key"))?;
    let no_key = "key holds no private key in PEM; one with a passphrase cannot be used";
    let key = PrivateKeyDer::from_pem_slice(&pem).map_err(|_| Unusable::new("key", no_key))?;
    let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().expect("the provider speaks TLS 1.2 and 1.3");
    let mismatch = "key does not hold the key of the first certificate in certificate";
    let made = builder.with_no_client_auth().with_single_cert(chain, key);
    let mut config = made.map_err(|_| Unusable::new("key", mismatch))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
