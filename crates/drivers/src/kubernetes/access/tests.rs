//! Exchanges with an API server of a test's own: what it gets, and with which credentials.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Mutex, PoisonError};
use std::thread;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
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

    fn why(&self) -> String {
        let why = Access::new(self.source(), TIMEOUT).unwrap_err().to_string();
        assert!(!why.contains("s3kr1t"), "{why}");
        why
    }
}

async fn ask(access: &Access) -> Result<Answer, Trouble> {
    access.send(&Ask::get("/api/v1/nodes/a", &[]), Instant::now() + TIMEOUT).await
}

/// The status of the answer, or the words of the outcome without one.
async fn word(access: &Access) -> String {
    match ask(access).await {
        Ok(answer) => answer.status.to_string(),
        Err(trouble) => {
            let (word, kind) = trouble.outcome().words();
            format!("{word} {kind}")
        }
    }
}

#[tokio::test]
async fn a_request_has_its_path_its_query_its_body_and_the_token() {
    let (server, room) = (Server::plain("s3kr1t"), Room::new());
    room.config(&format!("server: 'http://{}/k8s/clusters/c/'", server.address), "token: s3kr1t");
    let access = room.access();
    let end = Instant::now() + TIMEOUT;
    let query = [("limit", "500"), ("labelSelector", "a=b c")];
    let answer = access.send(&Ask::get("/api/v1/nodes/a%2Fb", &query), end).await.unwrap();
    assert_eq!((answer.status, answer.json()["kind"].as_str()), (200, Some("Node")));
    let patch = Ask::write(&Method::PATCH, "/api/v1/nodes/a", "application/merge-patch+json", b"{\"a\":1}");
    assert_eq!(access.send(&patch, end).await.unwrap().status, 200);
    let [first, second] = server.asked().try_into().unwrap();
    let head = "GET /k8s/clusters/c/api/v1/nodes/a%2Fb?limit=500&labelSelector=a%3Db+c HTTP/1.1\r\n";
    assert!(first.starts_with(head) && first.contains("accept: application/json\r\n"), "{first}");
    assert!(first.contains(&format!("host: {}\r\n", server.address)), "{first}");
    assert!(second.starts_with("PATCH /k8s/clusters/c/api/v1/nodes/a HTTP/1.1\r\n"), "{second}");
    assert!(second.contains("content-type: application/merge-patch+json\r\n"), "{second}");
    assert!(second.ends_with("\r\n\r\n{\"a\":1}"), "{second}");
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
    assert!(room.access().server().ends_with("(context two)"));
}

#[tokio::test]
async fn a_server_is_shown_without_a_secret() {
    let (server, room) = (Server::plain(""), Room::new());
    room.config_of(&server, "token: s3kr1t");
    let access = room.access();
    assert_eq!(access.server(), format!("http://{} (context ops)", server.address));
    assert_eq!(access.target(), format!("http://{}", server.address));
    assert_eq!(access.namespace().as_deref(), Some("metal"));
    assert!(access.warnings().is_empty());
    let site = access.sites.get();
    let body = |text: &str| format!(r#"{{"kind":"Status","message":"{text}","reason":"Invalid"}}"#);
    let said = |text: &str| Answer::new(422, None, body(text).into_bytes(), &site.pass).said();
    assert_eq!(said("no such field"), ": no such field");
    assert_eq!(said("what is s3kr1t"), "");
    let answer = Answer::new(422, None, body("s3kr1t").into_bytes(), &site.pass);
    let seen = format!("{access:?} {answer:?} {:?} {:?}", room.source(), site.pass.bearer);
    assert!(!seen.contains("s3kr1t"), "{seen}");
    assert_eq!((answer.wish, answer.reason().as_str()), (None, "Invalid"));
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
    let post = Ask::write(&Method::POST, "/apis/g/v1/x", "application/json", b"{}");
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

/// Unlike after a 401, the former token is not tried before. The broken variant reads the file once.
#[tokio::test]
async fn a_token_file_that_changes_is_used_at_the_next_request() {
    let (server, room) = (Server::plain("first"), Room::new());
    room.put("token", "first", 0o600);
    room.config_of(&server, "tokenFile: token");
    let access = room.access();
    assert_eq!(word(&access).await, "200");
    room.put("token", "second", 0o600);
    server.takes("second");
    assert_eq!(word(&access).await, "200");
    assert_eq!(server.asked().len(), 2);
    room.put("token", "", 0o600);
    assert_eq!(word(&access).await, "200", "what cannot be used leaves the former one");
}

#[tokio::test]
async fn a_kubeconfig_that_leads_to_another_server_is_followed() {
    let (one, two, room) = (Server::plain("1"), Server::plain("2"), Room::new());
    room.config_of(&one, "token: 1");
    let access = room.access();
    assert_eq!(word(&access).await, "200");
    room.put("kubeconfig", "s3kr1t: [", 0o600);
    assert_eq!(word(&access).await, "200");
    room.config_of(&two, "token: 2");
    assert_eq!(word(&access).await, "200");
    assert_eq!((one.asked().len(), two.asked().len()), (2, 1));
    assert_eq!(access.target(), format!("http://{}", two.address));
    assert!(access.server().contains(&one.address.to_string()), "its name stays");
}

/// S1-45: the broken variant reads any file.
#[tokio::test]
async fn files_with_a_secret_are_for_their_owner_alone() {
    let (server, room) = (Server::plain(""), Room::new());
    room.config_of(&server, "token: s3kr1t");
    room.put("kubeconfig", &fs::read_to_string(room.path("kubeconfig")).unwrap(), 0o644);
    assert!(room.why().contains("others may read the secret"));
    room.put("token", "s3kr1t", 0o644);
    room.config_of(&server, "tokenFile: token");
    assert!(room.why().contains("others may read the secret"));
    room.put("token", "s3kr1t s3kr1t", 0o600);
    assert!(room.why().contains("one word of printable ASCII"));
    room.config_of(&server, "tokenFile: none");
    assert!(room.why().contains("none: it cannot be read"));
    let relative = Kubeconfig { file: "kubeconfig".into(), context: None };
    assert_eq!(Access::new(relative, TIMEOUT).unwrap_err().key, "kubeconfig");
    let named = Kubeconfig { file: room.path("kubeconfig"), context: Some("none".to_owned()) };
    assert_eq!(Access::new(named, TIMEOUT).unwrap_err().key, "context");
}

#[tokio::test]
async fn what_is_not_answered_has_its_outcome() {
    let room = Room::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    room.config(&format!("server: 'http://{}'", listener.local_addr().unwrap()), "token: t");
    let access = room.access();
    let soon = Instant::now() + Duration::from_millis(200);
    let outcome = access.send(&Ask::get("/version", &[]), soon).await.unwrap_err().outcome();
    assert_eq!(outcome.words(), ("unknown", "timeout"));
    let over = access.send(&Ask::get("/version", &[]), soon).await.unwrap_err();
    assert_eq!(over, Trouble::Late);
    drop(listener);
    assert_eq!(word(&access).await, "unreachable connect");
}

/// A CA of a test's own.
struct Ca(CertifiedIssuer<'static, KeyPair>);

impl Ca {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// A certificate for this name and its key; PEM.
    fn pair(&self, name: &str) -> (String, String) {
        let (certificate, key) = self.signed(name);
        (certificate.pem(), key.serialize_pem())
    }

    fn signed(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.0).unwrap(), key)
    }

    fn base64(text: &str) -> String {
        use base64::Engine as _;
        base64::engine::general_purpose::STANDARD.encode(text)
    }

    /// A server with a certificate for this name, which knows its clients by those of `clients`.
    fn server(&self, name: &str, clients: Option<&Ca>) -> Server {
        let (certificate, key) = self.signed(name);
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let builder = ServerConfig::builder();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(clients) => {
                let mut roots = RootCertStore::empty();
                roots.add(clients.0.der().clone()).unwrap();
                builder.with_client_cert_verifier(
                    WebPkiClientVerifier::builder(Arc::new(roots)).build().unwrap(),
                )
            }
        };
        let config = builder.with_single_cert(vec![certificate.der().clone()], key).unwrap();
        Server::with("", Some(Arc::new(config)))
    }
}

/// The CA of the kubeconfig counts alone, and the next one as soon as it stands there.
#[tokio::test]
async fn the_servers_certificate_is_of_the_named_ca() {
    let (ours, others, room) = (Ca::new("ours"), Ca::new("others"), Room::new());
    let server = ours.server("127.0.0.1", None);
    let at = format!("server: 'https://{}'", server.address);
    room.put("ca.pem", &others.0.pem(), 0o644);
    room.config(&format!("{at}, certificate-authority: ca.pem"), "token: t");
    let access = room.access();
    assert_eq!(word(&access).await, "unreachable tls-unknown-ca");
    room.put("ca.pem", &ours.0.pem(), 0o644);
    assert_eq!(word(&access).await, "200");
    room.put("ca.pem", "none", 0o644);
    assert_eq!(word(&access).await, "200");
    assert!(room.why().contains("certificate-authority holds no certificate"));
    let data = Ca::base64(&ours.0.pem());
    room.config(
        &format!("{at}, certificate-authority: none, certificate-authority-data: {data}"),
        "token: t",
    );
    assert_eq!(word(&room.access()).await, "200");
}

#[tokio::test]
async fn the_servers_name_is_the_named_one() {
    let (ca, room) = (Ca::new("ours"), Room::new());
    let server = ca.server("kubernetes.default", None);
    let at = format!("server: 'https://{}', certificate-authority: ca.pem", server.address);
    room.put("ca.pem", &ca.0.pem(), 0o644);
    room.config(&at, "token: t");
    assert_eq!(word(&room.access()).await, "unreachable tls-name");
    room.config(&format!("{at}, tls-server-name: kubernetes.default"), "token: t");
    assert_eq!(word(&room.access()).await, "200");
    let asked = server.asked().concat();
    assert!(asked.contains(&format!("host: {}\r\n", server.address)), "{asked}");
}

/// It is possible, as elsewhere in Kubernetes, and each start says what it means.
#[tokio::test]
async fn a_certificate_that_is_not_checked_is_warned_of() {
    let (ca, room) = (Ca::new("ours"), Room::new());
    let server = ca.server("other", None);
    room.config(&format!("server: 'https://{}', insecure-skip-tls-verify: true", server.address), "token: t");
    let access = room.access();
    assert_eq!(word(&access).await, "200");
    let [warning] = access.warnings().try_into().unwrap();
    assert!(warning.starts_with("insecure-skip-tls-verify: anybody on the network path"), "{warning}");
}

#[tokio::test]
async fn a_server_knows_us_by_our_certificate() {
    let (ca, clients, strangers, room) =
        (Ca::new("ours"), Ca::new("clients"), Ca::new("strangers"), Room::new());
    let server = ca.server("127.0.0.1", Some(&clients));
    room.put("ca.pem", &ca.0.pem(), 0o644);
    let at = format!("server: 'https://{}', certificate-authority: ca.pem", server.address);
    let put = |(certificate, key): &(String, String)| {
        room.put("c.pem", certificate, 0o644);
        room.put("k.pem", key, 0o600);
    };
    room.config(&at, "token: t");
    assert_eq!(word(&room.access()).await, "refused tls-client-certificate");

    room.config(&at, "client-certificate: c.pem, client-key: k.pem");
    put(&strangers.pair("us"));
    let access = room.access();
    assert_eq!(word(&access).await, "refused tls-client-certificate");
    put(&clients.pair("us"));
    assert_eq!(word(&access).await, "200", "files that were replaced are used");
    let asked = server.asked().concat();
    assert!(!asked.contains("authorization"), "{asked}");

    let (certificate, key) = clients.pair("us");
    room.put("k.pem", &key, 0o600);
    assert!(room.why().contains("client-key does not hold the key"));
    room.put("k.pem", &key, 0o640);
    assert!(room.why().contains("others may read the secret"));
    room.put("k.pem", "s3kr1t", 0o600);
    assert!(room.why().contains("client-key holds no private key"));
    let (certificate, key) = (Ca::base64(&certificate), Ca::base64(&key));
    room.config(&at, &format!("client-certificate-data: {certificate}, client-key-data: {key}"));
    assert_eq!(word(&room.access()).await, "200");
}
