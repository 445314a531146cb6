//! The other end of a connection, and whether it can be reached: nothing is sent.

use std::path::PathBuf;
use std::time::Duration;

use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// The limit for name resolution, TCP and TLS together. It distinguishes an endpoint that takes no connection from one that does not
/// answer.
pub(crate) const CONNECT_TIME: Duration = Duration::from_secs(5);

/// Where connections go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A name or an address, and a port.
    Net(String, u16),
    /// A Unix socket of this machine.
    Socket(PathBuf),
}

impl Peer {
    /// Whether it takes a connection, on any of its addresses. That is all that it gets.
    pub async fn connects(&self) -> bool {
        timeout(CONNECT_TIME, self.connected()).await.unwrap_or(false)
    }

    async fn connected(&self) -> bool {
        let (host, port) = match self {
            Self::Net(host, port) => (host.as_str(), *port),
            Self::Socket(path) => return UnixStream::connect(path).await.is_ok(),
        };
        // All at once, as an address that swallows packets must not hide one that answers.
        let found = lookup_host((host, port)).await.into_iter().flatten();
        let tries = found.map(|address| async move { TcpStream::connect(address).await.is_ok() });
        let mut tries: JoinSet<bool> = tries.collect();
        while let Some(tried) = tries.join_next().await {
            if tried.is_ok_and(|connects| connects) {
                return true;
            }
        }
        false
    }
}
