//! The heads of other writers that an alerter has read. The register may go back behind such a head, as when an
//! administrator loads an old configuration while the alerter writes that it has seen the newer one.

use std::collections::{BTreeMap, BTreeSet};

use super::{Entry, Key, Pages, Writer, has_head, sealed_head, whole};
use crate::time::Timestamp;

/// What each head's pages said, by the head's writer and date.
#[derive(Debug, Default)]
pub struct Heads(BTreeMap<(Writer, Timestamp), BTreeSet<Key>>);

impl Heads {
    /// Takes note of the heads that are there. Of each writer it keeps the newest that it has read too, and what `own`, this
    /// alerter's, names: an older configuration may be loaded twice.
    pub fn note(&mut self, pages: &Pages, own: &Writer) {
        let mut meant = named(pages, own);
        for (writer, theirs) in pages.iter().filter(|(writer, _)| *writer != own) {
            let is_understood = theirs.values().all(|page| page.entries.apart.is_empty());
            let Some(head) = whole(theirs).filter(|_| is_understood) else { continue };
            let said = || theirs.values().flat_map(|page| page.entries.sound.keys().cloned()).collect();
            self.0.entry((writer.clone(), head.at)).or_insert_with(said);
            meant.insert((writer.clone(), head.at));
        }
        // In order: the last of each writer is its newest.
        let newest: BTreeMap<Writer, Timestamp> = self.0.keys().cloned().collect();
        meant.extend(newest);
        self.0.retain(|head, _| meant.contains(head));
    }

    /// The writers of whom `own` head names one that is gone, where all that it said is in `wanted`: a reader of the pages that
    /// have all of `wanted` lacks nothing of it.
    pub fn lost(&self, pages: &Pages, own: &Writer, wanted: &[Entry]) -> BTreeSet<Writer> {
        let mut gone = named(pages, own);
        gone.retain(|(writer, at)| !has_head(pages, writer, *at));
        if gone.is_empty() {
            return BTreeSet::new();
        }
        let wanted: BTreeSet<Key> = wanted.iter().map(Entry::key).collect();
        gone.retain(|head| self.0.get(head).is_some_and(|said| said.is_subset(&wanted)));
        gone.into_iter().map(|(writer, _)| writer).collect()
    }
}

/// The heads that this writer's own names.
fn named(pages: &Pages, own: &Writer) -> BTreeSet<(Writer, Timestamp)> {
    let head = pages.get(own).and_then(sealed_head);
    head.into_iter().flat_map(|head| &head.seen).map(|(writer, at)| (writer.clone(), *at)).collect()
}
