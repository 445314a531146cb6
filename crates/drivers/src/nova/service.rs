//! A service of Nova.

use serde::{Deserialize, Deserializer};

use crate::openstack::is_uuid;

/// From this version of the API on a service has a UUID, and one call changes all of it.
pub(super) const VERSION: &str = "compute 2.53";
/// The binary of a service that runs instances.
pub(super) const BINARY: &str = "nova-compute";

/// A service as Nova has it in this version. Older ones show it differently.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Service {
    /// Its id in Nova: a UUID.
    pub(super) id: String,
    pub(super) host: String,
    pub(super) binary: String,
    /// Whether it is forced down: Nova counts it as down, whatever it sees.
    pub(super) forced_down: bool,
    /// Whether no new instances are put there.
    #[serde(rename = "status", deserialize_with = "is_disabled")]
    pub(super) is_disabled: bool,
    /// The reason for that.
    pub(super) disabled_reason: Option<String>,
    /// What Nova sees of it: `up`, or `down`.
    pub(super) state: Option<String>,
    /// When it has reported.
    pub(super) updated_at: Option<String>,
}

impl Service {
    /// Whether it runs the instances of this host. A value from Nova must not become another path.
    pub(super) fn is_of(&self, host: &str) -> bool {
        self.host == host && self.binary == BINARY && is_uuid(&self.id)
    }
}

fn is_disabled<'de, D: Deserializer<'de>>(status: D) -> Result<bool, D::Error> {
    #[derive(PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Status {
        Enabled,
        Disabled,
    }
    Status::deserialize(status).map(|status| status == Status::Disabled)
}
