//! A Keystone and a Masakari as their contracts describe them. Both refuse what is not written there, and keep what came.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use drivers::masakari::{Masakari, Options};
use drivers::{Driver, Failure, Message, Outcome, Step, openstack};
use marks::mark::Mark;
use marks::time::Timestamp;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

use crate::endpoint::{Endpoint, Peer};
use crate::route::{Files, LONG, SECRET, id, message};

/// The project that every token is for.
pub(crate) const PROJECT: &str = "4d43aa00";
/// When the mark of [`mark`] was generated.
pub(crate) const AT: i64 = 1_784_600_001;
/// Who asks, as the files under test say it.
const ALERTER: &str =
    "username: alerter, user_domain_name: Default, project_name: ops, project_domain_name: Default";
/// Masakari takes a notification for a repetition within this time, in seconds.
const INTERVAL: i64 = 180;

/// How Masakari answers next, instead of as it should.
#[derive(Clone, Debug)]
pub(crate) enum Whim {
    /// This.
    Say(u16, String),
    /// It does what it is asked and closes without a word.
    Close,
}

/// A notification that Masakari has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) host: String,
    pub(crate) seconds: i64,
    pub(crate) payload: Value,
    pub(crate) uuid: String,
    pub(crate) status: &'static str,
    /// When Masakari took it, and when it was changed last.
    pub(crate) created: i64,
    pub(crate) changed: Option<i64>,
}

/// A Keystone that is slow.
#[derive(Default)]
pub(crate) struct Hold {
    /// It was asked.
    pub(crate) asked: Notify,
    /// It may answer one.
    pub(crate) go: Notify,
}

/// What both know and do.
#[derive(Default)]
pub(crate) struct State {
    /// Answers of Keystone instead of a token.
    pub(crate) keystone_says: Option<(u16, String)>,
    /// Keystone closes every connection without a word.
    pub(crate) keystone_is_mute: bool,
    /// Keystone answers only when the test says so.
    pub(crate) hold: Option<Arc<Hold>>,
    /// So much of the end of Keystone's answer with a token is missing.
    pub(crate) cut: usize,
    /// For how many seconds a token holds.
    pub(crate) life: i64,
    pub(crate) password: &'static str,
    issued: usize,
    good: BTreeSet<String>,
    pub(crate) is_reader: bool,
    pub(crate) hosts: Vec<&'static str>,
    pub(crate) on_maintenance: BTreeSet<&'static str>,
    /// When any host was changed last.
    pub(crate) host_changed: Option<i64>,
    /// Masakari closes every connection without a word.
    pub(crate) is_mute: bool,
    /// Nobody may read segments, hosts and notifications.
    pub(crate) is_hidden: bool,
    /// Masakari closes every connection on which it is asked to show something.
    pub(crate) reads_break: bool,
    /// The credential's access rules leave out all reads: Keystone's middleware answers them with 401.
    pub(crate) may_only_post: bool,
    /// Of the segment with all hosts.
    pub(crate) is_enabled: bool,
    /// It gives no more entries of a list at once (`osapi_max_limit`).
    pub(crate) page: usize,
    /// It knows version 1.0 alone.
    pub(crate) is_old: bool,
    pub(crate) rows: Vec<Row>,
    pub(crate) whims: Vec<Whim>,
    /// Masakari knows no token at all.
    pub(crate) knows_no_token: bool,
    /// Requests of Keystone and of Masakari: method and target.
    pub(crate) tokens_asked: usize,
    pub(crate) asked: Vec<String>,
    /// Everything that was sent to Masakari as a body.
    pub(crate) bodies: Vec<Vec<u8>>,
    masakari: String,
    /// What stands in front of Masakari's own paths, and how it answers there, if the catalog names no version.
    root: Option<(String, u16, String)>,
    /// Further services in the catalog: type and address.
    pub(crate) others: Vec<(&'static str, String)>,
}

/// Both of them, with the files that describe them.
pub(crate) struct Site {
    pub(crate) keystone: Endpoint,
    pub(crate) masakari: Endpoint,
    state: Arc<Mutex<State>>,
    pub(crate) files: Files,
}

impl Site {
    pub(crate) async fn new() -> Self {
        Self::with_auth(ALERTER, &format!("password: {SECRET}")).await
    }

    /// With these words under `auth`, of which the latter are secret.
    pub(crate) async fn with_auth(open: &str, secret: &str) -> Self {
        let state = new_state();
        let of_masakari = Arc::clone(&state);
        let masakari = Endpoint::acting(move |peer| serve_masakari(peer, Arc::clone(&of_masakari))).await;
        let of_keystone = Arc::clone(&state);
        let keystone = Endpoint::acting(move |peer| serve_keystone(peer, Arc::clone(&of_keystone))).await;
        Self::of(keystone, masakari, state, "http", (open, secret))
    }

    /// Both behind TLS.
    pub(crate) async fn tls(acceptor: TlsAcceptor) -> Self {
        let state = new_state();
        let of_masakari = Arc::clone(&state);
        let masakari =
            Endpoint::tls(acceptor.clone(), move |peer| serve_masakari(peer, Arc::clone(&of_masakari))).await;
        let of_keystone = Arc::clone(&state);
        let keystone =
            Endpoint::tls(acceptor, move |peer| serve_keystone(peer, Arc::clone(&of_keystone))).await;
        Self::of(keystone, masakari, state, "https", (ALERTER, &format!("password: {SECRET}")))
    }

    fn of(
        keystone: Endpoint,
        masakari: Endpoint,
        state: Arc<Mutex<State>>,
        scheme: &str,
        auth: (&str, &str),
    ) -> Self {
        state.lock().unwrap().masakari = format!("{scheme}://{}/v1/{PROJECT}", masakari.address);
        let (url, (open, secret)) = (format!("{scheme}://{}/identity", keystone.address), auth);
        let clouds =
            format!("clouds:\n  ops:\n    auth: {{auth_url: '{url}', {open}}}\n    region_name: RegionOne\n");
        let secure = format!("clouds:\n  ops:\n    auth: {{{secret}}}\n");
        let files = Files::with([("clouds.yaml", &clouds), ("secure.yaml", &secure)]);
        Self { keystone, masakari, state, files }
    }

    /// From now on the catalog names Masakari without a version: this path, where it answers so.
    pub(crate) fn unversioned(&self, path: &str, status: u16, body: String) {
        let mut state = self.state();
        state.masakari = format!("http://{}{path}", self.masakari.address);
        state.root = Some((path.to_owned(), status, body));
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Keystone answers only when the test says so.
    pub(crate) fn hold(&self) -> Arc<Hold> {
        Arc::clone(self.state().hold.insert(Arc::default()))
    }

    /// The same for an endpoint that knows its tokens.
    pub(crate) fn shared(&self) -> Arc<Mutex<State>> {
        Arc::clone(&self.state)
    }

    /// How many notifications Masakari has, and how often Keystone was asked for a token.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let state = self.state();
        (state.rows.len(), state.tokens_asked)
    }

    pub(crate) fn options(&self) -> openstack::CloudOptions {
        let options = openstack::CloudOptions::of_file(self.files.path("clouds.yaml"));
        openstack::CloudOptions { timeout: LONG, patience: LONG, ..options }
    }

    pub(crate) fn driver(&self) -> Masakari {
        Masakari::new(Options::of(self.options())).unwrap()
    }
}

impl State {
    /// The tokens that were given out hold no more.
    pub(crate) fn expire_tokens(&mut self) {
        self.good.clear();
    }

    /// Whether a token is one of those that were given out, and holds.
    pub(crate) fn knows(&self, token: &str) -> bool {
        !self.knows_no_token && self.good.contains(token)
    }

    /// A notification from elsewhere.
    pub(crate) fn add(&mut self, host: &str, seconds: i64) {
        let uuid = format!("9b1ebd5c-0000-4000-8000-{:012}", self.rows.len());
        let (status, created, changed) = ("new", seconds, None);
        self.rows.push(Row {
            host: host.to_owned(),
            seconds,
            payload: stopped(),
            uuid,
            status,
            created,
            changed,
        });
    }

    /// Its engine is done with a notification, as it leaves it.
    pub(crate) fn end(&mut self, row: usize, status: &'static str) {
        let row = &mut self.rows[row];
        (row.status, row.changed) = (status, Some(row.created + 200));
    }
}

fn stopped() -> Value {
    json!({"event": "STOPPED", "cluster_status": "OFFLINE", "host_status": "NORMAL"})
}

fn new_state() -> Arc<Mutex<State>> {
    Arc::new(Mutex::new(State {
        life: 3600,
        password: SECRET,
        hosts: vec!["compute0.my.cloud.com", "Compute1.my.cloud.com"],
        is_enabled: true,
        page: 1000,
        ..State::default()
    }))
}

/// The mark that is sent.
pub(crate) fn mark() -> Mark {
    let (failed, made) = (Timestamp::from_seconds(AT - 1), Timestamp::from_seconds(AT));
    let names = ["compute1", "Compute1.my.cloud.com"];
    Mark { generated_time: made, ..samples::sent(&id().to_string(), names, failed) }
}

/// One exchange. Whatever comes of it, nothing of it shows a secret.
pub(crate) async fn send(driver: &dyn Driver, body: &[u8], ambiguous: u32) -> Outcome {
    send_step(driver, Step::Failure, body, ambiguous).await
}

/// The same of any step.
pub(crate) async fn send_step(driver: &dyn Driver, step: Step, body: &[u8], ambiguous: u32) -> Outcome {
    let id = id();
    let outcome = driver.deliver(Message { ambiguous, ..message(step, &id, body) }).await;
    let shown = format!("{outcome:?} {driver:?} {}", driver.about().endpoint);
    assert!(!shown.contains(SECRET), "{shown}");
    if let Some(failure) = outcome.failure() {
        assert!(failure.detail.chars().count() <= Failure::DETAIL);
        assert!(failure.detail.chars().all(|c| !c.is_control()), "{:?}", failure.detail);
    }
    outcome
}

/// A request, taken apart.
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let mut lines = head.lines();
        let words: Vec<&str> = lines.next().unwrap().split(' ').collect();
        let url = reqwest::Url::parse(&format!("http://h{}", words[1])).unwrap();
        let header =
            |line: &str| line.split_once(": ").map(|(n, v)| (n.to_lowercase(), v.to_owned())).unwrap();
        Self {
            method: words[0].to_owned(),
            path: url.path().to_owned(),
            query: url.query_pairs().into_owned().collect(),
            headers: lines.map(header).collect(),
            body: body.as_bytes().to_vec(),
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

async fn serve_keystone<S: AsyncRead + AsyncWrite + Unpin>(mut peer: Peer<S>, state: Arc<Mutex<State>>) {
    let Some(request) = peer.take_request().await else { return };
    let hold = {
        let mut state = state.lock().unwrap();
        state.tokens_asked += 1;
        state.hold.clone()
    };
    if let Some(hold) = hold {
        hold.asked.notify_one();
        hold.go.notified().await;
    }
    let answer = {
        let mut state = state.lock().unwrap();
        if state.keystone_is_mute {
            return;
        }
        let answer = state.token(&Request::read(&request));
        answer[..answer.len() - state.cut].to_vec()
    };
    peer.say(&answer).await;
}

async fn serve_masakari<S: AsyncRead + AsyncWrite + Unpin>(mut peer: Peer<S>, state: Arc<Mutex<State>>) {
    while let Some(request) = peer.take_request().await {
        let request = Request::read(&request);
        let Some(answer) = answer_of_masakari(&request, &state) else { return };
        peer.say(&answer).await;
        if request.header("connection") == Some("close") {
            return;
        }
    }
}

fn answer_of_masakari(request: &Request, state: &Mutex<State>) -> Option<Vec<u8>> {
    let mut state = state.lock().unwrap();
    if state.is_mute || (state.reads_break && request.method == "GET") {
        return None;
    }
    let whim =
        if request.method != "GET" && !state.whims.is_empty() { Some(state.whims.remove(0)) } else { None };
    let answer = state.masakari(request);
    match whim {
        None => Some(answer),
        Some(Whim::Say(status, body)) => Some(http(status, &body, "")),
        Some(Whim::Close) => None,
    }
}

pub(crate) fn http(status: u16, body: &str, more: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{more}\r\n{body}").into_bytes()
}

pub(crate) fn error(status: u16, name: &str, message: &str) -> Vec<u8> {
    http(status, &json!({ name: {"code": status, "message": message} }).to_string(), "")
}

pub(crate) fn forbidden(policy: &str) -> Vec<u8> {
    error(403, "forbidden", &format!("Policy doesn't allow {policy} to be performed."))
}

pub(crate) const UNAUTHORIZED: &str = "The request you have made requires authentication.";

pub(crate) fn unauthorized(message: &str) -> Vec<u8> {
    let body = json!({"error": {"code": 401, "message": message, "title": "Unauthorized"}}).to_string();
    http(401, &body, "WWW-Authenticate: Keystone uri=\"http://k\"\r\n")
}

impl State {
    fn token(&mut self, request: &Request) -> Vec<u8> {
        if let Some((status, body)) = &self.keystone_says {
            return http(*status, body, "");
        }
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/identity/v3/auth/tokens"));
        assert_eq!(request.header("content-type"), Some("application/json"));
        let Ok(body) = serde_json::from_slice::<Value>(&request.body) else {
            return http(400, r#"{"error":{"code":400,"message":"not JSON","title":"Bad Request"}}"#, "");
        };
        let by_password = json!({"auth": {
            "identity": {"methods": ["password"], "password": {"user":
                {"name": "alerter", "domain": {"name": "Default"}, "password": self.password}}},
            "scope": {"project": {"name": "ops", "domain": {"name": "Default"}}}}});
        let application = json!({"methods": ["application_credential"],
            "application_credential": {"id": "a1b2", "secret": self.password}});
        if body["auth"]["identity"] == application && body["auth"].get("scope").is_some() {
            return unauthorized("Application credentials cannot request a scope.");
        }
        if body != by_password && body != json!({"auth": {"identity": application}}) {
            return unauthorized(UNAUTHORIZED);
        }
        self.issue()
    }

    /// As Debian's packages answer: the body ends with the connection.
    fn issue(&mut self) -> Vec<u8> {
        self.issued += 1;
        let token = format!("gAAAAAB-{SECRET}-{}", self.issued);
        self.good.insert(token.clone());
        let [issued, expires] = [AT, AT + self.life].map(|at| Timestamp::from_seconds(at).rfc3339());
        let endpoint = |interface: &str, url: &str| json!({"id": "e", "interface": interface, "region": "RegionOne", "region_id": "RegionOne", "url": url});
        let others = self.others.iter().map(|(kind, url)| {
            json!({"type": kind, "name": "x", "id": "o", "endpoints": [endpoint("public", url)]})
        });
        let mut catalog: Vec<Value> = others.collect();
        catalog.push(json!({"type": "identity", "name": "keystone", "id": "k", "endpoints": []}));
        catalog.push(json!({"type": "instance-ha", "name": "masakari", "id": "m", "endpoints": [
            endpoint("internal", "http://127.0.0.1:9/v1"), endpoint("public", &self.masakari)]}));
        let body = json!({"token": {
            "methods": ["password"], "user": {"domain": {"id": "default", "name": "Default"}, "id": "u", "name": "alerter", "password_expires_at": null},
            "audit_ids": ["x"], "expires_at": expires, "issued_at": issued,
            "project": {"domain": {"id": "default", "name": "Default"}, "id": PROJECT, "name": "ops"}, "is_domain": false,
            "roles": [{"id": "r", "name": "admin"}], "catalog": catalog}});
        format!("HTTP/1.1 201 CREATED\r\nContent-Type: application/json\r\nX-Subject-Token: {token}\r\nVary: X-Auth-Token\r\n\r\n{body}").into_bytes()
    }

    fn masakari(&mut self, request: &Request) -> Vec<u8> {
        self.asked.push(format!("{} {}", request.method, request.path));
        let token = request.header("x-auth-token").unwrap_or_default();
        if !self.knows(token) || (self.may_only_post && request.method == "GET") {
            return unauthorized(UNAUTHORIZED);
        }
        let before = match &self.root {
            Some((path, status, body)) if request.path == format!("{path}/") => {
                return http(*status, body, "");
            }
            Some((path, ..)) => format!("{path}/v1"),
            None => "/v1".to_owned(),
        };
        let path = request.path.strip_prefix(&before).filter(|path| path.starts_with('/'));
        let Some(path) = path.map(|path| path.strip_prefix(&format!("/{PROJECT}")).unwrap_or(path)) else {
            return if self.root.is_some() { http(300, r#"{"choices": []}"#, "") } else { not_found() };
        };
        let version = request.header("openstack-api-version");
        // From 1.1 on reading a notification asks the engine, and nothing else needs one.
        assert!(version.is_none() || path == "/segments", "{version:?} of {path}");
        match (request.method.as_str(), path) {
            ("POST", "/notifications") => self.notify(request),
            ("GET", _) if self.is_hidden => self.forbidden(path),
            ("GET", "/notifications") => self.list(&request.query),
            ("GET", "/segments") => self.segments(version, &request.query),
            ("GET", "/segments/5e9/hosts") => http(200, r#"{"hosts": []}"#, ""),
            ("GET", "/segments/5e9a/hosts") => {
                let hosts = self.hosts.iter().map(|name| self.host(name)).collect();
                self.listed("hosts", hosts, &request.query)
            }
            ("PUT", path) => self.update(path, &request.body),
            _ => not_found(),
        }
    }

    fn forbidden(&self, path: &str) -> Vec<u8> {
        let what = path.split('/').next_back().unwrap();
        forbidden(&format!("os_masakari_api:{what}:index"))
    }

    fn segments(&self, version: Option<&str>, query: &[(String, String)]) -> Vec<u8> {
        let mut all = vec![json!({"uuid": "5e9a", "name": "east"}), json!({"uuid": "5e9", "name": "empty"})];
        match version {
            None => {}
            Some("instance-ha 1.2") if !self.is_old => {
                all[0]["enabled"] = self.is_enabled.into();
                all[1]["enabled"] = true.into();
            }
            _ => return error(406, "masakariFault", "Version is not supported by the API."),
        }
        self.listed("segments", all, query)
    }

    /// A list of these, oldest first, as far as it is shown at once: the newest first, where nothing else is asked for.
    fn listed(&self, key: &str, mut all: Vec<Value>, query: &[(String, String)]) -> Vec<u8> {
        all.reverse();
        let mut page = self.page;
        for (key, value) in query {
            match (key.as_str(), value.as_str()) {
                ("sort_dir", "asc") => all.reverse(),
                ("limit", limit) => page = page.min(limit.parse().unwrap()),
                _ => return error(400, "badRequest", "Additional properties are not allowed"),
            }
        }
        all.truncate(page);
        http(200, &json!({ key: all }).to_string(), "")
    }

    fn host(&self, name: &'static str) -> Value {
        json!({"id": 1, "uuid": uuid_of(name), "name": name, "type": "COMPUTE", "reserved": false,
            "on_maintenance": self.on_maintenance.contains(name), "control_attributes": "SSH",
            "failover_segment_id": "5e9a", "created_at": time_of(0), "updated_at": self.host_changed.map(time_of)})
    }

    /// Nothing but the end of a maintenance, and not while the segment is in use.
    fn update(&mut self, path: &str, body: &[u8]) -> Vec<u8> {
        if self.is_reader {
            return forbidden("os_masakari_api:os-hosts:update");
        }
        let body: Value = serde_json::from_slice(body).unwrap();
        assert_eq!(body, json!({"host": {"on_maintenance": false}}));
        let uuid = path.strip_prefix("/segments/5e9a/hosts/").unwrap();
        let Some(name) = self.hosts.iter().copied().find(|name| uuid_of(name) == uuid) else {
            return error(404, "itemNotFound", &format!("No host with id {uuid}."));
        };
        if self.rows.iter().any(|row| matches!(row.status, "new" | "running" | "error")) {
            return error(
                409,
                "conflictingRequest",
                &format!("Host {uuid} can't be updated as it is in-use to process notifications."),
            );
        }
        self.on_maintenance.remove(name);
        http(200, &json!({"host": self.host(name)}).to_string(), "")
    }

    /// In the order of the real one: outer schema, policy, payload, host, maintenance, repetition.
    fn notify(&mut self, request: &Request) -> Vec<u8> {
        self.bodies.push(request.body.clone());
        let Ok(Value::Object(body)) = serde_json::from_slice::<Value>(&request.body) else {
            return error(400, "badRequest", "Malformed request body");
        };
        let keys = ["generated_time", "hostname", "payload", "type"];
        let Some(notification) = only(&body, "notification").filter(|n| has_exactly(n, &keys)) else {
            return error(400, "badRequest", "Additional properties are not allowed");
        };
        let (host, time) =
            (notification["hostname"].as_str().unwrap(), notification["generated_time"].as_str().unwrap());
        let Ok(time) = Timestamp::parse(time) else {
            return error(400, "badRequest", "Invalid input for field/attribute generated_time");
        };
        if notification["type"] != "COMPUTE_HOST" {
            return error(400, "badRequest", "Invalid input for field/attribute type");
        }
        if self.is_reader {
            return forbidden("os_masakari_api:notifications:create");
        }
        let payload = &notification["payload"];
        if !payload.as_object().is_some_and(is_payload) {
            return error(400, "badRequest", "Invalid input for field/attribute payload");
        }
        self.store(host, time.seconds(), payload)
    }

    fn store(&mut self, host: &str, seconds: i64, payload: &Value) -> Vec<u8> {
        if !self.hosts.contains(&host) {
            return error(400, "badRequest", &format!("Host with name {host} could not be found."));
        }
        if self.on_maintenance.contains(host) {
            return error(
                409,
                "conflictingRequest",
                &format!(
                    "Notification received from host {host} of type 'COMPUTE_HOST' is ignored as the host is already under maintenance."
                ),
            );
        }
        let same =
            |row: &Row| row.host == host && row.payload == *payload && row.seconds >= seconds - INTERVAL;
        if self.rows.iter().any(same) {
            return error(
                409,
                "conflictingRequest",
                &format!("Notification received from host {host} of type COMPUTE_HOST is duplicate."),
            );
        }
        self.add(host, seconds);
        let row = self.rows.last().unwrap();
        http(202, &json!({"notification": shown(row)}).to_string(), "OpenStack-API-Version: masakari 1.0\r\n")
    }

    fn list(&self, query: &[(String, String)]) -> Vec<u8> {
        let mut rows: Vec<&Row> = self.rows.iter().collect();
        let mut order = Vec::new();
        for (key, value) in query {
            match key.as_str() {
                "type" if value == "COMPUTE_HOST" => {}
                "generated-since" => {
                    let since = Timestamp::parse(value).unwrap().seconds();
                    rows.retain(|row| row.seconds >= since);
                }
                "source_host_uuid" => rows.retain(|row| uuid_of(&row.host) == *value),
                _ => order.push((key.clone(), value.clone())),
            }
        }
        self.listed("notifications", rows.into_iter().map(shown).collect(), &order)
    }
}

pub(crate) fn not_found() -> Vec<u8> {
    http(
        404,
        r#"{"message": "The resource could not be found.<br /><br />\n\n\n", "code": "404 Not Found", "title": "Not Found"}"#,
        "",
    )
}

/// As the real one gives it back: without a zone, with a fraction.
fn time_of(seconds: i64) -> String {
    Timestamp::from_seconds(seconds).rfc3339_seconds().replace('Z', ".000000")
}

fn shown(row: &Row) -> Value {
    let (generated, created) = (time_of(row.seconds), time_of(row.created));
    json!({"id": 1, "notification_uuid": row.uuid, "generated_time": generated, "source_host_uuid": uuid_of(&row.host),
        "type": "COMPUTE_HOST", "payload": row.payload, "status": row.status, "created_at": created,
        "updated_at": row.changed.map(time_of)})
}

fn uuid_of(host: &str) -> String {
    let sum: u32 = host.bytes().map(u32::from).sum();
    format!("b6165712-{sum}")
}

fn only<'m>(map: &'m Map<String, Value>, key: &str) -> Option<&'m Map<String, Value>> {
    map.get(key).filter(|_| map.len() == 1)?.as_object()
}

fn has_exactly(map: &Map<String, Value>, keys: &[&str]) -> bool {
    map.len() == keys.len() && keys.iter().all(|key| map.contains_key(*key))
}

fn is_payload(payload: &Map<String, Value>) -> bool {
    payload.iter().all(|(key, value)| match key.as_str() {
        "event" => value == "STARTED" || value == "STOPPED",
        "cluster_status" => value == "ONLINE" || value == "OFFLINE",
        "host_status" => value == "NORMAL" || value == "UNKNOWN",
        _ => false,
    }) && payload.contains_key("event")
}
