//! The results for several entries, as far as known.

use std::collections::BTreeMap;

use super::error::{Done, RegisterError};
use marks::register::{Entry, Held, Key};

/// The results for entries that were to be published.
#[derive(Debug, Default)]
pub struct Published {
    /// They are there.
    pub standing: Vec<Key>,
    /// They are not, each with the reason.
    pub failed: Vec<(Key, RegisterError)>,
    /// Why the results of all others are unknown.
    pub stopped: Option<RegisterError>,
}

impl Published {
    /// Notes present and blocked entries; returns the missing ones.
    pub(super) fn sort<'a>(
        &mut self,
        entries: Vec<&'a Entry>,
        values: &BTreeMap<String, String>,
    ) -> Vec<&'a Entry> {
        let mut missing = Vec::new();
        for entry in entries {
            let key = entry.key();
            match entry.held(values.get(&key.to_string()).map_or("", String::as_str)) {
                Held::Absent => missing.push(entry),
                Held::Counts => self.standing.push(key),
                Held::Other => {
                    let error = RegisterError::Other { key: key.to_string() };
                    self.failed.push((key, error));
                }
            }
        }
        missing
    }

    /// Writes entries one by one, and notes blocked ones; returns those that may be there now.
    pub(super) fn write<'a>(
        &mut self,
        entries: impl IntoIterator<Item = &'a Entry>,
        write: impl Fn(&Entry) -> Done,
    ) -> Done<Vec<&'a Entry>> {
        let mut written = Vec::new();
        for entry in entries {
            match write(entry) {
                Ok(()) => written.push(entry),
                Err(e) => self.note(entry, e)?,
            }
        }
        Ok(written)
    }

    /// A failure that the tool reports may concern this one entry; any other fault ends all.
    fn note(&mut self, entry: &Entry, error: RegisterError) -> Done {
        match error {
            RegisterError::Tool { ref source, .. } if source.code().is_some() => {
                self.failed.push((entry.key(), error));
                Ok(())
            }
            error => Err(error),
        }
    }
}
