//! Reads and writes the cluster: Pacemaker's tools, run on a thread of their own with time limits.

mod clocks;
mod kept;
mod matter;
mod members;
mod seen;
mod upkeep;
mod view;
mod waiting;

use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use marks::host::HostName;
use marks::register::{Entries, Entry, Key, Register};
use pacemaker::cib::{Cib, Snapshot};
use pacemaker::read;
use register::pages::PageWrites;
use register::{Access, Done, Published};
use tokio::sync::oneshot;

pub use clocks::Trust;
pub use kept::{Kept, Rewriting, left_over, own_writes, superseded};
pub use matter::{Fault, Matter};
pub(crate) use members::{AUDIT_AFTER, sentence as missed_sentence};
pub use seen::Seen;
pub use upkeep::{KEPT, bounded, missing, over};
pub use view::{POLL, Part, View};
pub use waiting::{EVIDENCE_GRACE, Waited, Waiting};

/// A poll takes about 30 ms. If one tool hangs, what the others read must still be fresh enough to act on.
const POLL_LIMIT: Duration = Duration::from_millis(1500);
/// The first reading of the CIB, and one after much has changed, takes seconds where there are thousands of hosts. The rest is too old to
/// act on then, and read again.
const CIB_LIMIT: Duration = Duration::from_secs(20);
/// A write waits for corosync's new membership when a controller is lost, about 3 s.
const WRITE_LIMIT: Duration = Duration::from_secs(10);

type Work = Box<dyn FnOnce(&mut Hands) + Send>;

/// What the thread works with.
struct Hands {
    access: Access,
    /// The main file of the configuration; the register key is beside it.
    config: PathBuf,
    /// The CIB as it was read last.
    snapshot: Snapshot,
    /// What a register in etcd held when it was read last.
    known: Option<Entries>,
}

impl Hands {
    /// Reads the CIB as it is now. Of the compute hosts that are cluster nodes it has their own operations, and which these are is
    /// known by the first reading.
    fn read_cib(&mut self, own: impl Fn(&Cib) -> Vec<HostName>) -> Part<Arc<Cib>> {
        let read = |hands: &mut Self| {
            let deadline = Instant::now() + CIB_LIMIT;
            read::refresh(&mut hands.snapshot, &hands.access.tools, POLL_LIMIT, deadline)
                .map_err(|e| e.to_string())
        };
        let cib = read(self)?;
        match self.snapshot.set_own(own(&cib)) {
            true => read(self),
            false => Ok(cib),
        }
    }

    /// Reads the keys again, so that a new one needs no restart; gives what is wrong with them. If they are gone, or one is being
    /// written, the old keys stay in use: what this alerter has sealed must stay valid.
    fn read_keys(&mut self) -> Vec<String> {
        let (keys, mut complaints) = site::keys_beside(&self.config);
        let had_some = !self.access.keys.is_empty();
        if keys.is_empty() && had_some && complaints.is_empty() {
            complaints.push(
                "the file of the register key is gone: the key stays in use until the alerter ends"
                    .to_owned(),
            );
        }
        if complaints.is_empty() || !had_some {
            self.access.keys = keys;
        }
        complaints
    }
}

/// A handle to the thread that runs the tools. The thread ends with its last handle.
#[derive(Clone)]
pub struct Cluster {
    register: Register,
    queue: mpsc::Sender<Work>,
}

impl Cluster {
    /// Starts the thread; none where there is no register, and so no cluster to ask.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn start(access: Access, config: PathBuf) -> std::io::Result<Option<Self>> {
        let register = access.register;
        if register == Register::None {
            return Ok(None);
        }
        let (queue, work) = mpsc::channel::<Work>();
        let mut hands = Hands { access, config, snapshot: Snapshot::default(), known: None };
        let run = move || work.into_iter().for_each(|work| work(&mut hands));
        thread::Builder::new().name("cluster".into()).spawn(run)?;
        Ok(Some(Self { register, queue }))
    }

    /// Where the register is.
    pub fn register(&self) -> Register {
        self.register
    }

    /// Reads everything that may have changed; what cannot be read is missing in the view, with its reason. `own` gives the compute
    /// hosts that are cluster nodes.
    pub async fn poll(
        &self,
        with_history: bool,
        own: impl Fn(&Cib) -> Vec<HostName> + Send + 'static,
    ) -> Arc<View> {
        self.run(move |hands| {
            let complaints = hands.read_keys();
            Arc::new(View::take(hands, (complaints, with_history), own))
        })
        .await
    }

    /// Whether anything may have changed since a poll, in the register or, `with_cib`, in the CIB but for its configuration. What
    /// cannot be read may have.
    pub async fn has_news(&self, since: Arc<View>, with_cib: bool) -> bool {
        let register = self.register;
        self.run(move |hands| {
            let deadline = Instant::now() + POLL_LIMIT;
            let in_register = || match (register, &since.kept.pages) {
                (Register::Attrd, Some(paged)) => hands.access.has_news(paged, deadline).unwrap_or(true),
                (Register::Attrd, None) => true,
                (Register::Etcd, _) => {
                    let now = hands.access.read(deadline).ok();
                    now.is_none() || now != hands.known
                }
                (Register::Cib | Register::None, _) => false,
            };
            let is_in_cib = register == Register::Cib;
            let in_cib = || match read::news(&hands.snapshot, &hands.access.tools, deadline) {
                Ok(news) => news.of_nodes || is_in_cib && news.in_configuration,
                Err(_) => true,
            };
            in_register() || with_cib && in_cib()
        })
        .await
    }

    /// Writes entries and reads them back; gives the result of each.
    pub async fn publish(&self, entries: Vec<Entry>) -> Published {
        self.run(move |hands| hands.access.publish_all(&entries, Instant::now() + WRITE_LIMIT)).await
    }

    /// Writes pages of a writer, in their order.
    ///
    /// # Errors
    /// [`register::RegisterError`]; some may stand there.
    pub async fn write_pages(&self, all: PageWrites) -> Done {
        let written = self.run(move |hands| {
            let written = hands.access.write_pages(&all, Instant::now() + WRITE_LIMIT);
            // No upgrade can begin any more: the head that was written says whether one is under way.
            hands.access.is_first &= written.is_err();
            written
        });
        written.await
    }

    /// Removes entries whose time is over.
    ///
    /// # Errors
    /// [`register::RegisterError`]; some may be gone.
    pub async fn clear(&self, keys: Vec<Key>) -> Done {
        self.run(move |hands| hands.access.clear(&keys, Instant::now() + WRITE_LIMIT)).await
    }

    async fn run<T: Send + 'static>(&self, work: impl FnOnce(&mut Hands) -> T + Send + 'static) -> T {
        let (answer, result) = oneshot::channel();
        let work: Work = Box::new(move |hands| {
            let _asker_gave_up = answer.send(work(hands));
        });
        self.queue.send(work).expect("the cluster's thread lives as long as a handle to it");
        result.await.expect("a panic anywhere ends the whole daemon")
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// A file that is gone, or that is just being written, takes no key from an alerter that had one: what it has sealed stays its word. The
    /// broken variant goes on without, and what it ends then counts for nothing.
    #[test]
    fn an_alerter_keeps_the_key_that_it_had() {
        let dir = tempfile::tempdir().unwrap();
        let (config, file) = (dir.path().join("alerter.toml"), dir.path().join("register.key"));
        let access = Access::to(Register::Attrd, None);
        let mut hands = Hands { access, config, snapshot: Snapshot::default(), known: None };
        let write = |text: &str| {
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        };
        write("0123456789abcdef0123456789abcdef");
        assert_eq!(hands.read_keys(), [""; 0]);
        let first = hands.access.keys.clone();
        write("0123456789");
        assert_eq!((hands.read_keys().len(), &hands.access.keys), (1, &first));
        write("fedcba9876543210fedcba9876543210");
        assert_eq!(hands.read_keys(), [""; 0]);
        assert_ne!(hands.access.keys, first, "a new one is taken without a restart");
        fs::remove_file(&file).unwrap();
        let _gone = hands.read_keys();
        assert!(!hands.access.keys.is_empty());
    }
}
