//! What was found in the register: what it says, and how it stands there.

use marks::register::pages::{Page, Pages, Writer};
use marks::register::{Entries, Trust, plain_until, united};
use marks::time::Timestamp;

use super::paged::Book;
use super::tools::Tools;

/// Everything that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// What all of it says together.
    pub entries: Entries,
    /// How it stands there; none where each entry has a key of its own for as long as it is wanted.
    pub paged: Option<Paged>,
}

/// How entries stand in Pacemaker's registers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paged {
    /// By writer and number.
    pub pages: Pages,
    /// On their own, as release 0.1.0 writes them, and a controller without a key.
    pub plain: Entries,
    /// Until when controllers are to be understood that write and read entries on their own; over where that is past.
    pub plain_until: Timestamp,
    /// In bytes as they are sent: the longest answer that is needed to read all of it.
    pub longest_answer: usize,
}

/// What an entry on its own adds to an answer, packed as Pacemaker packs it: 3,250 of them fit into 128 KiB.
const PLAIN: usize = 40;

impl Found {
    pub(super) fn of(book: Book, plain: Entries, tools: &Tools) -> Self {
        let now = Timestamp::now();
        let plain_until = plain_until(&book.pages, &plain, tools.is_first, now);
        let trust = Trust { is_keyless: tools.keys.is_empty(), plain_until };
        let mut entries = united(&book.pages, &plain, trust, now);
        entries.apart.extend(book.apart);
        let longest_answer = book.longest.max(plain.sound.len() * PLAIN);
        Self { entries, paged: Some(Paged { pages: book.pages, plain, plain_until, longest_answer }) }
    }
}

impl Paged {
    /// Writers whose pages this controller's keys do not open: another key sealed them, or nobody.
    pub fn unopened(&self) -> impl Iterator<Item = &Writer> {
        let is_unopened = |page: &Page| !page.is_sealed;
        self.pages.iter().filter(move |(_, own)| own.values().any(is_unopened)).map(|(writer, _)| writer)
    }
}
