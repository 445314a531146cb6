//! Answers: what acknowledges, and what must not.

use std::sync::Arc;

use reqwest::StatusCode;
use tokio::sync::Notify;

use crate::endpoint::{Endpoint, OK};
use crate::route::{SECRET, SHORT, deliver, deliver_to, route, word, word_of};

fn status(line: &str, fields: &str) -> String {
    format!("HTTP/1.1 {line}\r\n{fields}Content-Length: 0\r\n\r\n")
}

#[tokio::test]
async fn the_endpoints_wish_is_heard() {
    let fields = "Date: Wed, 21 Oct 2015 07:28:00 GMT\r\nRetry-After: Wed, 21 Oct 2015 07:29:00 GMT\r\n";
    let endpoint = Endpoint::saying(status("503 Busy", fields)).await;
    let outcome = deliver_to(&endpoint.url()).await;
    assert_eq!(outcome.failure().unwrap().after.unwrap().as_secs(), 60);
}

/// Nothing of the body has been sent yet when the outcome is there: the endpoint waits for it.
#[tokio::test]
async fn the_acknowledgement_waits_for_no_byte_of_the_body() {
    let acknowledged = Arc::new(Notify::new());
    let wait = Arc::clone(&acknowledged);
    let mut endpoint = Endpoint::acting(move |mut peer| {
        let wait = Arc::clone(&wait);
        async move {
            peer.request().await;
            peer.say(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n").await;
            wait.notified().await;
            assert!(peer.say(b"done").await, "the body is still taken, for an orderly close");
            peer.gone().await;
        }
    })
    .await;
    assert_eq!(word_of(&endpoint.url()).await, "acknowledged");
    acknowledged.notify_one();
    endpoint.connection_ended().await;
}

/// What becomes of the body after the header section does not matter.
#[tokio::test]
async fn a_broken_body_does_not_undo_the_acknowledgement() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnot a chunk\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\njunk",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 500 No\r\n\r\n",
    ] {
        let endpoint = Endpoint::saying(answer).await;
        assert_eq!(word_of(&endpoint.url()).await, "acknowledged", "{answer:?}");
    }
}

/// A length that is not true, and what comes behind an answer, change nothing of it: neither to the worse nor to the
/// better. The broken variant searches for a success anywhere in what came.
#[tokio::test]
async fn what_stands_behind_an_answer_does_not_matter() {
    let finds_one = |answer: &str| answer.contains("HTTP/1.1 200");
    for (answer, expected) in [
        ("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "retry unavailable"),
        ("HTTP/1.1 503 No\r\nContent-Length: 9\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "retry unavailable"),
        ("HTTP/1.1 503 No\r\nContent-Length: 999\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "retry unavailable"),
        ("HTTP/1.1 404 No\r\nConnection: keep-alive\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "refused misconfigured"),
        ("HTTP/1.1 302 No\r\nLocation: HTTP/1.1 200 OK\r\n\r\n", "refused redirect"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nand much more than that", "acknowledged"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\nless", "acknowledged"),
    ] {
        let endpoint = Endpoint::saying(answer).await;
        assert_eq!(word_of(&endpoint.url()).await, expected, "{answer:?}");
        assert!(finds_one(answer));
    }
}

/// A redirect is refused however its place is written, also one that only this machine gets at. All these places are on
/// loopback: were one followed, no test may ask anybody else.
///
/// The broken variant is a client with the default policy: it gets to each place that HTTP can name.
#[tokio::test]
async fn a_redirect_is_refused_however_its_place_is_written() {
    let target = Endpoint::saying(OK).await;
    let (port, mut asked) = (target.address.port(), 0);
    for (place, is_http) in [
        (format!("http://localhost:{port}/latest/meta-data/"), true),
        (format!("http://127.1:{port}/"), true),
        (format!("http://[::ffff:127.0.0.1]:{port}/"), true),
        (format!("http://me:{SECRET}@127.0.0.1:{port}/"), true),
        (format!("//127.0.0.1:{port}/"), true),
        ("file:///etc/shadow".to_owned(), false),
        (format!("gopher://127.0.0.1:{port}/_FLUSHALL"), false),
        ("unix:/run/docker.sock".to_owned(), false),
    ] {
        for code in [301, 302, 303, 307, 308] {
            let fields = format!("Location: {place}\r\n");
            let endpoint = Endpoint::saying(status(&format!("{code} Moved"), &fields)).await;
            assert_eq!(word_of(&endpoint.url()).await, "refused redirect", "{code} {place}");
            assert_eq!((endpoint.connections(), target.connections()), (1, asked), "{code} {place}");

            let careless = reqwest::Client::builder().tls_certs_only([]).no_proxy().build().unwrap();
            let _however = careless.post(endpoint.url()).body("x").send().await;
            asked += usize::from(is_http);
            assert_eq!(target.connections(), asked, "{code} {place}");
        }
    }
}

/// HTTP/0.9 has no status. The broken variant is a client that still understands it: it sees a 200.
#[tokio::test]
async fn what_is_no_http_does_not_acknowledge() {
    for answer in [
        "OK\r\n\r\n",
        "<html>200 OK</html>\r\n\r\n",
        "HTTP/1.1 2OO OK\r\n\r\n",
        "HTTP/9.9 200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "ICY 200 OK\r\n\r\n",
        "\0\0\0\0\x04\x01\0\0\0\0",
        "HTTP/1.1 200 OK\r\nno colon here\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    ] {
        let endpoint = Endpoint::saying(answer).await;
        assert_eq!(word_of(&endpoint.url()).await, "unknown protocol", "{answer:?}");
    }
    let endpoint = Endpoint::saying("<html>It works!</html>\r\n\r\n").await;
    let lenient =
        reqwest::Client::builder().tls_certs_only([]).no_proxy().http09_responses().build().unwrap();
    let fooled = lenient.post(endpoint.url()).body("x").send().await.unwrap();
    assert_eq!(fooled.status(), StatusCode::OK);
}

#[tokio::test]
async fn an_interim_answer_alone_does_not_acknowledge() {
    let hints = "HTTP/1.1 103 Early Hints\r\n\r\n";
    let endpoint = Endpoint::saying(hints).await;
    assert_eq!(word_of(&endpoint.url()).await, "unknown closed");
    let endpoint =
        Endpoint::saying("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")
            .await;
    assert_eq!(word_of(&endpoint.url()).await, "unknown interim");
    let endpoint = Endpoint::saying([hints.as_bytes(), OK].concat()).await;
    assert_eq!(word_of(&endpoint.url()).await, "acknowledged");
}

/// Interim answers without end run into the limit of the whole exchange.
#[tokio::test]
async fn interim_answers_without_end_are_given_up() {
    let mut endpoint = Endpoint::acting(|mut peer| async move {
        peer.request().await;
        while peer.say(b"HTTP/1.1 102 Processing\r\n\r\n").await {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(word(&deliver(&route(&endpoint.url(), SHORT)).await), "unknown timeout");
    endpoint.connection_ended().await;
}

/// A header section that is whole, but larger than is taken, acknowledges nothing.
///
/// The broken variant is the client alone, which reads much more: it sees a success.
#[tokio::test]
async fn a_header_of_more_than_16_kib_does_not_acknowledge() {
    for (kib, expected) in
        [(15, "acknowledged"), (17, "unknown header-too-large"), (200, "unknown header-too-large")]
    {
        let field = format!("X-Filler: {}\r\n", "x".repeat(kib * 1024));
        let endpoint = Endpoint::saying(status("200 OK", &field)).await;
        assert_eq!(word_of(&endpoint.url()).await, expected, "{kib}");
        let careless = reqwest::Client::builder().tls_certs_only([]).no_proxy().build().unwrap();
        assert_eq!(careless.post(endpoint.url()).body("x").send().await.unwrap().status(), StatusCode::OK);
    }
}

/// The same with more fields than are taken. The broken variant is the client as it comes, which takes a hundred.
#[tokio::test]
async fn a_header_of_more_than_64_fields_does_not_acknowledge() {
    for (fields, expected) in [(64, "acknowledged"), (65, "unknown header-too-large")] {
        // One more field says how long the body is.
        let endpoint = Endpoint::saying(status("200 OK", &"X: y\r\n".repeat(fields - 1))).await;
        assert_eq!(word_of(&endpoint.url()).await, expected, "{fields}");
        let careless = reqwest::Client::builder().tls_certs_only([]).no_proxy().build().unwrap();
        assert_eq!(careless.post(endpoint.url()).body("x").send().await.unwrap().status(), StatusCode::OK);
    }
}
