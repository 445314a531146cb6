//! The journal on a thread of its own: nothing that waits for a disk stands in the way of the runtime.

use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use marks::journal::{Journal, JournalError};
use tokio::sync::oneshot;

type Work = Box<dyn FnOnce(&mut Journal) + Send>;

/// A handle to the journal's thread. The thread ends with its last handle.
#[derive(Clone)]
pub struct Store {
    queue: mpsc::Sender<Work>,
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
        let (queue, work) = mpsc::channel::<Work>();
        let busy = Busy::default();
        let since = Arc::clone(&busy);
        let set = move |at| *since.lock().expect("a panic anywhere ends the whole daemon") = at;
        let run = move || {
            for work in work {
                set(Some(Instant::now()));
                work(&mut journal);
                set(None);
            }
        };
        let thread = thread::Builder::new().name("journal".into()).spawn(run)?;
        Ok((Self { queue, busy }, thread))
    }

    /// For how long the thread has been at one piece of work; none while it waits for one.
    pub fn busy_for(&self) -> Option<Duration> {
        let since = *self.busy.lock().expect("a panic anywhere ends the whole daemon");
        since.map(|at| at.elapsed())
    }

    /// Runs `work` on the journal and waits for its result.
    ///
    /// # Errors
    /// What `work` met.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Journal) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, JournalError> {
        let (answer, result) = oneshot::channel();
        let work: Work = Box::new(move |journal| {
            let _asker_gave_up = answer.send(work(journal));
        });
        self.queue.send(work).expect("the journal's thread lives as long as a handle to it");
        result.await.expect("a panic anywhere ends the whole daemon")
    }
}
