//! The API at its addresses, with tokens.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, patch};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::answer::Refusal;
use super::caller::Caller;
use super::{callbacks, hosts};
use crate::config::{Settings, api};
use crate::lock::lock;
use crate::serving::{What, follow_and_run};
use crate::state::Shared;

/// The document of the API.
pub const DOCUMENT: &str = include_str!("../../../docs/openapi.json");

/// What is said of clients is said once in this time for each cause.
const QUIET: Duration = Duration::from_secs(60);

/// Every path of the API with its method: what is served at its addresses, and in the document.
const PATHS: [(&str, &str, Serve); 3] = [
    ("patch", "/v1/hosts/{host}", || patch(hosts::patch)),
    ("patch", "/v1/marks/{id}", || patch(callbacks::patch)),
    ("get", "/v1/openapi.json", || get(document)),
];

type Serve = fn() -> MethodRouter<Arc<Shared>, Infallible>;

/// The paths of the API and their methods.
pub fn paths() -> impl Iterator<Item = (&'static str, &'static str)> {
    PATHS.iter().map(|(method, path, _)| (*method, *path))
}

/// What the control socket serves too, to root.
pub(super) fn api() -> Router<Arc<Shared>> {
    PATHS.iter().fold(Router::new(), |router, (_, path, served)| router.route(path, served()))
}

async fn document() -> impl IntoResponse {
    ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], DOCUMENT)
}

/// Serves the API where it is configured at each time, until `stop`.
pub async fn follow(shared: Arc<Shared>, stop: CancellationToken) {
    let pick = |settings: &Settings| settings.api.as_ref().map(|api| api.served.clone());
    let what = What { name: "the API", is_for_any_name: true };
    follow_and_run((&shared.base, &shared.unserved), what, pick, || router(&shared), stop).await;
}

fn router(shared: &Arc<Shared>) -> Router {
    let guard = Guard { shared: Arc::clone(shared), log: Arc::default() };
    api()
        .fallback(async || Refusal::absent("the API has no such path: see /v1/openapi.json"))
        .method_not_allowed_fallback(async || {
            let message = "the API has no such method here: see /v1/openapi.json";
            Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "method", message)
        })
        .layer(middleware::from_fn_with_state(guard, only_with_a_token))
        .with_state(Arc::clone(shared))
}

/// The tokens are those of the configuration in force.
#[derive(Clone)]
struct Guard {
    shared: Arc<Shared>,
    log: Arc<Log>,
}

/// Before anything of the request is read.
async fn only_with_a_token(State(guard): State<Guard>, mut request: Request, next: Next) -> Response {
    let given = bearer(request.headers());
    let settings = guard.shared.base.settings();
    let tokens = settings.api.as_ref().map_or(&[][..], |api| &api.tokens);
    let (found, unusable) = given.map_or((None, Vec::new()), |given| api::whose(tokens, given));
    for why in unusable {
        guard.log.say("token file", format_args!("{why}"));
    }
    let Some(token) = found else {
        let how = if given.is_some() { "with a wrong token" } else { "without a token" };
        guard.log.say(how, format_args!("a request to the API {how} is refused"));
        return refused();
    };
    request.extensions_mut().insert(Caller::Remote { token: token.clone() });
    next.run(request).await
}

fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.as_bytes().split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}

fn refused() -> Response {
    let message = "the API needs a token: send it as `Authorization: Bearer TOKEN`";
    let refusal = Refusal::new(StatusCode::UNAUTHORIZED, "token", message);
    ([(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))], refusal).into_response()
}

/// What is said of clients: they must not fill the log.
#[derive(Default)]
struct Log(Mutex<BTreeMap<&'static str, Instant>>);

impl Log {
    fn say(&self, cause: &'static str, message: fmt::Arguments<'_>) {
        let (mut said, now) = (lock(&self.0), Instant::now());
        if said.get(cause).is_none_or(|at| now.duration_since(*at) >= QUIET) {
            said.insert(cause, now);
            warn!(cause, "{message}");
        }
    }
}
