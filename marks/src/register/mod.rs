//! The register: the cluster-wide set of entries in Pacemaker's own replicated state, by which another controller finds
//! what this one knows. An entry is written once; the state is the union of all.

mod attrd;
mod cib;
mod clear;
mod code;
mod entries;
mod entry;
mod error;
mod key;
mod notes;
mod publish;
mod tools;
mod value;

use std::time::{Duration, Instant};

pub use entries::{Apart, Entries, Why};
pub use entry::{Entry, ValueError};
pub use error::RegisterError;
pub use key::Key;
pub use notes::{About, Acknowledgement, Decision, Ending, MarkEntry, Returned, Scope, Settled, Watermark};
pub use publish::Published;
pub use tools::Tools;

/// How long a settled mark stays, and a decision that has ended: longer than anybody asks about it, and much longer than the horizon.
pub const KEPT: Duration = Duration::from_secs(7 * 86_400);
/// At most so many settled marks stay, and so many ended decisions, so that the register stays small.
pub const SETTLED_MAX: usize = 1000;

/// The name of the attribute, and the beginning of the ids in the CIB.
pub const NAME: &str = "host-failure";

/// Where the register is kept. A closed set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Register {
    /// In Pacemaker's attribute manager: in the memory of every controller. The default: it writes no configuration.
    #[default]
    Attrd,
    /// In the CIB: on the disk of every controller.
    Cib,
    /// Nowhere: one controller alone.
    None,
}

impl Register {
    /// Its word in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Attrd => "attrd",
            Self::Cib => "cib",
            Self::None => "none",
        }
    }

    /// Reads the word of the configuration.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Attrd, Self::Cib, Self::None].into_iter().find(|register| register.as_str() == word)
    }

    /// Writes entries, one after the other, and reads each back. `Ok` means that every one of them stands there.
    ///
    /// Where another alerter's word on the same mark stands already, it stays and counts.
    ///
    /// # Errors
    /// [`RegisterError`]; entries before the one that failed stand there, that one may or may not.
    pub fn publish(self, tools: &Tools, entries: &[Entry], deadline: Instant) -> Result<(), RegisterError> {
        for entry in entries {
            if !entry.is_fit() {
                return Err(RegisterError::unfit(entry));
            }
            match self {
                Self::Attrd => attrd::publish(tools, entry, deadline),
                Self::Cib => cib::publish(tools, entry, deadline),
                Self::None => Err(RegisterError::None),
            }?;
        }
        Ok(())
    }

    /// Writes those of the entries that do not stand there yet, and looks once for all of them. One that fails keeps no
    /// other back; a tool that is missing or hangs, or a lost quorum, ends all.
    pub fn publish_all(self, tools: &Tools, entries: &[Entry], deadline: Instant) -> Published {
        publish::all(self, tools, entries, deadline)
    }

    /// Deletes entries whose time is over. `Ok` means that none of them stands there.
    ///
    /// In the CIB that is one change of the configuration for some hundred entries: Pacemaker keeps the last hundred changes
    /// for the administrator.
    ///
    /// # Errors
    /// [`RegisterError`]; each entry may be gone or not.
    pub fn clear(self, tools: &Tools, keys: &[Key], deadline: Instant) -> Result<(), RegisterError> {
        clear::clear(self, tools, keys, deadline)
    }

    /// Everything that stands there, as this controller sees it. With `none` that is nothing.
    ///
    /// # Errors
    /// [`RegisterError`] where it cannot be said what stands there; odd entries are kept apart and are no error.
    pub fn read(self, tools: &Tools, deadline: Instant) -> Result<Entries, RegisterError> {
        match self {
            Self::Attrd => attrd::read(tools, deadline),
            Self::Cib => cib::read(tools, deadline),
            Self::None => Ok(Entries::default()),
        }
    }

    /// Reads what the register's tool printed: `attrd_updater`, as XML or not, or `cibadmin`.
    ///
    /// # Errors
    /// [`RegisterError::Unreadable`] where it is not whole.
    pub fn parse_output(self, xml: &str) -> Result<Entries, RegisterError> {
        match self {
            Self::Attrd => attrd::parse(xml),
            Self::Cib => cib::parse(xml),
            Self::None => Ok(Entries::default()),
        }
    }
}

#[cfg(test)]
mod tests;
