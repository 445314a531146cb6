//! The register's content: sound entries, and separately those that cannot be used.

use std::collections::{BTreeMap, BTreeSet};

use super::entry::{Entry, Why};
use super::key::Key;

/// How much of a foreign key is shown.
const SHOWN: usize = 64;

/// Everything that was read. A bad entry never hides another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entries {
    /// Sound entries by their key.
    pub sound: BTreeMap<Key, Entry>,
    /// The entries that root wrote on the controller that they name: a fencing by its fence agent, everything else by an
    /// alerter.
    pub sealed: BTreeSet<Key>,
    /// The entries that anybody in `haclient` may have written: they count for nothing.
    pub unsealed: BTreeMap<Key, Unsealed>,
    /// The content is not complete: this controller lacks pages that another one has seen.
    pub is_partial: bool,
    /// Unused entries, in the order in which they were read.
    pub apart: Vec<Apart>,
}

/// Why an entry without a seal does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsealed {
    /// Its supposed writer sealed what it wrote at that time, and did not write this.
    Forged,
    /// It may be from a controller without a key, or with another one.
    Unknown,
}

/// The trust in an entry.
#[derive(Clone, Copy)]
pub(super) enum Seal {
    /// Root wrote it on the controller that it names.
    Own,
    /// Root on another controller read it there; or no controller has a key yet.
    Passed,
    /// Nothing confirms it.
    Missing(Unsealed),
}

/// An unused entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Apart {
    /// Its key, the part that is safe to print.
    pub key: String,
    /// The reason.
    pub why: Why,
}

impl Apart {
    /// The value under this key, which anybody may have chosen.
    pub fn new(key: &str, why: Why) -> Self {
        Self { key: key.chars().filter(char::is_ascii_graphic).take(SHOWN).collect(), why }
    }
}

impl Seal {
    /// The lower, the better.
    fn level(self) -> u8 {
        match self {
            Self::Own => 0,
            Self::Passed => 1,
            Self::Missing(_) => 2,
        }
    }
}

impl Entries {
    /// The entries of these keys and values.
    pub fn of(lines: &[(String, String)]) -> Self {
        let mut entries = Self::default();
        lines.iter().for_each(|(key, value)| entries.take(key, value));
        entries
    }

    /// Adds one entry. An empty value is a deleted one.
    pub fn take(&mut self, key: &str, value: &str) {
        if value.is_empty() {
            return;
        }
        match self.judge(key, value) {
            Ok((known, entry)) => drop(self.sound.insert(known, entry)),
            Err(why) => self.apart.push(Apart::new(key, why)),
        }
    }

    /// Adds an entry that is in several places. The better seal counts; with equal seals the earlier entry, so that the
    /// order of reading does not matter.
    pub(super) fn unite(&mut self, entry: Entry, seal: Seal) {
        let key = entry.key();
        let known = self.sound.get(&key).map(|known| (self.seal_of(&key).level(), known.rank()));
        if known.is_some_and(|known| known <= (seal.level(), entry.rank())) {
            return;
        }
        self.unsealed.remove(&key);
        match seal {
            Seal::Own => drop(self.sealed.insert(key.clone())),
            Seal::Passed => {}
            Seal::Missing(why) => drop(self.unsealed.insert(key.clone(), why)),
        }
        self.sound.insert(key, entry);
    }

    fn seal_of(&self, key: &Key) -> Seal {
        match self.unsealed.get(key) {
            _ if self.sealed.contains(key) => Seal::Own,
            Some(why) => Seal::Missing(*why),
            None => Seal::Passed,
        }
    }

    /// Without the entries that no key vouches for: whatever they say, they count for nothing, for any reader.
    #[must_use]
    pub fn believed(mut self) -> Self {
        let unsealed = &self.unsealed;
        self.sound.retain(|key, _| !unsealed.contains_key(key));
        self
    }

    fn judge(&self, key: &str, value: &str) -> Result<(Key, Entry), Why> {
        let entry = Entry::read(key, value)?;
        let known = entry.key();
        if self.sound.get(&known).is_some_and(|first| *first != entry) {
            return Err(Why::Second);
        }
        Ok((known, entry))
    }
}
