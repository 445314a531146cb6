//! What is not served at the moment, and why: one sentence for each address.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::lock::lock;
use tracing::error;

/// A handle; all clones share one list.
#[derive(Clone, Debug, Default)]
pub struct Unserved(Arc<Mutex<BTreeMap<String, String>>>);

impl Unserved {
    /// The sentences, in the order of what is served and of the addresses.
    pub fn reasons(&self) -> Vec<String> {
        self.known().values().cloned().collect()
    }

    /// Takes note of it, and logs it if it is new.
    pub(super) fn note(&self, place: &str, sentence: String) {
        let mut known = self.known();
        if known.get(place) != Some(&sentence) {
            error!("{sentence}");
            known.insert(place.to_owned(), sentence);
        }
    }

    /// Says whether there was anything.
    pub(super) fn forget(&self, place: &str) -> bool {
        self.known().remove(place).is_some()
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        lock(&self.0)
    }
}
