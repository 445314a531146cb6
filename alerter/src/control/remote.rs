//! The API at its TCP address: TLS, tokens, and bounds that keep one bad client from being everybody's.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Extension, Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, patch};
use drivers::{Files, Kept, Unusable};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::answer::Refusal;
use super::caller::Caller;
use super::{callbacks, hosts, outages};
use crate::config::Api;
use crate::config::token::{self, Token};
use crate::listen::{Door, Limits, Place, attend, tls};
use crate::lock::lock;
use crate::serving;
use crate::state::Shared;

/// The document of the API.
pub const DOCUMENT: &str = include_str!("../../../docs/openapi.json");

/// For the handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// The request's body has a limit of its own.
const LIMITS: Limits =
    Limits { head: Duration::from_secs(10), whole: Duration::from_secs(60), bytes: 32 * 1024 };
/// An address that is not there yet is tried again after this time, and so is a socket that fails.
const PAUSE: Duration = Duration::from_secs(2);
/// What is said of clients is said once in this time for each cause.
const QUIET: Duration = Duration::from_secs(60);

/// Every path of the API with its method: what is served at the TCP address, and in the document.
const PATHS: [(&str, &str, Serve); 4] = [
    ("patch", "/v1/hosts/{host}", || patch(hosts::patch)),
    ("patch", "/v1/marks/{id}", || patch(callbacks::patch)),
    ("get", "/v1/marks/{id}", || get(outages::get)),
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

/// Serves the API as it is configured at each time, until `stop`.
pub async fn follow(shared: Arc<Shared>, stop: CancellationToken) {
    let serve = |api: &Api, stop| {
        let (shared, api) = (Arc::clone(&shared), api.clone());
        async move {
            run(Arc::clone(&shared), api, stop).await;
            *shared.api_trouble() = None;
        }
    };
    serving::follow(&shared.base, |settings| settings.api.clone(), serve, stop).await;
}

/// Listens at the configured address until `stop`. An address that cannot be had keeps nothing else from running: it may come
/// with a move of the cluster's; nor does a certificate that is just being renewed.
pub async fn run(shared: Arc<Shared>, api: Api, stop: CancellationToken) {
    while !stop.is_cancelled() {
        match open(&shared, &api).await {
            Ok((listener, entrance)) => {
                *shared.api_trouble() = None;
                info!("the API is served at https://{}", api.listen);
                return serve_at(listener, entrance, stop).await;
            }
            Err(why) => say_unserved(&shared, api.listen, &why),
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}

/// Opens the address, or says why it cannot be opened now.
async fn open(shared: &Arc<Shared>, api: &Api) -> Result<(TcpListener, Entrance), String> {
    let entrance = Entrance::new(Arc::clone(shared), api).map_err(|why| format!("{}: {why}", why.key))?;
    let listener = TcpListener::bind(api.listen).await.map_err(|error| format!("listen: {error}"))?;
    Ok((listener, entrance))
}

fn say_unserved(shared: &Shared, address: SocketAddr, why: &str) {
    let sentence = format!("the API is not served at {address} ({why}): check [api]");
    let mut trouble = shared.api_trouble();
    if trouble.as_ref() != Some(&sentence) {
        warn!("{sentence}");
        *trouble = Some(sentence);
    }
}

/// Serves what comes to a listener until `stop`.
pub async fn serve(listener: TcpListener, shared: Arc<Shared>, api: Api, stop: CancellationToken) {
    match Entrance::new(shared, &api) {
        Ok(entrance) => serve_at(listener, entrance, stop).await,
        Err(why) => warn!(key = why.key, "the API is not served: {why}"),
    }
}

async fn serve_at(listener: TcpListener, entrance: Entrance, stop: CancellationToken) {
    let entrance = Arc::new(entrance);
    let mut open = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            Some(_) = open.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => admit(&entrance, stream, peer, &mut open),
            Err(error) => {
                entrance.log.say("accept", format_args!("the API accepts no connection: {error}"));
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

fn admit(entrance: &Arc<Entrance>, stream: TcpStream, peer: SocketAddr, open: &mut JoinSet<()>) {
    let address = peer.ip().to_canonical();
    let Some(place) = entrance.door.take(Some(address)) else {
        return entrance.log.say(
            "connections",
            format_args!("a connection of {address} to the API is closed: there are too many"),
        );
    };
    let entrance = Arc::clone(entrance);
    open.spawn(async move {
        let end = place.end();
        let _gave_way = end.run_until_cancelled(entrance.attend(stream, address, place)).await;
    });
}

/// What all connections share.
struct Entrance {
    router: Router,
    certificates: Kept<Arc<ServerConfig>>,
    door: Door,
    log: Arc<Log>,
}

impl Entrance {
    fn new(shared: Arc<Shared>, settings: &Api) -> Result<Self, Unusable> {
        let log = Arc::new(Log::default());
        let identity = settings.identity.clone();
        let paths = vec![identity.certificate.clone(), identity.key.clone()];
        let files = Files { what: "certificate and key", endpoint: "the API".to_owned(), paths };
        let certificates = Kept::new(files, move || tls::read(&identity))?;
        let guard = Guard { tokens: settings.tokens.clone().into(), log: Arc::clone(&log) };
        let router = api()
            .fallback(async || Refusal::absent("the API has no such path: see /v1/openapi.json"))
            .method_not_allowed_fallback(async || {
                let message = "the API has no such method here: see /v1/openapi.json";
                Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "method", message)
            })
            .layer(middleware::from_fn_with_state(guard, only_with_a_token))
            .with_state(shared);
        Ok(Self { router, certificates, door: Door::new(), log })
    }

    /// One request; what is wrong with a connection is its own affair.
    async fn attend(&self, stream: TcpStream, address: IpAddr, place: Place) {
        let acceptor = TlsAcceptor::from(self.certificates.get());
        let stream = match timeout(HANDSHAKE, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                return self
                    .log
                    .say("handshake", format_args!("the API has no TLS connection with {address}: {error}"));
            }
            Err(_) => {
                return self.log.say(
                    "handshake",
                    format_args!("the API has no TLS connection with {address} within {HANDSHAKE:?}"),
                );
            }
        };
        let router = self.router.clone().layer(Extension(Peer(address)));
        if let Err(error) = attend(stream, router, place, &LIMITS).await {
            self.log.say("request", format_args!("a request of {address} to the API is broken: {error}"));
        }
    }
}

/// Where a request comes from.
#[derive(Clone, Copy)]
struct Peer(IpAddr);

#[derive(Clone)]
struct Guard {
    tokens: Arc<[Token]>,
    log: Arc<Log>,
}

/// Before anything of the request is read.
async fn only_with_a_token(
    State(guard): State<Guard>,
    Extension(Peer(address)): Extension<Peer>,
    mut request: Request,
    next: Next,
) -> Response {
    let given = bearer(request.headers());
    let (found, unusable) = given.map_or((None, Vec::new()), |given| token::whose(&guard.tokens, given));
    for why in unusable {
        guard.log.say("token file", format_args!("{why}"));
    }
    let Some(token) = found else {
        let how = if given.is_some() { "with a wrong token" } else { "without a token" };
        guard.log.say(how, format_args!("a request to the API from {address} {how} is refused"));
        return refused();
    };
    let caller = Caller::Remote { token: token.clone(), address };
    request.extensions_mut().insert(caller);
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
struct Log(Mutex<BTreeMap<&'static str, Said>>);

/// When a cause was said last, and how often it was met since.
struct Said {
    at: Instant,
    more: usize,
}

impl Log {
    fn say(&self, cause: &'static str, message: fmt::Arguments<'_>) {
        match self.is_time(cause, Instant::now()) {
            Some(0) => warn!(cause, "{message}"),
            Some(more) => warn!(cause, more, "{message}; and {more} more like it before"),
            None => {}
        }
    }

    /// How many were passed over, where it is time to say one.
    fn is_time(&self, cause: &'static str, now: Instant) -> Option<usize> {
        let mut said = lock(&self.0);
        if let Some(said) = said.get_mut(cause).filter(|said| now.duration_since(said.at) < QUIET) {
            said.more += 1;
            return None;
        }
        said.insert(cause, Said { at: now, more: 0 }).map_or(Some(0), |before| Some(before.more))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_is_said_once_a_minute() {
        let (log, now) = (Log::default(), Instant::now());
        assert_eq!(
            [log.is_time("a", now), log.is_time("b", now), log.is_time("a", now)],
            [Some(0), Some(0), None]
        );
        assert_eq!(log.is_time("a", now + QUIET / 2), None);
        assert_eq!(log.is_time("a", now + QUIET), Some(2), "with how many there were");
        assert_eq!(log.is_time("a", now + QUIET * 3), Some(0));
    }

    #[test]
    fn a_bearer_token_is_what_stands_behind_the_word() {
        let of = |text: &str| {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_str(text).unwrap())]);
            bearer(&headers).map(|token| String::from_utf8_lossy(token).into_owned())
        };
        assert_eq!((of("Bearer x"), of("bearer  x ")), (Some("x".into()), Some("x".into())));
        assert_eq!([of("Basic x"), of("x"), of(""), of("Bearer")], [const { None }; 4]);
        assert_eq!(bearer(&HeaderMap::new()), None);
    }
}
