//! What the log says, for who follows it: each answer is what came behind a number, or waits for it.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::Path;
use axum::routing::get;
use axum::{Json, Router};

use super::answer::{Answer, Refusal};
use crate::log;
use crate::log::ring::Page;
use crate::state::Shared;

/// How long an answer waits for something to say: shorter than a command's patience.
pub(crate) const WAIT: Duration = Duration::from_secs(20);

/// Its only way: `now` gives the number to go on from, a run and a number what came behind it.
pub(super) fn routes() -> Router<Arc<Shared>> {
    Router::new().route("/v1/events/now", get(now)).route("/v1/events/{run}/{after}", get(events))
}

async fn now() -> Answer<Page> {
    let ring = log::ring().ok_or_else(nothing)?;
    Ok(Json(ring.now()))
}

async fn events(Path((run, after)): Path<(String, u64)>) -> Answer<Page> {
    let ring = log::ring().ok_or_else(nothing)?;
    let waited = tokio::time::timeout(WAIT, ring.wait_after(&run, after)).await;
    Ok(Json(waited.unwrap_or_else(|_| ring.after(&run, after))))
}

fn nothing() -> Refusal {
    Refusal::absent("this daemon keeps no events")
}
