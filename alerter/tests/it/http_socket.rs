//! Endpoints on a Unix socket of this machine.

use std::path::PathBuf;

use drivers::http::{Http, Options};
use drivers::{Peer, web};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixListener;
use tokio::sync::oneshot;

use crate::endpoint::{OK, is_whole};
use crate::route::{BODY, deliver, options, word};

/// A host that has no address anywhere, and that no name server is asked for.
fn nowhere() -> String {
    format!("http://{}.invalid/v1/x", "x".repeat(64))
}

fn route(socket: Option<PathBuf>) -> Http {
    Http::new(Options::by(web::ClientOptions { socket, ..options(&nowhere()).client })).unwrap()
}

/// Takes one request, and gives it to the test.
fn endpoint(listener: UnixListener) -> oneshot::Receiver<Vec<u8>> {
    let (sender, received) = oneshot::channel();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !is_whole(&request) {
            assert_ne!(stream.read_buf(&mut request).await.unwrap(), 0);
        }
        stream.write_all(OK).await.unwrap();
        sender.send(request).unwrap();
    });
    received
}

/// The broken variant goes by the url's host: it finds nobody.
#[tokio::test]
async fn an_endpoint_on_a_socket_is_notified_there() {
    let room = tempfile::tempdir().unwrap();
    let path = room.path().join("recovery.sock");
    let received = endpoint(UnixListener::bind(&path).unwrap());
    assert_eq!(word(&deliver(&route(Some(path))).await), "acknowledged");
    let request = String::from_utf8(received.await.unwrap()).unwrap();
    assert!(request.starts_with("POST /v1/x?") && request.as_bytes().ends_with(BODY), "{request}");
    assert!(request.contains(".invalid\r\n"), "the url's host is a header: {request}");
    assert_eq!(word(&deliver(&route(None)).await), "unreachable dns");
}

/// S1-16: a socket that nobody listens on, or that is not there yet, is a retry.
#[tokio::test]
async fn a_socket_without_a_listener_is_unreachable() {
    let room = tempfile::tempdir().unwrap();
    let path = room.path().join("recovery.sock");
    let (route, socket) = (route(Some(path.clone())), Peer::Socket(path.clone()));
    let outcome = deliver(&route).await;
    assert_eq!(word(&outcome), "unreachable connect");
    assert_eq!(outcome.failure().unwrap().peer.as_ref(), Some(&socket));
    assert!(!socket.connects().await);
    let listener = UnixListener::bind(&path).unwrap();
    assert!(socket.connects().await);
    drop(listener);
    assert_eq!(word(&deliver(&route).await), "unreachable connect");
}
