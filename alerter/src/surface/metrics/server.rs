//! Serves the scrape: one path, and nothing else.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use tokio_util::sync::CancellationToken;

use super::exposition::{CONTENT_TYPE, write};
use crate::config::Settings;
use crate::serving::{What, follow_and_run};
use crate::state::Shared;

/// The path, and no other.
const PATH: &str = "/metrics";

/// Serves it where the configuration says, until `stop`.
pub async fn run(shared: Arc<Shared>, stop: CancellationToken) {
    let pick = |settings: &Settings| settings.metrics.clone();
    let answer = || router(Arc::clone(&shared));
    let what = What { name: PATH, is_for_any_name: false };
    follow_and_run((&shared.base, &shared.unserved), what, pick, answer, stop).await;
}

/// Answers `GET /metrics`.
pub fn router(shared: Arc<Shared>) -> Router {
    Router::new().route(PATH, get(scrape)).with_state(shared)
}

async fn scrape(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], write(&shared))
}
