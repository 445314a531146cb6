//! Signed messages, as the scheme's own library sees them.

use alerter::drivers::http::{Http, Options, SigningKey};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use standardwebhooks::Webhook;

use crate::endpoint::{Endpoint, OK};
use crate::route::{BODY, deliver, id, options, signing_key, word};

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

async fn sent(keys: Vec<SigningKey>) -> (HeaderMap, Vec<u8>) {
    let endpoint = Endpoint::saying(OK).await;
    let route = Http::new(Options { signing_keys: keys, ..options(&endpoint.url()) }).unwrap();
    assert_eq!(word(&deliver(&route).await), "acknowledged");
    parts(&endpoint.requests()[0])
}

fn verifies(secret: &str, headers: &HeaderMap, body: &[u8]) -> bool {
    Webhook::new(secret).unwrap().verify(body, headers).is_ok()
}

/// The broken variants: another secret, a body that was changed on its way, and a message that was sent before.
#[tokio::test]
async fn the_receiver_can_tell_who_sent_the_message_and_when() {
    let ((key, secret), (_, other)) = (signing_key(1), signing_key(2));
    let (mut headers, body) = sent(vec![key]).await;
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
    let ((old, old_secret), (new, new_secret)) = (signing_key(1), signing_key(2));
    let (headers, body) = sent(vec![new.clone(), old]).await;
    assert!(verifies(&old_secret, &headers, &body) && verifies(&new_secret, &headers, &body));
    let (headers, body) = sent(vec![new]).await;
    assert!(!verifies(&old_secret, &headers, &body) && verifies(&new_secret, &headers, &body));
}

#[tokio::test]
async fn without_a_secret_nothing_is_signed() {
    let (headers, _) = sent(Vec::new()).await;
    assert!(headers.keys().all(|name| !name.as_str().starts_with("webhook-")), "{headers:?}");
}
