//! Runs something for as long as its part of the configuration is the same, and anew with another one.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use tokio::sync::watch::Receiver;
use tokio_util::sync::CancellationToken;

use crate::config::Settings;
use crate::shared::Shared;

/// Runs `run` with what `pick` takes of the configuration, if there is anything, until `stop`; where a reload brings
/// something else, the one that runs is told to stop and has ended before the next one begins.
pub async fn follow<T: PartialEq, F: Future<Output = ()>>(
    shared: Arc<Shared>,
    pick: impl Fn(&Settings) -> Option<T>,
    run: impl Fn(&T, CancellationToken) -> F,
    stop: CancellationToken,
) {
    let mut news = shared.base.follow_settings();
    while !stop.is_cancelled() {
        let wanted = pick(&news.borrow_and_update());
        let own = stop.child_token();
        let mut running = pin!(async {
            if let Some(wanted) = &wanted {
                run(wanted, own.clone()).await;
            }
            // It may have ended by itself: another configuration brings it back.
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

/// Returns when the configuration is such a one.
async fn other(news: &mut Receiver<Arc<Settings>>, is_such: impl FnMut(&Arc<Settings>) -> bool) {
    let mut is_such = is_such;
    if news.wait_for(|settings| is_such(settings)).await.is_err() {
        std::future::pending::<()>().await;
    }
}
