//! Certificates as a test wants them.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A CA of a test's own.
pub(crate) struct Ca(CertifiedIssuer<'static, KeyPair>);

/// What is peculiar about an endpoint's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peculiar {
    Nothing,
    Expired,
    NotYetValid,
    OtherName,
}

impl Ca {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// An endpoint on 127.0.0.1 with a certificate of this CA.
    pub(crate) fn endpoint(&self, peculiar: Peculiar) -> TlsAcceptor {
        let name = if peculiar == Peculiar::OtherName { "elsewhere.example" } else { "127.0.0.1" };
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        match peculiar {
            Peculiar::Expired => params.not_after = date_time_ymd(2001, 1, 1),
            Peculiar::NotYetValid => params.not_before = date_time_ymd(4000, 1, 1),
            Peculiar::Nothing | Peculiar::OtherName => {}
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        acceptor(certificate.der().clone(), &key)
    }

    /// An endpoint that shows the CA's own certificate.
    pub(crate) fn endpoint_of_its_own(&self) -> TlsAcceptor {
        acceptor(self.0.der().clone(), self.0.key())
    }
}

fn acceptor(certificate: CertificateDer<'static>, key: &KeyPair) -> TlsAcceptor {
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config =
        ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate], key).unwrap();
    TlsAcceptor::from(Arc::new(config))
}
