//! What all pages say together, with the entries that stand on their own: as release 0.1.0 writes them, and a controller without a key.
//! Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::KEPT;
use super::entries::{Entries, Seal, Unsealed};
use super::entry::Entry;
use super::key::Key;
use super::pages::{self, HEAD, Page, Pages, Part, Writer};
use crate::time::Timestamp;

/// What counts of an entry without a seal.
struct Trust<'a> {
    /// This controller has no key, and can tell nothing apart.
    is_keyless: bool,
    /// Controllers without a key are still believed.
    is_upgrading: bool,
    /// Those of which there is a sealed page.
    sealing: BTreeSet<&'a str>,
}

/// All that stands there.
pub fn united(pages: &Pages, plain: &Entries, is_keyless: bool, now: Timestamp) -> Entries {
    let trust = Trust {
        is_keyless,
        is_upgrading: now < plain_until(pages, plain, now),
        sealing: pages
            .iter()
            .filter(|(_, own)| is_sealing(own))
            .map(|(it, _)| it.controller.as_str())
            .collect(),
    };
    let mut all = Entries { is_partial: !pages::gaps(pages, now).is_empty(), ..Entries::default() };
    for (writer, page) in pages.iter().flat_map(|(writer, own)| own.values().map(move |page| (writer, page)))
    {
        for entry in page.entries.sound.values() {
            let seal = match page.is_sealed {
                true if is_own_word(writer, entry) => Seal::Own,
                true => Seal::Passed,
                false => trust.seal(entry),
            };
            all.unite(entry.clone(), seal);
        }
        all.apart.extend(page.entries.apart.iter().cloned());
    }
    for entry in plain.sound.values() {
        all.unite(entry.clone(), trust.seal(entry));
    }
    all.apart.extend(plain.apart.iter().cloned());
    all
}

/// Until when what has no seal counts, where whoever is said to have written it was never seen to seal: long enough for an upgrade. It
/// begins where the first alerter with a key finds that one without was there before; later ones go by what that one wrote.
pub fn plain_until(pages: &Pages, plain: &Entries, now: Timestamp) -> Timestamp {
    let alerters = pages.iter().filter(|(writer, own)| writer.part == Part::Alerter && is_sealing(own));
    let known = alerters.filter_map(|(_, own)| own.get(&HEAD)).map(|page| page.head.plain_until).min();
    let was_there = || plain.sound.keys().any(|key| matches!(key, Key::Watermark(_)));
    known.unwrap_or_else(|| if was_there() { now + KEPT } else { Timestamp(0) })
}

fn is_sealing(own: &BTreeMap<u16, Page>) -> bool {
    own.get(&HEAD).is_some_and(|page| page.is_sealed)
}

/// An alerter passes on fencings that it read, whoever wrote them: of these only their own fence agent's word is root's.
fn is_own_word(writer: &Writer, entry: &Entry) -> bool {
    match (writer.part, entry.fencing()) {
        (Part::Agent, Some(fencing)) => fencing.seen_by == writer.controller,
        (Part::Agent, None) | (Part::Alerter, Some(_)) => false,
        (Part::Alerter, None) => true,
    }
}

impl Trust<'_> {
    /// What stands behind an entry that nobody has sealed.
    fn seal(&self, entry: &Entry) -> Seal {
        match entry.by() {
            _ if self.is_keyless => Seal::Passed,
            Some(by) if self.sealing.contains(by) => Seal::Missing(Unsealed::Forged),
            _ if self.is_upgrading => Seal::Passed,
            _ => Seal::Missing(Unsealed::Unknown),
        }
    }
}

#[cfg(test)]
mod tests;
