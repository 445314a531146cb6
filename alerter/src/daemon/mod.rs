//! Starting and stopping the daemon: lock, journal, control socket, engine, signals.

pub mod checks;
pub mod engine;
mod outboxes;
pub mod poller;
pub mod pruning;
pub mod unproven;
pub mod watch;

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;
use drivers::program;
use journal::{Done, Journal, Lock, Role};
use marks::register::Register;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::stat::{Mode, umask};
use register::Access;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::base::Base;
use crate::base::store::Store;
use crate::cluster::Cluster;
use crate::config::{Settings, control_socket};
use crate::control::remote;
use crate::control::server::ControlSocket;
use crate::daemon::engine::Engine;
use crate::daemon::poller::{PAGES, Poller};
use crate::daemon::watch::{Identity, Watch};
use crate::intake::files;
use crate::state::Shared;
use crate::surface::metrics::{self, counting};
use crate::surface::page;
use crate::{health, reload};

/// What attempts under way may take after a stop, which as a whole takes less than ten seconds.
const GRACE: Duration = Duration::from_secs(5);

/// What the last writing of the register may take.
const LEAVE: Duration = Duration::from_secs(2);

/// Runs the daemon until a signal stops it.
///
/// # Errors
/// A sentence for the operator: what cannot be used, and what to do.
pub fn run(settings: Settings) -> anyhow::Result<()> {
    // Before anything is made: no file of ours is for others.
    umask(Mode::from_bits_truncate(0o077));
    leave_no_core();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the runtime did not start")?;
    let served = runtime.block_on(serve(settings));
    // Work that still runs, such as an operator's request, is cut off and releases the journal. Dropping the runtime would wait
    // for a name resolution that hangs in the system's resolver.
    runtime.shutdown_background();
    let Served { ended, store, journal_thread, lock } = served?;
    store.end();
    // The journal closes before the lock goes, so that the next daemon finds it at rest.
    let _joined = journal_thread.join();
    drop(lock);
    info!("nova-host-alerter has stopped");
    Ok(ended?)
}

/// Whether a daemon could start here with this configuration, as far as that can be known while another may run. Creates nothing.
///
/// # Errors
/// What [`run`] would refuse to start for.
pub fn check(settings: &Settings) -> anyhow::Result<()> {
    let path = &settings.store.path;
    Journal::check(path)?;
    ControlSocket::check(&control_socket(path))
}

/// The memory holds passwords and tokens. Unlike zero, a limit of one byte also stops core dumps to a program (core(5)).
fn leave_no_core() {
    if setrlimit(Resource::RLIMIT_CORE, 1, 1).is_err() {
        let _there_is_none_already = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    }
}

/// What is left of a daemon that has ended.
struct Served {
    ended: Done,
    store: Store,
    journal_thread: JoinHandle<()>,
    lock: Lock,
}

async fn serve(settings: Settings) -> anyhow::Result<Served> {
    let mut signals = Signals::listen()?;
    let path = settings.store.path.clone();
    let journal = Journal::open(&path, Role::Alerter)?;
    let lock = Lock::take(journal.path())?;
    program::hold_while_running(lock.share().context("the journal's lock cannot be shared")?);
    let directory = journal.directory().to_owned();
    let (watch, identity) = (Watch::directories(&[directory]), Identity::of(journal.path()));
    // A controller that has written pages knows from them whether an upgrade was under way: what others remove starts none.
    let is_first = !journal.is_published(settings.store.register, PAGES)?;
    let (store, journal_thread) = Store::start(journal).context("the journal's thread did not start")?;
    let access = Access { is_first, ..Access::to(settings.store.register, settings.store.etcd.clone()) };
    let cluster = Cluster::start(access, settings.file.clone());
    let cluster = cluster.context("the cluster's thread did not start")?;
    let shared = Arc::new(Shared::new(Base::new(settings, store, cluster.clone())));
    let stop = CancellationToken::new();
    // From here on `/health` and the page answer, however long the start takes.
    let mut endpoints = JoinSet::new();
    endpoints.spawn(health::run(
        Arc::clone(&shared.health),
        Arc::clone(&shared.base),
        shared.unserved.clone(),
        stop.clone(),
    ));
    endpoints.spawn(metrics::run(Arc::clone(&shared), stop.clone()));
    endpoints.spawn(page::run(Arc::clone(&shared), stop.clone()));
    let poller = cluster.map(|cluster| poller(cluster, &shared));
    let mut engine = Engine::start(Arc::clone(&shared), watch, identity, poller).await?;
    let socket = ControlSocket::bind(&control_socket(&path))?;
    info!(
        routes = shared.base.settings().own_routes().count(),
        "nova-host-alerter runs on {}",
        path.display()
    );
    shared.base.settings().warn();

    let mut tasks = JoinSet::new();
    tasks.spawn(socket.serve(Arc::clone(&shared), stop.clone()));
    tasks.spawn(counting::run(Arc::clone(&shared), stop.clone()));
    tasks.spawn(remote::follow(Arc::clone(&shared), stop.clone()));
    let ended = tokio::select! {
        ended = engine.run(&stop) => ended,
        () = signals.stop(&shared) => Ok(()),
    };
    shared.supervisor.stopping();
    stop.cancel();
    engine.drain(GRACE).await;
    engine.leave(LEAVE).await;
    while tasks.join_next().await.is_some() {}
    while endpoints.join_next().await.is_some() {}
    Ok(Served { ended, store: shared.base.store.clone(), journal_thread, lock })
}

/// Pacemaker renames a new CIB into this directory at every change of the configuration.
const CIB_DIRECTORY: &str = "/var/lib/pacemaker/cib";

/// What wakes the poll of the cluster: evidence, and with the register in the CIB the CIB itself.
fn poller(cluster: Cluster, shared: &Shared) -> Poller {
    if let Err(why) = files::prepare(&shared.base.evidence) {
        warn!("the evidence of Pacemaker's alerts cannot be kept on this controller: {why}");
    }
    let cib = (cluster.register() == Register::Cib).then(|| PathBuf::from(CIB_DIRECTORY));
    let directories: Vec<PathBuf> =
        cib.into_iter().chain([shared.base.evidence.clone()]).filter(|path| path.is_dir()).collect();
    Poller::new(cluster, Watch::directories(&directories))
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("signals cannot be received");
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }

    /// Returns on SIGTERM or SIGINT; SIGHUP has the configuration read again.
    async fn stop(&mut self, shared: &Arc<Shared>) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                _ = self.hang_up.recv() => {
                    drop(tokio::spawn(read_again(Arc::clone(shared))));
                }
            }
        }
    }
}

async fn read_again(shared: Arc<Shared>) {
    shared.supervisor.reloading();
    let _said_in_the_log = reload::reload(&shared, None).await;
    shared.supervisor.reloaded();
}
