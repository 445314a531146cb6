//! TLS: only the endpoint that the operator meant is notified (S1-45).

use crate::certificates::{Between, Ca, Peculiar, endpoint_of_nobody};
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

/// S1-45, S1-52: notified over TLS, on the word of the CA that the operator named.
#[tokio::test]
async fn an_endpoint_of_the_named_ca_is_notified() {
    let ca = Ca::new("ours");
    let endpoint = endpoint(ca.endpoint(Peculiar::Nothing)).await;
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
        (ours.endpoint(Peculiar::NotYetValid), "unreachable tls-not-yet-valid"),
        (ours.endpoint(Peculiar::OtherName), "unreachable tls-name"),
        (ours.endpoint(Peculiar::OtherPurpose), "unreachable tls-certificate"),
        (ours.endpoint_of_its_own(), "unreachable tls-self-signed"),
        (endpoint_of_nobody(), "unreachable tls-unknown-ca"),
        (ours.endpoint_below(Between::Missing), "unreachable tls-unknown-ca"),
        (ours.endpoint_below(Between::NoCa), "unreachable tls-certificate"),
        (ours.endpoint_below(Between::OtherAddresses), "unreachable tls-certificate"),
        (ours.endpoint_without_its_key(), "unreachable tls-signature"),
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

/// S1-45: the same endpoints as soon as they are corrected.
#[tokio::test]
async fn an_endpoint_below_another_ca_is_notified() {
    let ours = Ca::new("ours");
    let endpoint = endpoint(ours.endpoint_below(Between::Nothing)).await;
    assert_eq!(word_for(&endpoint, &ours).await, "acknowledged");
}

/// S1-45: a signature that can be forged proves nothing. The broken variant is the same certificate as it is signed today.
#[tokio::test]
async fn a_certificate_with_an_old_signature_is_not_believed() {
    let ours = Ca::with_rsa("ours");
    let old = endpoint(ours.endpoint_of_old()).await;
    assert_eq!(word_for(&old, &ours).await, "unreachable tls-certificate");
    assert_eq!(old.requests().len(), 0);
    let today = endpoint(ours.endpoint(Peculiar::Nothing)).await;
    assert_eq!(word_for(&today, &ours).await, "acknowledged");
}

/// What an endpoint says that speaks TLS 1.1 and nothing newer: that it does not speak ours, or a hello of its own, with a
/// cipher of that time.
fn only_tls_1_1() -> [Vec<u8>; 2] {
    let alert = vec![21, 3, 2, 0, 2, 2, 70];
    let hello = [&[3, 2][..], &[7; 32], &[0, 0xc0, 0x13, 0]].concat();
    let length = u8::try_from(hello.len()).unwrap();
    let record = [&[22, 3, 2, 0, length + 4, 2, 0, 0, length][..], &hello].concat();
    [alert, record]
}

/// S1-45: nothing is sent in a session that is older than TLS 1.2. The broken variants are old sessions that we would
/// speak, in `an_endpoint_with_an_older_tls_than_asked_for_is_not_notified`.
#[tokio::test]
async fn an_endpoint_of_tls_1_1_is_not_notified() {
    let ca = Ca::new("ours");
    for answer in only_tls_1_1() {
        let endpoint = Endpoint::acting(move |mut peer| {
            let answer = answer.clone();
            async move {
                peer.say(&answer).await;
                peer.gone().await;
            }
        })
        .await;
        assert_eq!(word_for(&endpoint, &ca).await, "unreachable tls-version");
    }
}

/// With a CA file the system's CAs are not used.
#[tokio::test]
async fn a_ca_of_the_same_name_is_another_ca() {
    let (ours, impostor) = (Ca::new("ours"), Ca::new("ours"));
    let endpoint = endpoint(impostor.endpoint(Peculiar::Nothing)).await;
    assert_eq!(word_for(&endpoint, &ours).await, "unreachable tls-signature");
    assert_eq!(endpoint.requests().len(), 0);
}

#[tokio::test]
async fn what_speaks_no_tls_is_not_notified() {
    let ca = Ca::new("ours");
    let plain = Endpoint::acting(|mut peer| async move {
        peer.say(b"HTTP/1.1 400 This is a plain HTTP port\r\n\r\n").await;
        peer.gone().await;
    })
    .await;
    assert_eq!(word_for(&plain, &ca).await, "unreachable tls");
    let garbage = Endpoint::acting(|mut peer| async move {
        peer.say(b"\x16\x03\x03\x00\x08\x02\xff\xff\xffjunk").await;
        peer.gone().await;
    })
    .await;
    assert_eq!(word_for(&garbage, &ca).await, "unreachable tls");
    let resetting = Endpoint::acting(|peer| async move {
        peer.stream.readable().await.unwrap();
        peer.reset();
    })
    .await;
    assert_eq!(word_for(&resetting, &ca).await, "unreachable connect");
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
