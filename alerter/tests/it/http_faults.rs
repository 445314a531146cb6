//! No answer at all: before the message was sent it is a retry, after it the outcome is unknown.

use drivers::Peer;

use crate::endpoint::{Endpoint, OK, unused};
use crate::route::{LONG, deliver, route, word, word_of};

/// A label of more than 63 letters has no address anywhere, and no name server is asked for it.
#[tokio::test]
async fn a_name_without_an_address_is_a_retry() {
    assert_eq!(word_of(&format!("http://{}.invalid/", "x".repeat(64))).await, "unreachable dns");
}

/// What took no connection is named, and a bare connection shows when it does: it gets nothing. TLS has that too, but it is met then.
#[tokio::test]
async fn what_takes_no_connection_is_named_and_asked_by_a_bare_one() {
    let plain = Endpoint::acting(|mut peer| async move {
        peer.say(b"220 no TLS\r\n").await;
        peer.gone().await;
    });
    let (gone, https) = (unused(), plain.await);
    let peer = Peer(gone.ip().to_string(), gone.port());
    let outcome = deliver(&route(&format!("http://{gone}/"), LONG)).await;
    assert_eq!(outcome.failure().unwrap().peer.as_ref(), Some(&peer));
    assert!(!peer.connects().await);
    let refused = deliver(&route(&format!("https://{}/", https.address), LONG)).await;
    assert_eq!((word(&refused).as_str(), &refused.failure().unwrap().peer), ("unreachable tls", &None));

    let mut endpoint = Endpoint::saying(OK).await;
    let there = Peer("localhost".to_owned(), endpoint.address.port());
    assert!(there.connects().await, "whichever of its addresses does");
    endpoint.connection_ended().await;
    assert_eq!((endpoint.connections(), endpoint.requests().len()), (1, 0));
}

/// S1-16: the message may have arrived, so it is sent again.
#[tokio::test]
async fn a_reset_is_unknown_before_and_after_the_request_was_read() {
    let endpoint = Endpoint::acting(|peer| async move { peer.reset() }).await;
    assert_eq!(word_of(&endpoint.url()).await, "unknown closed");
    let endpoint = Endpoint::acting(|mut peer| async move {
        peer.request().await;
        peer.reset();
    })
    .await;
    assert_eq!(word_of(&endpoint.url()).await, "unknown closed");
    assert_eq!(endpoint.requests().len(), 1);
}

/// S1-16, S4-30: what was said before a reset counts, where it is whole. The broken variant drops the answer's last byte.
#[tokio::test]
async fn a_reset_behind_a_whole_answer_does_not_undo_it() {
    let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n";
    for (said, expected) in [
        (&whole[..], "acknowledged"),
        (&whole[..whole.len() - 1], "unknown closed"),
        (b"HTTP", "unknown closed"),
    ] {
        let endpoint = Endpoint::acting(move |mut peer| async move {
            peer.request().await;
            peer.say(said).await;
            peer.reset();
        })
        .await;
        assert_eq!(word_of(&endpoint.url()).await, expected, "{:?}", String::from_utf8_lossy(said));
        assert_eq!(endpoint.requests().len(), 1);
    }
}

/// S1-16: an endpoint that says nothing more, but goes on listening, has given its answer: none, or a whole one. Nobody
/// waits for more.
#[tokio::test]
async fn a_half_closed_connection_is_given_up() {
    for (reads, says, expected) in
        [(false, &b""[..], "unknown closed"), (true, b"", "unknown closed"), (true, OK, "acknowledged")]
    {
        let mut endpoint = Endpoint::acting(move |mut peer| async move {
            if reads {
                peer.request().await;
            }
            peer.say(says).await;
            peer.half_close().await;
            peer.gone().await;
        })
        .await;
        assert_eq!(word_of(&endpoint.url()).await, expected);
        endpoint.connection_ended().await;
    }
}
