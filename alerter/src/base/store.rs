//! The journal on a thread of its own, so that the runtime never waits for a disk.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use journal::{Damage, Done, Journal};
use marks::id::MarkId;
use tokio::sync::oneshot;
use tracing::error;

use crate::lock::lock;

type Work = Box<dyn FnOnce(&mut Journal) + Send>;

/// What comes to the journal's thread; none is its end.
type Message = Option<Work>;

/// A handle to the journal's thread. The thread ends by [`Store::end`], or with its last handle.
#[derive(Clone)]
pub struct Store {
    queue: mpsc::Sender<Message>,
    busy: Busy,
}

/// Since when the thread is at one piece of work.
type Busy = Arc<Mutex<Option<Instant>>>;

impl Store {
    /// Moves the journal to its thread.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn start(mut journal: Journal) -> std::io::Result<(Self, thread::JoinHandle<()>)> {
        let (queue, work) = mpsc::channel::<Message>();
        let busy = Busy::default();
        let since = Arc::clone(&busy);
        let set = move |at| *lock(&since) = at;
        let run = move || {
            // A handle that somebody still has, such as a count that takes long, does not keep the journal open.
            while let Ok(Some(work)) = work.recv() {
                set(Some(Instant::now()));
                work(&mut journal);
                set(None);
            }
        };
        let thread = thread::Builder::new().name("journal".into()).spawn(run)?;
        Ok((Self { queue, busy }, thread))
    }

    /// How long the thread has been busy with one piece of work; none while it waits for one.
    pub fn busy_for(&self) -> Option<Duration> {
        let since = *lock(&self.busy);
        since.map(|at| at.elapsed())
    }

    /// Has the thread close the journal after the work that it was given before, even if there are other handles. Later work is
    /// never done.
    pub fn end(&self) {
        let _it_has_ended_already = self.queue.send(None);
    }

    /// Runs `work` on the journal and waits for its result. After [`Store::end`] it waits forever: a closed journal has no result.
    ///
    /// # Errors
    /// What `work` met.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Journal) -> Done<T> + Send + 'static,
    ) -> Done<T> {
        let (answer, result) = oneshot::channel();
        let work: Work = Box::new(move |journal| {
            let _asker_gave_up = answer.send(work(journal));
        });
        let _the_thread_has_ended = self.queue.send(Some(work));
        match result.await {
            Ok(result) => result,
            // The thread is gone, and takes nothing from its queue any more.
            Err(_) => std::future::pending().await,
        }
    }
}

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

#[cfg(test)]
mod tests {
    use journal::Role;

    use super::*;

    /// The broken variant, a thread that ends with its last handle, would wait here for ever: `held` is one.
    #[tokio::test]
    async fn the_thread_ends_by_word_even_if_there_are_handles() {
        let home = tempfile::tempdir().unwrap();
        let journal = Journal::open(&home.path().join("marks.db"), Role::Alerter).unwrap();
        let (store, thread) = Store::start(journal).unwrap();
        let held = store.clone();
        assert_eq!(held.run(|_| Ok(7)).await.unwrap(), 7);
        store.end();
        thread.join().unwrap();
        let late = tokio::select! {
            biased;
            late = held.run(|_| Ok(8)) => Some(late),
            () = std::future::ready(()) => None,
        };
        assert!(late.is_none(), "nothing is done any more, and nothing is answered");
    }
}
