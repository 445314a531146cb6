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
pub enum Tls {
    /// The certificate has expired.
    Expired,
    /// The certificate is not valid yet.
    NotYetValid,
    /// No trusted CA signed it.
    UnknownCa,
    /// It is for another name.
    Name,
    /// It has no name but in its CN, which does not count.
    NoName,
    /// A signature does not fit: that of the certificate, or that of the endpoint itself.
    Signature,
    /// It is of a version of X.509 before 3.
    Old,
    /// It is a CA's own certificate, as `openssl req -x509` makes it.
    SelfSigned,
    /// It is not made for a server, its signature is too weak, or a CA between must not have signed it.
    Certificate,
    /// The endpoint has none of our versions.
    Version,
    /// The endpoint rejects our certificate, or wants one.
    ClientCertificate,
    /// Anything else: no TLS, a broken handshake.
    Other,
}

impl Fault {
    /// Whether the message may have arrived decides between "unreachable" and "unknown". In doubt it may have.
    pub fn outcome(&self) -> Outcome {
        let failure = Failure::new(self.kind(), &self.detail());
        match self {
            Self::Tls(Tls::ClientCertificate) => Outcome::Refused(failure),
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

    fn kind(&self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Unreached(Why::Dns, _) => "dns",
            Self::Unreached(Why::Refused(_), _) => "connect",
            Self::Unreached(Why::Late, _) => "connect-timeout",
            Self::Tls(tls) => tls.kind(),
            Self::Timeout => "timeout",
            Self::TooLarge => "header-too-large",
            Self::Protocol => "protocol",
            Self::Closed => "closed",
        }
    }

    /// What happened, for people.
    pub fn detail(&self) -> String {
        let sentence = match self {
            Self::Unreached(Why::Refused(Some(reason)), _) => {
                return format!("the endpoint cannot be reached: {reason}");
            }
            Self::Unreached(Why::Refused(None), _) => "the endpoint cannot be reached",
            Self::Request => "the request could not be made: check url",
            Self::Unreached(Why::Dns, _) => {
                "the endpoint's name has no address: check url and the name service"
            }
            Self::Unreached(Why::Late, _) => {
                "no connection to the endpoint in time: check the name service, the network and the endpoint"
            }
            Self::Tls(tls) => tls.detail(),
            Self::Timeout => "the endpoint received the message and did not answer in time",
            Self::TooLarge => "the endpoint's answer has too long a header: check what runs at url",
            Self::Protocol => "the endpoint's answer is not HTTP: check url",
            Self::Closed => "the endpoint closed the connection before its answer was complete",
        };
        sentence.to_owned()
    }
}

impl Tls {
    fn kind(self) -> &'static str {
        match self {
            Self::Expired => "tls-expired",
            Self::NotYetValid => "tls-not-yet-valid",
            Self::UnknownCa => "tls-unknown-ca",
            Self::Name | Self::NoName => "tls-name",
            Self::Signature => "tls-signature",
            Self::SelfSigned => "tls-self-signed",
            Self::Certificate | Self::Old => "tls-certificate",
            Self::Version => "tls-version",
            Self::ClientCertificate => "tls-client-certificate",
            Self::Other => "tls",
        }
    }

    fn detail(self) -> &'static str {
        match self {
            Self::Expired => "the endpoint's certificate has expired: renew it there",
            Self::NotYetValid => "the endpoint's certificate is not valid yet: check the clocks",
            Self::UnknownCa => {
                "no trusted CA signed the endpoint's certificate: set ca-file to its CA, or have the endpoint send the intermediate CAs"
            }
            Self::Name => "the endpoint's certificate is for another name: check url, or set server-name",
            Self::NoName => {
                "the endpoint's certificate has no subjectAltName, and a name in CN alone does not count: make it again, as with `openssl req … -addext subjectAltName=DNS:NAME` (or IP:ADDRESS), signed with `-copy_extensions copy`"
            }
            Self::Signature => {
                "a signature of the endpoint's certificate or session does not fit: an RSA key there, or its CA's, is too short (under 2048 bits: see `openssl s_client -connect HOST:PORT`), or another CA of the same name signed it"
            }
            Self::Old => {
                "the endpoint's certificate is of X.509 version 1, and only version 3 can be used: sign it again with an extension, as with `openssl x509 -req … -extfile <(echo subjectAltName=DNS:NAME)`"
            }
            Self::SelfSigned => {
                "the endpoint's certificate is a CA's own: give the endpoint a certificate that this CA signed"
            }
            Self::Certificate => {
                "the endpoint's certificate is not usable: check its purpose, its signature, and what its CAs may sign"
            }
            Self::Version => "the endpoint's TLS is too old: update it, or lower tls-min",
            Self::ClientCertificate => {
                "the endpoint rejects our certificate: check certificate-file, and which CAs the endpoint trusts"
            }
            Self::Other => "no TLS session with the endpoint: check that it speaks TLS 1.2 or newer there",
        }
    }
}

/// Reads the client's error. Its text is not used: it may show the URL, or what the endpoint sent.
pub fn of(error: &reqwest::Error) -> Fault {
    if error.is_connect() {
        return before_sending(error);
    }
    // TLS 1.3: the endpoint checks our certificate after the handshake, and takes no message without it.
    if find::<rustls::Error>(error).map(tls_of) == Some(Tls::ClientCertificate) {
        return Fault::Tls(Tls::ClientCertificate);
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
        Some(io) if io.kind() == io::ErrorKind::UnexpectedEof => return Fault::Tls(Tls::Other),
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
        ) => Tls::Version,
        _ => Tls::Other,
    }
}

/// Why the endpoint ended the handshake.
fn alert_of(alert: AlertDescription) -> Tls {
    match alert {
        AlertDescription::ProtocolVersion => Tls::Version,
        AlertDescription::CertificateRequired
        | AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnknownCA
        | AlertDescription::AccessDenied => Tls::ClientCertificate,
        _ => Tls::Other,
    }
}

fn certificate_of(certificate: &CertificateError) -> Tls {
    match certificate {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => Tls::Expired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => Tls::NotYetValid,
        CertificateError::NotValidForNameContext { presented, .. } if presented.is_empty() => Tls::NoName,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => Tls::Name,
        CertificateError::UnknownIssuer => Tls::UnknownCa,
        CertificateError::BadSignature => Tls::Signature,
        CertificateError::Other(other) => other_of(&format!("{other:?}")),
        _ => Tls::Certificate,
    }
}

/// The verifier's own error type is not exported; only its name distinguishes it.
fn other_of(name: &str) -> Tls {
    match name {
        name if name.contains("CaUsedAsEndEntity") => Tls::SelfSigned,
        name if name.contains("UnsupportedCertVersion") => Tls::Old,
        _ => Tls::Certificate,
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
            Tls::Expired,
            Tls::NotYetValid,
            Tls::UnknownCa,
            Tls::Name,
            Tls::NoName,
            Tls::Signature,
            Tls::Old,
            Tls::SelfSigned,
            Tls::Certificate,
            Tls::Version,
            Tls::Other,
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
        assert!(matches!(Fault::Tls(Tls::ClientCertificate).outcome(), Outcome::Refused(_)));
        assert_eq!(alert_of(AlertDescription::CertificateRequired), Tls::ClientCertificate);
        assert_eq!(alert_of(AlertDescription::ProtocolVersion), Tls::Version);
        assert_eq!(alert_of(AlertDescription::InternalError), Tls::Other);
    }
}
