//! Why an action of the agent failed.

use std::time::Duration;

use journal::JournalError;
use pacemaker::register::RegisterError;

use crate::cluster::ClusterError;
use crate::guard::Refusal;
use crate::settings::{SettingsError, TargetError};

/// Why the journal has no copy.
#[derive(Debug, thiserror::Error)]
pub enum JournalGap {
    /// By its own account.
    #[error(transparent)]
    Failed(#[from] JournalError),
    /// It may have one later.
    #[error("the journal gave no answer within {} s: look at its disk", .0.as_secs())]
    Silent(Duration),
}

/// Why a fencing is kept nowhere.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// The journal has none, and no register is configured.
    #[error(transparent)]
    Journal(#[from] JournalGap),
    /// Neither has one.
    #[error("{journal}; nor is it in the register {word}: {register}")]
    Both {
        /// Why the journal has none.
        journal: JournalGap,
        /// The register's word.
        word: &'static str,
        /// Why the register has none.
        register: Box<RegisterError>,
    },
}

impl KeepError {
    /// A stable machine word: what is wrong with the journal.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Journal(gap) | Self::Both { journal: gap, .. } => match gap {
                JournalGap::Failed(e) => e.kind(),
                JournalGap::Silent(_) => "silent",
            },
        }
    }
}

/// Why an action failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// No host is meant.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A setting cannot be used.
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
    Journal(#[from] JournalError),
    /// The register.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// The fencing is kept nowhere.
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
            Self::Journal(e) => e.kind(),
            Self::Register(e) => e.kind(),
            Self::Keep(e) => e.kind(),
            Self::Complaints(_) => "complaints",
        }
    }
}
