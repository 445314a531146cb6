//! The `hypervisor` probe: whether Nova sees the host's compute service report.

use std::fmt;

use drivers::nova::{Seen, Services};
use drivers::openstack::CloudOptions;
use drivers::{HostNames, Named, Unusable};

use super::ask::Tries;
use super::conclusion::{Said, State};

/// A `hypervisor` probe.
pub struct Hypervisor {
    cloud: CloudOptions,
    host_name: HostNames,
    tries: Tries,
    services: Services,
}

impl Hypervisor {
    /// Reads the cloud's files and makes its client.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn new(cloud: CloudOptions, host_name: impl Into<HostNames>, tries: Tries) -> Result<Self, Unusable> {
        let services = Services::new(cloud.clone())?;
        Ok(Self { cloud, host_name: host_name.into(), tries, services })
    }

    /// How often it asks.
    pub fn tries(&self) -> Tries {
        self.tries
    }

    pub(super) async fn once(&self, host: &Named) -> Said {
        match self.services.of(&self.host_name.of_host(host)).await {
            Ok(seen) => of_seen(seen),
            Err(failure) => {
                Said::new(State::Unknown, format!("got no answer about it from Nova: {}", failure.detail))
            }
        }
    }
}

/// What somebody has set says nothing of the host.
fn of_seen(seen: Seen) -> Said {
    match seen {
        Seen::Up => Said::new(State::Healthy, "sees its nova-compute up in Nova"),
        Seen::Down => Said::new(State::Unhealthy, "sees its nova-compute down in Nova"),
        Seen::ForcedDownAndSilent => {
            Said::new(State::Unhealthy, "sees its nova-compute forced down in Nova, and silent for minutes")
        }
        Seen::ForcedDown => Said::new(
            State::Unknown,
            "sees its nova-compute forced down in Nova, which says nothing of the host",
        ),
    }
}

impl PartialEq for Hypervisor {
    fn eq(&self, other: &Self) -> bool {
        (&self.cloud, &self.host_name, self.tries) == (&other.cloud, &other.host_name, other.tries)
    }
}

impl Eq for Hypervisor {}

impl fmt::Debug for Hypervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hypervisor")
            .field("services", &self.services)
            .field("tries", &self.tries)
            .finish_non_exhaustive()
    }
}
