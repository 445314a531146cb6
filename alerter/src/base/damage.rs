//! Damaged rows of the journal: each is said once, and counted until somebody has mended it.

use std::collections::HashSet;
use std::sync::Mutex;

use journal::Damage;
use marks::id::MarkId;
use tracing::error;

use crate::lock::lock;

/// What this daemon has met.
#[derive(Debug, Default)]
pub struct Damages {
    reported: Mutex<HashSet<Damage>>,
    /// Those of them that were not damaged any more when the journal was counted last.
    mended: Mutex<HashSet<Damage>>,
}

impl Damages {
    /// The damaged rows of a table, as far as this daemon has met them and nobody has mended them, in the order of their keys.
    pub fn of(&self, table: &str) -> Vec<Damage> {
        let mended = lock(&self.mended);
        let mut found = self.known();
        found.retain(|damage| damage.table == table && !mended.contains(damage));
        found.sort_by(|a, b| a.key.cmp(&b.key));
        found
    }

    /// Every damaged row that this daemon has met, mended or not.
    pub fn known(&self) -> Vec<Damage> {
        let reported = lock(&self.reported);
        reported.iter().cloned().collect()
    }

    /// Of the known damaged rows these still are.
    pub fn put(&self, known: &[Damage], still: &[Damage]) {
        let still: HashSet<&Damage> = still.iter().collect();
        let mended = known.iter().filter(|damage| !still.contains(damage)).cloned().collect();
        *lock(&self.mended) = mended;
    }

    /// How many damaged rows this daemon has met that nobody has mended.
    pub fn count(&self) -> usize {
        let mended = lock(&self.mended).len();
        self.known().len().saturating_sub(mended)
    }

    /// Says once of each damaged row that it is damaged.
    pub fn report(&self, damaged: &[Damage]) {
        let mut reported = lock(&self.reported);
        for damage in damaged.iter().filter(|damage| reported.insert((*damage).clone())) {
            let mark = Some(damage.id()).filter(|id| MarkId::parse(id).is_ok());
            error!(
                mark,
                "the {} row {} is damaged; it is not sent and not dropped: look at `nova-host-alerter list`",
                damage.table,
                damage.key
            );
        }
    }
}
