//! The status page: read-only, rendered here, with a script of its own that keeps it up to date.

mod cache;
mod guard;
mod picture;
mod table;
mod view;

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Router, middleware};
use tokio_util::sync::CancellationToken;

use crate::config::Settings;
use crate::serving::{What, follow_and_run};
use crate::state::Shared;
use cache::PageCache;

/// A bell, in the colour of how bad it is.
const ICON: &str = r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path fill="COLOUR" d="M8 1a5 5 0 0 0-5 5v4l-2 2v1h14v-1l-2-2V6a5 5 0 0 0-5-5zM6 14a2 2 0 0 0 4 0z"/></svg>"##;
const HTML: &str = "text/html; charset=utf-8";

/// Serves it where the configuration says, until `stop`.
pub async fn run(shared: Arc<Shared>, stop: CancellationToken) {
    let pick = |settings: &Settings| settings.page.clone();
    let answer = || router(&shared);
    let what = What { name: "the status page", is_for_any_name: false };
    follow_and_run((&shared.base, &shared.unserved), what, pick, answer, stop).await;
}

fn router(shared: &Arc<Shared>) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/page.js", get(|| async { own("text/javascript; charset=utf-8", include_str!("page.js")) }))
        .route("/page.css", get(|| async { own("text/css; charset=utf-8", include_str!("page.css")) }))
        .route(
            "/icon.svg",
            get(|RawQuery(level)| async move { own("image/svg+xml", icon(level.as_deref())) }),
        )
        .with_state(Arc::new(PageCache::new(shared)))
        .layer(middleware::map_response(guard::guarded))
}

fn own(kind: &'static str, text: impl IntoResponse) -> impl IntoResponse {
    ([(CONTENT_TYPE, kind)], text)
}

fn icon(level: Option<&str>) -> String {
    let colour = match level {
        Some("critical") => "#d03a00",
        Some("warning") => "#c98500",
        _ => "#0b8a5f",
    };
    ICON.replace("COLOUR", colour)
}

async fn page(State(cache): State<Arc<PageCache>>) -> Response {
    own(HTML, cache.page().await).into_response()
}
