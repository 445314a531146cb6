//! Where the services listen: on an address of one's own here, or inside of somebody's network.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr, TcpListener};

use super::part::{self, Part};
use crate::receiver::own_loopback;

/// An address, a port for each service, and the way there.
#[derive(Clone, Debug)]
pub struct Place {
    address: IpAddr,
    ports: BTreeMap<Part, u16>,
    pub(super) enter: Vec<OsString>,
}

impl Place {
    /// A loopback address that nobody else uses, with ports that are free.
    ///
    /// # Errors
    /// The system gives none.
    pub fn on_loopback() -> std::io::Result<Self> {
        let address = IpAddr::from(own_loopback());
        // All at once, so that no port comes twice.
        let taken: Result<Vec<_>, _> = part::ALL.iter().map(|_| TcpListener::bind((address, 0))).collect();
        let mut ports = BTreeMap::new();
        for (part, listener) in part::ALL.into_iter().zip(taken?) {
            ports.insert(part, listener.local_addr()?.port());
        }
        Ok(Self { address, ports, enter: Vec::new() })
    }

    /// This address with the usual ports; `enter` is a command that runs what follows it where the address is, such as
    /// `nsenter --net=FILE --`.
    #[must_use]
    pub fn inside(address: IpAddr, enter: Vec<OsString>) -> Self {
        let ports = part::ALL.into_iter().map(|part| (part, part.usual_port())).collect();
        Self { address, ports, enter }
    }

    /// Where a service listens.
    #[must_use]
    pub fn address(&self, part: Part) -> SocketAddr {
        SocketAddr::new(self.address, self.ports.get(&part).copied().unwrap_or_default())
    }

    pub(super) fn identity(&self) -> String {
        format!("http://{}/v3", self.address(Part::Keystone))
    }
}
