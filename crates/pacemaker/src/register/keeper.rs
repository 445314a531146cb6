//! The interface of a register: a new one is a file with this, and a line of `keeper_of`.

use std::time::Instant;

use marks::register::pages::Writer;
use marks::register::{Entries, Entry};

use super::error::Done;
use super::published::Published;
use super::tools::Tools;

/// A store of entries.
pub(super) trait Keeper {
    /// Writes an entry and reads it back. Another alerter's entry on the same mark stays, and counts.
    fn publish(&self, tools: &Tools, entry: &Entry, deadline: Instant) -> Done;

    /// Inserts entries without reading first, if the store cannot overwrite. Returns whether that was all; otherwise some
    /// may be there now.
    fn insert_all(&self, _: At<'_>, _: &[&Entry]) -> Done<bool> {
        Ok(false)
    }

    /// Writes an entry that is known to be absent, after [`Keeper::insert_all`].
    fn write(&self, tools: &Tools, entry: &Entry, deadline: Instant) -> Done;

    /// The same for several; returns those that may be there now.
    fn write_all<'a>(&self, at: At<'_>, missing: Vec<&'a Entry>, published: &mut Published) -> Written<'a> {
        let (tools, deadline) = at;
        published.write(missing, |entry| self.write(tools, entry, deadline))
    }

    /// Deletes entries, in order. A missing one is no error.
    fn delete(&self, tools: &Tools, keys: &[String], deadline: Instant) -> Done;

    /// All keys with their values.
    fn all(&self, tools: &Tools, deadline: Instant) -> Done<Vec<(String, String)>>;

    /// Reads its tool's output.
    fn parse(&self, printed: &str) -> Done<Vec<(String, String)>>;

    /// All separate entries.
    fn entries(&self, tools: &Tools, deadline: Instant) -> Done<Entries> {
        Ok(entries(&self.all(tools, deadline)?))
    }

    /// Whether a change can become visible later than its answer.
    fn is_late(&self) -> bool;
}

/// A store of texts under keys, with a few texts under each number.
pub(super) trait Shelf {
    /// All texts under this number, with their owners.
    fn texts(&self, tools: &Tools, number: u16, deadline: Instant) -> Done<Texts>;

    /// Stores a text, replacing the previous one.
    fn put(&self, tools: &Tools, place: (u16, &Writer), text: &str, deadline: Instant) -> Done;
}

/// The tools, and the deadline.
pub(super) type At<'t> = (&'t Tools, Instant);

/// The entries that may be there now.
pub(super) type Written<'a> = Done<Vec<&'a Entry>>;

/// Keys with their values.
pub(super) type Texts = Vec<(String, String)>;

/// The content of these keys and values.
pub(super) fn entries(values: &[(String, String)]) -> Entries {
    let mut entries = Entries::default();
    values.iter().for_each(|(key, value)| entries.take(key, value));
    entries
}

/// The longest prefixes of the rest, each with so many items and so much text at most.
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
