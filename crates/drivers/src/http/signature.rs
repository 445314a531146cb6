//! Signatures after the Standard Webhooks scheme: they prove that a holder of the secret sent this message, and when.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use marks::time::Timestamp;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret as _, SecretSlice};
use sha2::Sha256;

use crate::kept::Unusable;
use crate::web::secret;

const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");
/// What is signed where a signature must be wrong.
const OTHER: &[u8] = b"other bytes";
/// What the scheme allows, in bytes.
const LENGTH: std::ops::RangeInclusive<usize> = 24..=64;

/// A secret that sender and receiver share. Nothing prints it.
#[derive(Clone, Debug)]
pub(super) struct SigningKey(SecretSlice<u8>);

impl SigningKey {
    /// Reads a secret as the scheme writes it: `whsec_` and base64.
    ///
    /// # Errors
    /// One sentence, without the secret.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || "the secret must be whsec_ and base64, of 24 to 64 bytes".to_owned();
        let encoded = text.strip_prefix("whsec_").ok_or_else(wrong)?;
        let key = SecretSlice::from(STANDARD.decode(encoded).map_err(|_| wrong())?);
        if LENGTH.contains(&key.expose_secret().len()) { Ok(Self(key)) } else { Err(wrong()) }
    }

    /// Reads the secret in a file that only its owner can read.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        secret::read_with(path, Self::parse)
    }

    /// The signature, as it stands in the header.
    fn sign(&self, id: &str, timestamp: &str, body: &[u8]) -> String {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(self.0.expose_secret()).expect("HMAC takes keys of any length");
        for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
            mac.update(part);
        }
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

/// Reads `secret-files`, in their order.
pub(super) fn read(files: &[PathBuf]) -> Result<Arc<[SigningKey]>, Unusable> {
    let read = |file: &PathBuf| {
        let said = |why: String| Unusable::new("secret-files", format!("{}: {why}", file.display()));
        SigningKey::read(file).map_err(said)
    };
    files.iter().map(read).collect()
}

/// How a message is signed, where there is a secret.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Signing {
    /// As every message of a route is.
    #[default]
    Right,
    /// With the signature of other bytes.
    OfOtherBytes,
    /// With a right signature that is so old.
    Old(Duration),
    /// With a right signature of so long from now.
    Early(Duration),
    /// With a right signature behind one of other bytes.
    Second,
    /// Not at all.
    Absent,
}

impl Signing {
    /// The headers of the signature.
    pub(super) fn headers(self, keys: &[SigningKey], id: &str, body: &[u8], now: Timestamp) -> HeaderMap {
        match self {
            Self::Right => headers(keys, id, &[body], now),
            Self::OfOtherBytes => headers(keys, id, &[OTHER], now),
            Self::Old(age) => headers(keys, id, &[body], now - age),
            Self::Early(by) => headers(keys, id, &[body], now + by),
            Self::Second => headers(keys, id, &[OTHER, body], now),
            Self::Absent => HeaderMap::new(),
        }
    }
}

/// The three headers of a signed message, with the signature of each body by each key; none without a key. During a
/// rotation there are two keys, and the receiver takes either.
fn headers(keys: &[SigningKey], id: &str, bodies: &[&[u8]], now: Timestamp) -> HeaderMap {
    if keys.is_empty() {
        return HeaderMap::new();
    }
    let (id, timestamp) = (id.to_owned(), now.seconds().to_string());
    let signed = |body: &&[u8]| keys.iter().map(|key| key.sign(&id, &timestamp, body)).collect::<Vec<_>>();
    let signatures: Vec<String> = bodies.iter().flat_map(signed).collect();
    let fields = [(ID, id), (TIMESTAMP, timestamp), (SIGNATURE, signatures.join(" "))];
    let value = |text| HeaderValue::try_from(text).expect("a UUID, a number and base64 are plain text");
    fields.map(|(name, text): (_, String)| (name, value(text))).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vector that the scheme publishes.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const MESSAGE: (&str, &str, &[u8]) =
        ("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", br#"{"test": 2432232314}"#);
    const EXPECTED: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    #[test]
    fn the_published_vector_computes() {
        let (id, timestamp, body) = MESSAGE;
        assert_eq!(SigningKey::parse(SECRET).unwrap().sign(id, timestamp, body), EXPECTED);
    }

    /// The broken variants: a key that was not decoded, and another order of the signed parts.
    #[test]
    fn another_reading_of_the_scheme_would_be_caught() {
        let (id, timestamp, body) = MESSAGE;
        let undecoded = SigningKey(SecretSlice::from(SECRET.as_bytes().to_vec()));
        assert_ne!(undecoded.sign(id, timestamp, body), EXPECTED);
        assert_ne!(SigningKey::parse(SECRET).unwrap().sign(timestamp, id, body), EXPECTED);
    }

    /// For a check of a receiver: each wrong one differs from the right one in what it is named for alone.
    #[test]
    fn a_wrong_signature_is_wrong_in_one_thing() {
        let keys = [SigningKey(SecretSlice::from(vec![7; 32]))];
        let at = Timestamp(1_614_265_330_999);
        let of = |signing: Signing| signing.headers(&keys, "id", b"x", at);
        assert_eq!(of(Signing::Right), headers(&keys, "id", &[b"x"], at));
        let forged = of(Signing::OfOtherBytes);
        assert_eq!(forged[TIMESTAMP], of(Signing::Right)[TIMESTAMP]);
        assert_ne!(forged[SIGNATURE], of(Signing::Right)[SIGNATURE]);
        let old = of(Signing::Old(Duration::from_secs(600)));
        assert_eq!(old, headers(&keys, "id", &[b"x"], Timestamp(at.0 - 600_000)));
        let early = of(Signing::Early(Duration::from_secs(600)));
        assert_eq!(early, headers(&keys, "id", &[b"x"], Timestamp(at.0 + 600_000)));
        let second = of(Signing::Second)[SIGNATURE].to_str().unwrap().to_owned();
        let one = |signing| of(signing)[SIGNATURE].to_str().unwrap().to_owned();
        assert_eq!(second, format!("{} {}", one(Signing::OfOtherBytes), one(Signing::Right)));
        assert!(of(Signing::Absent).is_empty());
    }

    #[test]
    fn a_secret_has_the_schemes_form_and_length() {
        let of = |bytes: usize| format!("whsec_{}", STANDARD.encode(vec![7; bytes]));
        for (bytes, good) in [(23, false), (24, true), (64, true), (65, false)] {
            assert_eq!(SigningKey::parse(&of(bytes)).is_ok(), good, "{bytes}");
        }
        for text in
            ["", "whsec_", "whsec_!", &STANDARD.encode([7; 32]), "whpk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]
        {
            let why = SigningKey::parse(text).unwrap_err();
            assert!(
                text.is_empty() || why == "the secret must be whsec_ and base64, of 24 to 64 bytes",
                "{why}"
            );
        }
    }
}
