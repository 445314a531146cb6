//! Pages of the register in Pacemaker: each has a key that its writer uses again and again.

use std::time::Instant;

use marks::register::pages::{self, HEAD, Head, Page, Pages, Write, Writer};
use marks::register::{Apart, Entries, SealKeys, Trust, Why, plain_until, united};
use marks::time::Timestamp;

use super::attrd::pause;
use super::error::{Done, RegisterError};
use super::keeper::{At, Shelf, Texts};
use super::tools::Tools;

/// The most unsealed pages that are read: without a seal anybody can claim any number of pages and writers. Without a key
/// any pages are read.
const UNSEALED_PAGES: usize = 4;
const UNSEALED_LAST: u16 = 2;
const KEYLESS_LAST: u16 = 64;

/// Every page of every writer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Book {
    /// By writer and number.
    pub(super) pages: Pages,
    /// The size of the texts under one number, at most.
    pub(super) longest: usize,
    /// Texts that are not our pages.
    pub(super) apart: Vec<Apart>,
    /// The texts under the number of the heads.
    pub(super) heads: Texts,
    /// How many pages have no valid seal.
    unsealed: usize,
}

/// Reads all pages, the heads first: they give the number of the others. `texts` returns the texts under a number.
pub(super) fn read(keys: &SealKeys, mut texts: impl FnMut(u16) -> Done<Texts>) -> Done<Book> {
    let mut book = Book::default();
    let mut last = HEAD;
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
    book.leave_out_what_no_head_names();
    Ok(book)
}

/// See [`super::write_pages`].
pub(super) fn write(
    shelf: &dyn Shelf,
    (tools, deadline): At<'_>,
    writer: &Writer,
    writes: &[Write],
    head: &Head,
) -> Done {
    for Write { number, last, entries } in writes {
        let head = match *number {
            HEAD => Head { last: *last, ..head.clone() },
            _ => Head { at: head.at, ..Head::default() },
        };
        let text = pages::write(writer, *number, &head, entries, &tools.keys);
        shelf.put(tools, (*number, writer), &text, deadline)?;
        confirm(shelf, (tools, deadline), (*number, writer), &text)?;
    }
    Ok(())
}

/// A write counts only once it can be read back; attrd answers before the cluster has it. At the end of the time, the
/// last text read says why it does not count.
fn confirm(
    shelf: &dyn Shelf,
    (tools, deadline): At<'_>,
    (number, writer): (u16, &Writer),
    text: &str,
) -> Done {
    let (begun, key, mut missing) = (Instant::now(), writer.to_string(), None);
    loop {
        match shelf.texts(tools, number, deadline) {
            Ok(texts) if texts.iter().any(|(whose, found)| *whose == key && found == text) => return Ok(()),
            Ok(_) => missing = Some(RegisterError::NotReadBack { key: format!("{key} {number}") }),
            Err(e) => return Err(missing.unwrap_or(e)),
        }
        pause(begun);
    }
}

impl Book {
    /// Such a page is too old.
    fn leave_out_what_no_head_names(&mut self) {
        for own in self.pages.values_mut() {
            let last = own.get(&HEAD).map_or(HEAD, |page| page.head.last);
            own.retain(|number, _| *number <= last);
        }
    }

    /// Returns the number of its writer's last page, if it is a head. An empty text is a deleted one.
    fn take(&mut self, (key, number): (&str, u16), text: &str, keys: &SealKeys) -> u16 {
        if text.is_empty() {
            return HEAD;
        }
        match read_one((key, number), text, keys) {
            Ok((_, page)) if !page.is_sealed && self.is_one_too_many(keys) => HEAD,
            Ok((writer, page)) => {
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
}

/// The number of the last page, limited if unsealed.
fn last_of(head: &Page, keys: &SealKeys) -> u16 {
    let limit = match head.is_sealed {
        true => u16::MAX,
        false if keys.is_empty() => KEYLESS_LAST,
        false => UNSEALED_LAST,
    };
    head.head.last.min(limit)
}

fn read_one((key, number): (&str, u16), text: &str, keys: &SealKeys) -> Result<(Writer, Page), Why> {
    let writer = Writer::parse(key).ok_or(Why::Key)?;
    let page = pages::read(&writer, number, text, keys)?;
    Ok((writer, page))
}

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
    pub heads: Vec<(String, String)>,
}

/// What a separate entry adds to an answer, packed as Pacemaker packs it: 3,250 of them fit into 128 KiB.
const PLAIN: usize = 40;

impl Found {
    pub(super) fn of(book: Book, plain: Entries, tools: &Tools) -> Self {
        let now = Timestamp::now();
        let plain_until = plain_until(&book.pages, &plain, tools.is_first, now);
        let trust = Trust { is_keyless: tools.keys.is_empty(), plain_until };
        let mut entries = united(&book.pages, &plain, trust, now);
        entries.apart.extend(book.apart);
        let longest_answer = book.longest.max(plain.sound.len() * PLAIN);
        Self {
            entries,
            paged: Some(Paged { pages: book.pages, plain, plain_until, longest_answer, heads: book.heads }),
        }
    }
}

impl Paged {
    /// Writers whose pages this controller's keys do not open: sealed with another key, or not at all.
    pub fn unopened(&self) -> impl Iterator<Item = &Writer> {
        let is_unopened = |page: &Page| !page.is_sealed;
        self.pages.iter().filter(move |(_, own)| own.values().any(is_unopened)).map(|(writer, _)| writer)
    }
}
