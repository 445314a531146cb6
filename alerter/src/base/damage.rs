//! Damaged rows of the journal: each is logged once, and counted until somebody has repaired it.

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
    repaired: Mutex<HashSet<Damage>>,
}

impl Damages {
    /// The damaged rows of a table that this daemon has met and that nobody has repaired, in the order of their keys.
    pub fn of(&self, table: &str) -> Vec<Damage> {
        let repaired = lock(&self.repaired);
        let mut found = self.known();
        found.retain(|damage| damage.table == table && !repaired.contains(damage));
        found.sort_by(|a, b| a.key.cmp(&b.key));
        found
    }

    /// Every damaged row that this daemon has met, repaired or not.
    pub fn known(&self) -> Vec<Damage> {
        let reported = lock(&self.reported);
        reported.iter().cloned().collect()
    }

    /// Takes note which of the known damaged rows are still damaged.
    pub fn put(&self, known: &[Damage], still: &[Damage]) {
        let still: HashSet<&Damage> = still.iter().collect();
        let repaired = known.iter().filter(|damage| !still.contains(damage)).cloned().collect();
        *lock(&self.repaired) = repaired;
    }

    /// How many damaged rows this daemon has met that nobody has repaired.
    pub fn count(&self) -> usize {
        let repaired = lock(&self.repaired).len();
        self.known().len().saturating_sub(repaired)
    }

    /// Logs each damaged row once.
    pub fn report(&self, damaged: &[Damage]) {
        let mut reported = lock(&self.reported);
        for damage in damaged.iter().filter(|damage| reported.insert((*damage).clone())) {
            let mark = Some(damage.id()).filter(|id| MarkId::parse(id).is_ok());
            error!(
                mark,
                "row {1} of table {0} is damaged; it is neither sent nor dropped: see `nova-host-alerter list`",
                damage.table,
                damage.key
            );
        }
    }
}
