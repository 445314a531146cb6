//! A cloud with one more service: beside the Keystone of [`crate::openstack`], which knows who may ask it.

use std::sync::{Arc, Mutex, MutexGuard};

use drivers::openstack::CloudOptions;
use tokio::net::TcpStream;

use crate::endpoint::{Endpoint, Peer};
use crate::openstack::{Request, Site, State, UNAUTHORIZED, http, not_found, unauthorized};

/// A service as its contract describes it. It refuses what is not written there.
pub(crate) trait Service: Send + 'static {
    /// Its type in the catalog.
    const TYPE: &'static str;
    /// The path of its address there.
    const BASE: &'static str;

    /// What it answers to somebody whom Keystone knows; `path` is what stands behind its address.
    fn answer(&mut self, request: &Request, path: &str) -> Vec<u8>;

    /// What it answers to anybody else.
    fn stranger(&self, token: &str) -> Vec<u8> {
        let _not_repeated = token;
        unauthorized(UNAUTHORIZED)
    }
}

/// How the service misbehaves next.
#[derive(Clone, Debug)]
pub(crate) enum Whim {
    /// It says this, and does nothing.
    Say(u16, String),
    /// It says nothing and does nothing.
    Hang,
    /// It resets the connection and does nothing.
    Reset,
    /// It does what it is asked, and closes within the answer's body.
    HalfBody,
}

/// The service, and what was asked of it.
pub(crate) struct Room<S> {
    pub(crate) service: S,
    /// Each waits for a request that begins with this text: its method, or more.
    pub(crate) whims: Vec<(&'static str, Whim)>,
    /// Method and target of each request, in order.
    pub(crate) asked: Vec<String>,
    /// Every body that came.
    pub(crate) bodies: Vec<String>,
}

/// Keystone, the service, and the files that describe them.
pub(crate) struct Cloud<S> {
    pub(crate) site: Site,
    _endpoint: Endpoint,
    room: Arc<Mutex<Room<S>>>,
}

impl<S: Service> Cloud<S> {
    pub(crate) async fn with(service: S) -> Self {
        let site = Site::new().await;
        let (endpoint, room) = beside(&site, service).await;
        Self { site, _endpoint: endpoint, room }
    }

    pub(crate) fn room(&self) -> MutexGuard<'_, Room<S>> {
        self.room.lock().unwrap()
    }

    pub(crate) fn options(&self) -> CloudOptions {
        self.site.options()
    }

    /// How often it was asked by this method.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.room().count(method)
    }
}

/// A further service of the same cloud.
pub(crate) async fn beside<S: Service>(site: &Site, service: S) -> (Endpoint, Arc<Mutex<Room<S>>>) {
    let room = Room { service, whims: Vec::new(), asked: Vec::new(), bodies: Vec::new() };
    let room = Arc::new(Mutex::new(room));
    let (keystone, shared) = (site.shared(), Arc::clone(&room));
    let serving = move |peer| serve(peer, Arc::clone(&keystone), Arc::clone(&shared));
    let endpoint = Endpoint::acting(serving).await;
    site.state().others.push((S::TYPE, format!("http://{}{}", endpoint.address, S::BASE)));
    (endpoint, room)
}

async fn serve<S: Service>(
    mut peer: Peer<TcpStream>,
    keystone: Arc<Mutex<State>>,
    room: Arc<Mutex<Room<S>>>,
) {
    while let Some(request) = peer.take_request().await {
        let request = Request::read(&request);
        let whim = room.lock().unwrap().note(&request);
        let answer = match &whim {
            Some(Whim::Say(status, body)) => http(*status, body, ""),
            Some(Whim::Hang) => return peer.gone().await,
            Some(Whim::Reset) => return peer.reset(),
            _ => {
                let token = request.header("x-auth-token").unwrap_or_default();
                let is_known = keystone.lock().unwrap().knows(token);
                room.lock().unwrap().answer(&request, token, is_known)
            }
        };
        let body = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap() + 4;
        let said = match whim {
            Some(Whim::HalfBody) => (body + answer.len()) / 2,
            _ => answer.len(),
        };
        peer.say(&answer[..said]).await;
        if said < answer.len() || request.header("connection") == Some("close") {
            return;
        }
    }
}

impl<S: Service> Room<S> {
    /// How often it was asked by this method.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.asked.iter().filter(|asked| asked.starts_with(method)).count()
    }

    /// Keeps what was asked, and says whether a whim is due.
    fn note(&mut self, request: &Request) -> Option<Whim> {
        let query: Vec<String> = request.query.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let target = [request.path.as_str(), &query.join("&")].join("?");
        let asked = format!("{} {}", request.method, target.trim_end_matches('?'));
        self.asked.push(asked.clone());
        if !request.body.is_empty() {
            self.bodies.push(String::from_utf8(request.body.clone()).unwrap());
        }
        let due = self.whims.iter().position(|(start, _)| asked.starts_with(start))?;
        Some(self.whims.remove(due).1)
    }

    fn answer(&mut self, request: &Request, token: &str, is_known: bool) -> Vec<u8> {
        if !is_known {
            return self.service.stranger(token);
        }
        match request.path.strip_prefix(S::BASE) {
            Some(path) => self.service.answer(request, path),
            None => not_found(),
        }
    }
}
