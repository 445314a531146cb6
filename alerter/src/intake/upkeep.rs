//! The entries of this journal that the register should have now.

use std::time::Duration;

use journal::{Done, Journal};
use marks::register::{Entries, Entry, Register};
use marks::time::Timestamp;

use super::start;
use crate::base::Base;
use crate::cluster;

/// Without changes the journal is read again so often, so that entries that have had their time leave the register.
const READ_AGAIN: Duration = Duration::from_secs(3600);

/// What is known of it from one poll to the next.
#[derive(Default)]
pub struct Upkeep {
    /// Marks of an older daemon were compared with the register.
    pub settled_in: bool,
    /// As of a version of the journal, and of a time.
    wanted: Option<((i64, i64), Timestamp, Vec<Entry>)>,
}

impl Upkeep {
    /// Every entry that the register should have, given what was `found` there. None before the first full pass, with the CIB: a fencing
    /// that no pass has judged would be published as new, though the register may have had it and its end, and have lost both.
    ///
    /// # Errors
    /// As any read or write of the journal.
    pub fn wanted(
        &mut self,
        journal: &mut Journal,
        base: &Base,
        (register, found): (Register, &Entries),
        now: Timestamp,
    ) -> Done<Option<Vec<Entry>>> {
        if !base.seen().has_passed() {
            return Ok(None);
        }
        if !self.settled_in {
            start::settle_strangers(journal, base, (register, &found.clone().believed()), now)?;
            self.settled_in = true;
        }
        let version = journal.version()?;
        let is_current = |known: &(i64, i64), at: Timestamp| *known == version && now.since(at) < READ_AGAIN;
        if !self.wanted.as_ref().is_some_and(|(known, at, _)| is_current(known, *at)) {
            let wanted = journal.entries(now - cluster::KEPT, &base.controller)?;
            self.wanted = Some((version, now, cluster::bounded(wanted)));
        }
        Ok(self.wanted.as_ref().map(|(.., wanted)| wanted.clone()))
    }
}
