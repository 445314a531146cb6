//! What each register does: a new one is a file with this, and a line of `keeper_of`.

use std::time::Instant;

use marks::register::pages::Writer;
use marks::register::{Entries, Entry};

use super::error::RegisterError;
use super::published::Published;
use super::tools::Tools;

/// A place where entries are kept.
pub(super) trait Keeper {
    /// Writes an entry and reads it back. Another alerter's word on the same mark stays, and counts.
    fn publish(&self, tools: &Tools, entry: &Entry, deadline: Instant) -> Result<(), RegisterError>;

    /// Inserts entries without reading first, where what stands there cannot be overwritten. Says whether that was all; else
    /// some may stand there now.
    fn insert_all(&self, _: At<'_>, _: &[&Entry]) -> Result<bool, RegisterError> {
        Ok(false)
    }

    /// Writes an entry that is known to be absent, after [`Keeper::insert_all`].
    fn write(&self, tools: &Tools, entry: &Entry, deadline: Instant) -> Result<(), RegisterError>;

    /// The same of several; gives back what may stand there now.
    fn write_all<'a>(&self, at: At<'_>, missing: Vec<&'a Entry>, published: &mut Published) -> Written<'a> {
        let (tools, deadline) = at;
        published.write(missing, |entry| self.write(tools, entry, deadline))
    }

    /// Deletes entries, in their order. It is no error where one of them is gone already.
    fn delete(&self, tools: &Tools, keys: &[String], deadline: Instant) -> Result<(), RegisterError>;

    /// All keys with their values.
    fn all(&self, tools: &Tools, deadline: Instant) -> Result<Vec<(String, String)>, RegisterError>;

    /// Reads what its tool printed.
    fn parse(&self, printed: &str) -> Result<Vec<(String, String)>, RegisterError>;

    /// All that stands there on its own.
    fn entries(&self, tools: &Tools, deadline: Instant) -> Result<Entries, RegisterError> {
        Ok(entries(&self.all(tools, deadline)?))
    }

    /// Whether what was changed can be seen later than the answer came.
    fn is_late(&self) -> bool;
}

/// What keeps texts under keys, a few of them under each number.
pub(super) trait Shelf {
    /// All that stands under this number: whose it is, and the text.
    fn texts(&self, tools: &Tools, number: u16, deadline: Instant) -> Result<Texts, RegisterError>;

    /// Puts a text there, in the place of what was there before.
    fn put(&self, tools: &Tools, place: (u16, &Writer), text: &str, deadline: Instant) -> Done;
}

/// With which tools, and until when.
pub(super) type At<'t> = (&'t Tools, Instant);

/// Which of the entries may stand there now.
pub(super) type Written<'a> = Result<Vec<&'a Entry>, RegisterError>;

/// Nothing more is to be said of it.
pub(super) type Done = Result<(), RegisterError>;

/// Keys, and what stands under them.
pub(super) type Texts = Vec<(String, String)>;

/// What these keys and values are.
pub(super) fn entries(values: &[(String, String)]) -> Entries {
    let mut entries = Entries::default();
    values.iter().for_each(|(key, value)| entries.take(key, value));
    entries
}

/// The longest beginnings of what is left, each of so many items and so much text at most.
pub(super) fn batches<T>(
    items: &[T],
    (items_max, text_max): (usize, usize),
    length: impl Fn(&T) -> usize,
) -> Vec<&[T]> {
    let mut batches = Vec::new();
    let mut rest = items;
    while !rest.is_empty() {
        let mut text = 0;
        let fits = rest.iter().take(items_max).take_while(|item| {
            text += length(item);
            text <= text_max
        });
        let (batch, more) = rest.split_at(fits.count().max(1));
        batches.push(batch);
        rest = more;
    }
    batches
}
