//! Exchanges without an answer: what went wrong, and whether the message may have arrived.

use std::error::Error;
use std::io;

use rustls::{AlertDescription, CertificateError, InconsistentKeys, PeerIncompatible};

use super::url::peer;
use crate::driver::{Failure, Outcome};
use crate::peer::Peer;

/// Why there was no answer with a complete header section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request could not be made.
    Request,
    /// No connection, and to what, where that is known.
    Unreached(Why, Option<Peer>),
    /// No TLS session.
    Tls(Tls),
    /// No answer within the time limit of the exchange.
    Timeout,
    /// The answer's header section was too large.
    TooLarge,
    /// The answer was not HTTP.
    Protocol,
    /// The connection ended before the answer was complete.
    Closed,
}

/// Why there was no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The endpoint's name has no address.
    Dns,
    /// The system's reason.
    Refused(Option<io::ErrorKind>),
    /// No connection or TLS session within its time limit.
    Late,
}

/// Why there was no TLS session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The word for machines.
    kind: &'static str,
    /// The same for people.
    detail: &'static str,
}

impl Tls {
    const EXPIRED: Self = Self::of("tls-expired", "the endpoint's certificate has expired: renew it there");
    const NOT_YET_VALID: Self =
        Self::of("tls-not-yet-valid", "the endpoint's certificate is not valid yet: check the clocks");
    const UNKNOWN_CA: Self = Self::of(
        "tls-unknown-ca",
        "no trusted CA signed the endpoint's certificate: set ca-file to its CA, or have the endpoint send the intermediate CAs",
    );
    const NAME: Self =
        Self::of("tls-name", "the endpoint's certificate is for another name: check url, or set server-name");
    /// It has no name but in its CN, which does not count.
    const NO_NAME: Self = Self::of(
        "tls-name",
        "the endpoint's certificate has no subjectAltName, and a name in CN alone does not count: make it again, as with `openssl req … -addext subjectAltName=DNS:NAME` (or IP:ADDRESS), signed with `-copy_extensions copy`",
    );
    /// That of the certificate, or that of the endpoint itself.
    const SIGNATURE: Self = Self::of(
        "tls-signature",
        "a signature of the endpoint's certificate or session does not fit: an RSA key there, or its CA's, is too short (under 2048 bits: see `openssl s_client -connect HOST:PORT`), or another CA of the same name signed it",
    );
    const OLD: Self = Self::of(
        "tls-certificate",
        "the endpoint's certificate is of X.509 version 1, and only version 3 can be used: sign it again with an extension, as with `openssl x509 -req … -extfile <(echo subjectAltName=DNS:NAME)`",
    );
    /// It is a CA's own certificate, as `openssl req -x509` makes it.
    const SELF_SIGNED: Self = Self::of(
        "tls-self-signed",
        "the endpoint's certificate is a CA's own: give the endpoint a certificate that this CA signed",
    );
    /// It is not made for a server, its signature is too weak, or a CA between must not have signed it.
    const CERTIFICATE: Self = Self::of(
        "tls-certificate",
        "the endpoint's certificate is not usable: check its purpose, its signature, and what its CAs may sign",
    );
    const VERSION: Self =
        Self::of("tls-version", "the endpoint's TLS is too old: update it, or lower tls-min");
    /// The endpoint rejects our certificate, or wants one.
    const CLIENT_CERTIFICATE: Self = Self::of(
        "tls-client-certificate",
        "the endpoint rejects our certificate: check certificate-file, and which CAs the endpoint trusts",
    );
    /// Anything else: no TLS, a broken handshake.
    const OTHER: Self =
        Self::of("tls", "no TLS session with the endpoint: check that it speaks TLS 1.2 or newer there");

    const fn of(kind: &'static str, detail: &'static str) -> Self {
        Self { kind, detail }
    }
}

impl Fault {
    /// Whether the message may have arrived decides between "unreachable" and "unknown". In doubt it may have.
    pub fn outcome(&self) -> Outcome {
        let (kind, detail) = self.said();
        let failure = Failure::new(kind, &detail);
        match self {
            Self::Tls(Tls::CLIENT_CERTIFICATE) => Outcome::Refused(failure),
            Self::Unreached(_, peer) => Outcome::Unreachable(failure.of_peer(peer.clone())),
            Self::Request | Self::Tls(_) => Outcome::Unreachable(failure),
            Self::Timeout | Self::TooLarge | Self::Protocol | Self::Closed => Outcome::Unknown(failure),
        }
    }

    /// The same where connections go to this peer, whatever the request says.
    pub(crate) fn at(self, peer: Peer) -> Self {
        match self {
            Self::Unreached(why, _) => Self::Unreached(why, Some(peer)),
            other => other,
        }
    }

    /// What happened, for people.
    pub fn detail(&self) -> String {
        self.said().1
    }

    /// The word for machines, and what happened.
    fn said(&self) -> (&'static str, String) {
        let (kind, sentence) = match self {
            Self::Unreached(Why::Refused(Some(reason)), _) => {
                return ("connect", format!("the endpoint cannot be reached: {reason}"));
            }
            Self::Unreached(Why::Refused(None), _) => ("connect", "the endpoint cannot be reached"),
            Self::Request => ("request", "the request could not be made: check url"),
            Self::Unreached(Why::Dns, _) => {
                ("dns", "the endpoint's name has no address: check url and the name service")
            }
            Self::Unreached(Why::Late, _) => (
                "connect-timeout",
                "no connection to the endpoint in time: check the name service, the network and the endpoint",
            ),
            Self::Tls(Tls { kind, detail }) => (*kind, *detail),
            Self::Timeout => ("timeout", "the endpoint received the message and did not answer in time"),
            Self::TooLarge => {
                ("header-too-large", "the endpoint's answer has too long a header: check what runs at url")
            }
            Self::Protocol => ("protocol", "the endpoint's answer is not HTTP: check url"),
            Self::Closed => ("closed", "the endpoint closed the connection before its answer was complete"),
        };
        (kind, sentence.to_owned())
    }
}

/// Reads the client's error. Its text is not used: it may show the URL, or what the endpoint sent.
pub fn of(error: &reqwest::Error) -> Fault {
    if error.is_connect() {
        return before_sending(error);
    }
    // TLS 1.3: the endpoint checks our certificate after the handshake, and takes no message without it.
    if find::<rustls::Error>(error).map(tls_of) == Some(Tls::CLIENT_CERTIFICATE) {
        return Fault::Tls(Tls::CLIENT_CERTIFICATE);
    }
    let hyper = find::<hyper::Error>(error);
    match hyper {
        _ if error.is_builder() => Fault::Request,
        _ if error.is_timeout() => Fault::Timeout,
        Some(hyper) if hyper.is_parse_too_large() => Fault::TooLarge,
        Some(hyper) if hyper.is_parse() => Fault::Protocol,
        _ => Fault::Closed,
    }
}

fn before_sending(error: &reqwest::Error) -> Fault {
    if let Some(tls) = find::<rustls::Error>(error) {
        return Fault::Tls(tls_of(tls));
    }
    let why = match find::<io::Error>(error) {
        _ if error.is_dns() => Why::Dns,
        _ if error.is_timeout() => Why::Late,
        // The endpoint closed the connection during the handshake.
        Some(io) if io.kind() == io::ErrorKind::UnexpectedEof => return Fault::Tls(Tls::OTHER),
        io => Why::Refused(io.map(io::Error::kind)),
    };
    Fault::Unreached(why, error.url().map(peer))
}

fn tls_of(error: &rustls::Error) -> Tls {
    match error {
        rustls::Error::InvalidCertificate(certificate) => certificate_of(certificate),
        rustls::Error::AlertReceived(alert) => alert_of(*alert),
        rustls::Error::PeerIncompatible(
            PeerIncompatible::ServerDoesNotSupportTls12Or13
            | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig,
        ) => Tls::VERSION,
        _ => Tls::OTHER,
    }
}

/// Why the endpoint ended the handshake.
fn alert_of(alert: AlertDescription) -> Tls {
    match alert {
        AlertDescription::ProtocolVersion => Tls::VERSION,
        AlertDescription::CertificateRequired
        | AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnknownCA
        | AlertDescription::AccessDenied => Tls::CLIENT_CERTIFICATE,
        _ => Tls::OTHER,
    }
}

fn certificate_of(certificate: &CertificateError) -> Tls {
    match certificate {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => Tls::EXPIRED,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => Tls::NOT_YET_VALID,
        CertificateError::NotValidForNameContext { presented, .. } if presented.is_empty() => Tls::NO_NAME,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => Tls::NAME,
        CertificateError::UnknownIssuer => Tls::UNKNOWN_CA,
        CertificateError::BadSignature => Tls::SIGNATURE,
        CertificateError::Other(other) => other_of(&format!("{other:?}")),
        _ => Tls::CERTIFICATE,
    }
}

/// The verifier's own error type is not exported; only its name distinguishes it.
fn other_of(name: &str) -> Tls {
    match name {
        name if name.contains("CaUsedAsEndEntity") => Tls::SELF_SIGNED,
        name if name.contains("UnsupportedCertVersion") => Tls::OLD,
        _ => Tls::CERTIFICATE,
    }
}

/// Whether a client cannot be made because its key is not that of its certificate.
pub(crate) fn is_of_two(error: &reqwest::Error) -> bool {
    let found = find::<rustls::Error>(error);
    matches!(found, Some(rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch)))
}

/// The first error of a type in a chain of causes. `io::Error` hides the error that it wraps from `source()`.
fn find<'e, E: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<E>() {
            return Some(found);
        }
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = wrapped.map_or_else(|| error.source(), |wrapped| Some(wrapped));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_before_the_message_was_sent_is_not_ambiguous() {
        let tls = [
            Tls::EXPIRED,
            Tls::NOT_YET_VALID,
            Tls::UNKNOWN_CA,
            Tls::NAME,
            Tls::NO_NAME,
            Tls::SIGNATURE,
            Tls::OLD,
            Tls::SELF_SIGNED,
            Tls::CERTIFICATE,
            Tls::VERSION,
            Tls::OTHER,
        ];
        let mut before: Vec<Fault> = tls.map(Fault::Tls).into();
        before.extend([Why::Dns, Why::Refused(None), Why::Late].map(|why| Fault::Unreached(why, None)));
        before.push(Fault::Request);
        for fault in before {
            assert!(matches!(fault.outcome(), Outcome::Unreachable(_)), "{fault:?}");
        }
        for fault in [Fault::Timeout, Fault::TooLarge, Fault::Protocol, Fault::Closed] {
            assert!(matches!(fault.outcome(), Outcome::Unknown(_)), "{fault:?}");
        }
    }

    /// Somebody must change something: the next attempt would end the same way.
    #[test]
    fn a_certificate_of_ours_that_is_not_taken_is_refused() {
        assert!(matches!(Fault::Tls(Tls::CLIENT_CERTIFICATE).outcome(), Outcome::Refused(_)));
        assert_eq!(alert_of(AlertDescription::CertificateRequired), Tls::CLIENT_CERTIFICATE);
        assert_eq!(alert_of(AlertDescription::ProtocolVersion), Tls::VERSION);
        assert_eq!(alert_of(AlertDescription::InternalError), Tls::OTHER);
    }
}
