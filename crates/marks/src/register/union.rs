//! What all pages say together, with the entries that stand on their own: as release 0.1.0 writes them, and a controller without a key.
//! Pure.

use std::collections::BTreeMap;

use super::KEPT;
use super::entries::{Entries, Seal, Unsealed};
use super::entry::Entry;
use super::key::Key;
use super::pages::{self, Pages, Part, Writer};
use crate::time::Timestamp;

/// How far what has no seal counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trust {
    /// This controller has no key, and can tell nothing apart.
    pub is_keyless: bool,
    /// Until when controllers without a key are believed (see [`plain_until`]).
    pub plain_until: Timestamp,
}

/// All that stands there.
pub fn united(pages: &Pages, plain: &Entries, trust: Trust, now: Timestamp) -> Entries {
    let unsealed = Without { trust, now, sealing: sealing(pages) };
    let mut all = Entries { is_partial: !pages::gaps(pages, now).is_empty(), ..Entries::default() };
    for (writer, page) in pages.iter().flat_map(|(writer, own)| own.values().map(move |page| (writer, page)))
    {
        for entry in page.entries.sound.values() {
            let seal = match page.is_sealed {
                true if is_own_word(writer, entry) => Seal::Own,
                true => Seal::Passed,
                false => unsealed.seal(entry),
            };
            all.unite(entry.clone(), seal);
        }
        all.apart.extend(page.entries.apart.iter().cloned());
    }
    for entry in plain.sound.values() {
        all.unite(entry.clone(), unsealed.seal(entry));
    }
    all.apart.extend(plain.apart.iter().cloned());
    all
}

/// Until when what has no seal counts, where whoever is said to have written it was never seen to seal: long enough for an upgrade. It
/// begins where the first alerter with a key (`is_first`: from here no page was ever written) finds that one without was there before;
/// later ones go by what that one wrote.
pub fn plain_until(pages: &Pages, plain: &Entries, is_first: bool, now: Timestamp) -> Timestamp {
    let alerters = pages.iter().filter(|(writer, _)| writer.part == Part::Alerter);
    let known = alerters.filter_map(|(_, own)| pages::sealed_head(own)).map(|head| head.plain_until).min();
    let begins = || is_first && plain.sound.keys().any(|key| matches!(key, Key::Watermark(_)));
    known.unwrap_or_else(|| if begins() { now + KEPT } else { Timestamp(0) })
}

/// Who was seen to seal, and when last.
fn sealing(pages: &Pages) -> BTreeMap<(Part, &str), Timestamp> {
    let heads = pages.iter().filter_map(|(writer, own)| Some((writer, pages::sealed_head(own)?.at)));
    heads.map(|(writer, at)| ((writer.part, writer.controller.as_str()), at)).collect()
}

/// An alerter passes on fencings that it read, whoever wrote them: of these only their own fence agent's word is root's.
fn is_own_word(writer: &Writer, entry: &Entry) -> bool {
    match (writer.part, entry.fencing()) {
        (Part::Agent, Some(fencing)) => fencing.seen_by == writer.controller,
        (Part::Agent, None) | (Part::Alerter, Some(_)) => false,
        (Part::Alerter, None) => true,
    }
}

/// What stands behind an entry that nobody has sealed.
struct Without<'p> {
    trust: Trust,
    now: Timestamp,
    sealing: BTreeMap<(Part, &'p str), Timestamp>,
}

impl Without<'_> {
    fn seal(&self, entry: &Entry) -> Seal {
        // One part of a controller may have been started by a former release, and the other one by this.
        let part = if entry.fencing().is_some() { Part::Agent } else { Part::Alerter };
        let sealed_at = entry.by().and_then(|by| self.sealing.get(&(part, by)));
        match sealed_at {
            _ if self.trust.is_keyless => Seal::Passed,
            Some(last) if entry.rank().0 <= *last => Seal::Missing(Unsealed::Forged),
            // It may have lost its key since, or gone back to a former release.
            Some(_) => Seal::Missing(Unsealed::Unknown),
            None if self.now < self.trust.plain_until => Seal::Passed,
            None => Seal::Missing(Unsealed::Unknown),
        }
    }
}

#[cfg(test)]
mod tests;
