//! Certificates as a test wants them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use tempfile::TempDir;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion, version};

/// A CA of a test's own, and the directory of its file.
pub(crate) struct Ca(CertifiedIssuer<'static, KeyPair>, TempDir);

/// What is peculiar about an endpoint's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peculiar {
    Nothing,
    Expired,
    OtherName,
}
impl Ca {
    pub(crate) fn new(name: &str) -> Self {
        Self::of(CertifiedIssuer::self_signed(ca_params(name), KeyPair::generate().unwrap()).unwrap())
    }

    fn of(issuer: CertifiedIssuer<'static, KeyPair>) -> Self {
        let ca = Self(issuer, tempfile::tempdir().unwrap());
        fs::write(ca.file(), ca.pem()).unwrap();
        fs::set_permissions(ca.file(), fs::Permissions::from_mode(0o644)).unwrap();
        ca
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// Where its certificate stands, for as long as it lives.
    pub(crate) fn file(&self) -> PathBuf {
        self.1.path().join("ca.pem")
    }

    /// An endpoint on 127.0.0.1 with a certificate of this CA.
    pub(crate) fn endpoint(&self, peculiar: Peculiar) -> TlsAcceptor {
        let name = match peculiar {
            Peculiar::OtherName => "elsewhere.example",
            _ => "127.0.0.1",
        };
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        match peculiar {
            Peculiar::Expired => params.not_after = date_time_ymd(2001, 1, 1),
            Peculiar::Nothing | Peculiar::OtherName => {}
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        acceptor(vec![certificate.der().clone()], &key)
    }

    /// An endpoint on 127.0.0.1 that knows its clients by the certificates of `clients`.
    pub(crate) fn endpoint_for_clients_of(
        &self,
        clients: &Ca,
        version: &'static SupportedProtocolVersion,
    ) -> TlsAcceptor {
        let mut roots = RootCertStore::empty();
        roots.add(clients.0.der().clone()).unwrap();
        let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build().unwrap();
        let (certificate, key) = self.signed("127.0.0.1");
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_protocol_versions(&[version])
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }

    /// An endpoint on 127.0.0.1 that speaks TLS 1.2 and nothing newer.
    pub(crate) fn old_endpoint(&self) -> TlsAcceptor {
        let (certificate, key) = self.signed("127.0.0.1");
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_protocol_versions(&[&version::TLS12])
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }

    /// A certificate and its key in PEM.
    pub(crate) fn identity(&self) -> (String, String) {
        self.identity_for("controller.example")
    }

    /// The same for another name, or for an address.
    pub(crate) fn identity_for(&self, name: &str) -> (String, String) {
        let (certificate, key) = self.signed(name);
        (certificate.pem(), key.serialize_pem())
    }

    fn signed(&self, name: &str) -> (Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.0).unwrap(), key)
    }

    /// An endpoint that shows the CA's own certificate.
    pub(crate) fn endpoint_of_its_own(&self) -> TlsAcceptor {
        acceptor(vec![self.0.der().clone()], self.0.key())
    }
}

fn ca_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

fn acceptor(chain: Vec<CertificateDer<'static>>, key: &KeyPair) -> TlsAcceptor {
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key).unwrap();
    TlsAcceptor::from(Arc::new(config))
}
