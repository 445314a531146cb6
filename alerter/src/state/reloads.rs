//! New configurations on their way to the engine.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Mutex;

use tokio::sync::{Mutex as AsyncMutex, MutexGuard, oneshot};

use crate::config::Settings;
use crate::lock::lock;

/// The result of a reload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reloaded {
    /// The new configuration is in force: one sentence for each change.
    Changed(Vec<String>),
    /// Nothing has changed; one sentence for each problem.
    Refused(Vec<String>),
    /// Nothing has changed yet: the new configuration is sound, and comes into force as soon as this is over.
    Postponed(String),
}

/// Sound configurations on their way to the engine.
#[derive(Default)]
pub struct Reloads {
    asked: Mutex<VecDeque<Asked>>,
    /// One at a time: a reading must not replace a later one.
    pub turn: AsyncMutex<()>,
    /// The main file that was last asked for, even if it was refused.
    file: Mutex<Option<PathBuf>>,
    postponed: Mutex<Option<Postponed>>,
}

/// A sound configuration that waits for the journal.
#[derive(Clone)]
pub struct Postponed {
    /// It.
    pub settings: Settings,
    /// Who had it read; nobody for a signal.
    pub signed: Signed,
}

/// Who had a configuration read, and why.
#[derive(Clone, Debug, Default)]
pub struct Signed {
    /// As the history has it; empty where nobody signed.
    pub user: String,
    /// Their reason; may be empty.
    pub reason: String,
}

/// A configuration that is to come into force.
pub struct Asked {
    /// The new one.
    pub settings: Settings,
    /// Where the result goes.
    pub answer: oneshot::Sender<Reloaded>,
}

impl Reloads {
    /// The next one, if there is one.
    pub fn take(&self) -> Option<Asked> {
        lock(&self.asked).pop_front()
    }

    /// The main file to read: the one that is named now, else the one that was last named, also if that was refused.
    pub fn file(&self, named: Option<PathBuf>) -> Option<PathBuf> {
        let mut last = lock(&self.file);
        *last = named.or_else(|| last.take());
        last.clone()
    }

    /// Keeps it until the journal can be used.
    pub fn postpone(&self, postponed: Postponed) {
        *self.postponed() = Some(postponed);
    }

    /// Whether one waits.
    pub fn is_postponed(&self) -> bool {
        self.postponed().is_some()
    }

    /// The one that waits, with a guard: while the guard lives no newer configuration is read. None while one is being read: that is
    /// newer.
    pub fn take_postponed(&self) -> Option<(Postponed, MutexGuard<'_, ()>)> {
        let turn = self.turn.try_lock().ok()?;
        Some((self.postponed().take()?, turn))
    }

    /// Drops what waits: a later reading counts, even if it was refused.
    pub fn forget(&self) {
        *self.postponed() = None;
    }

    /// Notes who had the waiting one read.
    pub fn sign(&self, signed: Signed) {
        if let Some(postponed) = self.postponed().as_mut() {
            postponed.signed = signed;
        }
    }

    fn postponed(&self) -> std::sync::MutexGuard<'_, Option<Postponed>> {
        lock(&self.postponed)
    }

    /// Asks the engine to put it in force.
    pub fn ask(&self, settings: Settings) -> oneshot::Receiver<Reloaded> {
        let (answer, answered) = oneshot::channel();
        let asked = Asked { settings, answer };
        lock(&self.asked).push_back(asked);
        answered
    }
}
