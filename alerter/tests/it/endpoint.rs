//! Endpoints that answer as a test says, byte by byte.

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A plain "taken over".
pub(crate) const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// Between two bytes of one that says as little as it can.
const DRIP: Duration = Duration::from_millis(25);

/// An address of this machine where nobody listens. The loopback address is its caller's own: a port of a shared one, once it is
/// closed, is given to the next test's endpoint.
pub(crate) fn unused() -> SocketAddr {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let [high, low] = TAKEN.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    let own = (Ipv4Addr::new(127, 1, high, low), 0);
    std::net::TcpListener::bind(own).unwrap().local_addr().unwrap()
}

/// A listening endpoint; it ends with the test's runtime.
pub(crate) struct Endpoint {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
    ended: mpsc::UnboundedReceiver<()>,
}

#[derive(Default)]
struct Seen {
    connections: usize,
    requests: Vec<Vec<u8>>,
    said: usize,
}

impl Endpoint {
    /// An endpoint that reads the request and sends these bytes, then closes.
    pub(crate) async fn saying(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::acting(move |mut peer| {
            let answer = answer.clone();
            async move {
                peer.request().await;
                peer.say(&answer).await;
            }
        })
        .await
    }

    /// An endpoint that does what the test says with each connection.
    pub(crate) async fn acting<F, A>(act: F) -> Self
    where
        F: Fn(Peer<TcpStream>) -> A + Send + Sync + 'static,
        A: Future<Output = ()> + Send + 'static,
    {
        Self::listening(move |peer: Peer<TcpStream>, ended| {
            let acting = act(peer);
            async move {
                acting.await;
                let _test_is_over = ended.send(());
            }
        })
        .await
    }

    /// The same behind TLS; a failed handshake ends the connection without an act.
    pub(crate) async fn tls<F, A>(acceptor: TlsAcceptor, act: F) -> Self
    where
        F: Fn(Peer<TlsStream<TcpStream>>) -> A + Clone + Send + Sync + 'static,
        A: Future<Output = ()> + Send + 'static,
    {
        Self::listening(move |peer: Peer<TcpStream>, ended| {
            let (acceptor, act) = (acceptor.clone(), act.clone());
            async move {
                match acceptor.accept(peer.stream).into_fallible().await {
                    Ok(stream) => act(Peer { stream, number: peer.number, seen: peer.seen }).await,
                    // The other side must get to read why: a close with unread bytes would be a reset.
                    Err((_, stream)) => Peer { stream, number: peer.number, seen: peer.seen }.gone().await,
                }
                let _test_is_over = ended.send(());
            }
        })
        .await
    }

    /// An endpoint behind TLS that reads the request and sends these bytes, then closes.
    pub(crate) async fn saying_over_tls(acceptor: TlsAcceptor, answer: &'static [u8]) -> Self {
        Self::tls(acceptor, move |mut peer| async move {
            peer.request().await;
            peer.say(answer).await;
        })
        .await
    }

    async fn listening<F, A>(serve: F) -> Self
    where
        F: Fn(Peer<TcpStream>, mpsc::UnboundedSender<()>) -> A + Send + Sync + 'static,
        A: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let (report, ended) = mpsc::unbounded_channel();
        let shared = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let number = {
                    let mut seen = shared.lock().unwrap();
                    seen.connections += 1;
                    seen.connections
                };
                tokio::spawn(serve(Peer { stream, number, seen: Arc::clone(&shared) }, report.clone()));
            }
        });
        Self { address, seen, ended }
    }

    /// An `http` address at this endpoint.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1/host-failures", self.address)
    }

    /// How many connections were made to it.
    pub(crate) fn connections(&self) -> usize {
        self.seen.lock().unwrap().connections
    }

    /// Every request that it read, whole.
    pub(crate) fn requests(&self) -> Vec<Vec<u8>> {
        self.seen.lock().unwrap().requests.clone()
    }

    /// How many bytes it could get rid of.
    pub(crate) fn said(&self) -> usize {
        self.seen.lock().unwrap().said
    }

    /// Waits until one connection was dealt with to its end.
    pub(crate) async fn connection_ended(&mut self) {
        self.ended.recv().await.expect("the endpoint lives as long as the test");
    }
}

/// One connection, from the endpoint's side.
pub(crate) struct Peer<S> {
    pub(crate) stream: S,
    /// Counted from 1.
    pub(crate) number: usize,
    seen: Arc<Mutex<Seen>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Peer<S> {
    /// Reads one request with its body and keeps it. Says whether there was one.
    pub(crate) async fn request(&mut self) -> bool {
        self.take_request().await.is_some()
    }

    /// The same, and gives it.
    pub(crate) async fn take_request(&mut self) -> Option<Vec<u8>> {
        let mut request = Vec::new();
        while !is_whole(&request) {
            match self.stream.read_buf(&mut request).await {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
        }
        let came = (!request.is_empty()).then_some(request);
        self.seen.lock().unwrap().requests.extend(came.clone());
        came
    }

    /// Sends bytes; says whether the other side still takes any.
    pub(crate) async fn say(&mut self, bytes: &[u8]) -> bool {
        let taken = self.stream.write_all(bytes).await.is_ok() && self.stream.flush().await.is_ok();
        self.seen.lock().unwrap().said += if taken { bytes.len() } else { 0 };
        taken
    }

    /// Sends the same again and again for as long as the other side takes it.
    pub(crate) async fn pour(&mut self, bytes: &[u8]) {
        while self.say(bytes).await {
            tokio::task::yield_now().await;
        }
    }

    /// Sends bytes one by one, slowly, for as long as the other side takes them.
    pub(crate) async fn drip(&mut self, bytes: impl IntoIterator<Item = u8>) {
        for byte in bytes {
            tokio::time::sleep(DRIP).await;
            if !self.say(&[byte]).await {
                return;
            }
        }
    }

    /// Waits until the other side has gone.
    pub(crate) async fn gone(&mut self) {
        let mut rest = [0; 4096];
        while matches!(self.stream.read(&mut rest).await, Ok(n) if n > 0) {}
    }
}

impl Peer<TcpStream> {
    /// Keeps the unread bytes few: after a short time they do not count as sent.
    pub(crate) fn without_room(self) -> Self {
        setsockopt(&self.stream, sockopt::SndBuf, &(64 * 1024)).unwrap();
        self
    }

    /// Says nothing more, and goes on listening.
    pub(crate) async fn half_close(&mut self) {
        let _already_gone = self.stream.shutdown().await;
    }

    /// Ends the connection with a reset instead of an orderly close.
    pub(crate) fn reset(self) {
        self.stream.set_zero_linger().unwrap();
    }
}

/// Whether a request has come to its end.
pub(crate) fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length =
        head.to_lowercase().lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    body.len() >= length.unwrap_or(0)
}
