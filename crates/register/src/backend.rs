//! The interface of a register: a new one is a file with this, and a line of [`crate::backend_of`].

use std::time::Instant;

use crate::Access;
use crate::error::Done;
use crate::pages::Line;

/// Where texts stand under keys.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place<'k> {
    /// Beside the pages: each entry under its key.
    Plain,
    /// The same of one key. A backend may give more.
    Only(&'k str),
    /// The pages of this number, each under its writer.
    Pages(u16),
}

/// How the register is reached, and until when an answer is waited for.
pub(crate) type At<'t> = (&'t Access, Instant);

/// Where the register is kept.
pub(crate) trait Backend {
    /// What stands there.
    fn read(&self, at: At<'_>, place: Place<'_>) -> Done<Vec<Line>>;

    /// Writes as many texts as [`Self::limits`] allows, all or none. `false`: they were not written, since something stands
    /// under one of the keys.
    fn write(&self, at: At<'_>, place: Place<'_>, lines: &[Line]) -> Done<bool>;

    /// Deletes as many separate entries as [`Self::limits`] allows. A missing one is no error.
    fn delete(&self, at: At<'_>, keys: &[Line]) -> Done;

    /// Whether this controller may write now.
    fn permits(&self, _: At<'_>) -> Done {
        Ok(())
    }

    /// The most entries of one change, and the most text.
    fn limits(&self) -> (usize, usize);

    /// What tells it from the others.
    fn traits(&self) -> Traits;
}

/// What tells a backend from the others.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traits {
    /// A write replaces what stands there, so it is read first.
    pub(crate) overwrites: bool,
    /// A change can become visible later than its answer.
    pub(crate) is_late: bool,
    /// Once it has answered, what was written is there for all.
    pub(crate) is_sure: bool,
    /// Pages stand there: a few keys that are used again and again. Otherwise each entry has a key of its own for as long as it is wanted.
    pub(crate) has_pages: bool,
}

/// The longest prefixes of the rest, each with so many lines and so much text at most: a key stands up to three times in a change.
pub(crate) fn batches(lines: &[Line], (most, text_max): (usize, usize)) -> Vec<&[Line]> {
    let (mut batches, mut rest) = (Vec::new(), lines);
    while !rest.is_empty() {
        let mut text = 0;
        let fits = rest.iter().take(most).take_while(|(key, value)| {
            text += 3 * key.len() + value.len() + OVERHEAD;
            text <= text_max
        });
        let (batch, more) = rest.split_at(fits.count().max(1));
        batches.push(batch);
        rest = more;
    }
    batches
}

/// The words around a key and a value in a change.
const OVERHEAD: usize = 128;
