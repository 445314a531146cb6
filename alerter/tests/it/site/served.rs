//! The control socket, the API and `/health` of an alerter of the model, and what they wait for or are told of.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use alerter::control::remote;
use alerter::control::server::ControlSocket;
use alerter::daemon::checks;
use alerter::health::{self, Check, Health};
use alerter::problem::NotInForce;
use journal::{Journal, JournalError};
use marks::time::Timestamp;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Alerter;
use crate::config;

/// All three, until it is dropped.
pub(crate) struct Served {
    pub(crate) socket: PathBuf,
    stop: CancellationToken,
    _room: config::Site,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Alerter {
    pub(crate) fn serve(&self) -> Served {
        let (room, stop) = (config::Site::new(""), CancellationToken::new());
        let socket = room.path("control.sock");
        let control = ControlSocket::bind(&socket).unwrap();
        tokio::spawn(control.serve(self.shared(), stop.clone()));
        tokio::spawn(remote::follow(self.shared(), stop.clone()));
        let (base, unserved) = (Arc::clone(&self.shared.base), self.shared.unserved.clone());
        tokio::spawn(health::run(self.health(), base, unserved, stop.clone()));
        Served { socket, stop, _room: room }
    }

    /// What the engine does beside the requests: it polls when it is asked to, and finds everything in the register or not.
    pub(crate) fn poll_on_demand(&self, finds_all: bool) -> JoinHandle<()> {
        let shared = self.shared();
        tokio::spawn(async move {
            loop {
                shared.poke.notified().await;
                shared.base.looks.note_seen(Instant::now());
                if finds_all {
                    shared.base.looks.note_whole(Instant::now());
                }
            }
        })
    }

    /// What `/health` knows.
    pub(crate) fn health(&self) -> Arc<Health> {
        Arc::clone(&self.shared.health)
    }

    /// A pass of the engine has ended, and says what it has met.
    pub(crate) fn has_passed(&self, got_through: bool) {
        checks::after_pass(&self.shared, got_through);
    }

    /// A route is tried again, a configuration is not in force, and the journal has no room.
    pub(crate) async fn meets_faults(&self, (route, detail): (&str, &str), why: &str) {
        let troubles = &self.shared.routes;
        troubles.troubles().failed(route, ("connect", detail), Duration::ZERO, Timestamp(0));
        *self.shared.reload_trouble() = Some(NotInForce { why: why.to_owned(), is_busy: false });
        let full = || JournalError::Full { path: "/var/lib/nova-host-alerter/marks.db".into() };
        for _ in 0..2 {
            let failing = async { Err::<(), _>(full()) };
            let met = self.shared.health.track(Check::Store, checks::journal_fault, failing).await;
            met.unwrap_err();
        }
    }

    /// The journal's thread hangs until the sender is dropped.
    pub(crate) async fn store_hangs(&self) -> (Sender<()>, JoinHandle<()>) {
        let ((free, stuck), (sender, began)) = (channel(), oneshot::channel());
        let store = self.shared.base.store.clone();
        let work = move |_: &mut Journal| {
            sender.send(()).unwrap();
            let _until_the_test_lets_go = stuck.recv();
            Ok::<(), JournalError>(())
        };
        let hangs = tokio::spawn(async move { store.run(work).await.unwrap() });
        began.await.unwrap();
        assert!(self.shared.base.store.busy_for().is_some());
        (free, hangs)
    }
}
