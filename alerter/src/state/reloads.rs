//! New configurations on their way to the engine.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Mutex;

use tokio::sync::{Mutex as AsyncMutex, MutexGuard, oneshot};

use crate::config::Settings;
use crate::lock::lock;

/// What came of a reload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reloaded {
    /// The new configuration is in force: one sentence for each thing that is another one now.
    Changed(Vec<String>),
    /// Nothing has changed; one sentence for each problem.
    Refused(Vec<String>),
    /// Nothing has changed yet, and nothing is wrong with it: it is taken up as soon as this is over.
    Postponed(String),
}

/// What was judged to be good, on its way to the engine.
#[derive(Default)]
pub struct Reloads {
    asked: Mutex<VecDeque<Asked>>,
    /// One at a time: what was read first is not put over what was read later.
    pub turn: AsyncMutex<()>,
    /// The main file that was asked for last, whatever came of it.
    file: Mutex<Option<PathBuf>>,
    postponed: Mutex<Option<Postponed>>,
}

/// A good configuration that the journal did not let in.
#[derive(Clone)]
pub struct Postponed {
    /// It.
    pub settings: Settings,
    /// Who had it read; nobody signs for a signal.
    pub signed: Signed,
}

/// Who had a configuration read, and why.
#[derive(Clone, Debug, Default)]
pub struct Signed {
    /// As the history has it; empty where nobody signed.
    pub user: String,
    /// In their words; may be empty.
    pub reason: String,
}

/// A configuration that is to be taken up.
pub struct Asked {
    /// The new one.
    pub settings: Settings,
    /// What to say of it.
    pub answer: oneshot::Sender<Reloaded>,
}

impl Reloads {
    /// The next one, if there is one.
    pub fn take(&self) -> Option<Asked> {
        lock(&self.asked).pop_front()
    }

    /// The main file to read: the one that is named now, else the last one that was, so that nobody takes an old file for the
    /// one that was refused.
    pub fn file(&self, named: Option<PathBuf>) -> Option<PathBuf> {
        let mut last = lock(&self.file);
        *last = named.or_else(|| last.take());
        last.clone()
    }

    /// Keeps it until the journal lets it in.
    pub fn postpone(&self, postponed: Postponed) {
        *self.postponed() = Some(postponed);
    }

    /// Whether one waits.
    pub fn is_postponed(&self) -> bool {
        self.postponed().is_some()
    }

    /// The one that waits, with a guard: while it is held nothing else is read that could be refused, and overtake it. None while
    /// somebody reads: what they read is newer.
    pub fn take_postponed(&self) -> Option<(Postponed, MutexGuard<'_, ()>)> {
        let turn = self.turn.try_lock().ok()?;
        Some((self.postponed().take()?, turn))
    }

    /// What was read later counts, also where it cannot be used.
    pub fn forget(&self) {
        *self.postponed() = None;
    }

    /// Somebody's name for what waits.
    pub fn sign(&self, signed: Signed) {
        if let Some(postponed) = self.postponed().as_mut() {
            postponed.signed = signed;
        }
    }

    fn postponed(&self) -> std::sync::MutexGuard<'_, Option<Postponed>> {
        lock(&self.postponed)
    }

    /// Asks the engine to take it up.
    pub fn ask(&self, settings: Settings) -> oneshot::Receiver<Reloaded> {
        let (answer, answered) = oneshot::channel();
        let asked = Asked { settings, answer };
        lock(&self.asked).push_back(asked);
        answered
    }
}
