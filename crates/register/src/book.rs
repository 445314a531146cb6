//! Everything that stands in a register: the pages of all writers, and what stands beside them.

use marks::register::{Apart, Entries, Entry, KEPT, Key, Part, Stands, Trust, Why, Writer};
use marks::time::Timestamp;

use crate::error::Done;
use crate::pages::{self, HEAD, Line, Page, Pages};
use crate::seal::SealKeys;

/// The most unsealed pages that are read: without a seal anybody can claim any number of pages and writers. Without a key
/// any pages are read.
const UNSEALED_PAGES: usize = 4;
const UNSEALED_LAST: u16 = 2;
const KEYLESS_LAST: u16 = 64;

/// Everything that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The union of all of it.
    pub entries: Entries,
    /// The layout; `None` if each entry has a key of its own for as long as it is wanted.
    pub paged: Option<Paged>,
}

/// The layout of Pacemaker's registers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paged {
    /// By writer and number.
    pub pages: Pages,
    /// The separate entries, as controllers without a key write them.
    pub plain: Entries,
    /// Until when controllers that use separate entries count; a past time means that they do not.
    pub plain_until: Timestamp,
    /// The size in bytes of the longest answer that is needed to read all of it.
    pub longest_answer: usize,
    /// The texts of the heads as they stood there: they change with every new entry on a page.
    pub heads: Vec<Line>,
}

/// What a separate entry adds to an answer, packed as Pacemaker packs it: 3,250 of them fit into 128 KiB.
const PLAIN: usize = 40;

/// Every page of every writer.
#[derive(Default)]
pub(crate) struct Book {
    /// By writer and number.
    pub(crate) pages: Pages,
    /// The size of the texts under one number, at most.
    longest: usize,
    /// Texts that are not our pages.
    apart: Vec<Apart>,
    /// The texts under the number of the heads.
    heads: Vec<Line>,
    /// How many pages have no valid seal.
    unsealed: usize,
}

impl Book {
    /// Reads all pages, the heads first: they give the number of the others. `texts` returns the texts under a number.
    pub(crate) fn read(keys: &SealKeys, mut texts: impl FnMut(u16) -> Done<Vec<Line>>) -> Done<Self> {
        let (mut book, mut last) = (Self::default(), HEAD);
        for number in HEAD..=u16::MAX {
            if number > last {
                break;
            }
            let texts = texts(number)?;
            book.longest = book.longest.max(texts.iter().map(|(_, text)| text.len()).sum());
            for (key, text) in &texts {
                last = last.max(book.take((key, number), text, keys));
            }
            if number == HEAD {
                book.heads = texts;
            }
        }
        // A page that no head names is too old.
        for own in book.pages.values_mut() {
            let last = own.get(&HEAD).map_or(HEAD, |page| page.head.last);
            own.retain(|number, _| *number <= last);
        }
        Ok(book)
    }

    /// Returns the number of its writer's last page, if it is a head. An empty text is a deleted one.
    fn take(&mut self, (key, number): (&str, u16), text: &str, keys: &SealKeys) -> u16 {
        if text.is_empty() {
            return HEAD;
        }
        let writer = Writer::parse(key).ok_or(Why::Key);
        match writer.and_then(|writer| Ok((pages::read(&writer, number, text, keys)?, writer))) {
            Ok((page, _)) if !page.is_sealed && self.is_one_too_many(keys) => HEAD,
            Ok((page, writer)) => {
                let last = last_of(&page, keys).min(if number == HEAD { u16::MAX } else { HEAD });
                self.put(writer, number, page);
                last
            }
            Err(why) => {
                self.apart.push(Apart::new(key, why));
                HEAD
            }
        }
    }

    fn is_one_too_many(&mut self, keys: &SealKeys) -> bool {
        self.unsealed += 1;
        !keys.is_empty() && self.unsealed > UNSEALED_PAGES
    }

    /// In the CIB one place may have two: the sealed one counts, or the newer.
    fn put(&mut self, writer: Writer, number: u16, page: Page) {
        let own = self.pages.entry(writer).or_default();
        let rank = |page: &Page| (page.is_sealed, page.head.at);
        if own.get(&number).is_none_or(|known| rank(known) < rank(&page)) {
            own.insert(number, page);
        }
    }

    /// With what stands beside the pages.
    pub(crate) fn found(self, plain: Entries, keys: &SealKeys, is_first: bool) -> Found {
        let Self { pages, longest, apart, heads, .. } = self;
        let (is_keyless, now) = (keys.is_empty(), Timestamp::now());
        let plain_until = plain_until(&pages, &plain, is_first, now);
        let mut entries = united(&pages, &plain, (is_keyless, plain_until), now);
        entries.apart.extend(apart);
        let longest_answer = longest.max(plain.sound.len() * PLAIN);
        Found { entries, paged: Some(Paged { pages, plain, plain_until, longest_answer, heads }) }
    }
}

/// The number of the last page, limited if unsealed.
fn last_of(page: &Page, keys: &SealKeys) -> u16 {
    let limit = match page.is_sealed {
        true => u16::MAX,
        false if keys.is_empty() => KEYLESS_LAST,
        false => UNSEALED_LAST,
    };
    page.head.last.min(limit)
}

impl Paged {
    /// Writers whose pages this controller's keys do not open: sealed with another key, or not at all.
    pub fn unopened(&self) -> impl Iterator<Item = &Writer> {
        let is_unopened = |page: &Page| !page.is_sealed;
        self.pages.iter().filter(move |(_, own)| own.values().any(is_unopened)).map(|(writer, _)| writer)
    }
}

/// The whole register: what stands on pages, and what stands beside them, as controllers without a key write it. Without a seal an entry
/// counts where this controller has no key, or until `plain_until`. Pure.
pub fn united(
    pages: &Pages,
    plain: &Entries,
    (is_keyless, plain_until): (bool, Timestamp),
    now: Timestamp,
) -> Entries {
    let heads = pages.iter().filter_map(|(writer, own)| Some((writer.clone(), pages::sealed_head(own)?.at)));
    let trust = Trust { is_keyless, trusts_plain: now < plain_until, sealing: heads.collect() };
    let mut all = Entries { is_partial: !pages::gaps(pages, now).is_empty(), ..Entries::default() };
    for (writer, own) in pages {
        for page in own.values() {
            let place = if page.is_sealed { Stands::Sealed(writer) } else { Stands::Unsealed };
            all.unite_all(Entries::of(&page.lines), place, &trust);
        }
    }
    all.unite_all(plain.clone(), Stands::Apart(None), &trust);
    all
}

/// Whether this release knows what a line says; another one may.
pub fn is_understood((key, value): &Line) -> bool {
    Entry::read(key, value).is_ok()
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

#[cfg(test)]
mod tests;
