//! Why an action of the agent failed.

use register::RegisterError;

use crate::cluster::ClusterError;
use crate::guard::Refusal;
use crate::settings::{SettingsError, TargetError};

/// Why the journal has no copy.
#[derive(Debug, thiserror::Error)]
pub enum JournalGap {
    /// It reported a failure.
    #[error("{0}")]
    Failed(String),
    /// It has not answered; it may have a copy later.
    #[error("the journal does not answer: check its disk, see `dmesg`")]
    Silent,
}

/// Why there is no copy of a fencing.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// The journal has none, and there is no register.
    #[error(transparent)]
    Journal(#[from] JournalGap),
    /// Neither has one.
    #[error("{journal}; nor is it in the register {word}: {register}")]
    Both {
        /// Why the journal has none.
        journal: JournalGap,
        /// The register's kind.
        word: &'static str,
        /// Why the register has none.
        register: Box<RegisterError>,
    },
}

impl KeepError {
    /// A stable machine word for the journal's fault.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Journal(gap) | Self::Both { journal: gap, .. } => match gap {
                JournalGap::Failed(_) => "journal",
                JournalGap::Silent => "silent",
            },
        }
    }
}

/// Why an action failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// No host was given.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A setting is invalid.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The host may not be marked.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The cluster's state is unknown.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalGap),
    /// The register.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// There is no copy of the fencing.
    #[error(transparent)]
    Keep(#[from] KeepError),
    /// Several things that an operator should correct.
    #[error("{}", .0.join("; "))]
    Complaints(Vec<String>),
}

impl Failure {
    /// A stable machine word.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Target(_) => "target",
            Self::Settings(_) => "settings",
            Self::Refused(refusal) => refusal.kind(),
            Self::Cluster(_) => "cluster",
            Self::Journal(_) => "journal",
            Self::Register(e) => e.kind(),
            Self::Keep(e) => e.kind(),
            Self::Complaints(_) => "complaints",
        }
    }
}
