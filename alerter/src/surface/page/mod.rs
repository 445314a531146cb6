//! The status page: read-only, rendered here, with a script of its own that keeps it up to date.

mod cache;
mod guard;
mod outage;
mod picture;
mod routes;
mod table;
mod view;

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::http::header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use axum::{Router, middleware};
use marks::id::MarkId;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::config::Settings;
use crate::outage::Kept;
use crate::recovery;
use crate::serving::{What, follow_and_run};
use crate::state::Shared;
use crate::surface::timeline;
use cache::PageCache;
use picture::PATIENCE;

/// A bell, in the colour of how bad it is.
const ICON: &str = r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path fill="COLOUR" d="M8 1a5 5 0 0 0-5 5v4l-2 2v1h14v-1l-2-2V6a5 5 0 0 0-5-5zM6 14a2 2 0 0 0 4 0z"/></svg>"##;
const HTML: &str = "text/html; charset=utf-8";
/// When what is sent was read: also where it is the same still.
const AS_OF: HeaderName = HeaderName::from_static("as-of");

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
        .route("/fragment", get(fragment))
        .route("/outage/{mark}", one_outage(shared))
        .route("/page.js", get(|| async { own("text/javascript; charset=utf-8", include_str!("page.js")) }))
        .route("/page.css", get(|| async { own("text/css; charset=utf-8", concat_css()) }))
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

fn concat_css() -> String {
    [include_str!("page.css"), timeline::CSS].concat()
}

/// Reads one mark, and one at a time: what browsers ask for must not keep the journal from marks.
fn one_outage(shared: &Arc<Shared>) -> MethodRouter<Arc<PageCache>> {
    let (shared, place) = (Arc::downgrade(shared), Arc::new(Semaphore::new(1)));
    get(async move |Path(mark): Path<String>| {
        let (Ok(mark), Some(shared)) = (MarkId::parse(&mark), shared.upgrade()) else {
            return StatusCode::NOT_FOUND.into_response();
        };
        let read = async {
            let _place = place.acquire().await;
            shared.base.store.run(move |journal| Kept::read(journal, mark)).await
        };
        match timeout(PATIENCE, read).await {
            Ok(Ok(Some(kept))) => {
                let files = recovery::kept::Kept::beside(&shared.base.settings().store.path);
                own(HTML, outage::draw(&kept.with_recovery(&files).await)).into_response()
            }
            Ok(Ok(None)) => StatusCode::NOT_FOUND.into_response(),
            _ => (StatusCode::SERVICE_UNAVAILABLE, "the journal does not answer: try again").into_response(),
        }
    })
}

async fn page(State(cache): State<Arc<PageCache>>) -> Response {
    own(HTML, cache.sheet().await.page).into_response()
}

/// What the script puts in the page's place; nothing where it is the same still.
async fn fragment(State(cache): State<Arc<PageCache>>, headers: HeaderMap) -> Response {
    let sheet = cache.sheet().await;
    let is_known = headers.get(IF_NONE_MATCH) == Some(&sheet.tag);
    let about = [(ETAG, sheet.tag), (AS_OF, sheet.as_of)];
    match is_known {
        true => (StatusCode::NOT_MODIFIED, about).into_response(),
        false => (about, own(HTML, sheet.fragment)).into_response(),
    }
}
