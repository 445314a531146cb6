//! The daemon's end of the control socket.

use std::borrow::Cow;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use anyhow::Context as _;
use axum::Router;
use axum::extract::{Extension, Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use tokio::net::UnixListener;
use tokio::task::yield_now;
use tokio_util::sync::CancellationToken;

use super::answer::Refusal;
use super::caller::{Caller, OPERATOR};
use super::marks::{release, unmark};
use super::retry::retry;
use super::status::{health, status};
use super::test::send_test;
use super::{decisions, reload, remote};
use crate::config::check_control_socket;
use crate::listen::{self, Door, Limits, attend};
use crate::state::Shared;

/// A request may wait for exchanges with all endpoints (`send-test`).
const LIMITS: Limits =
    Limits { head: Duration::from_secs(5), whole: Duration::from_secs(600), bytes: 32 * 1024 };
/// The pause after the system refused to accept a connection.
const PAUSE: Duration = Duration::from_secs(1);

/// The bound socket; its file goes with it.
pub struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl ControlSocket {
    /// Whether a socket could be made there; nothing is made.
    ///
    /// # Errors
    /// What stands in the way.
    pub fn check(path: &Path) -> anyhow::Result<()> {
        check_control_socket(path).map_err(anyhow::Error::msg)?;
        if fs::symlink_metadata(path).is_ok_and(|found| found.is_dir()) {
            anyhow::bail!("the control socket {} cannot be made: a directory has its name", path.display());
        }
        Ok(())
    }

    /// Binds the socket for root alone. A file left by a killed daemon is replaced: the journal's lock, which the
    /// caller holds, says that no other daemon lives.
    ///
    /// # Errors
    /// The directory or the socket cannot be made.
    pub fn bind(path: &Path) -> anyhow::Result<Self> {
        Self::check(path)?;
        let failure = || format!("the control socket {} cannot be made", path.display());
        if let Some(directory) = path.parent() {
            listen::make_directory(directory).with_context(failure)?;
        }
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error).with_context(failure),
            _ => {}
        }
        let listener = UnixListener::bind(path).with_context(failure)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).with_context(failure)?;
        Ok(Self { listener, path: path.to_owned() })
    }

    /// Answers until `stop`.
    pub async fn serve(self, shared: Arc<Shared>, stop: CancellationToken) {
        let _stopped = stop.run_until_cancelled(self.accept_all(router(shared))).await;
        let _already_gone = fs::remove_file(&self.path);
    }

    async fn accept_all(&self, router: Router) {
        let door = Door::new();
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let peer = Peer { uid: stream.peer_cred().ok().map(|peer| peer.uid()) };
                    let (router, place) = (router.clone().layer(Extension(peer)), door.wait().await);
                    // What is being answered when the daemon stops is answered to the end.
                    tokio::spawn(async move { attend(stream, router, place, &LIMITS).await });
                }
                Err(error) => {
                    tracing::debug!(%error, "the control socket accepts no connection");
                    tokio::time::sleep(PAUSE).await;
                }
            }
            yield_now().await;
        }
    }
}

fn router(shared: Arc<Shared>) -> Router {
    let words = Router::new()
        .route("/v1/unmark", post(unmark))
        .route("/v1/release", post(release))
        .merge(remote::api())
        .merge(decisions::routes())
        .layer(middleware::from_fn_with_state(Arc::clone(&shared), once_known));
    Router::new()
        .route("/v1/health", get(health))
        .route("/v1/status", get(status))
        .route("/v1/retry", post(retry))
        .route("/v1/send-test", post(send_test))
        .merge(words)
        .merge(reload::routes())
        .layer(middleware::from_fn(only_root))
        .with_state(shared)
}

/// A word of an operator is answered when it stands in the register, so that no failover undoes what was answered; where that takes too
/// long, as accepted here alone.
async fn once_known(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let is_word = request.method() != Method::GET;
    // An alerter that has just started knows nothing yet of what others decided.
    if is_word && !shared.base.seen().has_passed() {
        shared.is_known_elsewhere().await;
    }
    let mut answer = next.run(request).await;
    if is_word && answer.status() == StatusCode::OK && !shared.is_known_elsewhere().await {
        *answer.status_mut() = StatusCode::ACCEPTED;
    }
    answer
}

/// Who is at the other end, by the kernel's word.
#[derive(Clone, Copy, Debug)]
struct Peer {
    uid: Option<u32>,
}

/// Root, or the user that the daemon runs as: nobody else, whatever the file's mode has become.
async fn only_root(Extension(peer): Extension<Peer>, mut request: Request, next: Next) -> Response {
    let ours = nix::unistd::geteuid().as_raw();
    if let Some(uid) = peer.uid.filter(|uid| *uid == 0 || *uid == ours) {
        let name = request.headers().get(OPERATOR).map(|name| String::from_utf8_lossy(name.as_bytes()));
        let caller = Caller::Local { uid, name: name.map(Cow::into_owned) };
        request.extensions_mut().insert(caller);
        return next.run(request).await;
    }
    let refusal = Refusal::new(
        StatusCode::FORBIDDEN,
        "not-root",
        "only root may use the control socket: run the command with sudo",
    );
    refusal.into_response()
}
