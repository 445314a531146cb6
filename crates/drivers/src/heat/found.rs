//! A resource as Heat shows it.

use super::keys::is_plain;

/// Heat's type of a Nova server.
const SERVER: &str = "OS::Nova::Server";

/// A resource as it is now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Where it is, behind the service's address.
    pub(super) path: String,
    /// Its id outside of Heat: a server's id.
    pub(super) physical: String,
    /// Action and status, as `CREATE_COMPLETE`.
    pub(super) status: String,
    /// The reason of the status.
    pub(super) reason: String,
    /// When it was made.
    pub(super) made: Option<String>,
    /// What it is: `OS::Nova::Server`.
    pub(super) kind: String,
}

impl Found {
    /// Its id in Nova, if it is a server.
    pub(super) fn server(&self) -> Option<&str> {
        (self.kind == SERVER && is_plain(&self.physical)).then_some(self.physical.as_str())
    }
}
