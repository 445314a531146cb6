//! Which of a host's names a service knows.

use marks::host::HostName;
use marks::mark::Mark;

use crate::driver::Named;

/// Which of a host's names is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhichName {
    /// The name that every route sends: `[hosts]` decides.
    #[default]
    Fqdn,
    /// Pacemaker's.
    Node,
}

impl WhichName {
    /// The words of the key `host-name`.
    pub const WORDS: [(&str, Self); 2] = [("fqdn", Self::Fqdn), ("node", Self::Node)];

    /// The name itself.
    pub(crate) fn of(self, mark: &Mark) -> &HostName {
        match self {
            Self::Fqdn => &mark.fqdn,
            Self::Node => &mark.node,
        }
    }

    /// The same for a host that has not failed.
    pub fn of_host(self, host: &Named) -> &HostName {
        match self {
            Self::Fqdn => &host.fqdn,
            Self::Node => &host.node,
        }
    }
}
