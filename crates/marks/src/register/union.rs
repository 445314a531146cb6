//! The union of all pages and of separate entries, as controllers without a key write them. Pure.

use std::collections::BTreeMap;

use super::KEPT;
use super::entries::{Entries, Seal, Unsealed};
use super::entry::Entry;
use super::key::Key;
use super::pages::{self, Pages, Part, Writer};
use crate::time::Timestamp;

/// How far unsealed entries count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trust {
    /// This controller has no key, and cannot distinguish them.
    pub is_keyless: bool,
    /// Until when controllers without a key are trusted (see [`plain_until`]).
    pub plain_until: Timestamp,
}

/// The whole register.
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

/// Until when an unsealed entry counts if its supposed writer was never seen to seal: long enough to give every controller
/// the key. The time begins when the first alerter with a key (`is_first`: this controller never wrote a page) finds an earlier
/// alerter without one; later alerters use that alerter's time.
pub fn plain_until(pages: &Pages, plain: &Entries, is_first: bool, now: Timestamp) -> Timestamp {
    let alerters = pages.iter().filter(|(writer, _)| writer.part == Part::Alerter);
    let known = alerters.filter_map(|(_, own)| pages::sealed_head(own)).map(|head| head.plain_until).min();
    let begins = || is_first && plain.sound.keys().any(|key| matches!(key, Key::Watermark(_)));
    known.unwrap_or_else(|| if begins() { now + KEPT } else { Timestamp(0) })
}

/// The writers that were seen to seal, and when last.
fn sealing(pages: &Pages) -> BTreeMap<(Part, &str), Timestamp> {
    let heads = pages.iter().filter_map(|(writer, own)| Some((writer, pages::sealed_head(own)?.at)));
    heads.map(|(writer, at)| ((writer.part, writer.controller.as_str()), at)).collect()
}

/// An alerter passes on all fencings that it read: for these only their own fence agent's entry counts as root's.
fn is_own_word(writer: &Writer, entry: &Entry) -> bool {
    match (writer.part, entry.fencing()) {
        (Part::Agent, Some(fencing)) => fencing.seen_by == writer.controller,
        (Part::Agent, None) | (Part::Alerter, Some(_)) => false,
        (Part::Alerter, None) => true,
    }
}

/// The trust in an unsealed entry.
struct Without<'p> {
    trust: Trust,
    now: Timestamp,
    sealing: BTreeMap<(Part, &'p str), Timestamp>,
}

impl Without<'_> {
    fn seal(&self, entry: &Entry) -> Seal {
        // A controller may run one part with the key, and the other as it was before.
        let part = if entry.fencing().is_some() { Part::Agent } else { Part::Alerter };
        let sealed_at = entry.by().and_then(|by| self.sealing.get(&(part, by)));
        match sealed_at {
            _ if self.trust.is_keyless => Seal::Passed,
            Some(last) if entry.at() <= *last => Seal::Missing(Unsealed::Forged),
            // It may have lost its key since.
            Some(_) => Seal::Missing(Unsealed::Unknown),
            None if self.now < self.trust.plain_until => Seal::Passed,
            None => Seal::Missing(Unsealed::Unknown),
        }
    }
}

#[cfg(test)]
mod tests;
