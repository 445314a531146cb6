//! The other end of a connection, and whether it can be reached: nothing is sent.

use std::time::Duration;

use tokio::net::{TcpStream, lookup_host};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// The limit for name resolution, TCP and TLS together. It distinguishes an endpoint that takes no connection from one that does not
/// answer.
pub(crate) const CONNECT_TIME: Duration = Duration::from_secs(5);

/// Where connections go: a name or an address, and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer(pub String, pub u16);

impl Peer {
    /// Whether it takes a connection, on any of its addresses. That is all that it gets.
    pub async fn connects(&self) -> bool {
        timeout(CONNECT_TIME, self.connected()).await.unwrap_or(false)
    }

    async fn connected(&self) -> bool {
        // All at once, as an address that swallows packets must not hide one that answers.
        let found = lookup_host((self.0.as_str(), self.1)).await.into_iter().flatten();
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
