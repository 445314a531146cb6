//! A page for people: an answer in HTML comes from a proxy that wants somebody to sign in, or from a web server that knows
//! nothing of the receiver. Pure.

use reqwest::header::{CONTENT_TYPE, HeaderMap};

use crate::driver::Failure;

/// How much of a body can show that it is a page.
pub(super) const FIRST_BYTES: usize = 512;

/// The beginning of an answer, as far as it says whether it is a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// A page.
    Page,
    /// No page.
    Other,
    /// The next bytes show it.
    Unknown,
}

/// Whether an answer is a page, by its type or by its first bytes. `body` is `None` where nothing of it has come; an empty
/// body is no page, whatever its type is.
pub(crate) fn is_one(headers: &HeaderMap, body: Option<&[u8]>) -> bool {
    match body {
        Some([]) => false,
        Some(body) => is_typed(headers) || start(body) == Start::Page,
        None => is_typed(headers),
    }
}

/// Whether its type says that it is a page.
fn is_typed(headers: &HeaderMap) -> bool {
    let media = |value: &[u8]| {
        let media = value.split(|byte| matches!(byte, b';' | b',')).next().unwrap_or_default().trim_ascii();
        ["text/html", "application/xhtml+xml"].iter().any(|page| media.eq_ignore_ascii_case(page.as_bytes()))
    };
    headers.get_all(CONTENT_TYPE).iter().any(|value| media(value.as_bytes()))
}

/// What a body's first bytes say. Blanks, marks of the byte order, comments and declarations may stand before the page.
pub(super) fn start(body: &[u8]) -> Start {
    let first = body.get(..FIRST_BYTES).unwrap_or(body);
    // Each second byte of UTF-16 is none of ours.
    let text: Vec<u8> = first.iter().filter(|byte| **byte != 0).map(u8::to_ascii_lowercase).collect();
    let mut rest = &text[..];
    for mark in [&b"\xef\xbb\xbf"[..], b"\xff\xfe", b"\xfe\xff"] {
        rest = rest.strip_prefix(mark).unwrap_or(rest);
    }
    loop {
        rest = rest.trim_ascii_start();
        let skipped = [("<!--", "-->"), ("<?", "?>")].into_iter().find_map(|(open, close)| {
            let within = rest.strip_prefix(open.as_bytes())?;
            Some(
                within
                    .windows(close.len())
                    .position(|at| at == close.as_bytes())
                    .map(|at| &within[at + close.len()..]),
            )
        });
        match skipped {
            Some(Some(behind)) => rest = behind,
            // No receiver answers with a comment of this length.
            Some(None) if first.len() == FIRST_BYTES => return Start::Page,
            Some(None) => return Start::Unknown,
            None => break,
        }
    }
    let tags = [&b"<html"[..], b"<!doctype"];
    match () {
        () if tags.iter().any(|tag| rest.starts_with(tag)) => Start::Page,
        () if first.len() < FIRST_BYTES
            && [&b"<!--"[..], b"<html", b"<!doctype"].iter().any(|tag| tag.starts_with(rest)) =>
        {
            Start::Unknown
        }
        () => Start::Other,
    }
}

/// The failure that a page means, with what to do. It may have come in place of the receiver's own answer.
pub(crate) fn failure(advice: &str) -> Failure {
    Failure::new("protocol", &format!("a page for people answered, not the receiver: {advice}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use reqwest::header::HeaderValue;

    use super::*;

    fn typed(media: &str) -> HeaderMap {
        HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::try_from(media).unwrap())])
    }

    /// The broken variant goes by the status alone, or by one spelling of the type.
    #[test]
    fn a_page_is_known_by_its_type() {
        for media in ["text/html", "Text/HTML; charset=utf-8", " text/html ;x", "application/xhtml+xml"] {
            for body in [Some(&b"ok"[..]), Some(b"{}"), None] {
                assert!(is_one(&typed(media), body), "{media} {body:?}");
            }
            assert!(!is_one(&typed(media), Some(b"")), "nothing was said");
        }
        for media in ["application/json", "text/plain", "text/html5", "application/xml", "x/text/html"] {
            assert!(!is_one(&typed(media), Some(b"ok")) && !is_one(&typed(media), None), "{media}");
        }
    }

    #[test]
    fn a_page_is_known_by_its_first_bytes() {
        let wide = |text: &str| text.bytes().flat_map(|byte| [byte, 0]).collect::<Vec<u8>>();
        let pages: [Vec<u8>; 9] = [
            b"<html>".to_vec(),
            b"<HtMl lang=en>".to_vec(),
            b"<!DOCTYPE html>".to_vec(),
            b"\r\n\t <!doctype HTML>".to_vec(),
            b"\xef\xbb\xbf<html>".to_vec(),
            b"<!-- sign in -->\n<!-- <a> --><html>".to_vec(),
            b"<?xml version=\"1.0\"?>\n<!DOCTYPE html PUBLIC \"x\">".to_vec(),
            [b"\xff\xfe".to_vec(), wide("<!DOCTYPE html>")].concat(),
            [b"<!--".to_vec(), vec![b'x'; FIRST_BYTES]].concat(),
        ];
        for page in pages {
            assert!(is_one(&HeaderMap::new(), Some(&page)), "{}", String::from_utf8_lossy(&page));
        }
        let far = [vec![b' '; FIRST_BYTES], b"<html>".to_vec()].concat();
        for other in [
            &b"{\"note\": \"<html>\"}"[..],
            b"ok <html>",
            b"null",
            b"<ok/>",
            b"<?xml version=\"1.0\"?><ok/>",
            &far,
        ] {
            assert_eq!(start(other), Start::Other, "{}", String::from_utf8_lossy(other));
        }
        for begun in [&b""[..], b" ", b"<", b"<ht", b"<!", b"<!doc", b"<!-- x", b"<?xml"] {
            assert_eq!(start(begun), Start::Unknown, "{}", String::from_utf8_lossy(begun));
            assert!(!is_one(&HeaderMap::new(), Some(begun)));
        }
    }

    proptest! {
        /// However a page is cut into pieces, no piece of it is taken for another thing.
        #[test]
        fn no_beginning_of_a_page_is_another_thing(blanks in "[ \n\t]{0,9}", comment in "[a-z<> ]{0,9}", cut in 0usize..60) {
            let page = format!("{blanks}<!--{comment}--><!DOCTYPE html><html>");
            let cut = cut.min(page.len());
            prop_assert_ne!(start(&page.as_bytes()[..cut]), Start::Other);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..700)) {
            let _one_or_another = start(&bytes);
        }
    }
}
