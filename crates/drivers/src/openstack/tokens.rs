//! A cloud's token: kept for all exchanges, and fetched by a task of its own. No exchange waits for it for long.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::header::HeaderName;
use reqwest::{Client, Url};
use secrecy::ExposeSecret as _;
use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::time::{Instant, timeout_at};

use super::auth::{self, Token, Unread};
use super::cloud::Cloud;
use super::trouble::{self, Trouble};
use crate::driver::Outcome;
use crate::web::wire::{self, Cut};
use crate::web::{Fault, fault, peer};

const SUBJECT_TOKEN: HeaderName = HeaderName::from_static("x-subject-token");
/// Keystone's time limit for a token.
const TOKEN_TIME: Duration = Duration::from_secs(10);
/// How long a failure that no exchange has seen is reported to the next one: the endpoint's next probe comes before.
const NEWS: Duration = Duration::from_secs(60);

/// A cloud with its client.
pub(super) struct Site {
    pub(super) cloud: Cloud,
    pub(super) client: Client,
    /// Where services said that their current versions are, by the catalog's addresses without one.
    pub(super) versions: AsyncMutex<BTreeMap<Url, Url>>,
}

impl Site {
    pub(super) fn new(cloud: Cloud, client: Client) -> Self {
        Self { cloud, client, versions: AsyncMutex::default() }
    }
}

type Fetched = Result<Arc<Token>, Trouble>;

/// The tokens of one session.
#[derive(Default)]
pub(super) struct Tokens(Arc<Mutex<State>>);

/// What is kept of Keystone's answers, all for one site: a cloud whose files have changed gets a new state.
#[derive(Default)]
struct State {
    current: Option<Current>,
    fetch: Option<Fetch>,
    unheard: Option<Unheard>,
}

struct Current {
    site: Arc<Site>,
    token: Arc<Token>,
    until: Instant,
}

/// A fetch in flight.
struct Fetch {
    site: Arc<Site>,
    outcome: watch::Receiver<Option<Fetched>>,
}

/// How a fetch failed after every exchange had stopped waiting: the next exchange reports it. Otherwise a wrong password
/// would seem a slow Keystone forever, and be tried at each attempt.
struct Unheard {
    site: Arc<Site>,
    at: Instant,
    trouble: Trouble,
}

impl Tokens {
    /// A token, never the refused one. Keystone is asked once for all that want one. An exchange that gets none until
    /// `soon` leaves the fetch to the next exchange.
    ///
    /// # Errors
    /// There is none, or none yet.
    pub(super) async fn get(&self, site: &Arc<Site>, soon: Instant, refused: Option<&Arc<Token>>) -> Fetched {
        let (outcome, before) = {
            let mut state = lock(&self.0);
            if let Some(token) = state.usable(site, refused) {
                return Ok(token);
            }
            let before = state.unheard.take().filter(|unheard| unheard.is_news(site));
            match before.map(|unheard| unheard.trouble) {
                Some(trouble) if !passes(&trouble) => return Err(trouble),
                before => (self.join(&mut state, site), before),
            }
        };
        result(outcome, soon).await.unwrap_or_else(|| {
            Err(before.unwrap_or_else(|| Trouble::Late(Some(peer(&site.cloud.token_url)))))
        })
    }

    /// The next exchange reads the catalog again, unless another did since.
    pub(super) fn forget(&self, token: &Arc<Token>) {
        let mut state = lock(&self.0);
        state.current = state.current.take().filter(|current| !Arc::ptr_eq(&current.token, token));
    }

    /// The fetch in flight, or a new one.
    fn join(&self, state: &mut State, site: &Arc<Site>) -> watch::Receiver<Option<Fetched>> {
        // A fetch whose runtime has ended never ends by itself.
        let is_meant = |fetch: &&Fetch| Arc::ptr_eq(&fetch.site, site) && fetch.outcome.has_changed().is_ok();
        if let Some(fetch) = state.fetch.as_ref().filter(is_meant) {
            return fetch.outcome.clone();
        }
        let (sender, outcome) = watch::channel(None);
        state.current = None;
        state.fetch = Some(Fetch { site: Arc::clone(site), outcome: outcome.clone() });
        tokio::spawn(fetch_for(Arc::clone(&self.0), Arc::clone(site), sender));
        outcome
    }
}

/// Never held across an await.
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How a fetch ends, if it ends until then.
async fn result(mut outcome: watch::Receiver<Option<Fetched>>, soon: Instant) -> Option<Fetched> {
    let ended = timeout_at(soon, outcome.wait_for(Option::is_some)).await;
    ended.ok()?.ok()?.clone()
}

async fn fetch_for(state: Arc<Mutex<State>>, site: Arc<Site>, sender: watch::Sender<Option<Fetched>>) {
    let began = Instant::now();
    let limit = began + TOKEN_TIME;
    let fetched = timeout_at(limit, fetch(&site, limit)).await.unwrap_or(Err(Trouble::Away(Fault::Timeout)));
    let fetched = fetched.map(Arc::new);
    let mut state = lock(&state);
    // One receiver is the state's own.
    state.end(&site, &fetched, began, sender.receiver_count() > 1);
    sender.send_replace(Some(fetched));
}

impl State {
    fn usable(&self, site: &Arc<Site>, refused: Option<&Arc<Token>>) -> Option<Arc<Token>> {
        let current = self.current.as_ref()?;
        let is_good = Arc::ptr_eq(&current.site, site)
            && Instant::now() < current.until
            && refused.is_none_or(|refused| !Arc::ptr_eq(refused, &current.token));
        is_good.then(|| Arc::clone(&current.token))
    }

    /// A fetch has ended. A former site's result is only for those that wait for it.
    fn end(&mut self, site: &Arc<Site>, fetched: &Fetched, began: Instant, is_heard: bool) {
        if self.fetch.take_if(|fetch| Arc::ptr_eq(&fetch.site, site)).is_none() {
            return;
        }
        let site = Arc::clone(site);
        match fetched {
            Ok(token) => {
                let (until, token) = (began + token.use_for, Arc::clone(token));
                self.current = Some(Current { site, token, until });
            }
            Err(_) if is_heard => {}
            Err(trouble) => {
                self.unheard = Some(Unheard { site, at: Instant::now(), trouble: trouble.clone() });
            }
        }
    }
}

impl Unheard {
    fn is_news(&self, site: &Arc<Site>) -> bool {
        Arc::ptr_eq(&self.site, site) && self.at.elapsed() < NEWS
    }
}

/// Whether the next fetch may succeed without any change.
fn passes(trouble: &Trouble) -> bool {
    matches!(trouble.outcome(), Outcome::Unreachable(_))
}

/// Asks Keystone.
async fn fetch(site: &Site, limit: Instant) -> Result<Token, Trouble> {
    let Cloud { token_url, credentials, .. } = &site.cloud;
    let request = site.client.post(token_url.clone());
    let sent = wire::with_body(request, Some(&credentials.request())).send().await;
    let response = sent.map_err(|error| Trouble::Away(fault::of(&error)))?;
    let (status, wish) = wire::head(&response).map_err(Trouble::Away)?;
    let token =
        response.headers().get(SUBJECT_TOKEN).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let (body, cut) = wire::read(response, limit).await;
    if status != 201 {
        let secret = credentials.secret.expose_secret();
        return Err(Trouble::NoToken(trouble::no_token(status, &body, wish, secret)));
    }
    if cut == Some(Cut::TooLong) {
        return Err(Trouble::Nowhere(too_long()));
    }
    // A whole body counts, however its connection ended: TLS is often ended without notice.
    auth::read(token.as_deref(), &body).map_err(|why| match (why, cut) {
        (Unread::CutOff, Some(Cut::Late)) => Trouble::Away(Fault::Timeout),
        (Unread::CutOff, _) => Trouble::Away(Fault::Closed),
        (Unread::Wrong(why), _) => Trouble::Nowhere(format!("Keystone {why}")),
    })
}

fn too_long() -> String {
    let most = wire::BODY_BYTES / 1024;
    format!(
        "Keystone's answer with the token is longer than {most} KiB: give the project fewer endpoints to see"
    )
}
