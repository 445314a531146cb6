//! Whose word an entry is, by the place where it stands. Pure.

use std::collections::BTreeMap;

use super::entries::{Entries, Seal, Unsealed};
use super::entry::Entry;
use super::writer::{Part, Writer};
use crate::time::Timestamp;

/// Where lines stand, and what seals them.
#[derive(Clone, Copy, Debug)]
pub enum Stands<'p> {
    /// On a sealed page of this writer.
    Sealed(&'p Writer),
    /// On a page that no key here opens.
    Unsealed,
    /// Under a key of its own, with the seal of this part, if any.
    Apart(Option<Part>),
}

/// How far unsealed entries count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// This controller has no key, and cannot distinguish them.
    pub is_keyless: bool,
    /// Controllers without a key are trusted still: an upgrade is under way.
    pub trusts_plain: bool,
    /// The writers that were seen to seal, and when last.
    pub sealing: BTreeMap<Writer, Timestamp>,
}

impl Entries {
    /// Adds what was read in one place, as far as that vouches for it.
    pub fn unite_all(&mut self, read: Self, place: Stands<'_>, trust: &Trust) {
        for entry in read.sound.into_values() {
            let seal = trust.seal(&entry, place);
            self.unite(entry, seal);
        }
        // Foreign bad lines of a page are reported once, however many they are.
        let most = if matches!(place, Stands::Unsealed) { 1 } else { usize::MAX };
        self.apart.extend(read.apart.into_iter().take(most));
    }
}

impl Trust {
    fn seal(&self, entry: &Entry, place: Stands<'_>) -> Seal {
        match place {
            Stands::Sealed(writer) if is_own_word(writer, entry) => Seal::Own,
            // An alerter has read the fencing that it sealed elsewhere: only the agent's own seal proves it.
            Stands::Apart(Some(part)) if (part == Part::Agent) == matches!(entry, Entry::Fencing(_)) => {
                Seal::Own
            }
            Stands::Sealed(_) | Stands::Apart(Some(_)) => Seal::Passed,
            Stands::Unsealed | Stands::Apart(None) => self.without_seal(entry),
        }
    }

    fn without_seal(&self, entry: &Entry) -> Seal {
        // A controller may run one part with the key, and the other as it was before.
        let part = if entry.fencing().is_some() { Part::Agent } else { Part::Alerter };
        let sealed_at = entry.by().and_then(|by| self.sealing.get(&part.on(by)));
        match sealed_at {
            _ if self.is_keyless => Seal::Passed,
            Some(last) if entry.at() <= *last => Seal::Missing(Unsealed::Forged),
            // It may have lost its key since.
            Some(_) => Seal::Missing(Unsealed::Unknown),
            None if self.trusts_plain => Seal::Passed,
            None => Seal::Missing(Unsealed::Unknown),
        }
    }
}

/// An alerter passes on all fencings that it read: for these only their own fence agent's entry counts as root's.
fn is_own_word(writer: &Writer, entry: &Entry) -> bool {
    match (writer.part, entry.fencing()) {
        (Part::Agent, Some(fencing)) => fencing.seen_by == writer.controller,
        (Part::Agent, None) | (Part::Alerter, Some(_)) => false,
        (Part::Alerter, None) => true,
    }
}
