//! TLS: only the endpoint that the operator meant is told (S1-45).

use crate::certificates::{Ca, Peculiar};
use crate::endpoint::{Endpoint, OK};
use crate::route::{LONG, SHORT, deliver, route_with_ca, word};
use tokio_rustls::TlsAcceptor;

async fn endpoint(acceptor: TlsAcceptor) -> Endpoint {
    Endpoint::tls(acceptor, |mut peer| async move {
        peer.request().await;
        peer.say(OK).await;
    })
    .await
}

fn https(endpoint: &Endpoint) -> String {
    format!("https://{}/v1/host-failures", endpoint.address)
}

async fn word_for(endpoint: &Endpoint, ca: &Ca) -> String {
    word(&deliver(&route_with_ca(&https(endpoint), LONG, Some(&ca.file()))).await)
}

/// S1-45, S1-52: told over TLS, on the word of the CA that the operator named.
#[tokio::test]
async fn an_endpoint_of_the_named_ca_is_told() {
    let ca = Ca::new("ours");
    let endpoint = endpoint(ca.endpoint(Peculiar::Nothing)).await;
    assert_eq!(word_for(&endpoint, &ca).await, "acknowledged");
    assert_eq!(endpoint.requests().len(), 1);
}

/// S1-45: nothing is sent to an endpoint with a wrong certificate, and the word says what is wrong with it.
///
/// The broken variant is a client that takes any certificate: it tells each of them.
#[tokio::test]
async fn an_endpoint_with_a_wrong_certificate_is_not_told() {
    let (ours, theirs) = (Ca::new("ours"), Ca::new("theirs"));
    for (acceptor, expected) in [
        (theirs.endpoint(Peculiar::Nothing), "unreachable tls-unknown-ca"),
        (ours.endpoint(Peculiar::Expired), "unreachable tls-expired"),
        (ours.endpoint(Peculiar::NotYetValid), "unreachable tls-not-yet-valid"),
        (ours.endpoint(Peculiar::OtherName), "unreachable tls-name"),
        (ours.endpoint_of_its_own(), "unreachable tls-self-signed"),
    ] {
        let endpoint = endpoint(acceptor).await;
        assert_eq!(word_for(&endpoint, &ours).await, expected);
        assert_eq!(endpoint.requests().len(), 0, "{expected}");

        let careless =
            reqwest::Client::builder().no_proxy().tls_danger_accept_invalid_certs(true).build().unwrap();
        assert!(careless.post(https(&endpoint)).body("x").send().await.is_ok(), "{expected}");
        assert_eq!(endpoint.requests().len(), 1, "{expected}");
    }
}

/// A CA file stands for itself: the system's CAs are not asked beside it.
#[tokio::test]
async fn a_ca_of_the_same_name_is_another_ca() {
    let (ours, impostor) = (Ca::new("ours"), Ca::new("ours"));
    let endpoint = endpoint(impostor.endpoint(Peculiar::Nothing)).await;
    assert_eq!(word_for(&endpoint, &ours).await, "unreachable tls-unknown-ca");
    assert_eq!(endpoint.requests().len(), 0);
}

#[tokio::test]
async fn what_speaks_no_tls_is_not_told() {
    let ca = Ca::new("ours");
    let plain = Endpoint::acting(|mut peer| async move {
        peer.say(b"HTTP/1.1 400 This is a plain HTTP port\r\n\r\n").await;
        peer.gone().await;
    })
    .await;
    assert_eq!(word_for(&plain, &ca).await, "unreachable tls");
    let silent = Endpoint::acting(|peer| async move { drop(peer) }).await;
    let word = word_for(&silent, &ca).await;
    assert!(["unreachable tls", "unreachable connect"].contains(&word.as_str()), "{word}");
}

/// A handshake that never ends has sent nothing: it is a retry, not an unknown outcome.
#[tokio::test]
async fn a_handshake_without_end_is_given_up() {
    let ca = Ca::new("ours");
    let mut endpoint = Endpoint::acting(|mut peer| async move { peer.gone().await }).await;
    let route = route_with_ca(&https(&endpoint), SHORT, Some(&ca.file()));
    assert_eq!(word(&deliver(&route).await), "unreachable connect-timeout");
    endpoint.connection_ended().await;
}

/// The endpoint hangs up in the middle of the body, without TLS's own goodbye: what it said before still counts.
#[tokio::test]
async fn a_missing_goodbye_does_not_undo_the_acknowledgement() {
    let ca = Ca::new("ours");
    let acceptor = ca.endpoint(Peculiar::Nothing);
    let endpoint = Endpoint::tls(acceptor, |mut peer| async move {
        peer.request().await;
        peer.say(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n").await;
    })
    .await;
    assert_eq!(word_for(&endpoint, &ca).await, "acknowledged");
}
