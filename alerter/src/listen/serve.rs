//! Plain HTTP/1.1 at the addresses, with bounds: connections at once, time and size of a request, time of its answer.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::http::HeaderValue;
use axum::http::header::CONNECTION;
use axum::response::Response;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, lookup_host};
use tokio::task::{JoinSet, yield_now};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};

use super::address::{Address, Host};
use super::names::{self, Names};
use super::places::{Door, Place};
use super::socket::{Bound, Owner};
use super::unserved::Unserved;

/// So many connections wait in the kernel's queue.
const WAITING: u32 = 1024;
/// A request of the API may wait for the disk.
const LIMITS: Limits =
    Limits { head: Duration::from_secs(5), whole: Duration::from_secs(30), bytes: 16 * 1024 };
/// An address that cannot be listened to is tried again after this time.
const AGAIN: Duration = Duration::from_secs(10);
/// The pause after the system refused to accept a connection, for example because no descriptors are left.
const PAUSE: Duration = Duration::from_secs(1);

/// The bounds of a connection, which has one request.
pub(crate) struct Limits {
    /// For the request's head.
    pub(crate) head: Duration,
    /// For all.
    pub(crate) whole: Duration,
    /// A larger head is refused.
    pub(crate) bytes: usize,
}

/// What is served, and where.
#[derive(Clone)]
pub struct Endpoint {
    /// Its name in the log, such as `/health`.
    pub what: &'static str,
    /// Where.
    pub addresses: Vec<Address>,
    /// Who the files of unix sockets belong to.
    pub owner: Owner,
    /// The router. It answers unknown paths and methods with 404 or 405.
    pub router: Router,
    /// The names that requests over TCP must use; any if `None`. No name leads a browser to a unix socket.
    pub names: Option<Names>,
    /// Keeps what cannot be served at the moment.
    pub unserved: Unserved,
}

/// Serves until `stop`. An address that cannot be listened to does not stop the others: it may come with a move of the cluster's
/// resources. When this has returned, sockets are closed and their files removed.
pub async fn run(endpoint: Endpoint, stop: CancellationToken) {
    let mut entrances = JoinSet::new();
    for address in &endpoint.addresses {
        let router = match (&endpoint.names, address) {
            (Some(names), Address::Tcp { .. }) => names::only(endpoint.router.clone(), names.clone()),
            _ => endpoint.router.clone(),
        };
        let entrance = Entrance {
            place: format!("{} at {address}", endpoint.what),
            address: address.clone(),
            owner: endpoint.owner,
            router: router.layer(axum::middleware::map_response(closing)),
            unserved: endpoint.unserved.clone(),
        };
        let stop = stop.clone();
        entrances.spawn(async move { entrance.keep(&stop).await });
    }
    while entrances.join_next().await.is_some() {}
}

/// Each connection has one request: with socat or netcat its end shows the end of the answer.
async fn closing(mut response: Response) -> Response {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// One address.
struct Entrance {
    place: String,
    address: Address,
    owner: Owner,
    router: Router,
    unserved: Unserved,
}

impl Entrance {
    async fn keep(&self, stop: &CancellationToken) {
        let kept = async {
            loop {
                match self.open().await {
                    Ok(listeners) => self.serve(listeners).await,
                    Err(error) => self.say_unserved(&error),
                }
                tokio::time::sleep(AGAIN).await;
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = kept => {}
        }
        self.unserved.forget(&self.place);
    }

    fn say_unserved(&self, error: &io::Error) {
        let text = error.to_string();
        let words = text.split(" (os error").next().unwrap_or(&text);
        self.unserved.note(&self.place, format!("{} is not served ({words}): check its uri", self.place));
    }

    async fn open(&self) -> io::Result<Vec<Listener>> {
        match &self.address {
            Address::Unix(path) => Ok(vec![Listener::Unix(Bound::new(path, self.owner).await?)]),
            Address::Tcp { host, port } => {
                let name = match host {
                    Host::Ip(ip) => ip.to_string(),
                    Host::Name(name) => name.clone(),
                };
                all_of(&name, *port).await
            }
        }
    }

    /// Returns only when nothing is listened to any more.
    async fn serve(&self, listeners: Vec<Listener>) {
        if self.unserved.forget(&self.place) {
            info!("{} is served again", self.place);
        } else {
            info!("{} is served", self.place);
        }
        let door = Door::new();
        let mut loops = JoinSet::new();
        for listener in listeners {
            let (router, door, place) = (self.router.clone(), door.clone(), self.place.clone());
            loops.spawn(async move { listener.accept_all(router, &door, &place).await });
        }
        while loops.join_next().await.is_some() {}
    }
}

/// A name may have several addresses of this machine (`localhost` has two): all that can be listened to are used.
async fn all_of(name: &str, port: u16) -> io::Result<Vec<Listener>> {
    let mut listeners = Vec::new();
    let mut fault = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in lookup_host((name, port)).await? {
        match bind(address) {
            Ok(listener) => listeners.push(Listener::Tcp(listener)),
            Err(error) => fault = error,
        }
    }
    if listeners.is_empty() { Err(fault) } else { Ok(listeners) }
}

/// A socket of IPv6 takes IPv6 alone: else `[::]` would take the port of every IPv4 address too, and could not be used beside
/// `0.0.0.0`.
fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    if address.is_ipv6() {
        SockRef::from(&socket).set_only_v6(true)?;
    }
    // As a listener of tokio's own: connections of a former daemon that are not over yet keep no port.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(WAITING)
}

enum Listener {
    Tcp(TcpListener),
    Unix(Bound),
}

impl Listener {
    /// A connection that was accepted is begun before the next one is: one that asks at once gives way to nobody.
    async fn accept_all(self, router: Router, door: &Door, place: &str) {
        let mut open = JoinSet::new();
        loop {
            while open.try_join_next().is_some() {}
            if let Err(error) = self.accept_one(&router, door, &mut open).await {
                debug!(%error, "{place} accepts no connection");
                tokio::time::sleep(PAUSE).await;
            }
            yield_now().await;
        }
    }

    async fn accept_one(&self, router: &Router, door: &Door, open: &mut JoinSet<()>) -> io::Result<()> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                open.spawn(serve_one(stream, router.clone(), door.wait().await));
            }
            Self::Unix(bound) => {
                let (stream, _) = bound.listener.accept().await?;
                open.spawn(serve_one(stream, router.clone(), door.wait().await));
            }
        }
        Ok(())
    }
}

/// Errors of a connection concern nothing else.
async fn serve_one(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    place: Place,
) {
    let _too_long_or_broken = attend(stream, router, place, &LIMITS).await;
}

/// One request. The connection ends with its answer, when its time is over, or when it gives way to another one.
///
/// # Errors
/// It is broken.
pub(crate) async fn attend(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    place: Place,
    limits: &Limits,
) -> hyper::Result<()> {
    let (end, router) = (place.end(), TowerToHyperService::new(router));
    let service = service_fn(move |request| {
        place.asks();
        router.call(request)
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.head);
    http.max_buf_size(limits.bytes).keep_alive(false);
    let connection = timeout(limits.whole, http.serve_connection(TokioIo::new(stream), service));
    match end.run_until_cancelled(connection).await {
        Some(Ok(ended)) => ended,
        Some(Err(_)) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The broken variant, tokio's own listener, takes both kinds with the first one, and the second is never had.
    #[tokio::test]
    async fn the_same_port_is_had_for_both_kinds_of_addresses() {
        let Ok(six) = bind("[::]:0".parse().unwrap()) else { return };
        let port = six.local_addr().unwrap().port();
        // An address of its own: on a shared one somebody else may have the port.
        let four = bind(SocketAddr::from(([127, 2, 0, 1], port))).unwrap();
        assert_eq!(four.local_addr().unwrap().port(), port);
    }
}
