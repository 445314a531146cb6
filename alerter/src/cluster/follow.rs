//! Watches the register in etcd: it is read again when it has changed, or when it was not read for a while.

use std::io::Read as _;
use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use marks::register::Entries;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use pacemaker::register::{RegisterError, Tools};
use tokio::sync::Notify;
use tracing::{info, warn};

use crate::lock::lock;

/// A silent watch is trusted for so long: the connection to etcd may be dead without a sign.
const CALM: Duration = Duration::from_secs(10);
/// Between two watches.
const PAUSE: Duration = Duration::from_secs(1);
/// What the first reading of a watch may take.
const BEGINNING: Duration = Duration::from_secs(3);

/// A watch. It ends when this value is dropped.
#[derive(Debug)]
pub(super) struct Follow {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    woken: Notify,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The watch, while it stands.
    child: Option<Child>,
    /// Something has changed since the last reading began.
    is_stirred: bool,
    /// When it was read last, and what it held then.
    read: Option<(Instant, Entries)>,
    is_failing: bool,
    /// No further watch is begun.
    is_over: bool,
}

impl Follow {
    /// Begins to watch, on a thread of its own.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub(super) fn start(tools: Tools) -> std::io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let own = Arc::clone(&shared);
        thread::Builder::new().name("etcd".into()).spawn(move || own.watch_for_ever(&tools))?;
        Ok(Self { shared })
    }

    /// Returns when something has changed.
    pub(super) async fn changed(&self) {
        self.shared.woken.notified().await;
    }

    /// What the register holds: as it was read last if nothing can have changed.
    ///
    /// # Errors
    /// As `read`.
    pub(super) fn entries(
        &self,
        read: impl FnOnce() -> Result<Entries, RegisterError>,
    ) -> Result<Entries, RegisterError> {
        let began = Instant::now();
        if let Some(entries) = self.lock().begin_reading(began) {
            return Ok(entries);
        }
        let entries = read();
        let mut state = self.lock();
        state.is_failing = entries.is_err();
        if let Ok(entries) = &entries {
            state.read = Some((began, entries.clone()));
        }
        entries
    }

    /// What it held when it was read last, however long ago; none if it never was.
    pub(super) fn last(&self) -> Option<Entries> {
        self.lock().read.as_ref().map(|(_, entries)| entries.clone())
    }

    /// Something was written from here: the register is read again without waiting for the watch.
    pub(super) fn stir(&self) {
        self.lock().is_stirred = true;
    }

    /// Ends the watch. By itself it would end only at its next output.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.is_over = true;
        state.child.as_ref().map(kill);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.shared.state)
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        self.end();
    }
}

impl State {
    /// What need not be read again. Later changes count for the next reading.
    fn begin_reading(&mut self, now: Instant) -> Option<Entries> {
        let is_stirred = std::mem::take(&mut self.is_stirred);
        let (at, entries) = self.read.as_ref()?;
        let is_calm = self.child.is_some() && !is_stirred && !self.is_failing;
        (is_calm && now.saturating_duration_since(*at) < CALM).then(|| entries.clone())
    }
}

impl Shared {
    fn watch_for_ever(&self, tools: &Tools) {
        while !lock(&self.state).is_over {
            // A failure is reported by the readings, which fail as well.
            if let Ok(child) = pacemaker::register::watch(tools, Instant::now() + BEGINNING) {
                self.watch(child);
            }
            thread::sleep(PAUSE);
        }
    }

    /// The content of its output does not matter: the register is read.
    fn watch(&self, mut child: Child) {
        let mut said = child.stdout.take().expect("standard output was asked for as a pipe");
        let id = child.id();
        self.begin(child);
        info!(id, "etcd is watched: the register is read when it changes");
        let mut part = [0; 16 * 1024];
        while matches!(said.read(&mut part), Ok(count) if count > 0) {
            self.stir();
        }
        self.stop();
    }

    /// Changes between the last reading and now have not been seen.
    fn begin(&self, child: Child) {
        let is_over = {
            let mut state = lock(&self.state);
            state.child = Some(child);
            state.is_over
        };
        self.stir();
        if is_over {
            self.kill();
        }
    }

    fn stir(&self) {
        lock(&self.state).is_stirred = true;
        self.woken.notify_one();
    }

    /// From here on each poll reads the register.
    fn stop(&self) {
        self.kill();
        let is_over = {
            let mut state = lock(&self.state);
            state.child = None;
            state.is_over
        };
        if !is_over {
            warn!(
                "the watch of etcd has ended: until the next one begins, the register is read at each poll"
            );
        }
        self.woken.notify_one();
    }

    /// It has closed its output, or is not needed any more.
    fn kill(&self) {
        if let Some(child) = &mut lock(&self.state).child {
            kill(child);
            let _reaped = child.wait();
        }
    }
}

/// With its whole group.
fn kill(child: &Child) {
    if let Ok(id) = i32::try_from(child.id()) {
        let _gone_already = killpg(Pid::from_raw(id), Signal::SIGKILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(child: bool) -> State {
        let child = child.then(|| std::process::Command::new("true").spawn().unwrap());
        State { child, read: Some((Instant::now(), Entries::default())), ..State::default() }
    }

    /// The broken variants believe a watch that has ended, that has said something, that is silent for long, or behind which a
    /// reading has failed.
    #[test]
    fn only_a_watch_that_stands_and_says_nothing_saves_a_reading() {
        let now = Instant::now();
        assert!(state(true).begin_reading(now).is_some());
        assert!(state(false).begin_reading(now).is_none());
        assert!(State { is_stirred: true, ..state(true) }.begin_reading(now).is_none());
        assert!(State { is_failing: true, ..state(true) }.begin_reading(now).is_none());
        assert!(state(true).begin_reading(now + CALM * 2).is_none());
        assert!(State { read: None, ..state(true) }.begin_reading(now).is_none());
    }

    /// What stirs while it is read is read once more.
    #[test]
    fn a_change_during_a_reading_is_not_forgotten() {
        let follow = Follow { shared: Arc::default() };
        *follow.lock() = state(true);
        follow.stir();
        let read = || {
            follow.stir();
            Ok(Entries::default())
        };
        follow.entries(read).unwrap();
        let mut again = false;
        let read = || {
            again = true;
            Ok(Entries::default())
        };
        follow.entries(read).unwrap();
        assert!(again);
    }
}
