//! `headers`: what the operator adds to each request. The driver's own headers cannot be replaced.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use site::Section;

/// What the driver or the client sends, or what would change where a request ends: a second one would make the endpoint
/// read another request than was meant.
const OURS: &str = "authorization connection content-length content-type expect host idempotency-key keep-alive \
    proxy-authorization te trailer transfer-encoding upgrade user-agent";

/// Reads `[http.NAME.headers]`. A value may be a token: none is shown.
pub(super) fn read(mut table: Section<'_, '_>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (key, entry) in table.entries() {
        let value = table.last_text(entry, value);
        match (name(key), value) {
            (Err(why), _) => table.complain_at(entry.key, why),
            (Ok(name), Some(value)) => {
                if headers.insert(name, value).is_some() {
                    table.complain_at(entry.key, "is there twice (upper and lower case are the same)");
                }
            }
            (Ok(_), None) => {}
        }
    }
    headers
}

fn name(key: &str) -> Result<HeaderName, &'static str> {
    let name = HeaderName::from_bytes(key.as_bytes()).map_err(|_| "this is not the name of a header")?;
    match OURS.split(' ').any(|own| own == name.as_str()) || name.as_str().starts_with("webhook-") {
        true => Err("the driver sends this header itself: remove it here"),
        false => Ok(name),
    }
}

fn value(text: &str) -> Result<HeaderValue, String> {
    // The type itself would take bytes beyond ASCII, which receivers read differently.
    let printable = Some(text).filter(|text| text.is_ascii()).map(HeaderValue::from_str);
    let Some(Ok(mut value)) = printable else {
        return Err("a header's value must be printable ASCII, on one line".to_owned());
    };
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The broken variant compares the names as they are written.
    #[test]
    fn what_the_driver_sends_cannot_be_replaced_in_any_spelling() {
        for key in
            ["Host", "HOST", "Webhook-Signature", "webhook-anything", "Idempotency-Key", "content-type"]
        {
            assert!(name(key).is_err(), "{key}");
        }
        let careless = |key: &str| !OURS.split(' ').any(|own| own == key);
        assert!(careless("Host"));
        for key in ["X-Auth-Token", "x-tenant", "webhook"] {
            assert_eq!(name(key).map(|name| name.as_str().to_owned()), Ok(key.to_lowercase()));
        }
    }

    #[test]
    fn nothing_can_be_smuggled_into_a_header() {
        for key in ["", "a b", "a:b", "a\r\nb", "ä"] {
            assert!(name(key).is_err(), "{key}");
        }
        for text in ["a\r\nb: c", "a\nb", "\0", "ä"] {
            assert!(value(text).is_err(), "{text:?}");
        }
        assert_eq!(format!("{:?}", value("s3kr1t")), "Ok(Sensitive)");
    }
}
