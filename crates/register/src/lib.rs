//! The register: what all controllers share, in Pacemaker's own replicated state or in etcd. Texts under keys are written, read back, read
//! and deleted there; which entries they are is another crate's matter.

/// The register in Pacemaker's attribute manager.
mod attrd;
/// The interface of a register.
mod backend;
/// Everything that stands in a register.
mod book;
/// The register in the CIB.
mod cib;
/// Why the register could not be written or read.
mod error;
/// The register in etcd.
mod etcd;
/// The meaning of etcdctl's error messages.
mod etcd_fault;
/// Pages: one writer's entries, packed.
pub mod pages;
/// Writing, and deleting.
mod publish;
/// Seals: what root wrote.
mod seal;

use std::path::PathBuf;
use std::time::Instant;

use marks::register::{Entries, Entry, Key, Part, Register};
use marks::time::Timestamp;
use pacemaker::tools::Tools;

use backend::{Backend, Place};
use book::Book;
use pages::{HEAD, PageWrites, Pages};
use publish::Publishing;

pub use book::{Found, Paged, is_understood, plain_until, united};
pub use error::{Done, RegisterError};
pub use etcd::{Etcd, Login};
pub use etcd_fault::EtcdFault;
pub use publish::Published;
pub use seal::SealKeys;

/// The name of the attribute, and the prefix of the ids in the CIB.
pub const NAME: &str = "host-failure";
/// The same for pages: a release without pages does not see them.
pub const PAGES: &str = "host-failure-page";
/// etcd's own tool.
pub const ETCDCTL: &str = "/usr/bin/etcdctl";

/// How the register is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Where it is.
    pub register: Register,
    /// Pacemaker's tools.
    pub tools: Tools,
    /// Accesses etcd.
    pub etcdctl: PathBuf,
    /// The settings of etcd, if the register is there.
    pub etcd: Option<Etcd>,
    /// The keys that seal and open its entries.
    pub keys: SealKeys,
    /// The writer.
    pub part: Part,
    /// This controller never wrote pages, so an upgrade may begin.
    pub is_first: bool,
}

impl Access {
    /// To that register, for an alerter without a key.
    pub fn to(register: Register, etcd: Option<Etcd>) -> Self {
        let (tools, keys) = (Tools::default(), SealKeys::default());
        Self { register, tools, etcdctl: ETCDCTL.into(), etcd, keys, part: Part::Alerter, is_first: false }
    }

    /// Whether this writer writes pages; otherwise each entry is a separate one.
    pub fn has_pages(&self) -> bool {
        !self.keys.is_empty() && backend_of(self.register).is_ok_and(|backend| backend.traits().has_pages)
    }

    /// Writes an entry and reads it back. Another alerter's entry on the same mark stays and counts.
    ///
    /// # Errors
    /// [`RegisterError`]; it may be there.
    pub fn publish(&self, entry: &Entry, deadline: Instant) -> Done {
        self.put(std::slice::from_ref(entry), Some(entry.key().to_string()), deadline).result().1
    }

    /// Writes the entries that are not there yet, and reads once for all of them. A failed one does not block the others; a
    /// tool that is missing or hangs, or a lost quorum, ends all.
    pub fn publish_all(&self, entries: &[Entry], deadline: Instant) -> Published {
        self.put(entries, None, deadline)
    }

    fn put(&self, entries: &[Entry], alone: Option<String>, deadline: Instant) -> Published {
        let mut published = Published::default();
        let put = |backend| Publishing { backend, at: (self, deadline), alone }.all(entries, &mut published);
        published.stopped = backend_of(self.register).and_then(put).err();
        published
    }

    /// Deletes old entries. `Ok` means that none of them is there.
    ///
    /// In the CIB that is one change of the configuration for some hundred entries: Pacemaker keeps the last hundred changes
    /// for the administrator.
    ///
    /// # Errors
    /// [`RegisterError`]; each entry may be gone or not.
    pub fn clear(&self, keys: &[Key], deadline: Instant) -> Done {
        publish::clear(backend_of(self.register)?, (self, deadline), keys)
    }

    /// Everything that is there, as this controller sees it. With `none` that is nothing.
    ///
    /// # Errors
    /// [`RegisterError`] if the content is unknown; bad entries are kept apart and are no error.
    pub fn read(&self, deadline: Instant) -> Done<Entries> {
        Ok(self.find(deadline)?.entries)
    }

    /// The same, with its layout.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn find(&self, deadline: Instant) -> Done<Found> {
        match self.register {
            Register::None => Ok(Found::default()),
            Register::Etcd => Ok(Found { entries: etcd::entries((self, deadline))?, paged: None }),
            Register::Cib => self.find_in_cib(&cib::all_of_it((self, deadline))?),
            Register::Attrd => {
                // Before the pages: a separate entry is on a page by then.
                let plain = attrd::Attrd.read((self, deadline), Place::Plain)?;
                Ok(self.book(deadline)?.found(Entries::of(&plain), &self.keys, self.is_first))
            }
        }
    }

    /// The same of a text with the sets of the register in the CIB.
    ///
    /// # Errors
    /// [`pacemaker::tools::ToolError::Unreadable`] if it was cut off.
    pub fn find_in_cib(&self, xml: &str) -> Done<Found> {
        let (plain, mut pages) = (cib::named(xml, NAME)?, cib::pages_in(xml)?);
        let book = Book::read(&self.keys, |number| Ok(pages.remove(&number).unwrap_or_default()))?;
        Ok(book.found(Entries::of(&plain), &self.keys, self.is_first))
    }

    /// The pages alone, as they stand there, without what is beside them.
    ///
    /// # Errors
    /// As [`Self::read`]; a register that has no pages.
    pub fn pages(&self, deadline: Instant) -> Done<Pages> {
        Ok(self.book(deadline)?.pages)
    }

    fn book(&self, deadline: Instant) -> Done<Book> {
        let backend = backend_of(self.register).and_then(|backend| match backend.traits().has_pages {
            true => Ok(backend),
            false => Err(RegisterError::None),
        })?;
        Book::read(&self.keys, |number| backend.read((self, deadline), Place::Pages(number)))
    }

    /// Whether the register in attrd has anything that was not found there: one question, or two where entries outside of pages count.
    /// Of a register in the CIB its version says so.
    ///
    /// # Errors
    /// [`RegisterError`]
    pub fn has_news(&self, paged: &Paged, deadline: Instant) -> Done<bool> {
        let ask = |place| attrd::Attrd.read((self, deadline), place);
        let counts_plain = self.keys.is_empty() || Timestamp::now() < paged.plain_until;
        if counts_plain && Entries::of(&ask(Place::Plain)?) != paged.plain {
            return Ok(true);
        }
        Ok(ask(Place::Pages(HEAD))? != paged.heads)
    }

    /// Writes pages in order, each only when the one before it can be read. The date distinguishes a page from its
    /// predecessor: attrd compares texts without regard to case.
    ///
    /// # Errors
    /// [`RegisterError`]; pages before the failed one are there, the failed one may be.
    pub fn write_pages(&self, all: &PageWrites, deadline: Instant) -> Done {
        publish::write_pages(backend_of(self.register)?, (self, deadline), all)
    }
}

/// The configured register.
///
/// # Errors
/// [`RegisterError::None`]: there is none.
fn backend_of(register: Register) -> Done<&'static dyn Backend> {
    match register {
        Register::Attrd => Ok(&attrd::Attrd),
        Register::Cib => Ok(&cib::InCib),
        Register::Etcd => Ok(&etcd::InEtcd),
        Register::None => Err(RegisterError::None),
    }
}

#[cfg(test)]
mod tests;
