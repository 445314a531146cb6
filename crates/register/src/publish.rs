//! Writing, and deleting: what was written counts only once it can be read back.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use marks::register::{Entry, Held, Key};

use crate::backend::{At, Backend, Place, batches};
use crate::error::{Done, RegisterError};
use crate::pages::{self, Line, PageWrites};

/// The shortest and the longest pause between two reads for a written value.
const PAUSES: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(100)];

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

/// Entries, each with why it does not stand there.
type Missing<'e> = Vec<(&'e Entry, RegisterError)>;

/// A backend to publish in, and whether it is one entry alone.
pub(crate) struct Publishing<'a> {
    pub(crate) backend: &'a dyn Backend,
    pub(crate) at: At<'a>,
    pub(crate) alone: Option<String>,
}

impl Publishing<'_> {
    /// Writes the entries that are not there yet.
    pub(crate) fn all(&self, entries: &[Entry], published: &mut Published) -> Done {
        let (fit, unfit): (Vec<&Entry>, Vec<&Entry>) = entries.iter().partition(|entry| entry.is_fit());
        published.failed.extend(unfit.into_iter().map(|entry| (entry.key(), RegisterError::unfit(entry))));
        if fit.is_empty() {
            return Ok(());
        }
        let inserted = self.insert(&fit);
        match inserted {
            Ok(true) if self.alone.is_some() && self.backend.traits().is_sure => return Ok(()),
            Ok(true) => return self.confirm(fit, published),
            Err(error) if self.alone.is_some() => return Err(error),
            _ => {}
        }
        let missing = published.sort(fit, &self.values()?, false);
        if missing.is_empty() {
            return Ok(());
        }
        inserted?;
        let written = self.write(missing.into_iter().map(|(entry, _)| entry).collect(), published)?;
        self.confirm(written, published)
    }

    /// Inserts entries without reading first, if the store cannot overwrite, or if the id of one is new and its host waits. Returns
    /// whether that was all; otherwise some may be there now.
    fn insert(&self, entries: &[&Entry]) -> Done<bool> {
        let is_new = self.alone.is_some() && matches!(entries, [Entry::Fencing(_)]);
        if self.backend.traits().overwrites && !is_new {
            return Ok(false);
        }
        self.backend.permits(self.at)?;
        let lines: Vec<Line> = entries.iter().map(|entry| entry.line()).collect();
        for batch in batches(&lines, self.backend.limits()) {
            match self.backend.write(self.at, Place::Plain, batch) {
                Ok(true) => {}
                Err(error) if self.alone.is_none() && error.is_of_one_entry() => return Ok(false),
                other => return other,
            }
        }
        Ok(true)
    }

    /// Writes entries that are known to be absent, after [`Self::insert`], which checks whether it may; returns those that may be there
    /// now. A change is done completely or not at all. If it is rejected, another writer was quicker, or one entry is at fault: then the
    /// entries go one by one.
    fn write<'e>(&self, missing: Vec<&'e Entry>, published: &mut Published) -> Done<Vec<&'e Entry>> {
        let lines: Vec<Line> = missing.iter().map(|entry| entry.line()).collect();
        let (mut written, mut rest) = (Vec::new(), missing.into_iter());
        for batch in batches(&lines, self.backend.limits()) {
            let are_all = batch.len() > 1
                && match self.backend.write(self.at, Place::Plain, batch) {
                    Err(error) if !error.is_of_one_entry() => return Err(error),
                    done => done.unwrap_or(false),
                };
            for (line, entry) in batch.iter().zip(rest.by_ref()) {
                let one = || self.backend.write(self.at, Place::Plain, std::slice::from_ref(line));
                match if are_all { Ok(true) } else { one() } {
                    Ok(_) => written.push(entry),
                    Err(error) if error.is_of_one_entry() => published.failed.push((entry.key(), error)),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(written)
    }

    /// Of several, one that was absent and has another value now was written by somebody else. Alone it may be the value from before: a new
    /// one is written without reading.
    fn confirm(&self, written: Vec<&Entry>, published: &mut Published) -> Done {
        if written.is_empty() {
            return Ok(());
        }
        let (mut missing, mut left) = (Vec::new(), written);
        until(self.backend.traits().is_late, || {
            missing = published.sort(std::mem::take(&mut left), &self.values()?, self.alone.is_some());
            left.extend(missing.iter().map(|(entry, _)| *entry));
            Ok(left.is_empty())
        })?;
        published.note(missing);
        Ok(())
    }

    fn values(&self) -> Done<BTreeMap<String, String>> {
        let place = self.alone.as_deref().map_or(Place::Plain, Place::Only);
        values(self.backend, self.at, place)
    }
}

impl Published {
    /// What is there, and the first fault.
    pub fn result(self) -> (Vec<Key>, Done) {
        let failed = self.failed.into_iter().map(|(_, why)| why);
        (self.standing, self.stopped.into_iter().chain(failed).next().map_or(Ok(()), Err))
    }

    /// Notes present entries, and blocked ones unless those can still come; returns the others, each with what is wrong.
    fn sort<'e>(
        &mut self,
        entries: Vec<&'e Entry>,
        values: &BTreeMap<String, String>,
        can_come: bool,
    ) -> Missing<'e> {
        let mut missing = Vec::new();
        for entry in entries {
            let key = entry.key().to_string();
            match entry.held(values.get(&key).map_or("", String::as_str)) {
                Held::Absent => missing.push((entry, RegisterError::NotReadBack { key })),
                Held::Counts => self.standing.push(entry.key()),
                Held::Other if can_come => missing.push((entry, RegisterError::Other { key })),
                Held::Other => self.failed.push((entry.key(), RegisterError::Other { key })),
            }
        }
        missing
    }

    fn note(&mut self, missing: Missing<'_>) {
        self.failed.extend(missing.into_iter().map(|(entry, why)| (entry.key(), why)));
    }
}

/// See [`crate::Access::clear`].
pub(crate) fn clear(backend: &dyn Backend, at: At<'_>, keys: &[Key]) -> Done {
    let standing = values(backend, at, Place::Plain)?;
    let mut keys: Vec<&Key> = keys.iter().filter(|key| standing.contains_key(&key.to_string())).collect();
    keys.sort_by_key(|key| turn(key));
    let keys: Vec<Line> = keys.into_iter().map(|key| (key.to_string(), String::new())).collect();
    if keys.is_empty() {
        return Ok(());
    }
    backend.permits(at)?;
    batches(&keys, backend.limits()).into_iter().try_for_each(|batch| backend.delete(at, batch))?;
    let mut left = None;
    until(backend.traits().is_late, || {
        let standing = values(backend, at, Place::Plain)?;
        left = keys.iter().find(|(key, _)| standing.contains_key(key));
        Ok(left.is_none())
    })?;
    left.map_or(Ok(()), |(key, _)| Err(RegisterError::NotGone { key: key.clone() }))
}

/// A fencing goes first and a settlement last: any rest in between belongs to a mark that has ended, and is not sent. The
/// same holds for a decision and its end.
fn turn(key: &Key) -> u8 {
    match key {
        Key::Fencing(_) | Key::Again(_) => 0,
        Key::Mark(_)
        | Key::Acknowledged(..)
        | Key::Returned(_)
        | Key::Operation(_)
        | Key::Decision(_)
        | Key::Watermark(_) => 1,
        Key::Settled(_) | Key::Ending(_) => 2,
    }
}

/// See [`crate::Access::write_pages`].
pub(crate) fn write_pages(backend: &dyn Backend, at: At<'_>, all: &PageWrites) -> Done {
    for (number, lines) in &all.writes {
        let text = pages::write(&all.writer, *number, &all.head_of(*number), lines, &at.0.keys);
        let (line, place) = ((all.writer.to_string(), text), Place::Pages(*number));
        backend.permits(at)?;
        backend.write(at, place, std::slice::from_ref(&line))?;
        if !until(true, || Ok(backend.read(at, place)?.contains(&line)))? {
            return Err(RegisterError::NotReadBack { key: format!("{} {number}", line.0) });
        }
    }
    Ok(())
}

/// Everything that is there now.
fn values(backend: &dyn Backend, at: At<'_>, place: Place<'_>) -> Done<BTreeMap<String, String>> {
    Ok(backend.read(at, place)?.into_iter().filter(|(_, value)| !value.is_empty()).collect())
}

/// Asks until it is so, as long as that can come: the cluster may have a change later than it was acknowledged. While a membership forms
/// that takes seconds, in which each question would be one more program and Pacemaker's time. At the end of the time the last answer
/// counts, if there was one.
fn until(can_come: bool, mut ask: impl FnMut() -> Done<bool>) -> Done<bool> {
    let (begun, mut was_answered) = (Instant::now(), false);
    loop {
        match ask() {
            Err(error) if !was_answered => return Err(error),
            Ok(false) if can_come => was_answered = true,
            answer => return Ok(answer.unwrap_or(false)),
        }
        thread::sleep((begun.elapsed() / 4).clamp(PAUSES[0], PAUSES[1]));
    }
}
