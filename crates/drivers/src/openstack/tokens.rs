//! A cloud's token: kept for all exchanges, and fetched by a task of its own. No exchange waits for it for long.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::header::HeaderName;
use reqwest::{Client, Method, Url};
use secrecy::ExposeSecret as _;
use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::time::{Instant, timeout_at};

use super::auth::{self, Token, Unread};
use super::cloud::Cloud;
use super::trouble::{self, Trouble};
use crate::driver::Outcome;
use crate::web::wire::{self, Came, Cut};
use crate::web::{Ask, Fault, peer};

const SUBJECT_TOKEN: HeaderName = HeaderName::from_static("x-subject-token");
/// Keystone's time limit for a token.
const TOKEN_TIME: Duration = Duration::from_secs(10);
/// How long a failure that no exchange has seen is reported to the next one: the endpoint's next probe comes before.
const NEWS: Duration = Duration::from_secs(60);

/// A cloud with its client, and what is kept of its answers. A cloud whose files have changed is another one.
pub(super) struct Site {
    pub(super) cloud: Cloud,
    pub(super) client: Client,
    /// Where services said that their current versions are, by the catalog's addresses without one.
    pub(super) versions: AsyncMutex<BTreeMap<Url, Url>>,
    /// Never locked across an await.
    tokens: Mutex<Tokens>,
}

type Fetched = Result<Arc<Token>, Trouble>;

/// What is kept of Keystone's answers.
#[derive(Default)]
struct Tokens {
    /// The token, and until when it is used.
    current: Option<(Arc<Token>, Instant)>,
    /// A fetch in flight.
    fetch: Option<watch::Receiver<Option<Fetched>>>,
    /// How a fetch failed after every exchange had stopped waiting, and when: the next exchange reports it. Otherwise a wrong
    /// password would seem a slow Keystone forever, and be tried at each attempt.
    unheard: Option<(Trouble, Instant)>,
}

impl Site {
    pub(super) fn new(cloud: Cloud, client: Client) -> Self {
        Self { cloud, client, versions: AsyncMutex::default(), tokens: Mutex::default() }
    }

    /// A token, never the refused one. Keystone is asked once for all that want one. An exchange that gets none until
    /// `soon` leaves the fetch to the next exchange.
    ///
    /// # Errors
    /// There is none, or none yet.
    pub(super) async fn token(self: &Arc<Self>, soon: Instant, refused: Option<&Arc<Token>>) -> Fetched {
        let (outcome, before) = {
            let mut tokens = self.tokens();
            let is_good = |(token, until): &&(Arc<Token>, Instant)| {
                Instant::now() < *until && refused.is_none_or(|refused| !Arc::ptr_eq(refused, token))
            };
            if let Some((token, _)) = tokens.current.as_ref().filter(is_good) {
                return Ok(Arc::clone(token));
            }
            match tokens.unheard.take().filter(|(_, at)| at.elapsed() < NEWS) {
                Some((trouble, _)) if !passes(&trouble) => return Err(trouble),
                before => (self.join(&mut tokens), before.map(|(trouble, _)| trouble)),
            }
        };
        result(outcome, soon).await.unwrap_or_else(|| {
            Err(before.unwrap_or_else(|| Trouble::Late(Some(peer(&self.cloud.token_url)))))
        })
    }

    /// The next exchange reads the catalog again, unless another did since.
    pub(super) fn forget(&self, token: &Arc<Token>) {
        self.tokens().current.take_if(|(current, _)| Arc::ptr_eq(current, token));
    }

    fn tokens(&self) -> MutexGuard<'_, Tokens> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fetch in flight, or a new one.
    fn join(self: &Arc<Self>, tokens: &mut Tokens) -> watch::Receiver<Option<Fetched>> {
        // A fetch whose runtime has ended never ends by itself.
        if let Some(fetch) = tokens.fetch.as_ref().filter(|fetch| fetch.has_changed().is_ok()) {
            return fetch.clone();
        }
        let (sender, outcome) = watch::channel(None);
        *tokens = Tokens { fetch: Some(outcome.clone()), ..Tokens::default() };
        tokio::spawn(fetch_for(Arc::clone(self), sender));
        outcome
    }

    /// A fetch that began then has ended. One that failed is reported to the next exchange if nobody waits for it.
    fn end(&self, fetched: &Fetched, began: Instant, sender: &watch::Sender<Option<Fetched>>) {
        let mut tokens = self.tokens();
        // One receiver is our own.
        let is_heard = sender.receiver_count() > 1;
        tokens.fetch = None;
        match fetched {
            Ok(token) => tokens.current = Some((Arc::clone(token), began + token.use_for)),
            Err(trouble) if !is_heard => tokens.unheard = Some((trouble.clone(), Instant::now())),
            Err(_) => {}
        }
    }
}

/// How a fetch ends, if it ends until then.
async fn result(mut outcome: watch::Receiver<Option<Fetched>>, soon: Instant) -> Option<Fetched> {
    let ended = timeout_at(soon, outcome.wait_for(Option::is_some)).await;
    ended.ok()?.ok()?.clone()
}

async fn fetch_for(site: Arc<Site>, sender: watch::Sender<Option<Fetched>>) {
    let began = Instant::now();
    let limit = began + TOKEN_TIME;
    let fetched = timeout_at(limit, fetch(&site, limit)).await.unwrap_or(Err(Trouble::Away(Fault::Timeout)));
    let fetched = fetched.map(Arc::new);
    site.end(&fetched, began, &sender);
    sender.send_replace(Some(fetched));
}

/// Whether the next fetch may succeed without any change.
fn passes(trouble: &Trouble) -> bool {
    matches!(trouble.outcome(), Outcome::Unreachable(_))
}

/// Asks Keystone.
async fn fetch(site: &Site, limit: Instant) -> Result<Token, Trouble> {
    let Cloud { token_url, credentials, .. } = &site.cloud;
    let body = credentials.request();
    let request = Ask::write(&Method::POST, "", &body).to(&site.client, token_url.clone());
    let sent = request.send().await;
    let Came { status, wish, headers, body, cut } =
        wire::came(sent, |_| limit).await.map_err(Trouble::Away)?;
    if status != 201 {
        let secret = credentials.secret.expose_secret();
        return Err(Trouble::NoToken(trouble::no_token(status, &body, wish, secret)));
    }
    if cut == Some(Cut::TooLong) {
        let most = wire::BODY_BYTES / 1024;
        let why = format!(
            "Keystone's answer with the token is longer than {most} KiB: give the project fewer endpoints to see"
        );
        return Err(Trouble::Nowhere(why));
    }
    let token = headers.get(SUBJECT_TOKEN).and_then(|value| value.to_str().ok());
    // A whole body counts, however its connection ended: TLS is often ended without notice.
    auth::read(token, &body).map_err(|why| match (why, cut) {
        (Unread::CutOff, Some(Cut::Late)) => Trouble::Away(Fault::Timeout),
        (Unread::CutOff, _) => Trouble::Away(Fault::Closed),
        (Unread::Wrong(why), _) => Trouble::Nowhere(format!("Keystone {why}")),
    })
}
