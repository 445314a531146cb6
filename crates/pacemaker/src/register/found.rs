//! What was found in the register: its content, and its layout.

use marks::register::pages::{Page, Pages, Writer};
use marks::register::{Entries, Trust, plain_until, united};
use marks::time::Timestamp;

use super::paged::Book;
use super::tools::Tools;

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
