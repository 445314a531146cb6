//! New configurations on their way to the engine.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Mutex;

use journal::JournalError;
use tokio::sync::{Mutex as AsyncMutex, oneshot};

use crate::config::Settings;
use crate::lock::lock;

/// The result of a reload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reloaded {
    /// The new configuration is in force: one sentence for each change.
    Changed(Vec<String>),
    /// Nothing has changed; one sentence for each problem.
    Refused(Vec<String>),
    /// Nothing has changed: the new configuration is sound, and this is in its way.
    Busy(String),
}

/// The journal was in the way.
impl From<JournalError> for Reloaded {
    fn from(error: JournalError) -> Self {
        Self::Busy(error.to_string())
    }
}

/// Sound configurations on their way to the engine.
#[derive(Default)]
pub struct Reloads {
    asked: Mutex<VecDeque<Asked>>,
    /// One at a time: a reading must not replace a later one.
    pub turn: AsyncMutex<()>,
    /// The main file that was last asked for, even if it was refused.
    file: Mutex<Option<PathBuf>>,
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

    /// Asks the engine to put it in force.
    pub fn ask(&self, settings: Settings) -> oneshot::Receiver<Reloaded> {
        let (answer, answered) = oneshot::channel();
        let asked = Asked { settings, answer };
        lock(&self.asked).push_back(asked);
        answered
    }
}
