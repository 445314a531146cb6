//! The register: the cluster-wide set of entries in Pacemaker's own replicated state or in etcd, from which one
//! controller knows what another knows. An entry is written once; the state is the union of all.

mod code;
mod entries;
mod entry;
mod key;
mod notes;
mod trust;
mod value;
mod writer;

use std::time::Duration;

pub use entries::{Apart, Entries, Unsealed};
pub use entry::{Entry, Held, Why};
pub use key::Key;
pub use notes::{
    About, Acknowledgement, Cause, Decision, Ending, MarkEntry, Operation, Returned, Scope, Settled,
    Watermark,
};
pub use trust::{Stands, Trust};
pub use writer::{Part, Writer};

/// How long settled marks and ended decisions stay: longer than any query, and much longer than the horizon.
pub const KEPT: Duration = Duration::from_secs(7 * 86_400);
/// The most settled marks, and the most ended decisions, that stay: the register stays small.
pub const SETTLED_MAX: usize = 1000;

/// Where the register is kept. A closed set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Register {
    /// In Pacemaker's attribute manager: in the memory of every controller. The default: it writes no configuration.
    #[default]
    Attrd,
    /// In the CIB: on the disk of every controller.
    Cib,
    /// In etcd: on the disk of each of its members, independent of the cluster.
    Etcd,
    /// Nowhere: one controller alone.
    None,
}

impl Register {
    /// The registers that store anything.
    pub const KEPT: [Self; 3] = [Self::Attrd, Self::Cib, Self::Etcd];

    /// Its word in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Attrd => "attrd",
            Self::Cib => "cib",
            Self::Etcd => "etcd",
            Self::None => "none",
        }
    }

    /// Reads the word of the configuration.
    pub fn parse(word: &str) -> Option<Self> {
        Self::KEPT.into_iter().chain([Self::None]).find(|register| register.as_str() == word)
    }
}

#[cfg(test)]
mod tests;
