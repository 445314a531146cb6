//! The API on real sockets: the control socket's, and one of its own that wants a token.

use std::path::PathBuf;

use marks::fencing::{Fencing, Origin};
use reqwest::{Client, Method, Response, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::{Mutex, mpsc, oneshot};

use crate::api_config::{Files, OTHER, TOKEN};
use crate::endpoint::Endpoint;
use crate::route::LONG;
use crate::site::{Alerter, DOCUMENT, Program, Served, Site, Socket, deliveries, paths};

const HOSTS: &str = "/v1/hosts/compute1";

/// A message that a receiver has, and has not answered.
pub(crate) struct Due {
    pub(crate) mark: String,
    pub(crate) host: String,
    answer: oneshot::Sender<u16>,
}

impl Due {
    /// The receiver answers with this status.
    pub(crate) fn end(self, status: u16) {
        self.answer.send(status).unwrap();
    }
}

/// Where the API is served, and by whom.
pub(crate) struct Server {
    files: Files,
    socket: PathBuf,
    program: Option<Program>,
    _served: Option<Served>,
    due: Mutex<mpsc::UnboundedReceiver<Due>>,
    _receiver: Endpoint,
}

/// A receiver that answers what the test says.
async fn receiver() -> (Endpoint, mpsc::UnboundedReceiver<Due>) {
    let (sender, due) = mpsc::unbounded_channel();
    let endpoint = Endpoint::acting(move |mut peer| {
        let sender = sender.clone();
        async move {
            let Some(request) = peer.take_request().await else { return };
            let body = request.split(|byte| *byte == b'\n').next_back().unwrap();
            let event: Value = serde_json::from_slice(body).unwrap();
            let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let (mark, host) = (word(&event["id"]), word(&event["payload"]["hostname"]));
            let (answer, said) = oneshot::channel();
            let _test_is_over = sender.send(Due { mark, host: host.replace(".x.y", ""), answer });
            if let Ok(status) = said.await {
                peer.say(format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n").as_bytes()).await;
            }
        }
    });
    (endpoint.await, due)
}

impl Server {
    /// A daemon without a cluster, with these lines behind its route, and paused: nothing is sent before the test says so.
    pub(crate) async fn alone(more: &str) -> Self {
        let (files, (endpoint, due)) = (Files::new(), receiver().await);
        let routes = match more.matches("ack = \"callback\"").count() {
            0 => "",
            1 => "routes = [\"recovery\"]\n",
            _ => "routes = [\"recovery\", \"wiki\"]\n",
        };
        let trusted = format!(
            "hosts = [\"compute*\"]\n{routes}[api.tokens.trusted]\ntoken-file = \"DIR/trusted\"\n\
             hosts = [\"*\"]\ntrust-marks = true\n"
        );
        let route = format!("[http.recovery]\nurl = \"{}\"\n{more}", endpoint.url());
        let program = Program::with(&(route + &files.table(&trusted))).await;
        let socket = program.files.path("state/control.sock");
        let server = Self::of((files, socket), (Some(program), None), (endpoint, due)).await;
        server.daemon().post("/v1/pause", json!({ "reason": "tests" })).await.unwrap();
        server
    }

    /// The control socket of an alerter in a cluster that has polled it.
    pub(crate) async fn beside(site: &Site, controller: &'static str) -> (Self, Alerter) {
        let (server, mut alerter) = Self::before_a_poll(site, controller).await;
        alerter.take_in(site);
        (server, alerter)
    }

    /// The same of one that has not polled it yet.
    pub(crate) async fn before_a_poll(site: &Site, controller: &'static str) -> (Self, Alerter) {
        let files = Files::new();
        site.configure(&files.table("hosts = [\"*\"]\n"));
        let alerter = Alerter::start(site, controller);
        let served = alerter.serve();
        let server = Self::of((files, served.socket.clone()), (None, Some(served)), receiver().await).await;
        (server, alerter)
    }

    async fn of(
        (files, socket): (Files, PathBuf),
        (program, served): (Option<Program>, Option<Served>),
        (endpoint, due): (Endpoint, mpsc::UnboundedReceiver<Due>),
    ) -> Self {
        while UnixStream::connect(files.socket()).await.is_err() {
            tokio::task::yield_now().await;
        }
        Self { files, socket, program, _served: served, due: Mutex::new(due), _receiver: endpoint }
    }

    fn client(&self) -> Client {
        Client::builder().unix_socket(self.files.socket()).timeout(LONG).build().unwrap()
    }

    async fn ask(&self, method: Method, path: &str, token: Option<&str>, body: &str) -> Response {
        let request = self.client().request(method, format!("http://api{path}"));
        let request = token.into_iter().fold(request, reqwest::RequestBuilder::bearer_auth);
        request.header("content-type", "application/json").body(body.to_owned()).send().await.unwrap()
    }

    async fn patch(&self, path: &str, token: &str, body: &str) -> (u16, Value) {
        let response = self.ask(Method::PATCH, path, Some(token), body).await;
        (response.status().as_u16(), response.json().await.unwrap())
    }

    /// A request that is refused with this code and this word.
    async fn refuses(&self, path: &str, token: &str, body: &str, expected: (u16, &str)) -> Value {
        let (status, answer) = self.patch(path, token, body).await;
        assert_eq!((status, answer["kind"].as_str().unwrap()), expected, "{path} {body}: {answer}");
        answer
    }

    /// As the command does, over the control socket.
    pub(crate) async fn patch_locally(
        &self,
        host: &str,
        is_failure: bool,
        why: Option<&str>,
    ) -> Result<Value, String> {
        let mut request = json!({ "mark_unhealthy": is_failure });
        if let Some(why) = why {
            request["resource_status_reason"] = why.into();
        }
        self.daemon().patch(&format!("/v1/hosts/{host}"), request).await
    }

    /// The control socket, as a command finds it.
    pub(crate) fn daemon(&self) -> Socket {
        Socket::at(&self.socket)
    }

    /// Bytes to the control socket, and what comes back.
    async fn raw_locally(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        self.head_locally(method, path, body.len(), body).await
    }

    /// The same with a length that need not be the body's.
    async fn head_locally(&self, method: &str, path: &str, length: usize, body: &str) -> (u16, Value) {
        let mut stream = UnixStream::connect(&self.socket).await.unwrap();
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}");
        stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), serde_json::from_str(body).unwrap_or_default())
    }

    async fn list(&self, words: &[&str]) -> Vec<Value> {
        let Value::Array(all) = self.program.as_ref().unwrap().ask(words).await else { panic!("no list") };
        all
    }

    /// A host's marks, as `list` shows them.
    pub(crate) async fn marks(&self, host: &str) -> Vec<Value> {
        let mut all = self.list(&["list", "--all"]).await;
        all.retain(|mark| mark["host"] == host);
        all
    }

    /// The history of what others than the alerter itself did.
    pub(crate) async fn said(&self) -> Vec<Value> {
        let mut all = self.list(&["history"]).await;
        all.retain(|row| row["actor"] != "nova-host-alerter");
        all
    }

    async fn history(&self, event: &str) -> Vec<Value> {
        let mut all = self.said().await;
        all.retain(|row| row["event"] == event);
        all
    }

    /// Everything that a request could change; a route that nobody is at goes on trying.
    async fn everything(&self) -> String {
        let marks = self.list(&["list", "--all"]).await;
        let of_mark = |mark: &Value| {
            let tried = deliveries(mark).into_iter().filter(|one| one.starts_with("recovery"));
            format!("{} {} {:?}", mark["id"], mark["settled_at"], tried.collect::<Vec<_>>())
        };
        let marks: Vec<String> = marks.iter().map(of_mark).collect();
        format!("{:?} {marks:?}", self.said().await)
    }

    /// The pause ends, and the receiver has a message.
    pub(crate) async fn begin(&self) -> Due {
        self.daemon().post("/v1/resume", json!({ "reason": "tests" })).await.unwrap();
        self.next().await
    }

    /// The next message that the receiver has.
    pub(crate) async fn next(&self) -> Due {
        self.due.lock().await.recv().await.unwrap()
    }

    /// The same, and the receiver accepts it and will confirm it later.
    pub(crate) async fn accepted(&self) -> String {
        let due = self.begin().await;
        let mark = due.mark.clone();
        due.end(202);
        self.until(&mark, "recovery pending", |one| one["last"]["kind"] == "accepted").await;
        mark
    }

    /// Waits until a delivery of the mark stands so.
    pub(crate) async fn until(&self, mark: &str, delivery: &str, is_it: impl Fn(&Value) -> bool) {
        let program = self.program.as_ref().unwrap();
        let stands = async || {
            let all = program.ask(&["list", "--all"]).await;
            let mark = all.as_array().unwrap().iter().find(|one| one["id"] == mark).unwrap();
            let stands = |(one, said): (&Value, String)| said == delivery && is_it(one);
            mark["deliveries"].as_array().unwrap().iter().zip(deliveries(mark)).any(stands)
        };
        program.wait(stands).await;
    }
}

fn failed() -> String {
    json!({ "mark_unhealthy": true }).to_string()
}

fn well() -> String {
    json!({ "mark_unhealthy": false }).to_string()
}

/// The document and the router agree: each path in the one is in the other. What the
/// control socket serves beside that cannot be reached at the others.
#[tokio::test]
async fn the_document_has_every_path_and_no_other_is_served() {
    let server = Server::alone("").await;
    let response = server.ask(Method::GET, "/v1/openapi.json", Some(TOKEN), "").await;
    assert_eq!(response.headers()["content-type"], "application/json");
    let document: Value = response.json().await.unwrap();
    assert_eq!(document, serde_json::from_str::<Value>(DOCUMENT).unwrap());
    assert_eq!(document["openapi"], "3.1.0");
    let mut written: Vec<(String, String)> = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        written.extend(methods.as_object().unwrap().keys().map(|method| (method.clone(), path.clone())));
    }
    let mut served: Vec<(String, String)> =
        paths().map(|(method, path)| (method.to_owned(), path.to_owned())).collect();
    written.sort();
    served.sort();
    assert_eq!(written, served);
    for (method, path) in &served {
        let method: Method = method.to_uppercase().parse().unwrap();
        let path = path.replace("{host}", "compute1").replace("{id}", "x");
        let (there, local) = (
            server.ask(method.clone(), &path, Some(TOKEN), "").await.status().as_u16(),
            server.raw_locally(method.as_str(), &path, "").await.0,
        );
        assert!(!matches!(there, 404 | 405) && there == local, "{method} {path}: {there} {local}");
    }
    for path in ["/v1/health", "/v1/status", "/v1/unmark", "/v1/release", "/v1/retry", "/v1/send-test", "/"] {
        for method in [Method::GET, Method::POST] {
            let response = server.ask(method, path, Some(TOKEN), "{}").await;
            assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
            assert_eq!(response.json::<Value>().await.unwrap()["kind"], "not-found");
        }
    }
    assert_ne!(server.raw_locally("GET", "/v1/health", "").await.0, 404, "the control socket has it");
}

#[tokio::test]
async fn nothing_is_answered_without_a_token() {
    let server = Server::alone("").await;
    let before = server.everything().await;
    for token in [None, Some(""), Some("x"), Some(&TOKEN[1..]), Some("0123456789abcdef0123456789abcdeX")] {
        for (method, path) in
            [(Method::PATCH, HOSTS), (Method::GET, "/v1/openapi.json"), (Method::GET, "/v1/x")]
        {
            let response = server.ask(method, path, token, &failed()).await;
            assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{token:?} {path}");
            assert_eq!(response.headers()["www-authenticate"], "Bearer");
            assert_eq!(response.json::<Value>().await.unwrap()["kind"], "token");
        }
    }
    assert_eq!(server.everything().await, before);
    assert_eq!(server.ask(Method::GET, "/v1/openapi.json", Some(TOKEN), "").await.status(), StatusCode::OK);
}

/// S2-1, S2-11, S2-24: who knows that a host has failed says so; a stated default stands for a reason that was not given, and
/// the history names who said it.
#[tokio::test]
async fn a_word_from_outside_marks_a_host_and_is_on_record() {
    let server = Server::alone("").await;
    let answer = server.patch_locally("compute1", true, Some("pulled the plug")).await.unwrap();
    assert!(answer["new"] == true && answer["changed"] == 1 && answer["mark"].is_string(), "{answer}");
    let again = server.patch_locally("compute1", true, None).await.unwrap();
    assert_eq!(
        (&again["new"], &again["changed"], &again["mark"]),
        (&json!(false), &json!(0), &answer["mark"])
    );
    assert!(again["message"].as_str().unwrap().contains("already marked"));
    let (status, remote) = server.patch("/v1/hosts/compute2", OTHER, &failed()).await;
    assert_eq!((status, &remote["new"]), (200, &json!(true)), "{remote}");
    let uid = nix::unistd::geteuid();
    let default = "explicitly marked unhealthy, without a stated reason";
    let rows = server.history("marked-by-hand").await;
    let said: Vec<_> = rows.iter().map(|row| [&row["actor"], &row["detail"]]).collect();
    let alice = &*format!("alice (uid {uid})");
    assert_eq!(said, [[alice, "pulled the plug"], [alice, default], ["trusted (API)", default]]);
    assert_eq!(server.marks("compute1").await.len(), 1);
}

/// S2-8: what is open ends, and nothing else; where nothing is open, nothing changes.
#[tokio::test]
async fn a_host_that_is_well_has_nothing_open() {
    let server = Server::alone("").await;
    for host in ["compute1", "compute2"] {
        server.patch_locally(host, true, None).await.unwrap();
    }
    let all = server.everything().await;
    let answer = server.refuses(HOSTS, TOKEN, &well(), (409, "not-yours")).await;
    assert!(answer["message"].as_str().unwrap().contains("unmark"), "{answer}");
    assert_eq!(server.everything().await, all);
    assert_eq!(server.patch_locally("compute1", false, None).await.unwrap()["changed"], 1);
    let is_ended = async |host| server.marks(host).await[0]["state"] == "dismissed";
    assert_eq!((is_ended("compute1").await, is_ended("compute2").await), (true, false));
    let ends = server.history("settled").await;
    assert!(ends.len() == 1 && ends[0]["actor"].as_str().unwrap().starts_with("alice"), "{ends:?}");
    let before = server.everything().await;
    for host in ["compute1", "compute9"] {
        let (status, answer) = server.patch(&format!("/v1/hosts/{host}"), TOKEN, &well()).await;
        assert_eq!((status, &answer["changed"], &answer["new"]), (200, &json!(0), &json!(false)));
        assert_eq!(server.patch_locally(host, false, None).await.unwrap()["changed"], 0);
    }
    assert_eq!(server.everything().await, before);
}

/// A token may do what its table names, and nothing else. The broken variant is a table that names it.
#[tokio::test]
async fn a_token_speaks_of_what_its_table_names() {
    let server = Server::alone(CALLBACK).await;
    let before = server.everything().await;
    for body in [failed(), well()] {
        server.refuses("/v1/hosts/elsewhere", TOKEN, &body, (403, "not-allowed")).await;
    }
    assert_eq!(server.everything().await, before);
    assert_eq!(server.patch("/v1/hosts/elsewhere", OTHER, &well()).await.0, 200);
    server.patch_locally("compute1", true, None).await.unwrap();
    let path = format!("/v1/marks/{}", server.accepted().await);
    let before = server.everything().await;
    for body in [r#"{"acknowledged": true}"#, r#"{"acknowledged": true, "route": "recovery"}"#] {
        server.refuses(&path, OTHER, body, (403, "not-allowed")).await;
    }
    assert_eq!(server.everything().await, before);
    assert_eq!(server.patch(&path, TOKEN, r#"{"acknowledged": true}"#).await.0, 200);
}

/// Without a cluster nobody can confirm it, and a false mark starts a machine twice. The broken variant is a token that is
/// trusted: its word alone is sent.
#[tokio::test]
async fn a_word_over_the_network_makes_no_mark_where_nobody_can_confirm_it() {
    let server = Server::alone("").await;
    let before = server.everything().await;
    server.refuses(HOSTS, TOKEN, &failed(), (403, "no-proof")).await;
    assert_eq!(server.everything().await, before);
    assert_eq!(server.patch(HOSTS, OTHER, &failed()).await.0, 200);
    assert_eq!(server.begin().await.host, "compute1");
}

/// Held until Pacemaker's own evidence agrees, or an operator releases it; the broken variant is root's word at the control
/// socket, which is sent at once.
#[tokio::test]
async fn a_word_over_the_network_is_held_until_pacemaker_agrees() {
    let mut site = Site::new(&["compute1", "compute2", "compute3"]);
    let (server, mut alerter) = Server::beside(&site, "ctl1").await;
    for _ in 0..3 {
        let (status, answer) = server.patch(HOSTS, TOKEN, &failed()).await;
        assert_eq!(status, 200, "{answer}");
    }
    server.patch("/v1/hosts/compute2", TOKEN, &failed()).await;
    let before = alerter.history();
    assert_eq!(server.patch("/v1/hosts/elsewhere", TOKEN, &failed()).await.0, 404);
    assert_eq!(server.patch("/v1/hosts/ctl1", TOKEN, &failed()).await.0, 400, "no controller");
    assert_eq!(alerter.history(), before);
    assert_eq!(alerter.standings("compute1"), ["unconfirmed"]);
    assert_eq!(fenced(&alerter), 2, "said again it is nothing new");
    site.register_is_mute = true;
    assert!(alerter.begin(&site, "nova").is_none(), "nothing of it is sent");

    let root = Fencing { origin: Origin::Operator, incarnation: None, ..site.fencing("ctl1", "compute3") };
    site.mark("ctl1", &root);
    alerter.take_in(&site);
    assert_eq!(alerter.standings("compute3"), ["operator"]);

    site.quorum = false;
    alerter.take_in(&site);
    let noted = server.patch("/v1/hosts/compute3", TOKEN, &failed()).await.1;
    assert_eq!(noted["new"], false, "it is marked: {noted}");
    site.quorum = true;

    site.die("compute1");
    let fencing = Fencing { incarnation: None, ..site.fencing("ctl1", "compute1") };
    site.mark("ctl1", &fencing);
    alerter.take_in(&site);
    let both = [alerter.standings("compute1"), alerter.standings("compute2")];
    assert_eq!(both, [["journal"], ["unconfirmed"]]);
    server.refuses(HOSTS, TOKEN, &well(), (409, "not-yours")).await;
    assert_eq!(alerter.marks("compute1")[0].settled, None);
    alerter.release(&site, alerter.marks("compute2")[0].id);
    assert_eq!(alerter.standings("compute2"), ["operator"]);
    assert_eq!(server.patch("/v1/hosts/compute2", TOKEN, &well()).await.0, 409, "an operator vouches for it");
}

/// Without quorum nothing is marked: the request waits, and a repetition is the same request.
#[tokio::test]
async fn a_word_over_the_network_waits_for_the_cluster() {
    let mut site = Site::new(&["compute1"]);
    let (server, mut alerter) = Server::beside(&site, "ctl1").await;
    site.quorum = false;
    alerter.take_in(&site);
    let mut marks = Vec::new();
    for _ in 0..2 {
        let (status, answer) = server.patch(HOSTS, TOKEN, &failed()).await;
        assert!(status == 200 && answer["message"].as_str().unwrap().contains("noted"), "{answer}");
        marks.push(answer["mark"].clone());
    }
    assert_eq!(marks[0], marks[1]);
    assert_eq!(fenced(&alerter), 1);
    site.quorum = true;
    alerter.take_in(&site);
    assert_eq!(alerter.standings("compute1"), ["unconfirmed"]);
    let (status, answer) = server.patch(HOSTS, TOKEN, &well()).await;
    assert_eq!((status, &answer["changed"]), (200, &json!(1)), "the API alone has said it: {answer}");
}

/// S2-8, and Heat's ActionInProgress: decided where the change is made. The broken variant is the same when the attempt has
/// ended.
#[tokio::test]
async fn nothing_changes_while_a_delivery_is_under_way() {
    let server = Server::alone("").await;
    server.patch_locally("compute1", true, None).await.unwrap();
    let due = server.begin().await;
    let before = server.everything().await;
    for is_failure in [true, false] {
        let body = json!({ "mark_unhealthy": is_failure }).to_string();
        let answer = server.refuses(HOSTS, OTHER, &body, (409, "in-progress")).await;
        assert!(answer["message"].as_str().unwrap().contains("try again in some seconds"));
        assert_eq!(server.patch_locally("COMPUTE1", is_failure, None).await.unwrap_err(), "in-progress");
    }
    assert_eq!(server.everything().await, before);
    assert_eq!(server.patch("/v1/hosts/compute2", OTHER, &failed()).await.0, 200, "another host's is not");
    let mark = due.mark.clone();
    due.end(200);
    server.until(&mark, "recovery acknowledged", |_| true).await;
    for is_failure in [true, false] {
        assert!(server.patch_locally("compute1", is_failure, None).await.is_ok());
    }
}

/// Bodies that are wrong: the document says what each would have to be.
const WRONG: &[(&str, &[&str])] = &[
    (
        HOSTS,
        &[
            "",
            "{",
            "[]",
            "{}",
            r#"{"mark_unhealthy": "true"}"#,
            r#"{"mark_unhealthy": null}"#,
            r#"{"mark_unhealthy": true, "mark_unhealthy": false}"#,
            r#"{"resource_status_reason": "x"}"#,
            r#"{"mark_unhealthy": true, "resource_status_reason": 7}"#,
            r#"{"mark_unhealthy": true, "status": "acknowledged"}"#,
            r#"{"MARK_UNHEALTHY": true}"#,
        ],
    ),
    (
        "/v1/marks/0193b3a4-5c6d-7e8f-9a0b-1c2d3e4f5a6b",
        &[
            "",
            "{}",
            r#"{"acknowledged": "yes"}"#,
            r#"{"acknowledged": true, "reference": 7}"#,
            r#"{"acknowledged": true, "reference": ""}"#,
            r#"{"acknowledged": true, "acknowledged": true}"#,
            r#"{"state": "acknowledged"}"#,
        ],
    ),
];

/// S2-9, S2-10, S2-12, S2-18, S2-23: exactly the keys that there are, of their types; no state can be set, and one request does
/// one thing. Nothing changes otherwise.
#[tokio::test]
async fn a_request_that_is_not_what_is_asked_for_changes_nothing() {
    let server = Server::alone(CALLBACK).await;
    server.patch_locally("compute1", true, None).await.unwrap();
    let before = server.everything().await;
    let deep = format!("{{\"mark_unhealthy\": {}{}}}", "[".repeat(20_000), "]".repeat(20_000));
    for (path, bodies) in WRONG {
        for body in bodies.iter().copied().chain([deep.as_str()]) {
            let (status, answer) = server.patch(path, OTHER, body).await;
            assert_eq!(status, 400, "{path} {body}: {answer}");
            assert!(answer["kind"].is_string() && answer["message"].is_string(), "{answer}");
            assert_eq!(server.raw_locally("PATCH", path, body).await.0, 400, "{path} {body}");
        }
    }
    let by_host = r#"{"target": "compute1", "reason": "", "user": ""}"#;
    assert_eq!(server.raw_locally("POST", "/v1/unmark", by_host).await.0, 400, "that is for a mark's id");
    assert_eq!(server.raw_locally("POST", "/v1/mark", by_host).await.0, 404);
    for host in ["..%2Fetc", "a%20b", "%ff", "-x", "a..b", &"x".repeat(256)] {
        assert_eq!(server.patch(&format!("/v1/hosts/{host}"), OTHER, &failed()).await.0, 400, "{host}");
    }
    assert_eq!(server.patch("/v1/marks/x", OTHER, r#"{"acknowledged": true}"#).await.0, 400);
    let long = json!({ "acknowledged": true, "reference": "x".repeat(257) }).to_string();
    assert_eq!(server.patch(WRONG[1].0, TOKEN, &long).await.0, 400);
    for method in [Method::PUT, Method::POST, Method::DELETE, Method::GET] {
        let response = server.ask(method, HOSTS, Some(OTHER), &failed()).await;
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(response.json::<Value>().await.unwrap()["kind"], "method");
    }
    assert_eq!(server.everything().await, before);
}

/// S2-22: several hosts are a request each, and each has its own answer.
#[tokio::test]
async fn each_of_several_hosts_has_its_own_answer() {
    let server = Server::alone("").await;
    let mut answers = Vec::new();
    for host in ["compute1", "-bad-", "compute2", "compute1"] {
        let (status, answer) = server.patch(&format!("/v1/hosts/{host}"), OTHER, &failed()).await;
        answers.push((status, answer["new"].as_bool()));
    }
    assert_eq!(answers, [(200, Some(true)), (400, None), (200, Some(true)), (200, Some(false))]);
}

const CALLBACK: &str = "ack = \"callback\"\n[http.wiki]\nurl = \"http://127.0.0.1:9/\"\nrequired = false\n";

/// How many fencings were recorded.
fn fenced(alerter: &Alerter) -> usize {
    alerter.history().iter().filter(|row| row["event"] == "fenced").count()
}

/// 202 is no acknowledgement: the receiver confirms, and the mark settles.
#[tokio::test]
async fn a_receiver_confirms_what_it_had_accepted() {
    let server = Server::alone(CALLBACK).await;
    server.patch_locally("compute1", true, None).await.unwrap();
    let path = format!("/v1/marks/{}", server.accepted().await);
    assert_eq!(server.marks("compute1").await[0]["state"], "open");
    let body = json!({ "acknowledged": true, "reference": "job 7" }).to_string();
    for (changed, words) in [(true, "has acknowledged"), (false, "before")] {
        let (status, answer) = server.patch(&path, TOKEN, &body).await;
        assert!(status == 200 && answer["changed"] == changed && answer["route"] == "recovery", "{answer}");
        assert!(answer["message"].as_str().unwrap().contains(words), "{answer}");
    }
    let mark = server.marks("compute1").await.remove(0);
    let delivery = &mark["deliveries"][0];
    assert_eq!([&mark["state"], &delivery["state"]], ["acknowledged"; 2]);
    assert_eq!(delivery["reference"], "job 7");
    let confirmed = server.history("confirmed").await;
    assert!(confirmed.len() == 1 && confirmed[0]["actor"] == "portal (API)", "{confirmed:?}");
    server.refuses(&path, TOKEN, r#"{"acknowledged": false}"#, (409, "ended")).await;
}

#[tokio::test]
async fn only_what_is_confirmed_like_this_can_be_confirmed() {
    let server = Server::alone(CALLBACK).await;
    let answer = server.patch_locally("compute1", true, None).await.unwrap();
    let path = format!("/v1/marks/{}", answer["mark"].as_str().unwrap());
    let before = server.everything().await;
    let unknown = WRONG[1].0;
    for (path, body, wanted) in [
        (unknown, json!({ "acknowledged": true }), (404, "not-found")),
        (&path, json!({ "acknowledged": true, "route": "recovery" }), (409, "never-sent")),
        (&path, json!({ "acknowledged": true, "route": "wiki" }), (403, "not-allowed")),
        (&path, json!({ "acknowledged": false, "route": "nowhere" }), (403, "not-allowed")),
        (&path, json!({ "acknowledged": false, "reference": "x" }), (400, "reference")),
    ] {
        server.refuses(path, TOKEN, &body.to_string(), wanted).await;
    }
    assert_eq!(server.everything().await, before);
    let both = Server::alone(&format!("{CALLBACK}ack = \"callback\"\n")).await;
    let answer = both.patch_locally("compute1", true, None).await.unwrap();
    let path = format!("/v1/marks/{}", answer["mark"].as_str().unwrap());
    let (status, answer) = both.patch(&path, TOKEN, r#"{"acknowledged": true}"#).await;
    assert_eq!((status, &answer["kind"]), (400, &json!("route")), "{answer}");
    both.accepted().await;
    assert_eq!(both.patch(&path, TOKEN, r#"{"acknowledged": true, "route": "recovery"}"#).await.0, 200);
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    let server = Server::alone("").await;
    let before = server.everything().await;
    let reason = "x".repeat(64 * 1024);
    let body = json!({ "mark_unhealthy": true, "resource_status_reason": reason }).to_string();
    let (status, answer) = server.head_locally("PATCH", HOSTS, body.len(), "").await;
    assert_eq!((status, &answer["kind"]), (413, &json!("too-large")));
    let sent = server.client().patch(format!("http://api{HOSTS}")).bearer_auth(OTHER).body(body);
    // It may get the answer, or a refused connection.
    if let Ok(response) = sent.send().await {
        assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
    }
    assert_eq!(server.everything().await, before);
    let fits = json!({ "mark_unhealthy": true, "resource_status_reason": "x".repeat(60_000) }).to_string();
    assert_eq!(server.patch(HOSTS, OTHER, &fits).await.0, 200, "the broken variant: it is within the bound");
    assert!(server.history("marked-by-hand").await[0]["detail"].as_str().unwrap().len() <= 512);
}
