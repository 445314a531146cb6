//! What stands in the register: sound entries, and apart from them what cannot be used.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::entry::{Entry, ValueError};
use super::key::Key;

/// Keys of strangers are shown up to here.
const SHOWN: usize = 64;

/// Everything that was read. What is odd about one entry never hides another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entries {
    /// Sound entries by their key.
    pub sound: BTreeMap<Key, Entry>,
    /// Those that are the word of root on the controller that they name: a fencing by its own fence agent, all else by an alerter.
    pub sealed: BTreeSet<Key>,
    /// Those that anybody in `haclient` may have written, and that count for nothing that ends, releases or cancels.
    pub unsealed: BTreeMap<Key, Unsealed>,
    /// What stands there is not all: this controller lacks pages that another one has seen.
    pub is_partial: bool,
    /// Entries that are not used, in the order in which they were read.
    pub apart: Vec<Apart>,
}

/// Why an entry without a seal does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsealed {
    /// Whoever is said to have written it then has sealed what it wrote, and does not say it.
    Forged,
    /// It may be of a controller without a key, or with another one.
    Unknown,
}

/// What stands behind an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seal {
    /// Root on the controller that it names.
    Own,
    /// Root on another one, who read it there; or nobody, where nobody has a key yet.
    Passed,
    /// Nobody.
    Missing(Unsealed),
}

/// An entry that is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Apart {
    /// Its key, as far as it is safe to print.
    pub key: String,
    /// Why.
    pub why: Why,
}

/// Why an entry is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// A key of another release, or of somebody else.
    Key,
    /// A value of another release.
    Version,
    /// A value that none of us wrote.
    Malformed,
    /// A second value under a key.
    Second,
}

impl Apart {
    /// What stands under this key, which anybody may have chosen.
    pub fn new(key: &str, why: Why) -> Self {
        Self { key: key.chars().filter(char::is_ascii_graphic).take(SHOWN).collect(), why }
    }
}

impl From<ValueError> for Why {
    fn from(error: ValueError) -> Self {
        match error {
            ValueError::Version => Self::Version,
            ValueError::Malformed => Self::Malformed,
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Key => "no release of ours knows its key",
            Self::Version => "another release wrote its value",
            Self::Malformed => "none of us wrote its value",
            Self::Second => "there is another value under its key",
        })
    }
}

impl Seal {
    /// The better, the less.
    fn level(self) -> u8 {
        match self {
            Self::Own => 0,
            Self::Passed => 1,
            Self::Missing(_) => 2,
        }
    }
}

impl Entries {
    /// Takes one entry in. An empty value is one that was deleted.
    pub fn take(&mut self, key: &str, value: &str) {
        if value.is_empty() {
            return;
        }
        match self.judge(key, value) {
            Ok((known, entry)) => drop(self.sound.insert(known, entry)),
            Err(why) => self.apart.push(Apart::new(key, why)),
        }
    }

    /// Takes in an entry that stands in several places. The better seal counts; of two with the same one the entry that is earlier, so that
    /// it does not matter which is read first.
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

    /// Without what no key has sealed, but for fencings and marks: these say that nobody has been told yet.
    #[must_use]
    pub fn believed(mut self) -> Self {
        let unsealed = &self.unsealed;
        let counts = |entry: &Entry| entry.fencing().is_some() || matches!(entry, Entry::Mark(_));
        self.sound.retain(|key, entry| counts(entry) || !unsealed.contains_key(key));
        self
    }

    fn judge(&self, key: &str, value: &str) -> Result<(Key, Entry), Why> {
        let known = Key::parse(key).ok_or(Why::Key)?;
        let entry = Entry::parse(known.clone(), value)?;
        if self.sound.get(&known).is_some_and(|first| *first != entry) {
            return Err(Why::Second);
        }
        Ok((known, entry))
    }
}
