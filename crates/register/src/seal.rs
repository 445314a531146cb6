//! What root wrote into the register: anybody in `haclient` can write there, but only root has the key of the MAC.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use zeroize::Zeroizing;

/// The label of this key: no other use of the same secret gives it.
const LABEL: &[u8] = b"nova-host-alerter register 1";
/// The text that is sealed to compare keys: no entry begins like it.
const DIGEST_OF: &str = "digest";
/// Half of what SHA-256 gives, the least that RFC 2104, section 5, recommends.
const LENGTH: usize = 16;
/// The length of a digest for people.
const SHOWN: usize = 12;

/// The keys of a controller: the first seals, any opens, so that a new key can be given to one controller after the
/// other.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SealKeys(Arc<Vec<Zeroizing<[u8; 32]>>>);

impl SealKeys {
    /// One key of each secret, whatever its length, with a label of our own: the secret is a key already, so RFC 5869 (section
    /// 3.3) needs its second step alone, of which this is the first block.
    pub fn derive<'a>(secrets: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let keys = secrets.into_iter().map(|secret| {
            Zeroizing::new(keyed(secret).chain_update(LABEL).chain_update([1]).finalize().into_bytes().into())
        });
        Self(Arc::new(keys.collect()))
    }

    /// Whether there is no key: nothing can be sealed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The seal of a text in this place; `None` without a key.
    pub fn seal(&self, place: &str, text: &str) -> Option<String> {
        let mac = mac(self.0.first()?, place, text).finalize().into_bytes();
        Some(URL_SAFE_NO_PAD.encode(&mac[..LENGTH]))
    }

    /// Whether one of the keys sealed this text for this place.
    pub fn opens(&self, place: &str, text: &str, seal: &str) -> bool {
        let Ok(seal) = URL_SAFE_NO_PAD.decode(seal) else { return false };
        seal.len() == LENGTH
            && self.0.iter().any(|key| mac(key, place, text).verify_truncated_left(&seal).is_ok())
    }

    /// A value that shows whether two controllers have the same first key; it reveals nothing of the key.
    pub fn digest(&self) -> Option<String> {
        self.seal(DIGEST_OF, "").map(|seal| seal.chars().take(SHOWN).collect())
    }
}

impl fmt::Debug for SealKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} key(s)", self.0.len())
    }
}

/// A place has no line break, so no other pair of place and text gives the same bytes.
fn mac(key: &[u8; 32], place: &str, text: &str) -> Hmac<Sha256> {
    keyed(key).chain_update(place).chain_update("\n").chain_update(text)
}

fn keyed(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes a key of any length")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(secrets: &[&str]) -> SealKeys {
        SealKeys::derive(secrets.iter().map(|secret| secret.as_bytes()))
    }

    #[test]
    fn what_one_key_seals_the_same_key_opens_there_alone() {
        let (ours, others) = (keys(&["ours"]), keys(&["others"]));
        let seal = ours.seal("f.ctl1", "text").unwrap();
        assert!(keys(&["ours"]).opens("f.ctl1", "text", &seal));
        assert!(!others.opens("f.ctl1", "text", &seal));
        for (place, text) in [("f.ctl2", "text"), ("f.ctl1", "texu"), ("f.ctl1\nt", "ext"), ("f.ctl1", "")] {
            assert!(!ours.opens(place, text, &seal), "{place} {text}");
        }
        for bad in ["", "AAAA", &seal[1..], &format!("{seal}A"), "?"] {
            assert!(!ours.opens("f.ctl1", "text", bad), "{bad}");
        }
    }

    /// A new key is given to every controller as the second, then becomes the first everywhere, then the old one is
    /// removed: at each step each controller opens what the others seal.
    #[test]
    fn a_key_is_changed_without_a_gap() {
        let steps = [&["old"][..], &["old", "new"], &["new", "old"], &["new"]];
        for pair in steps.windows(2) {
            for (one, other) in [(pair[0], pair[1]), (pair[1], pair[0])] {
                let seal = keys(one).seal("p", "t").unwrap();
                assert!(keys(other).opens("p", "t", &seal), "{one:?} {other:?}");
            }
        }
        let seal = keys(&["old"]).seal("p", "t").unwrap();
        assert!(!keys(&["new"]).opens("p", "t", &seal), "a step left out");
    }

    #[test]
    fn without_a_key_nothing_is_sealed_and_nothing_opens() {
        let none = SealKeys::default();
        assert!(none.is_empty() && none.seal("p", "t").is_none() && none.digest().is_none());
        assert!(!none.opens("p", "t", &keys(&["a"]).seal("p", "t").unwrap()));
    }

    /// From another implementation of RFC 5869 and RFC 2104 (Python's hmac), so that no release changes them unnoticed.
    #[test]
    fn seals_are_those_of_the_standards() {
        assert_eq!(keys(&["secret"]).seal("f.ctl1", "text").unwrap(), "10p8n8lM3x53_BTxOedjZg");
        assert_eq!(keys(&["secret"]).digest().unwrap(), "RYj-bTSuHnxn");
        assert_eq!(format!("{:?}", keys(&["s3kr1t"])), "1 key(s)");
    }
}
