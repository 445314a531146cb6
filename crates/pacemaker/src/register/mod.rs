//! The register in Pacemaker or in etcd: entries are written, read back, read and deleted there.

mod attrd;
mod cib;
mod clear;
mod error;
mod etcd;
mod etcd_fault;
mod etcd_seal;
mod etcdctl;
mod keeper;
mod paged;
mod publish;
mod published;
mod tools;

use std::time::Instant;

use marks::register::pages::{HEAD, Head, Pages, Write, Writer};
use marks::register::{Entries, Entry, Key, Register};
use marks::time::Timestamp;

use keeper::{Keeper, Shelf};

pub use error::{Done, RegisterError};
pub use etcd_fault::EtcdFault;
pub use paged::{Found, Paged};
pub use published::Published;
pub use tools::Tools;

/// The name of the attribute, and the prefix of the ids in the CIB.
pub const NAME: &str = "host-failure";
/// The same for pages: a release without pages does not see them.
pub const PAGES: &str = "host-failure-page";

/// Writes entries, one after the other, and reads each back. `Ok` means that all of them are there.
///
/// Another alerter's entry on the same mark stays and counts.
///
/// # Errors
/// [`RegisterError`]; entries before the failed one are there, the failed one may be.
pub fn publish(register: Register, tools: &Tools, entries: &[Entry], deadline: Instant) -> Done {
    let keeper = keeper_of(register)?;
    entries.iter().try_for_each(|entry| match entry.is_fit() {
        true => keeper.publish(tools, entry, deadline),
        false => Err(RegisterError::unfit(entry)),
    })
}

/// Writes the entries that are not there yet, and reads once for all of them. A failed one does not block the others; a
/// tool that is missing or hangs, or a lost quorum, ends all.
pub fn publish_all(register: Register, tools: &Tools, entries: &[Entry], deadline: Instant) -> Published {
    let mut published = Published::default();
    let publish = |keeper| publish::all(keeper, (tools, deadline), entries, &mut published);
    published.stopped = keeper_of(register).and_then(publish).err();
    published
}

/// Deletes old entries. `Ok` means that none of them is there.
///
/// In the CIB that is one change of the configuration for some hundred entries: Pacemaker keeps the last hundred changes
/// for the administrator.
///
/// # Errors
/// [`RegisterError`]; each entry may be gone or not.
pub fn clear(register: Register, tools: &Tools, keys: &[Key], deadline: Instant) -> Done {
    clear::clear(keeper_of(register)?, tools, keys, deadline)
}

/// Everything that is there, as this controller sees it. With `none` that is nothing.
///
/// # Errors
/// [`RegisterError`] if the content is unknown; bad entries are kept apart and are no error.
pub fn read(register: Register, tools: &Tools, deadline: Instant) -> Done<Entries> {
    Ok(find(register, tools, deadline)?.entries)
}

/// The same, with its layout.
///
/// # Errors
/// As [`read`].
pub fn find(register: Register, tools: &Tools, deadline: Instant) -> Done<Found> {
    if register == Register::Cib {
        return find_in_cib(&cib::all_of_it(tools, deadline)?, tools);
    }
    let Ok(keeper) = keeper_of(register) else { return Ok(Found::default()) };
    // Before the pages: a separate entry is on a page by then.
    let plain = keeper.entries(tools, deadline)?;
    match shelf_of(register) {
        Ok(shelf) => Ok(Found::of(book(shelf, tools, deadline)?, plain, tools)),
        Err(_apart) => Ok(Found { entries: plain, paged: None }),
    }
}

/// The pages alone, as they stand there, without what is beside them.
///
/// # Errors
/// As [`read`]; a register that has no pages.
pub fn pages(register: Register, tools: &Tools, deadline: Instant) -> Done<Pages> {
    Ok(book(shelf_of(register)?, tools, deadline)?.pages)
}

fn book(shelf: &dyn Shelf, tools: &Tools, deadline: Instant) -> Done<paged::Book> {
    paged::read(&tools.keys, |number| shelf.texts(tools, number, deadline))
}

/// Whether the register in attrd has anything that was not found there: one question, or two where entries outside of pages count.
/// Of a register in the CIB its version says so.
///
/// # Errors
/// [`RegisterError`]
pub fn has_news(paged: &Paged, tools: &Tools, deadline: Instant) -> Done<bool> {
    let counts_plain = tools.keys.is_empty() || Timestamp::now() < paged.plain_until;
    if counts_plain && attrd::Attrd.entries(tools, deadline)? != paged.plain {
        return Ok(true);
    }
    Ok(attrd::Attrd.texts(tools, HEAD, deadline)? != paged.heads)
}

/// The same of a text with the sets of the register in the CIB.
///
/// # Errors
/// [`RegisterError::Unreadable`] if it was cut off.
pub fn find_in_cib(xml: &str, tools: &Tools) -> Done<Found> {
    let plain = parse_output(Register::Cib, xml)?;
    let mut texts = cib::texts_in(xml)?;
    let book = paged::read(&tools.keys, |number| Ok(texts.remove(&number).unwrap_or_default()))?;
    Ok(Found::of(book, plain, tools))
}

/// Writes pages in order, each only when the one before it can be read. The date distinguishes a page from its
/// predecessor: attrd compares texts without regard to case.
///
/// # Errors
/// [`RegisterError`]; pages before the failed one are there, the failed one may be.
pub fn write_pages(
    register: Register,
    tools: &Tools,
    writer: &Writer,
    writes: &[Write],
    (head, deadline): (&Head, Instant),
) -> Done {
    paged::write(shelf_of(register)?, (tools, deadline), writer, writes, head)
}

/// Reads the output of the register's tool: `attrd_updater`, as XML or not, `cibadmin`, or `etcdctl`.
///
/// # Errors
/// [`RegisterError::Unreadable`] if it was cut off.
pub fn parse_output(register: Register, printed: &str) -> Done<Entries> {
    match keeper_of(register) {
        Ok(keeper) => Ok(keeper::entries(&keeper.parse(printed)?)),
        Err(_none) => Ok(Entries::default()),
    }
}

/// The configured register.
///
/// # Errors
/// [`RegisterError::None`]: there is none.
fn keeper_of(register: Register) -> Done<&'static dyn Keeper> {
    match register {
        Register::Attrd => Ok(&attrd::Attrd),
        Register::Cib => Ok(&cib::InCib),
        Register::Etcd => Ok(&etcd::InEtcd),
        Register::None => Err(RegisterError::None),
    }
}

/// The same for pages.
///
/// # Errors
/// As [`keeper_of`].
fn shelf_of(register: Register) -> Done<&'static dyn Shelf> {
    match register {
        Register::Attrd => Ok(&attrd::Attrd),
        Register::Cib => Ok(&cib::InCib),
        // There each entry has a key of its own for as long as it is wanted.
        Register::Etcd | Register::None => Err(RegisterError::None),
    }
}

#[cfg(test)]
mod tests;
