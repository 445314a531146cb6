//! Answers that would fill the memory or last for ever: what is read of them is bounded, and so is the time.

use std::io::Write as _;
use std::process::{Command, Stdio};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::endpoint::{Endpoint, OK};
use crate::route::{LONG, SHORT, deliver, route, word, word_of};

/// No endpoint can send more than this: what is read of an answer (408 KiB at most), and what the system keeps on the way.
const MOST: usize = 4 << 20;
/// A piece of what never ends.
const PIECE: usize = 16 << 10;

/// One that says `head` and then `piece` without end.
async fn pouring(head: &str, piece: &[u8]) -> Endpoint {
    let (head, piece) = (head.as_bytes().to_vec(), piece.repeat(PIECE / piece.len()));
    Endpoint::acting(move |peer| {
        let (mut peer, head, piece) = (peer.without_room(), head.clone(), piece.clone());
        async move {
            peer.request().await;
            peer.say(&head).await;
            peer.pour(&piece).await;
        }
    })
    .await
}

/// The broken variant of a reader of answers: takes all that comes, and gives up only when it is more than [`MOST`].
async fn greedy(endpoint: &Endpoint) -> usize {
    let mut stream = TcpStream::connect(endpoint.address).await.unwrap();
    stream.write_all(b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n").await.unwrap();
    let (mut got, mut piece) = (0, vec![0; PIECE]);
    while got <= MOST {
        match stream.read(&mut piece).await.unwrap() {
            0 => break,
            bytes => got += bytes,
        }
    }
    got
}

/// Delivers to it, and checks how much it could send until it was cut off.
async fn outcome_of(mut endpoint: Endpoint, what: &str) -> String {
    let outcome = deliver(&route(&endpoint.url(), LONG)).await;
    endpoint.connection_ended().await;
    assert!(endpoint.said() <= MOST, "{what}: {} bytes were taken", endpoint.said());
    assert!(greedy(&endpoint).await > MOST, "{what}: it has an end");
    word(&outcome)
}

const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

/// A body acknowledges nothing and undoes nothing: however much there is of it, little is read.
#[tokio::test]
async fn a_body_without_end_is_left_alone() {
    for (what, head, piece) in [
        ("as long as it says", "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\n", &b"x"[..]),
        ("without a length", "HTTP/1.1 200 OK\r\n\r\n", b"x"),
        ("in chunks", CHUNKED, b"4\r\nxxxx\r\n"),
        ("one chunk's extension", &format!("{CHUNKED}1;"), b"x"),
        ("trailers", &format!("{CHUNKED}0\r\n"), b"X-Trailer: x\r\n"),
    ] {
        assert_eq!(outcome_of(pouring(head, piece).await, what).await, "acknowledged", "{what}");
    }
    let busy = pouring("HTTP/1.1 503 Busy\r\n\r\n", b"x").await;
    assert_eq!(outcome_of(busy, "a failure's body").await, "retry unavailable");
}

/// A header section without end is given up: by fields, by bytes, and wherever it stands.
#[tokio::test]
async fn a_header_section_without_end_is_given_up() {
    for (what, head, piece) in [
        ("fields", "HTTP/1.1 200 OK\r\n", &b"X-Field: value\r\n"[..]),
        ("one field", "HTTP/1.1 200 OK\r\nX-Field: ", b"x"),
        ("one field's name", "HTTP/1.1 200 OK\r\n", b"x"),
        ("the reason", "HTTP/1.1 200 ", b"x"),
        ("empty lines before it", "", b"\r\n"),
    ] {
        assert_eq!(outcome_of(pouring(head, piece).await, what).await, "unknown header-too-large", "{what}");
    }
    assert_eq!(outcome_of(pouring("", b"\0").await, "zeros").await, "unknown protocol");
}

/// Compressed data, thirteen bits for each run of 258 zeros: its beginning, and the part that repeats for ever.
fn gzip_bomb() -> (Vec<u8>, Vec<u8>) {
    // Deflate with its fixed codes, which are written from their first bit on: a block that is not the last, a zero,
    // and then "258 bytes as the one before".
    let (block, zero, run) = ("010", "00110000", "1100010100000");
    let packed = |bits: String| -> Vec<u8> {
        let byte = |bits: &[u8]| bits.iter().rev().fold(0, |byte, bit| byte << 1 | (bit - b'0'));
        bits.as_bytes().chunks(8).map(byte).collect()
    };
    let mut begin = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    begin.extend(packed(format!("{block}{zero}{run}")));
    (begin, packed(run.repeat(8)))
}

/// Nothing asks for a packed answer, and nothing unpacks one. The broken variant does: it gets over a hundred times as much.
#[tokio::test]
async fn a_gzip_bomb_is_not_unpacked() {
    let (begin, piece) = gzip_bomb();
    let mut gzip = Command::new("gzip");
    gzip.arg("-dc").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut unpacking = gzip.spawn().unwrap();
    let bomb = [begin.clone(), piece.repeat(1000)].concat();
    unpacking.stdin.take().unwrap().write_all(&bomb).unwrap();
    let unpacked = unpacking.wait_with_output().unwrap().stdout;
    assert!(unpacked.len() > 100 * bomb.len(), "{} bytes of {}", unpacked.len(), bomb.len());

    for (status, expected) in [("200 OK", "acknowledged"), ("500 Oh", "retry unavailable")] {
        let endpoint = Endpoint::acting({
            let (begin, piece) = (begin.clone(), piece.repeat(1000));
            let head =
                format!("HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Encoding: gzip\r\n\r\n");
            move |peer| {
                let (mut peer, head, begin, piece) =
                    (peer.without_room(), head.clone(), begin.clone(), piece.clone());
                async move {
                    peer.request().await;
                    peer.say(head.as_bytes()).await;
                    peer.say(&begin).await;
                    peer.pour(&piece).await;
                }
            }
        })
        .await;
        assert_eq!(outcome_of(endpoint, status).await, expected);
    }
}

/// A header section byte by byte: the limit is for the whole exchange. The broken variant has one for the connection
/// alone, and waits for as long as the endpoint likes.
#[tokio::test]
async fn a_slow_header_is_given_up() {
    let mut endpoint = Endpoint::acting(|mut peer| async move {
        peer.request().await;
        peer.drip(OK.iter().copied()).await;
        peer.gone().await;
    })
    .await;
    assert_eq!(word(&deliver(&route(&endpoint.url(), SHORT)).await), "unknown timeout");
    endpoint.connection_ended().await;
    assert!(endpoint.said() < OK.len());

    let careless =
        reqwest::Client::builder().tls_certs_only([]).no_proxy().connect_timeout(SHORT).build().unwrap();
    assert_eq!(careless.post(endpoint.url()).body("x").send().await.unwrap().status(), 200);
}

/// A body byte by byte, without end: the outcome does not wait for it, and the endpoint is left alone soon.
#[tokio::test]
async fn a_slow_body_holds_nobody() {
    let dripping = |head: &'static str| {
        Endpoint::acting(move |mut peer| async move {
            peer.request().await;
            peer.say(head.as_bytes()).await;
            peer.drip(std::iter::repeat(b'x')).await;
        })
    };
    let mut taken = dripping("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n").await;
    let mut busy = dripping("HTTP/1.1 503 Busy\r\nContent-Length: 1000000\r\n\r\n").await;
    assert_eq!(word_of(&taken.url()).await, "acknowledged");
    assert_eq!(word_of(&busy.url()).await, "retry unavailable");
    for endpoint in [&mut taken, &mut busy] {
        endpoint.connection_ended().await;
        assert!(endpoint.said() < PIECE, "it came byte by byte");
    }
}
