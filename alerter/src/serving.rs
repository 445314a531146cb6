//! Serves answers at the configured addresses, and follows reloads.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use axum::Router;
use tokio::sync::watch::Receiver;
use tokio_util::sync::CancellationToken;

use crate::base::Base;
use crate::config::{Served, Settings};
use crate::listen::{Endpoint, Names, Unserved, run};

/// Runs `run` with what `pick` takes of the configuration, if there is anything, until `stop`. If a reload changes that, the running
/// one is stopped, and has ended before the next one begins.
pub async fn follow<T: PartialEq, F: Future<Output = ()>>(
    base: &Base,
    pick: impl Fn(&Settings) -> Option<T>,
    run: impl Fn(&T, CancellationToken) -> F,
    stop: CancellationToken,
) {
    let mut news = base.follow_settings();
    while !stop.is_cancelled() {
        let wanted = pick(&news.borrow_and_update());
        let own = stop.child_token();
        let mut running = pin!(async {
            if let Some(wanted) = &wanted {
                run(wanted, own.clone()).await;
            }
            // It may have ended by itself: a change of the configuration starts it again.
            own.cancelled().await;
        });
        tokio::select! {
            () = other(&mut news, |settings| pick(settings) != wanted) => {
                own.cancel();
                running.await;
            }
            () = &mut running => {}
        }
    }
}

/// Returns when the configuration meets a condition.
async fn other(news: &mut Receiver<Arc<Settings>>, is_such: impl FnMut(&Arc<Settings>) -> bool) {
    let mut is_such = is_such;
    if news.wait_for(|settings| is_such(settings)).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// What is served.
#[derive(Clone, Copy, Debug)]
pub struct What {
    /// Its name in the log.
    pub name: &'static str,
    /// Whether it is answered under any name where `allowed-hosts` is not set.
    pub is_for_any_name: bool,
}

/// Serves `what` until `stop`: `pick` takes the addresses of the configuration, if there are any, and `router` answers.
pub async fn follow_and_run(
    (base, unserved): (&Base, &Unserved),
    what: What,
    pick: impl Fn(&Settings) -> Option<Served>,
    router: impl Fn() -> Router,
    stop: CancellationToken,
) {
    let serve = |served: &Served, stop| {
        let Served { addresses, owner, allowed_hosts } = served.clone();
        let is_for_any = what.is_for_any_name && allowed_hosts.is_none();
        let names = (!is_for_any).then(|| Names::of(&addresses, &allowed_hosts.unwrap_or_default()));
        let (what, router, unserved) = (what.name, router(), unserved.clone());
        run(Endpoint { what, addresses, owner, router, names, unserved }, stop)
    };
    follow(base, pick, serve, stop).await;
}
