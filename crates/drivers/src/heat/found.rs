//! A resource as Heat shows it.

use super::targets::is_plain;

/// What Heat calls a server of Nova's.
const SERVER: &str = "OS::Nova::Server";

/// A resource as it is now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Where it is, behind the service's address.
    pub(super) path: String,
    /// What it is outside of Heat: a server's id.
    pub(super) physical: String,
    /// Action and status, as `CREATE_COMPLETE`.
    pub(super) status: String,
    /// Why it is so.
    pub(super) reason: String,
    /// When it was made.
    pub(super) made: Option<String>,
    /// What it is: `OS::Nova::Server`.
    pub(super) kind: String,
}

impl Found {
    /// Nova's id of it, where it is a server.
    pub(super) fn server(&self) -> Option<&str> {
        (self.kind == SERVER && is_plain(&self.physical)).then_some(self.physical.as_str())
    }
}
