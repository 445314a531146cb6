//! When a certificate ends: the only field that is read here. Others have checked the certificate before.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use marks::time::Timestamp;

const SEQUENCE: u8 = 0x30;
/// The tag of the version, which may stand in front of the other fields.
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The end of its validity (RFC 5280, 4.1); `None` if it is no certificate.
pub(super) fn end(der: &[u8]) -> Option<Timestamp> {
    let (certificate, _) = of(SEQUENCE, der)?;
    let (mut fields, _) = of(SEQUENCE, certificate)?;
    if let Some((_, rest)) = of(VERSION, fields) {
        fields = rest;
    }
    // Serial number, signature algorithm, issuer.
    for _ in 0..3 {
        fields = element(fields)?.2;
    }
    let (validity, _) = of(SEQUENCE, fields)?;
    let (tag, text, _) = element(element(validity)?.2)?;
    moment(tag, std::str::from_utf8(text).ok()?)
}

/// Both forms end in `Z`; the short one has a year of two digits, from 50 on of the last century.
fn moment(tag: u8, text: &str) -> Option<Timestamp> {
    let whole = match tag {
        UTC_TIME if text.get(..2)? < "50" => format!("20{text}"),
        UTC_TIME => format!("19{text}"),
        GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    let civil = DateTime::strptime("%Y%m%d%H%M%SZ", whole).ok()?;
    let zoned = civil.to_zoned(TimeZone::UTC).ok()?;
    Some(Timestamp(zoned.timestamp().as_millisecond()))
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
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    #[test]
    fn the_end_is_read_in_both_forms() {
        // From 2050 on the other form is used.
        for (year, seconds) in [(2031, 1_930_608_000), (2050, 2_530_224_000), (4096, 67_095_820_800)] {
            let mut params = CertificateParams::new(vec!["x".to_owned()]).unwrap();
            params.not_after = date_time_ymd(year, 3, 7);
            let made = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
            assert_eq!(end(made.der()), Some(Timestamp(seconds * 1000)), "{year}");
            assert_eq!(end(&made.der()[..200]), None);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _nothing_or_something = end(&bytes);
        }
    }
}
