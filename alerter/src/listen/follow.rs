//! Serves what the configuration says, where it says so, and elsewhere after a reload that says so.

use std::sync::Arc;

use axum::Router;
use tokio_util::sync::CancellationToken;

use super::names::{self, Names};
use super::serve::{Endpoint, run};
use crate::config::{Served, Settings};
use crate::follow::follow;
use crate::shared::Shared;

/// Serves `what` until `stop`: `pick` takes of the configuration where, if anywhere, and `router` answers there whoever asks by a
/// name of ours.
pub async fn follow_and_run(
    shared: Arc<Shared>,
    what: &'static str,
    pick: impl Fn(&Settings) -> Option<Served>,
    router: impl Fn(Arc<Shared>) -> Router,
    stop: CancellationToken,
) {
    let serve = |served: &Served, stop| {
        let Served { addresses, owner, allowed_hosts } = served.clone();
        let router = names::only(router(Arc::clone(&shared)), Names::of(&addresses, &allowed_hosts));
        let unserved = shared.unserved.clone();
        run(Endpoint { what, addresses, owner, router, unserved }, stop)
    };
    follow(Arc::clone(&shared), pick, serve, stop).await;
}
