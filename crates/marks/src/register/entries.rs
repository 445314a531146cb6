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
    /// Which of them root on some controller wrote; of the others anybody in `haclient` may have.
    pub sealed: BTreeSet<Key>,
    /// Entries that are not used, in the order in which they were read.
    pub apart: Vec<Apart>,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

    /// Takes in what a page says. What root wrote goes before what anybody may have; of two that say the same of one matter the earlier
    /// one counts, so that it does not matter which page is read first.
    pub fn unite(&mut self, page: Self, is_sealed: bool) {
        for (key, entry) in page.sound {
            let known = self.sound.get(&key).map(|known| (!self.sealed.contains(&key), known.rank()));
            if known.is_some_and(|known| known <= (!is_sealed, entry.rank())) {
                continue;
            }
            if is_sealed {
                self.sealed.insert(key.clone());
            }
            self.sound.insert(key, entry);
        }
        self.apart.extend(page.apart);
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
