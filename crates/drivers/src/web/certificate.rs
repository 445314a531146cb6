//! What is read of a certificate itself: why the TLS library takes none of its kind. Nothing is proved here.

use std::fmt;

const SEQUENCE: u8 = 0x30;
/// The tag of the version, which may stand in front of the other fields.
const VERSION: u8 = 0xa0;

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
/// The object identifier of an RSA key.
const RSA: [u8; 11] = [0x06, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
/// The version of certificates with extensions, counted from zero.
const VERSION_3: u8 = 2;
/// The lengths of RSA keys that the TLS library takes.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

/// Why the TLS library does not take a certificate that others take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It is of this version of X.509; only 3 is taken.
    Version(u8),
    /// Its RSA key has so many bits.
    Key(usize),
}

impl fmt::Display for Unfit {
    /// What follows the certificate's name, and what to type.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => write!(
                f,
                "is of X.509 version {version}, and only version 3 can be used: sign it again with an extension, as with `openssl x509 -req … -extfile <(echo basicConstraints=CA:FALSE)`"
            ),
            Self::Key(bits) => write!(
                f,
                "has an RSA key of {bits} bits, and 2048 to 8192 are needed: make a new key, as with `openssl genrsa -out FILE 3072`, and a certificate of it"
            ),
        }
    }
}

/// Why a certificate cannot be used as one of an endpoint or of ours; `None` if nothing is known against it.
pub(super) fn unfit(der: &[u8]) -> Option<Unfit> {
    let (version, _) = fields(der)?;
    match version {
        VERSION_3 => short(der),
        other => Some(Unfit::Version(other.saturating_add(1))),
    }
}

/// Its RSA key, if that has no length that is taken.
pub(super) fn short(der: &[u8]) -> Option<Unfit> {
    rsa_bits(der).filter(|bits| !RSA_BITS.contains(bits)).map(Unfit::Key)
}

/// The length of its key, if that is one of RSA (RFC 3279, 2.3.1).
fn rsa_bits(der: &[u8]) -> Option<usize> {
    let (_, mut fields) = fields(der)?;
    // Validity, subject.
    for _ in 0..2 {
        fields = element(fields)?.2;
    }
    let (algorithm, key) = of(SEQUENCE, of(SEQUENCE, fields)?.0)?;
    if !algorithm.starts_with(&RSA) {
        return None;
    }
    let (bits, _) = of(BIT_STRING, key)?;
    let (modulus, _) = of(INTEGER, of(SEQUENCE, bits.get(1..)?)?.0)?;
    let zeros = modulus.iter().take_while(|byte| **byte == 0).count();
    let first = modulus.get(zeros)?;
    Some((modulus.len() - zeros) * 8 - first.leading_zeros() as usize)
}

/// The version, counted from zero, and what stands behind the issuer (RFC 5280, 4.1); `None` if it is no certificate.
fn fields(der: &[u8]) -> Option<(u8, &[u8])> {
    let (certificate, _) = of(SEQUENCE, der)?;
    let (mut fields, _) = of(SEQUENCE, certificate)?;
    let mut version = 0;
    if let Some((own, rest)) = of(VERSION, fields) {
        (version, fields) = (*of(INTEGER, own)?.0.last()?, rest);
    }
    // Serial number, signature algorithm, issuer.
    for _ in 0..3 {
        fields = element(fields)?.2;
    }
    Some((version, fields))
}

/// The content of an element with this tag, and the rest behind it.
fn of(tag: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    element(bytes).filter(|(found, ..)| *found == tag).map(|(_, content, rest)| (content, rest))
}

/// Tag, content, and the rest behind: DER, with lengths of up to four bytes.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, bytes) = bytes.split_first()?;
    let (&first, bytes) = bytes.split_first()?;
    let (length, bytes) = match first {
        0..=0x7f => (usize::from(first), bytes),
        0x81..=0x84 => {
            let (digits, bytes) = bytes.split_at_checked(usize::from(first & 0x0f))?;
            (digits.iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit)), bytes)
        }
        _ => return None,
    };
    let (content, rest) = bytes.split_at_checked(length)?;
    Some((tag, content, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _nothing_or_something = unfit(&bytes);
        }
    }
}
