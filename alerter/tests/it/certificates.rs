//! Certificates as a test wants them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, CidrSubnet, DnType,
    ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, KeyPair, NameConstraints, PKCS_RSA_SHA256, date_time_ymd,
};
use tempfile::TempDir;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::aws_lc_rs::sign::any_supported_type;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio_rustls::rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion, version};

/// A CA of a test's own, and the directory of its file.
pub(crate) struct Ca(CertifiedIssuer<'static, KeyPair>, TempDir);

/// What is peculiar about an endpoint's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peculiar {
    Nothing,
    Expired,
    /// In ten days and an hour.
    EndsSoon,
    NotYetValid,
    OtherName,
    /// For all names that are one label longer than `recovery.example`.
    Wildcard,
    /// For clients alone.
    OtherPurpose,
}

/// What is peculiar about the CA between a CA and its endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Between {
    Nothing,
    /// The endpoint does not show its certificate.
    Missing,
    /// Its certificate does not say that it is a CA.
    NoCa,
    /// It may sign for addresses in 10.0.0.0/8 alone.
    OtherAddresses,
}

/// The object identifiers of two ways to sign, as they stand in a certificate: RSA with SHA-256, and RSA with SHA-1.
const RSA_SHA256: [u8; 9] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b];
const RSA_SHA1: [u8; 9] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x05];

impl Ca {
    pub(crate) fn new(name: &str) -> Self {
        Self::of(CertifiedIssuer::self_signed(ca_params(name), KeyPair::generate().unwrap()).unwrap())
    }

    /// A CA that signs with RSA and SHA-256.
    pub(crate) fn with_rsa(name: &str) -> Self {
        let key = KeyPair::generate_for(&PKCS_RSA_SHA256).unwrap();
        Self::of(CertifiedIssuer::self_signed(ca_params(name), key).unwrap())
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
            Peculiar::Wildcard => "*.recovery.example",
            _ => "127.0.0.1",
        };
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        match peculiar {
            Peculiar::Expired => params.not_after = date_time_ymd(2001, 1, 1),
            Peculiar::EndsSoon => {
                params.not_after = (SystemTime::now() + Duration::from_secs(10 * 86_400 + 3600)).into();
            }
            Peculiar::NotYetValid => params.not_before = date_time_ymd(4000, 1, 1),
            Peculiar::OtherPurpose => params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth],
            Peculiar::Nothing | Peculiar::OtherName | Peculiar::Wildcard => {}
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        acceptor(vec![certificate.der().clone()], &key)
    }

    /// An endpoint on 127.0.0.1 with a certificate of a CA that this one signed.
    pub(crate) fn endpoint_below(&self, peculiar: Between) -> TlsAcceptor {
        let mut params = ca_params("between");
        match peculiar {
            Between::NoCa => params.is_ca = IsCa::ExplicitNoCa,
            Between::OtherAddresses => params.name_constraints = Some(only_in_10()),
            Between::Nothing | Between::Missing => {}
        }
        let between = CertifiedIssuer::signed_by(params, KeyPair::generate().unwrap(), &self.0).unwrap();
        let key = KeyPair::generate().unwrap();
        let own =
            CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &between).unwrap();
        let mut chain = vec![own.der().clone()];
        if peculiar != Between::Missing {
            chain.push(between.der().clone());
        }
        acceptor(chain, &key)
    }

    /// An endpoint on 127.0.0.1 with a certificate that says of itself that it was signed with SHA-1. No library signs like
    /// that any more; so the signature is another, which is not checked.
    pub(crate) fn endpoint_of_old(&self) -> TlsAcceptor {
        let (certificate, key) = self.signed("127.0.0.1");
        let mut der = certificate.der().to_vec();
        let places = 0..der.len() - RSA_SHA256.len();
        let found: Vec<usize> = places.filter(|at| der[*at..].starts_with(&RSA_SHA256)).collect();
        assert_eq!(found.len(), 2, "once in what is signed, and once beside the signature");
        for at in found {
            der[at..at + RSA_SHA1.len()].copy_from_slice(&RSA_SHA1);
        }
        acceptor(vec![der.into()], &key)
    }

    /// An endpoint on 127.0.0.1 that shows a certificate of this CA without having its key.
    pub(crate) fn endpoint_without_its_key(&self) -> TlsAcceptor {
        let (certificate, _) = self.signed("127.0.0.1");
        let other = PrivateKeyDer::try_from(KeyPair::generate().unwrap().serialize_der()).unwrap();
        let shown = CertifiedKey::new(vec![certificate.der().clone()], any_supported_type(&other).unwrap());
        let shown = Arc::new(SingleCertAndKey::from(shown));
        TlsAcceptor::from(Arc::new(ServerConfig::builder().with_no_client_auth().with_cert_resolver(shown)))
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

/// An endpoint on 127.0.0.1 with a certificate that nobody but itself has signed.
pub(crate) fn endpoint_of_nobody() -> TlsAcceptor {
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().self_signed(&key).unwrap();
    acceptor(vec![certificate.der().clone()], &key)
}

fn ca_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

fn only_in_10() -> NameConstraints {
    let inside = GeneralSubtree::IpAddress(CidrSubnet::V4([10, 0, 0, 0], [255, 0, 0, 0]));
    NameConstraints { permitted_subtrees: vec![inside], excluded_subtrees: Vec::new() }
}

fn acceptor(chain: Vec<CertificateDer<'static>>, key: &KeyPair) -> TlsAcceptor {
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key).unwrap();
    TlsAcceptor::from(Arc::new(config))
}
