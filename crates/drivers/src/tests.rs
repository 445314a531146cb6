//! The contract of all drivers, against an endpoint with given answers: the outcome of each status, and of each missing
//! answer. A driver without a row in [`ROWS`] fails by its name.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use marks::host::HostName;
use marks::id::MarkId;
use marks::mark::Mark;
use marks::time::Timestamp;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

use super::*;
use crate::web::expected;

/// The words of an outcome and of its failure.
type Words = (&'static str, &'static str);

/// What one driver needs of the endpoint, and its outcomes. `ID` stands for the mark's id.
struct Row {
    word: &'static str,
    /// The keys of its route, with `URL`, `CLOUD` and `DIR/token` for the address and the token; `None` for a driver
    /// without HTTP.
    route: Option<&'static str>,
    /// The answers to its questions: a part of the request's first line, and the body.
    replies: &'static [(&'static str, &'static str)],
    /// The answer that acknowledges.
    taken: (u16, &'static str),
    /// The outcome of half that answer's body.
    half: Words,
    /// Its differences from the table.
    deltas: fn(u16) -> Option<Words>,
}

const LOST: Words = ("unknown", "protocol");
const TAKEN: Words = ("acknowledged", "");
const SERVER: &str = r#"{"server": {"OS-EXT-SRV-ATTR:host": "compute1.my.cloud.com"}}"#;

const NODE: &str = r#"{"metadata": {"name": "compute1.my.cloud.com", "uid": "ID", "resourceVersion": "1"}}"#;
const TAINTED: &str = r#"{"metadata": {"uid": "ID", "annotations": {"nova-host-alerter/mark": "ID"}},
    "spec": {"taints": [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]}}"#;

static ROWS: &[Row] = &[
    Row {
        word: "http",
        route: Some("url = \"URL\"\nbearer-file = \"DIR/token\""),
        replies: &[],
        taken: (202, ""),
        half: TAKEN,
        deltas: plain,
    },
    // Its answers are exit codes: `exec/answer.rs` has their table.
    Row { word: "exec", route: None, replies: &[], taken: (0, ""), half: TAKEN, deltas: |_| None },
    Row {
        word: "masakari",
        route: Some("CLOUD"),
        replies: &[],
        taken: (
            202,
            r#"{"notification": {"notification_uuid": "ID", "status": "new", "generated_time": "2026-07-21T02:13:21Z",
            "payload": {"event": "STOPPED", "cluster_status": "OFFLINE", "host_status": "NORMAL"}}}"#,
        ),
        half: LOST,
        deltas: |_| None,
    },
    Row {
        word: "mistral",
        route: Some("CLOUD\nworkflow = \"w\""),
        replies: &[],
        taken: (201, r#"{"id": "ID", "state": "RUNNING"}"#),
        half: LOST,
        deltas: |_| None,
    },
    Row {
        word: "nova",
        route: Some("CLOUD"),
        replies: &[(
            "GET /v1/os-services",
            r#"{"services": [{"id": "ID", "host": "compute1.my.cloud.com", "binary": "nova-compute", "status": "enabled", "forced_down": false}]}"#,
        )],
        taken: (
            200,
            r#"{"service": {"id": "ID", "host": "compute1.my.cloud.com", "binary": "nova-compute", "status": "enabled", "forced_down": true}}"#,
        ),
        half: LOST,
        deltas: |status| (status == 404).then_some(("retry", "conflict")),
    },
    Row {
        word: "heat",
        route: Some("CLOUD\nresources = { compute1 = [\"web/ID/server\"] }"),
        replies: &[
            (
                "GET /v1/stacks/",
                r#"{"resource": {"physical_resource_id": "ID", "resource_status": "CREATE_COMPLETE", "resource_type": "OS::Nova::Server"}}"#,
            ),
            ("GET /v1/servers/", SERVER),
        ],
        taken: (200, "null"),
        half: TAKEN,
        deltas: |status| matches!(status, 200..=299).then_some(TAKEN),
    },
    Row {
        word: "senlin",
        route: Some("CLOUD\noperation = \"rebuild\"\nnodes = { compute1 = [\"ID\"] }"),
        replies: &[
            ("GET /v1/nodes/", r#"{"node": {"status": "ACTIVE", "physical_id": "ID"}}"#),
            ("GET /v1/actions", r#"{"actions": []}"#),
            ("GET /v1/servers/", SERVER),
        ],
        taken: (202, r#"{"action": "ID"}"#),
        half: TAKEN,
        deltas: |status| (status == 202).then_some(TAKEN),
    },
    Row {
        word: "kubernetes",
        route: Some("mode = \"taint\"\nkubeconfig = \"DIR/kubeconfig\""),
        replies: &[
            ("GET /api/v1/nodes/", NODE),
            ("GET /apis/coordination.k8s.io/", r#"{"spec": {}}"#),
            ("POST /apis/authorization.k8s.io/", r#"{"status": {"allowed": true}}"#),
        ],
        taken: (200, TAINTED),
        half: LOST,
        deltas: |status| matches!(status, 404 | 410).then_some(("retry", "conflict")),
    },
];

/// Where an endpoint over plain HTTP differs from the table.
fn plain(status: u16) -> Option<Words> {
    match status {
        200..=299 => Some(TAKEN),
        403 | 407 => Some(("refused", "credentials")),
        411 | 431 => Some(("rejected", "rejected")),
        413 => Some(("rejected", "body-too-large")),
        500 | 502 | 504 => Some(("retry", "unavailable")),
        _ => None,
    }
}

const ID: &str = "0193b3a4-5c6d-7e8f-9a0b-1c2d3e4f5a6b";
const SECRET: &str = "s3kr1t";
/// All statuses in use, and their neighbours.
const STATUSES: [std::ops::RangeInclusive<u16>; 5] = [200..=208, 300..=308, 400..=431, 499..=511, 519..=530];

/// What the endpoint does with a message.
#[derive(Clone, Debug)]
enum Way {
    /// It answers this, and closes.
    Say(String),
    /// The same to its questions too.
    SayToAll(String),
    Hang,
}

/// Keystone on one address and the service on another, with the files that name both.
struct Scene {
    row: &'static Row,
    dir: TempDir,
    way: Arc<Mutex<Way>>,
    endpoint: AbortHandle,
}

impl Scene {
    async fn of(row: &'static Row) -> Self {
        let (keystone, endpoint) = (listener().await, listener().await);
        let [auth, url] = [&keystone, &endpoint].map(|end| format!("http://{}", end.local_addr().unwrap()));
        let dir = tempfile::tempdir().unwrap();
        let cloud = format!(
            "clouds:\n  ops:\n    auth: {{auth_url: '{auth}/v3', username: a, password: {SECRET}, project_name: p, user_domain_id: d, project_domain_id: d}}\n"
        );
        let route = format!("[{}.a]\n{}", row.word, row.route.unwrap_or_default());
        let route = route.replace("URL", &url).replace("CLOUD", "clouds-file = \"DIR/clouds.yaml\"");
        let route = route.replace("ID", ID).replace("DIR", dir.path().to_str().unwrap());
        let kubeconfig = format!(
            "current-context: c\ncontexts: [{{name: c, context: {{cluster: k, user: u}}}}]\nclusters: [{{name: k, cluster: {{server: '{url}'}}}}]\nusers: [{{name: u, user: {{token: {SECRET}}}}}]\n"
        );
        let files = [
            ("clouds.yaml", &cloud),
            ("kubeconfig", &kubeconfig),
            ("token", &SECRET.to_owned()),
            ("a.toml", &route),
        ];
        for (name, text) in files {
            fs::write(dir.path().join(name), text).unwrap();
            fs::set_permissions(dir.path().join(name), fs::Permissions::from_mode(0o600)).unwrap();
        }
        let way = Arc::new(Mutex::new(Way::Hang));
        serve(keystone, row, Arc::new(Mutex::new(Way::Say(token(&url)))));
        let endpoint = serve(endpoint, row, Arc::clone(&way));
        Self { row, dir, way, endpoint }
    }

    /// The driver with a token, and with these additional keys.
    async fn driver(&self, more: &str) -> Arc<dyn Driver> {
        let file = self.dir.path().join("a.toml");
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, format!("{text}\n{more}")).unwrap();
        let kind = KINDS.iter().find(|kind| kind.word == self.row.word).unwrap();
        let read = site::read(&file, |mut root| {
            let mut all = root.section(kind.word);
            (kind.configure)(&mut all.named_section("a"))
        });
        fs::write(&file, text).unwrap();
        let driver = read.unwrap().0.unwrap();
        // It has its token then, before anything is timed.
        *self.way.lock().unwrap_or_else(PoisonError::into_inner) = Way::Say(answer(200, "", "null"));
        driver.check(&[]).await;
        driver
    }

    async fn send(&self, driver: &Arc<dyn Driver>, way: Way) -> Outcome {
        *self.way.lock().unwrap_or_else(PoisonError::into_inner) = way;
        let (step, id, body) = (Step::Failure, mark().id, driver.body(&mark()));
        let message = Message { step, id: &id, body: &body, ambiguous: 0, attempts: 1, is_released: false };
        let outcome = driver.deliver(message).await;
        let test = driver.test_body(&id, Timestamp(0));
        let seen = format!("{driver:?} {outcome:?} {}", String::from_utf8([body, test].concat()).unwrap());
        assert!(!seen.contains(SECRET), "{seen}");
        outcome
    }
}

fn mark() -> Mark {
    let fqdn = HostName::parse("compute1.my.cloud.com").unwrap();
    Mark { id: MarkId::parse(ID).unwrap(), fqdn, ..event::tests::mark() }
}

async fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

/// A whole answer; its header has the body's length.
fn answer(status: u16, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status} Test\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
}

fn token(url: &str) -> String {
    let types = ["instance-ha", "workflow", "compute", "orchestration", "rca", "clustering"];
    let entry = |kind| serde_json::json!({"type": kind, "endpoints": [{"interface": "public", "region": "r", "url": format!("{url}/v1")}]});
    let body = serde_json::json!({"token": {"issued_at": "2026-07-21T00:00:00Z", "expires_at": "2026-07-22T00:00:00Z",
        "catalog": types.map(entry)}});
    answer(201, "X-Subject-Token: t0ken\r\n", &body.to_string())
}

fn serve(listener: TcpListener, row: &'static Row, way: Arc<Mutex<Way>>) -> AbortHandle {
    let serving = tokio::spawn(async move {
        while let Ok((peer, _)) = listener.accept().await {
            let way = way.lock().unwrap_or_else(PoisonError::into_inner).clone();
            tokio::spawn(one(peer, row, way));
        }
    });
    serving.abort_handle()
}

/// One exchange: a question gets the row's answer, and all else gets `way`.
async fn one(mut peer: TcpStream, row: &'static Row, way: Way) -> Option<()> {
    let asked = request(&mut peer).await?;
    let reply = row.replies.iter().find(|(begin, _)| asked.starts_with(begin));
    match (reply, way) {
        (_, Way::SayToAll(text)) => peer.write_all(text.as_bytes()).await.ok(),
        (Some((_, body)), _) => {
            peer.write_all(answer(200, "", &body.replace("ID", ID)).as_bytes()).await.ok()
        }
        (None, Way::Say(text)) => peer.write_all(text.as_bytes()).await.ok(),
        (None, Way::Hang) => std::future::pending().await,
    }
}

/// The head of a request, once its body has come too.
async fn request(peer: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.to_lowercase().split_once("content-length: ").map(|(_, rest)| rest.to_owned());
            let wanted = length.and_then(|rest| rest.lines().next()?.parse().ok()).unwrap_or(0);
            if body.len() >= wanted {
                return Some(head.to_owned());
            }
        }
        (peer.read_buf(&mut bytes).await.ok()? > 0).then_some(())?;
    }
}

/// S1-17, S1-33: drivers come from one list, their words are unique, and each has its row here.
#[test]
fn contract_every_driver_has_a_word_and_a_row_of_its_own() {
    let words: Vec<&str> = KINDS.iter().map(|kind| kind.word).collect();
    let rows: Vec<&str> = ROWS.iter().map(|row| row.word).collect();
    assert_eq!(rows, words, "each driver of KINDS has one row in crates/drivers/src/tests.rs, in order");
    let mut single = words.clone();
    single.sort_unstable();
    single.dedup();
    assert_eq!(single.len(), words.len());
}

/// The answers one after the other, the rows beside each other.
async fn each<F: Future<Output = ()> + Send + 'static>(test: fn(&'static Row) -> F) {
    let rows = ROWS.iter().filter(|row| row.route.is_some());
    rows.map(test).collect::<JoinSet<()>>().join_all().await;
}

/// S1-16: no status acknowledges by itself if the body matters. The broken variant is an outcome that the row does not
/// name.
#[tokio::test]
async fn contract_every_status_means_what_the_table_and_the_rows_say() {
    each(answered).await;
}

async fn answered(row: &'static Row) {
    let scene = Scene::of(row).await;
    let driver = scene.driver("").await;
    for status in STATUSES.into_iter().flatten() {
        let wanted = (row.deltas)(status).unwrap_or_else(|| expected(status));
        let outcome = scene.send(&driver, Way::Say(answer(status, "", "null"))).await;
        assert_eq!(outcome.words(), wanted, "{} to {status}", row.word);
    }
    let whole = answer(row.taken.0, "", &row.taken.1.replace("ID", ID));
    assert_eq!(scene.send(&driver, Way::Say(whole)).await.words(), TAKEN, "{}", row.word);
    for status in [429, 503] {
        let outcome = scene.send(&driver, Way::Say(answer(status, "Retry-After: 9\r\n", ""))).await;
        let after = outcome.failure().and_then(|failure| failure.after);
        assert_eq!(after, Some(Duration::from_secs(9)), "{} to {status}", row.word);
    }
}

/// A proxy's sign-in page acknowledges nothing: neither where it answers everything, nor where it comes with the status, or
/// even in place of the body, of the answer that acknowledges. The broken variant goes by the status alone, as Heat's and
/// Senlin's did.
#[tokio::test]
async fn contract_a_page_for_people_acknowledges_nothing() {
    each(paged).await;
}

async fn paged(row: &'static Row) {
    let scene = Scene::of(row).await;
    let driver = scene.driver("").await;
    let page = "<!DOCTYPE html><html><form action=\"/login\">Sign in</form></html>";
    let html = "Content-Type: text/html; charset=utf-8\r\n";
    for (status, headers) in [(200, html), (row.taken.0, html), (row.taken.0, "")] {
        let said = answer(status, headers, page);
        for way in [Way::Say(said.clone()), Way::SayToAll(said)] {
            let outcome = scene.send(&driver, way).await;
            let word = outcome.failure().map(|failure| failure.kind);
            assert_eq!(word, Some("protocol"), "{} to {status} {headers}: {outcome:?}", row.word);
        }
    }
}

/// What was never sent is distinguished from what may have arrived.
#[tokio::test]
async fn contract_an_answer_that_does_not_come_means_the_same_everywhere() {
    each(unanswered).await;
}

async fn unanswered(row: &'static Row) {
    let scene = Scene::of(row).await;
    let driver = scene.driver("").await;
    for text in ["", "HTTP/1.1 20", "HTTP/1.1 200 OK\r\nContent-Le"] {
        let outcome = scene.send(&driver, Way::Say(text.to_owned())).await;
        assert_eq!(outcome.words(), ("unknown", "closed"), "{} to {text}", row.word);
    }
    let (status, body) = row.taken;
    let half = format!("HTTP/1.1 {status} OK\r\nContent-Length: 9999\r\n\r\n{}", &body[..body.len() / 2]);
    for (text, wanted) in [("SSH-2.0-x\r\n\r\n", LOST), (&half, row.half)] {
        let outcome = scene.send(&driver, Way::Say(text.to_owned())).await;
        assert_eq!(outcome.words(), wanted, "{} to {text}", row.word);
    }
    // Long enough for every row to have sent its message, also on a machine that has more to do: all of them wait at once.
    let impatient = scene.driver("timeout = 5").await;
    assert_eq!(scene.send(&impatient, Way::Hang).await.words(), ("unknown", "timeout"), "{}", row.word);
    scene.endpoint.abort();
    while !scene.endpoint.is_finished() {
        tokio::task::yield_now().await;
    }
    assert_eq!(scene.send(&driver, Way::Hang).await.words(), ("unreachable", "connect"), "{}", row.word);
}
