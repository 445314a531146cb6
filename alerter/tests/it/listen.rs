//! Our own addresses, on real sockets, with clients that misbehave.

use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use alerter::listen::{self, Endpoint, Owner, Unserved};
use axum::Router;
use axum::routing::get;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::endpoint::unused;

/// What is served until it is stopped.
struct Served {
    unserved: Unserved,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Served {
    fn at(uri: &str) -> Self {
        Self::of(uri, Owner::default())
    }

    fn of(uri: &str, owner: Owner) -> Self {
        let (unserved, stop) = (Unserved::default(), CancellationToken::new());
        let endpoint = Endpoint {
            what: "/x",
            addresses: listen::parse(uri).unwrap(),
            owner,
            router: Router::new().route("/x", get(async || "yes")),
            names: None,
            unserved: unserved.clone(),
        };
        let task = tokio::spawn(listen::run(endpoint, stop.clone()));
        Self { unserved, stop, task }
    }

    async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }

    async fn refusal(&self) -> String {
        loop {
            match self.unserved.reasons().pop() {
                Some(reason) => return reason,
                None => tokio::time::sleep(Duration::from_millis(2)).await,
            }
        }
    }
}

/// Connects as soon as it is served.
async fn reached<S, F: Future<Output = io::Result<S>>>(mut connect: impl FnMut() -> F) -> S {
    loop {
        match connect().await {
            Ok(stream) => return stream,
            Err(_) => tokio::time::sleep(Duration::from_millis(2)).await,
        }
    }
}

async fn unix(path: &Path) -> UnixStream {
    reached(|| UnixStream::connect(path)).await
}

async fn tcp(address: SocketAddr) -> TcpStream {
    reached(|| TcpStream::connect(address)).await
}

/// Gives all that comes until the other end closes.
async fn ask(mut stream: impl AsyncRead + AsyncWrite + Unpin, request: &str) -> String {
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

fn room() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// S3-35: owner and group may connect, nobody else; the file goes with the daemon.
#[tokio::test]
async fn a_sockets_file_has_its_mode_and_owner_and_goes_at_the_end() {
    let room = room();
    let path = room.path().join("made/x.sock");
    let (user, group) = (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw());
    let owner = Owner { user: Some(user), group: Some(group) };
    let served = Served::of(&format!("unix://{}", path.display()), owner);
    // It answers when its file is as it has to be; to connect one need not wait for that.
    ask(unix(&path).await, "GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    let meta = fs::metadata(&path).unwrap();
    assert_eq!((meta.mode() & 0o7777, meta.uid(), meta.gid()), (0o660, user, group));
    let directory = fs::metadata(path.parent().unwrap()).unwrap();
    assert_eq!(directory.permissions().mode() & 0o7777, 0o711);
    served.end().await;
    assert!(!path.exists() && path.parent().unwrap().exists());
}

/// Two broken variants: one removes whatever stands there, the other nothing, so that a killed daemon keeps the next one out.
#[tokio::test]
async fn only_a_stale_socket_is_replaced() {
    let room = room();
    let at = |name: &str| room.path().join(name);
    drop(std::os::unix::net::UnixListener::bind(at("stale")).unwrap());
    let served = Served::at(&format!("unix://{}", at("stale").display()));
    assert!(ask(unix(&at("stale")).await, "GET /x HTTP/1.0\r\n\r\n").await.ends_with("yes"));
    served.end().await;

    fs::write(at("file"), "mine").unwrap();
    std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
    let _somebody = UnixListener::bind(at("live")).unwrap();
    for (name, why) in [
        ("file", "the path is a file and no socket"),
        ("link", "the path is a file and no socket"),
        ("live", "another process listens there"),
    ] {
        let served = Served::at(&format!("unix://{}", at(name).display()));
        let said = served.refusal().await;
        assert!(said.starts_with("/x at unix:///") && said.contains(why), "{said}");
        served.end().await;
        assert!(fs::symlink_metadata(at(name)).is_ok(), "{name}");
    }
    assert_eq!(fs::read_to_string(at("file")).unwrap(), "mine");
}

/// The next daemon's file is not ours.
#[tokio::test]
async fn a_file_that_another_put_there_stays() {
    let room = room();
    let path = room.path().join("x");
    let served = Served::at(&format!("unix://{}", path.display()));
    unix(&path).await;
    fs::remove_file(&path).unwrap();
    fs::write(&path, "theirs").unwrap();
    served.end().await;
    assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
}

/// An address that cannot be bound is reported and bound as soon as possible; the other addresses are served meanwhile.
#[tokio::test]
async fn an_address_that_is_taken_is_tried_again() {
    let room = room();
    let path = room.path().join("x");
    let address = unused();
    let taken = TcpListener::bind(address).await.unwrap();
    let served = Served::at(&format!("tcp://{address},unix://{}", path.display()));
    assert!(served.refusal().await.contains("Address already in use"));
    assert!(ask(unix(&path).await, "GET /x HTTP/1.0\r\n\r\n").await.ends_with("yes"));
    drop(taken);
    assert!(ask(tcp(address).await, "GET /x HTTP/1.0\r\n\r\n").await.ends_with("yes"));
    assert_eq!(served.unserved.reasons(), Vec::<String>::new());
    served.end().await;
}

/// A client that says nothing, or reads nothing, is cut off, and keeps nobody else out for good. The broken variants have no limit of
/// time, or close the connection of a client that comes when all places are taken.
#[tokio::test]
async fn silent_clients_are_cut_off() {
    let room = room();
    let path = room.path().join("x");
    let served = Served::at(&format!("unix://{}", path.display()));
    let mut silent = Vec::new();
    for number in 0..64 {
        let mut stream = unix(&path).await;
        let begun = if number % 2 == 0 { "" } else { "GET /x HTTP/1.1\r\nHo" };
        stream.write_all(begun.as_bytes()).await.unwrap();
        silent.push(stream);
    }
    assert!(ask(unix(&path).await, "GET /x HTTP/1.0\r\n\r\n").await.ends_with("yes"));
    for mut stream in silent {
        let mut rest = Vec::new();
        let _reset_or_closed = stream.read_to_end(&mut rest).await;
        assert!(!rest.starts_with(b"HTTP/1.1 200"), "nothing was asked");
    }
    served.end().await;
}

/// The broken variant gives each half request its whole time, and everybody else waits for places.
#[tokio::test]
async fn half_requests_keep_nobody_waiting() {
    let address = unused();
    let served = Served::at(&format!("tcp://{address}"));
    let mut halves = Vec::new();
    for number in 0..500 {
        let mut stream = tcp(address).await;
        let begun = if number % 2 == 0 { "" } else { "GET /x HTTP/1.1\r\nHo" };
        stream.write_all(begun.as_bytes()).await.unwrap();
        halves.push(stream);
    }
    let asked = ask(tcp(address).await, "GET /x HTTP/1.0\r\n\r\n");
    let answer = tokio::time::timeout(Duration::from_secs(25), asked).await;
    assert!(answer.is_ok_and(|answer| answer.ends_with("yes")), "500 places take 40 s");
    served.end().await;
}

/// A head that does not end is not read to its end.
#[tokio::test]
async fn a_head_without_end_is_refused() {
    let room = room();
    let path = room.path().join("x");
    let served = Served::at(&format!("unix://{}", path.display()));
    let mut stream = unix(&path).await;
    let line = format!("X-Fill: {}\r\n", "x".repeat(1000));
    let mut sent = stream.write_all(b"GET /x HTTP/1.1\r\n").await;
    let mut lines = 0;
    while sent.is_ok() {
        sent = stream.write_all(line.as_bytes()).await;
        lines += 1;
        assert!(lines < 10_000, "it is read for ever");
    }
    served.end().await;
}
