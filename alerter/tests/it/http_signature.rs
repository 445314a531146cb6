//! Signed messages, as the scheme's own library sees them.

use std::fs;

use drivers::http::{Http, Options};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use standardwebhooks::Webhook;

use crate::endpoint::{Endpoint, OK};
use crate::route::{BODY, Files, deliver, id, options, signing_secret, word};
use crate::warnings::Warnings;

/// The header section of a request and its body, as a receiver gets them.
fn parts(request: &[u8]) -> (HeaderMap, Vec<u8>) {
    let text = String::from_utf8(request.to_vec()).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let fields = head.lines().skip(1).map(|line| line.split_once(": ").unwrap());
    let headers = fields.map(|(name, value)| {
        (HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap())
    });
    (headers.collect(), body.as_bytes().to_vec())
}

/// One message that is signed with these secrets, in their order.
async fn sent(secrets: &[&str]) -> (HeaderMap, Vec<u8>) {
    let endpoint = Endpoint::saying(OK).await;
    let (files, names) = (Files::with([]), ["first", "second"]);
    names.iter().zip(secrets).for_each(|(name, secret)| files.put(name, secret));
    let secret_files = files.paths(&names[..secrets.len()]);
    let route = Http::new(Options { secret_files, ..options(&endpoint.url()) }).unwrap();
    assert_eq!(word(&deliver(&route).await), "acknowledged");
    parts(&endpoint.requests()[0])
}

fn verifies(secret: &str, headers: &HeaderMap, body: &[u8]) -> bool {
    Webhook::new(secret).unwrap().verify(body, headers).is_ok()
}

/// The broken variants: another secret, a body that was changed on its way, and a message that was sent before.
#[tokio::test]
async fn the_receiver_can_verify_who_sent_the_message_and_when() {
    let (secret, other) = (signing_secret(1), signing_secret(2));
    let (mut headers, body) = sent(&[&secret]).await;
    assert_eq!((headers["webhook-id"].to_str().unwrap(), body.as_slice()), (&*id().to_string(), BODY));
    assert!(verifies(&secret, &headers, &body));
    assert!(!verifies(&other, &headers, &body));
    assert!(!verifies(&secret, &headers, b"{}"));
    headers.insert("webhook-timestamp", HeaderValue::from_static("1614265330"));
    assert!(!verifies(&secret, &headers, &body));
}

/// While a secret is replaced, a receiver that knows the old one and a receiver that knows the new one both verify.
#[tokio::test]
async fn a_secret_is_replaced_without_a_message_that_nobody_can_verify() {
    let (old, new) = (signing_secret(1), signing_secret(2));
    let (headers, body) = sent(&[&new, &old]).await;
    assert!(verifies(&old, &headers, &body) && verifies(&new, &headers, &body));
    let (headers, body) = sent(&[&new]).await;
    assert!(!verifies(&old, &headers, &body) && verifies(&new, &headers, &body));
}

#[tokio::test]
async fn without_a_secret_nothing_is_signed() {
    let (headers, _) = sent(&[]).await;
    assert!(headers.keys().all(|name| !name.as_str().starts_with("webhook-")), "{headers:?}");
}

/// The secret is used as its file is at each message; one that cannot be used leaves the old one in use, said once.
#[tokio::test]
async fn a_secret_that_was_replaced_signs_the_next_message() {
    let (old, new) = (signing_secret(1), signing_secret(2));
    let files = Files::with([("secret", &old)]);
    let endpoint = Endpoint::saying(OK).await;
    let secret_files = files.paths(&["secret"]);
    let route = Http::new(Options { secret_files, ..options(&endpoint.url()) }).unwrap();
    let signed_with = async || {
        assert_eq!(word(&deliver(&route).await), "acknowledged");
        let (headers, body) = parts(endpoint.requests().last().unwrap());
        (verifies(&old, &headers, &body), verifies(&new, &headers, &body))
    };
    assert_eq!(signed_with().await, (true, false));
    files.put("secret", &new);
    assert_eq!(signed_with().await, (false, true), "a key that was read once would still be the old one");

    let warnings = Warnings::default();
    let _here = warnings.listen();
    files.put("secret", "whsec_s3kr1t");
    for _ in 0..3 {
        assert_eq!(signed_with().await, (false, true));
    }
    let said = warnings.take();
    assert!(said.len() == 1 && said[0].contains("secret-files"), "{said:?}");
    fs::remove_file(files.path("secret")).unwrap();
    assert_eq!(signed_with().await, (false, true));
    assert_eq!(warnings.take().len(), 1);
    files.put("secret", &old);
    assert_eq!(signed_with().await, (true, false));
}
