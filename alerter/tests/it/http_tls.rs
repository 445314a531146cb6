//! TLS: only the endpoint that the operator meant is notified (S1-45).

use crate::certificates::{Ca, Peculiar};
use crate::endpoint::{Endpoint, OK};
use crate::route::{LONG, SHORT, deliver, route_with_ca, word};

fn https(endpoint: &Endpoint) -> String {
    format!("https://{}/v1/host-failures", endpoint.address)
}

async fn word_for(endpoint: &Endpoint, ca: &Ca) -> String {
    word(&deliver(&route_with_ca(&https(endpoint), LONG, Some(&ca.file()))).await)
}

/// S1-45, S1-52: notified over TLS, on the word of the CA that the operator named.
#[tokio::test]
async fn an_endpoint_of_the_named_ca_is_notified() {
    let ca = Ca::new("ours");
    let endpoint = Endpoint::saying_over_tls(ca.endpoint(Peculiar::Nothing), OK).await;
    assert_eq!(word_for(&endpoint, &ca).await, "acknowledged");
    assert_eq!(endpoint.requests().len(), 1);
}

/// S1-45: nothing is sent to an endpoint with a wrong certificate, and the word says what is wrong with it.
///
/// The broken variant is a client that takes any certificate: it notifies each of them.
#[tokio::test]
async fn an_endpoint_with_a_wrong_certificate_is_not_notified() {
    let (ours, theirs) = (Ca::new("ours"), Ca::new("theirs"));
    for (acceptor, expected) in [
        (theirs.endpoint(Peculiar::Nothing), "unreachable tls-unknown-ca"),
        (ours.endpoint(Peculiar::Expired), "unreachable tls-expired"),
        (ours.endpoint(Peculiar::OtherName), "unreachable tls-name"),
        (ours.endpoint_of_its_own(), "unreachable tls-self-signed"),
    ] {
        let endpoint = Endpoint::saying_over_tls(acceptor, OK).await;
        assert_eq!(word_for(&endpoint, &ours).await, expected);
        assert_eq!(endpoint.requests().len(), 0, "{expected}");

        let careless =
            reqwest::Client::builder().no_proxy().tls_danger_accept_invalid_certs(true).build().unwrap();
        assert!(careless.post(https(&endpoint)).body("x").send().await.is_ok(), "{expected}");
        assert_eq!(endpoint.requests().len(), 1, "{expected}");
    }
}

/// With a CA file the system's CAs are not used.
#[tokio::test]
async fn a_ca_of_the_same_name_is_another_ca() {
    let (ours, impostor) = (Ca::new("ours"), Ca::new("ours"));
    let endpoint = Endpoint::saying_over_tls(impostor.endpoint(Peculiar::Nothing), OK).await;
    assert_eq!(word_for(&endpoint, &ours).await, "unreachable tls-signature");
    assert_eq!(endpoint.requests().len(), 0);
}

/// A handshake that never ends has sent nothing: it is a retry, not an unknown outcome.
#[tokio::test]
async fn a_handshake_without_end_is_given_up() {
    let ca = Ca::new("ours");
    let mut endpoint = Endpoint::acting(|mut peer| async move { peer.gone().await }).await;
    let route = route_with_ca(&https(&endpoint), SHORT, Some(&ca.file()));
    assert_eq!(word(&deliver(&route).await), "unreachable connect-timeout");
    endpoint.connection_ended().await;
    let mut endpoint = Endpoint::acting(|mut peer| async move {
        peer.say(b"\x16\x03\x03\x40\x00").await;
        peer.drip(std::iter::repeat(2)).await;
    })
    .await;
    let route = route_with_ca(&https(&endpoint), SHORT, Some(&ca.file()));
    assert_eq!(word(&deliver(&route).await), "unreachable connect-timeout");
    endpoint.connection_ended().await;
}

/// S1-16: an endpoint that resets the session right behind its answer has answered.
#[tokio::test]
async fn a_reset_of_a_session_does_not_undo_the_acknowledgement() {
    let ca = Ca::new("ours");
    let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n";
    for (said, expected) in [(&whole[..], "acknowledged"), (&whole[..whole.len() - 1], "unknown closed")] {
        let endpoint = Endpoint::tls(ca.endpoint(Peculiar::Nothing), move |mut peer| async move {
            peer.request().await;
            peer.say(said).await;
            peer.stream.get_ref().0.set_zero_linger().unwrap();
        })
        .await;
        assert_eq!(word_for(&endpoint, &ca).await, expected);
    }
}
