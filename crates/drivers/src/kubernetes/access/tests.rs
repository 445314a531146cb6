//! Exchanges with an API server of a test's own: what it gets, and with which credentials.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::thread;

use reqwest::Method;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tempfile::TempDir;

use super::*;

const TIMEOUT: Duration = Duration::from_secs(30);
const DENIED: &str =
    r#"{"kind":"Status","status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}"#;

type Then = Box<dyn FnOnce() + Send>;

/// An API server that takes one token.
#[derive(Clone)]
struct Server {
    address: SocketAddr,
    /// What was asked, with the bodies.
    asked: Arc<Mutex<Vec<String>>>,
    /// The token that it takes; any request if empty.
    token: Arc<Mutex<String>>,
    /// What happens at its next refusal.
    then: Arc<Mutex<Option<Then>>>,
}

impl Server {
    fn plain(token: &str) -> Self {
        Self::with(token, None)
    }

    fn with(token: &str, tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            asked: Arc::default(),
            token: Arc::new(Mutex::new(token.to_owned())),
            then: Arc::default(),
        };
        let own = server.clone();
        thread::spawn(move || {
            for peer in listener.incoming().map_while(Result::ok) {
                let _cut = match &tls {
                    None => own.answer(peer),
                    Some(tls) => {
                        let tls = ServerConnection::new(Arc::clone(tls)).unwrap();
                        own.answer(StreamOwned::new(tls, peer))
                    }
                };
            }
        });
        server
    }

    fn answer(&self, mut peer: impl Read + Write) -> Option<()> {
        let asked = request(&mut peer)?;
        let token = self.token.lock().unwrap().clone();
        let is_in = token.is_empty() || asked.contains(&format!("authorization: Bearer {token}\r\n"));
        self.asked.lock().unwrap().push(asked);
        let (status, body) = if is_in { (200, "{\"kind\":\"Node\"}") } else { (401, DENIED) };
        if let Some(then) = self.then.lock().unwrap().take_if(|_| !is_in) {
            then();
        }
        let head = format!("HTTP/1.1 {status} Test\r\nContent-Length: {}\r\n\r\n", body.len());
        peer.write_all((head + body).as_bytes()).ok()?;
        peer.flush().ok()
    }

    fn takes(&self, token: &str) {
        *self.token.lock().unwrap() = token.to_owned();
    }

    /// What it was asked since the last time.
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The head of a request and its body.
fn request(peer: &mut impl Read) -> Option<String> {
    let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.split_once("content-length: ").and_then(|(_, rest)| rest.lines().next());
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return Some(text);
            }
        }
        let count = peer.read(&mut part).ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&part[..count]);
    }
}

/// A directory with a kubeconfig and what belongs to it.
struct Room(TempDir);

impl Room {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn put(&self, name: &str, text: &str, mode: u32) {
        fs::write(self.path(name), text).unwrap();
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    /// A kubeconfig with these lines of a cluster and of a user.
    fn config(&self, cluster: &str, user: &str) {
        let text = format!(
            "current-context: ops\ncontexts: [{{name: ops, context: {{cluster: c, user: u, namespace: metal}}}}]\n\
             clusters: [{{name: c, cluster: {{{cluster}}}}}]\nusers: [{{name: u, user: {{{user}}}}}]\n"
        );
        self.put("kubeconfig", &text, 0o600);
    }

    /// The same for a server with plain http.
    fn config_of(&self, server: &Server, user: &str) {
        self.config(&format!("server: 'http://{}'", server.address), user);
    }

    fn source(&self) -> Kubeconfig {
        Kubeconfig { file: self.path("kubeconfig"), context: None }
    }

    fn access(&self) -> Access {
        Access::new(self.source(), TIMEOUT).unwrap()
    }
}

async fn ask(access: &Access) -> Result<Answer, Outcome> {
    access.send(&Ask::get("/api/v1/nodes/a", &[]), Instant::now() + TIMEOUT).await
}

/// The status of the answer, or the words of the outcome without one.
async fn word(access: &Access) -> String {
    match ask(access).await {
        Ok(answer) => answer.status.to_string(),
        Err(outcome) => {
            let (word, kind) = outcome.words();
            format!("{word} {kind}")
        }
    }
}

/// The broken variant follows `kubectl config use-context` in a shell: the next mark goes to another cluster.
#[tokio::test]
async fn the_context_of_the_start_is_kept() {
    let (server, other, room) = (Server::plain(""), Server::plain(""), Room::new());
    let contexts = |current: &str| {
        let [one, two] = [&server, &other].map(|server| server.address);
        let text = format!(
            "current-context: {current}\ncontexts: [{{name: one, context: {{cluster: one, user: u}}}}, {{name: two, context: {{cluster: two, user: u}}}}]\n\
             clusters: [{{name: one, cluster: {{server: 'http://{one}'}}}}, {{name: two, cluster: {{server: 'http://{two}'}}}}]\nusers: [{{name: u, user: {{token: t}}}}]\n"
        );
        room.put("kubeconfig", &text, 0o600);
    };
    contexts("one");
    let access = room.access();
    contexts("two");
    assert!(ask(&access).await.is_ok());
    assert_eq!((server.asked().len(), other.asked().len()), (1, 0));
    assert!(room.access().shown.ends_with("(context two)"));
}

#[tokio::test]
async fn a_server_is_shown_without_a_secret() {
    let (server, room) = (Server::plain(""), Room::new());
    room.config_of(&server, "token: s3kr1t");
    let access = room.access();
    assert_eq!(access.shown, format!("http://{} (context ops)", server.address));
    assert_eq!(access.site().target(), format!("http://{}", server.address));
    assert_eq!(access.site().namespace.as_deref(), Some("metal"));
    assert!(access.warnings().is_empty());
    let site = access.sites.get();
    let body = |text: &str| format!(r#"{{"kind":"Status","message":"{text}","reason":"Invalid"}}"#);
    let answer = |text: &str| Answer { secret: site.token.clone(), ..Answer::of(422, &body(text), None) };
    let said = |text: &str| answer(text).said();
    assert_eq!(said("no such field"), ": no such field");
    assert_eq!(said("what is s3kr1t"), "");
    let answer = answer("s3kr1t");
    let seen = format!("{} {answer:?} {:?} {:?}", access.shown, room.source(), site.bearer);
    assert!(!seen.contains("s3kr1t"), "{seen}");
    assert_eq!((answer.wish, answer.reason().as_str()), (None, "Invalid"));
}

/// The broken variant counts a request that was never made as one that may have arrived.
#[tokio::test]
async fn what_was_not_sent_is_not_ambiguous() {
    let (server, room) = (Server::plain(""), Room::new());
    room.config_of(&server, "token: t");
    let late = room.access().send(&Ask::get("/", &[]), Instant::now()).await.unwrap_err();
    assert_eq!((late.words(), server.asked().len()), (("unreachable", "timeout"), 0));
}

/// The file changes while a request with the former token is under way. The broken variant repeats what it had.
#[tokio::test]
async fn a_refused_token_is_read_again_and_the_request_is_repeated_once() {
    let (server, room) = (Server::plain("new"), Room::new());
    room.put("token", "old\n", 0o600);
    room.config_of(&server, "tokenFile: token, token: ignored");
    let access = room.access();
    let file = room.path("token");
    *server.then.lock().unwrap() = Some(Box::new(move || fs::write(file, "new\n").unwrap()));
    let post = Ask::write(&Method::POST, "/apis/g/v1/x", b"{}");
    let answer = access.send(&post, Instant::now() + TIMEOUT).await.unwrap();
    assert_eq!(answer.status, 200);
    let asked = server.asked();
    assert_eq!(asked.len(), 2);
    let without_token = |text: &String| text.replace("Bearer old", "").replace("Bearer new", "");
    assert_eq!(without_token(&asked[0]), without_token(&asked[1]), "the same request");

    assert_eq!(word(&access).await, "200");
    assert_eq!(server.asked().len(), 1, "the new token is kept");
    server.takes("another");
    let answer = ask(&access).await.unwrap();
    assert_eq!((answer.status, answer.message().as_str()), (401, "Unauthorized"));
    assert_eq!(server.asked().len(), 2, "a second 401 is the answer");
}
