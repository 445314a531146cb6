//! Why the register could not be written or read.

use marks::register::Entry;
use pacemaker::child::ChildError;
use pacemaker::tools::ToolError;

use crate::etcd_fault::EtcdFault;

/// What a use of the register returned.
pub type Done<T = ()> = Result<T, RegisterError>;

/// Why the register could not be written or read. The message never shows what was read.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// `none` is configured.
    #[error("no register is configured: set register to \"attrd\", \"cib\" or \"etcd\"")]
    None,
    /// A tool of the cluster.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// etcd.
    #[error("etcd: {0}")]
    Etcd(EtcdFault),
    /// Its tool could not be run.
    #[error("etcdctl: {0}; install etcd's client on this controller")]
    Etcdctl(ChildError),
    /// This partition may not write: when the partition ends, its configuration could replace the other one's.
    #[error("this partition of the cluster has no quorum: start the other controllers")]
    NoQuorum,
    /// Written, but not seen in time.
    #[error("the entry {key} was written but could not be read back")]
    NotReadBack {
        /// The entry's key.
        key: String,
    },
    /// Deleted, but still seen at the end of the time.
    #[error("the entry {key} was deleted but is still there: find out who writes the register")]
    NotGone {
        /// The entry's key.
        key: String,
    },
    /// Another value is there.
    #[error("the entry {key} has another value than was written: find out who writes the register")]
    Other {
        /// The entry's key.
        key: String,
    },
    /// It would not read back the same.
    #[error("the entry {key} has a text that the register cannot store")]
    Unfit {
        /// The entry's key.
        key: String,
    },
}

impl RegisterError {
    /// Such an entry would not read back the same.
    pub fn unfit(entry: &Entry) -> Self {
        Self::Unfit { key: entry.key().to_string() }
    }

    /// A stable machine word.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::None => "no-register",
            Self::Tool(error) => error.kind(),
            Self::Etcd(fault) => fault.kind(),
            Self::Etcdctl(_) => "tool",
            Self::NoQuorum => "no-quorum",
            Self::NotReadBack { .. } => "not-read-back",
            Self::NotGone { .. } => "not-gone",
            Self::Other { .. } => "other-value",
            Self::Unfit { .. } => "unfit",
        }
    }

    /// A failure that a tool reports may concern one entry; any other fault ends all.
    pub(crate) fn is_of_one_entry(&self) -> bool {
        matches!(self, Self::Tool(ToolError::Failed { source, .. }) if source.code().is_some())
    }
}
