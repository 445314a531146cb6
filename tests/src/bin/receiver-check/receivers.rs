//! The check against a receiver that does everything right, and against others with one fault each.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Parser as _;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use samples::left_out::lacks;
use serde_json::{Value, json};
use standardwebhooks::Webhook;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;

use crate::{Args, checked as verdicts};

/// So long an absent-minded receiver waits between reading what it knows and writing it down, unless the same comes again
/// before; longer than the kit waits where it does not want the answer.
const ABSENT: Duration = Duration::from_millis(700);
/// So many receivers are checked at once: all of them on one thread keep no time limit on a busy machine.
const AT_ONCE: usize = 4;
/// So long after its answer a receiver acts that acts late.
const LATE: Duration = Duration::from_millis(500);
const TOKEN: &str = "t0ken-of-the-check";

/// What is wrong with a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    ActsOnEachRepetition,
    ActsLaterOnEachRepetition,
    RefusesRepetitions,
    ActsTwiceOnTwoAtOnce,
    KnowsHostsOnly,
    KnowsIdsOnly,
    TakesReturnsForFailures,
    TakesLoneReturns,
    TakesTestsForFailures,
    TakesEveryTypeForAFailure,
    TakesAnyVersion,
    ActsLaterOnAnyVersion,
    RejectsLaterVersions,
    AcceptsGarbage,
    RejectsUnknownFields,
    RejectsUnknownFieldsOfThePayload,
    RejectsUpperCase,
    TakesWrongSignatures,
    TakesOldSignatures,
    TakesEarlySignatures,
    TakesOneSignatureOnly,
    TakesUnsigned,
    TakesNoToken,
    TakesAnyToken,
    RecordsBeforeItVerifies,
    ForgetsWithTheReturn,
    ActsOnLateFailures,
    KnowsTheLastTwentyOnly,
    KnowsBodiesOnly,
    RejectsOldFailures,
    RejectsLongMessages,
    Redirects,
    IsUnavailable,
    IsSilent,
}

use Fault::{
    AcceptsGarbage, ActsLaterOnAnyVersion, ActsLaterOnEachRepetition, ActsOnEachRepetition,
    ActsOnLateFailures, ActsTwiceOnTwoAtOnce, ForgetsWithTheReturn, IsSilent, IsUnavailable, KnowsBodiesOnly,
    KnowsHostsOnly, KnowsIdsOnly, KnowsTheLastTwentyOnly, RecordsBeforeItVerifies, Redirects,
    RefusesRepetitions, RejectsLaterVersions, RejectsLongMessages, RejectsOldFailures, RejectsUnknownFields,
    RejectsUnknownFieldsOfThePayload, RejectsUpperCase, TakesAnyToken, TakesAnyVersion, TakesEarlySignatures,
    TakesEveryTypeForAFailure, TakesLoneReturns, TakesNoToken, TakesOldSignatures, TakesOneSignatureOnly,
    TakesReturnsForFailures, TakesTestsForFailures, TakesUnsigned, TakesWrongSignatures,
};

/// A recovery controller of a test.
struct Receiver {
    fault: Option<Fault>,
    /// It acts so long after its answer.
    delay: Duration,
    /// What it knows already, oldest first.
    known: Mutex<Vec<String>>,
    /// The ids of failures that it has accepted.
    failures: Mutex<HashSet<String>>,
    /// The ids of returns that came without their failures.
    lone: Mutex<HashSet<String>>,
    /// What it has read, and not written down yet.
    read: Mutex<Vec<String>>,
    acted: Arc<Mutex<Vec<Value>>>,
    /// So many requests it cannot take yet.
    busy: Mutex<u32>,
}

impl Receiver {
    fn with(fault: Option<Fault>) -> Self {
        Self {
            fault,
            delay: Duration::ZERO,
            known: Mutex::default(),
            failures: Mutex::default(),
            lone: Mutex::default(),
            read: Mutex::default(),
            acted: Arc::default(),
            busy: Mutex::new(1),
        }
    }

    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    /// The status line, and what follows it.
    async fn answer(&self, request: &[u8]) -> (String, String) {
        let text = String::from_utf8_lossy(request).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        if head.starts_with("GET ") {
            return ("200 OK".to_owned(), Value::from(self.acted.lock().unwrap().clone()).to_string());
        }
        let status = self.status(&headers(head), body).await;
        (status.to_owned(), String::new())
    }

    async fn status(&self, headers: &HeaderMap, body: &str) -> &'static str {
        if self.has(IsUnavailable) || self.is_busy() {
            return "503 Service Unavailable\r\nRetry-After: 0";
        }
        if self.has(Redirects) {
            return "307 Temporary Redirect\r\nLocation: /elsewhere";
        }
        if !self.is_of_a_friend(headers, body) {
            if self.has(RecordsBeforeItVerifies) {
                let event: Value = serde_json::from_str(body).unwrap();
                let key = [&event["id"], &event["event_type"]].map(|text| text.as_str().unwrap()).join(" ");
                self.knew(key);
            }
            return "401 Unauthorized";
        }
        if self.has(RejectsLongMessages) && body.len() > 2048 {
            return "413 Content Too Large";
        }
        match serde_json::from_str(body) {
            Ok(event) => self.take(&event).await,
            Err(_) if self.has(AcceptsGarbage) => "200 OK",
            Err(_) => "400 Bad Request",
        }
    }

    /// A right receiver may be busy too.
    fn is_busy(&self) -> bool {
        let mut busy = self.busy.lock().unwrap();
        std::mem::replace(&mut *busy, 0) > 0
    }

    fn is_of_a_friend(&self, headers: &HeaderMap, body: &str) -> bool {
        let of = |name: &str| headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default();
        let token = of("authorization");
        let has_token = match self.fault {
            Some(TakesNoToken) if token.is_empty() => true,
            Some(TakesAnyToken) => token.starts_with("Bearer "),
            _ => token == format!("Bearer {TOKEN}"),
        };
        let hook = Webhook::new(&signing_secret(7)).unwrap();
        let signature = of("webhook-signature");
        let at = of("webhook-timestamp").parse().unwrap_or_default();
        let right = || hook.sign(of("webhook-id"), at, body.as_bytes()).unwrap();
        let has_right = || signature.split(' ').any(|one| one == right());
        let now = marks::time::Timestamp::now().seconds();
        let is_signed = match self.fault {
            Some(TakesUnsigned) if signature.is_empty() => true,
            Some(TakesWrongSignatures) => !signature.is_empty() && hook_is_fresh(at),
            Some(TakesOldSignatures) => has_right() && at < now + 300,
            Some(TakesEarlySignatures) => has_right() && at > now - 300,
            Some(TakesOneSignatureOnly) => hook_is_fresh(at) && signature == right(),
            _ => hook.verify(body.as_bytes(), headers).is_ok(),
        };
        has_token && is_signed
    }

    async fn take(&self, event: &Value) -> &'static str {
        let text = |place: &str| event.pointer(place).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (id, kind, host) = (text("/id"), text("/event_type"), text("/payload/hostname"));
        let act = |meaning: &str| json!({"id": id, "event_type": meaning, "hostname": host.to_lowercase()});
        if self.rejects(event, &text("/version"), &host) {
            if self.has(ActsLaterOnAnyVersion) {
                self.act(act(&kind), LATE);
            }
            return "422 Unprocessable Content";
        }
        let Some(meaning) = self.meaning(&kind, &id) else { return "200 OK" };
        let key = match self.fault {
            Some(KnowsHostsOnly) => format!("{host} {kind}"),
            Some(KnowsIdsOnly) => id.clone(),
            Some(KnowsBodiesOnly) => event.to_string(),
            _ => format!("{id} {kind}"),
        };
        if self.is_known(key).await && !self.has(ActsOnEachRepetition) {
            if self.has(ActsLaterOnEachRepetition) {
                self.act(act(meaning), LATE);
            }
            return if self.has(RefusesRepetitions) { "409 Conflict" } else { "200 OK" };
        }
        if self.has(ForgetsWithTheReturn) && kind == "host returned" {
            self.known.lock().unwrap().retain(|known| !known.starts_with(&id));
        }
        self.failures.lock().unwrap().insert(id.clone());
        self.act(act(meaning), self.delay);
        "202 Accepted"
    }

    /// Now, or so long after the answer.
    fn act(&self, act: Value, delay: Duration) {
        let acted = Arc::clone(&self.acted);
        if delay.is_zero() {
            return acted.lock().unwrap().push(act);
        }
        tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            acted.lock().unwrap().push(act);
        });
    }

    fn rejects(&self, event: &Value, version: &str, host: &str) -> bool {
        let is_strange = |fields: &Value, known: &[&str]| {
            fields.as_object().unwrap().keys().any(|key| !known.contains(&key.as_str()))
        };
        let top = ["id", "event_type", "version", "generated_time", "payload"];
        let payload = ["hostname", "on_shared_storage", "failure_time"];
        match self.fault {
            Some(TakesAnyVersion) => false,
            Some(RejectsLaterVersions) => version != "1.0",
            Some(RejectsUnknownFields) if is_strange(event, &top) => true,
            Some(RejectsUnknownFieldsOfThePayload) if is_strange(&event["payload"], &payload) => true,
            Some(RejectsUpperCase) if host != host.to_lowercase() => true,
            Some(RejectsOldFailures) if is_old(&event["payload"]["failure_time"]) => true,
            _ => !version.starts_with("1."),
        }
    }

    /// What it does for a type; nothing for one that it does not know, and for the return of what it does not know.
    fn meaning<'k>(&self, kind: &'k str, id: &str) -> Option<&'k str> {
        let is_lone = || {
            let is_lone = !self.failures.lock().unwrap().contains(id);
            if is_lone {
                self.lone.lock().unwrap().insert(id.to_owned());
            }
            is_lone
        };
        let is_late = || self.lone.lock().unwrap().contains(id) && !self.has(ActsOnLateFailures);
        match kind {
            "host returned" if !self.has(TakesLoneReturns) && is_lone() => None,
            "host returned" if self.has(TakesReturnsForFailures) => Some("host failure"),
            "host failure" if is_late() => None,
            "host failure" | "host returned" => Some(kind),
            "test" if self.has(TakesTestsForFailures) => Some("host failure"),
            "test" => None,
            _ if self.has(TakesEveryTypeForAFailure) => Some("host failure"),
            _ => None,
        }
    }

    async fn is_known(&self, key: String) -> bool {
        if self.has(ActsTwiceOnTwoAtOnce) {
            let is_known = self.known.lock().unwrap().contains(&key);
            self.read.lock().unwrap().push(key.clone());
            let came_again = || self.read.lock().unwrap().iter().filter(|read| **read == key).count() > 1;
            let begun = Instant::now();
            while !is_known && !came_again() && begun.elapsed() < ABSENT {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            self.knew(key);
            return is_known;
        }
        self.knew(key)
    }

    /// Whether it knew this already; now it does.
    fn knew(&self, key: String) -> bool {
        let mut known = self.known.lock().unwrap();
        let is_known = known.contains(&key);
        if !is_known {
            known.push(key);
        }
        if self.has(KnowsTheLastTwentyOnly) && known.len() > 20 {
            known.remove(0);
        }
        is_known
    }

    async fn serve(self: Arc<Self>, mut peer: TcpStream) {
        let request = request(&mut peer).await;
        if request.is_empty() || self.has(IsSilent) && request.starts_with(b"POST") {
            let _until_the_kit_has_gone = peer.read(&mut [0]).await;
            return;
        }
        let (status, body) = self.answer(&request).await;
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let _kit_may_have_gone = peer.write_all(answer.as_bytes()).await;
    }

    /// Listens until the test ends.
    async fn listening(self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, receiver) = (listener.local_addr().unwrap(), Arc::new(self));
        tokio::spawn(async move {
            while let Ok((peer, _)) = listener.accept().await {
                tokio::spawn(Arc::clone(&receiver).serve(peer));
            }
        });
        address
    }
}

/// A request with its body; nothing where none comes.
async fn request(peer: &mut TcpStream) -> Vec<u8> {
    let mut request = Vec::new();
    let is_whole = |request: &[u8]| {
        let text = String::from_utf8_lossy(request).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
        let head = head.to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        body.len() >= length.unwrap_or(0)
    };
    while !is_whole(&request) && peer.read_buf(&mut request).await.is_ok_and(|count| count > 0) {}
    request
}

/// A secret of the signature scheme.
fn signing_secret(byte: u8) -> String {
    format!("whsec_{}", STANDARD.encode([byte; 32]))
}

/// A directory with the secret and the token, which only their owner can read.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        let all = Self(tempfile::tempdir().unwrap());
        for (name, text) in [("secret", signing_secret(7)), ("token", TOKEN.to_owned())] {
            fs::write(all.path(name), text).unwrap();
            fs::set_permissions(all.path(name), fs::Permissions::from_mode(0o600)).unwrap();
        }
        all
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }
}

/// Whether a time of an event is longer ago than ten minutes.
fn is_old(time: &Value) -> bool {
    time.as_i64().is_some_and(|at| at < marks::time::Timestamp::now().seconds() - 600)
}

/// Whether a time is now, within five minutes.
fn hook_is_fresh(at: i64) -> bool {
    (marks::time::Timestamp::now().seconds() - at).abs() < 300
}

fn headers(head: &str) -> HeaderMap {
    let fields = head.lines().skip(1).map(|line| line.split_once(": ").unwrap());
    let field = |(name, value): (&str, &str)| {
        (HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap())
    };
    fields.map(field).collect()
}

/// The exit code, and what was printed as JSON.
async fn run(words: impl Iterator<Item = String>) -> (u8, Value) {
    let Ok(args) = Args::try_parse_from(["receiver-check".to_owned()].into_iter().chain(words)) else {
        return (2, Value::Null);
    };
    match verdicts(&args).await {
        Ok(found) => (u8::from(found.wrong > 0), serde_json::to_value(&found).unwrap()),
        Err((code, why)) => (code, why.into()),
    }
}

async fn checked(fault: Option<Fault>, options: &[&str]) -> (u8, Value) {
    checked_of(Receiver::with(fault), options).await
}

async fn checked_of(receiver: Receiver, options: &[&str]) -> (u8, Value) {
    let (address, files) = (receiver.listening().await, Files::new());
    let filled = |word: &&str| match *word {
        "SECRET" => files.path("secret"),
        "TOKEN" => files.path("token"),
        "EVENTS" => format!("http://{address}/acted"),
        other => other.to_owned(),
    };
    let url = format!("http://{address}/v1/host-failures");
    run([url].into_iter().chain(options.iter().map(filled))).await
}

/// A patience that is no longer than the kit's quiet time ends that too.
const ALL: [&str; 10] = [
    "--secret-file",
    "SECRET",
    "--bearer-file",
    "TOKEN",
    "--events",
    "EVENTS",
    "--timeout",
    "5",
    "--patience",
    "2",
];
/// The same with time for what a receiver does after its answers.
const PATIENT: [&str; 10] = {
    let mut all = ALL;
    all[9] = "20";
    all
};

/// The checks that repeat a message.
const OF_REPETITIONS: [&str; 7] =
    ["duplicate", "at-once", "lost-answer", "many", "late-repetition", "returned", "extension"];

/// The checks with this verdict in one of their two halves.
fn those(found: &Value, verdict: &str) -> BTreeSet<String> {
    let has = |one: &&Value| one["answers"] == verdict || one["acted"] == verdict;
    let name = |one: &Value| one["check"].as_str().unwrap().to_owned();
    found["checks"].as_array().unwrap().iter().filter(has).map(name).collect()
}

/// S1-40, S1-44, S4-38: what the document of the standard promises a receiver that it can be, is found to be right.
#[tokio::test]
async fn a_right_receiver_passes_every_check() {
    let [epoch, rfc3339] = ["epoch", "rfc3339"].map(|format| [&ALL[..], &["--time-format", format]].concat());
    let (epoch, rfc3339) = tokio::join!(checked(None, &epoch), checked(None, &rfc3339));
    for (code, found) in [epoch, rfc3339] {
        assert!(code == 0 && found["wrong"] == 0 && found["not_checked"] == 0, "{found:#}");
        assert_eq!(those(&found, "right").len(), 25, "{found:#}");
        assert_eq!(found["checks"][0]["came"], "503, then 202", "it was busy, and asked again");
    }
}

/// The receiver that an author begins with is right too, and acts after it has answered.
#[tokio::test]
async fn the_example_is_a_right_receiver() {
    if lacks(&["python3"]) {
        return;
    }
    let files = Files::new();
    let bearer = ["--bearer-file".to_owned(), files.path("token")];
    let words = ["0".to_owned(), files.path("messages.db"), files.path("secret")];
    let mut example = Command::new(example());
    example.args(words.into_iter().chain(bearer.clone())).stdout(Stdio::piped()).kill_on_drop(true);
    let mut example = example.spawn().unwrap();
    let mut lines = BufReader::new(example.stdout.take().unwrap()).lines();
    let address = lines.next_line().await.unwrap().expect("its address");
    let words = [format!("{address}/v1/host-failures"), "--secret-file".to_owned(), files.path("secret")];
    let events = ["--events".to_owned(), format!("{address}/acted")];
    let (code, found) = run(words.into_iter().chain(events).chain(bearer)).await;
    assert_eq!((code, found["right"].as_u64()), (0, Some(25)), "{found:#}");
}

fn example() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/examples/receiver.py")
}

/// After a crash or a backlog both may be stored. The broken variant begins what was stored first: the recovery of a host that is
/// back.
#[tokio::test]
async fn the_example_begins_no_failure_whose_return_has_come() {
    if lacks(&["python3"]) {
        return;
    }
    let files = Files::new();
    let path = files.path("messages.db");
    let stored = "CREATE TABLE message (
            id TEXT, event_type TEXT, hostname TEXT, acted INTEGER, PRIMARY KEY (id, event_type));
        INSERT INTO message VALUES ('a', 'host failure', 'compute1', 0), ('a', 'host returned', 'compute1', 0),
            ('b', 'host failure', 'compute1', 0)";
    rusqlite::Connection::open(&path).unwrap().execute_batch(stored).unwrap();
    let mut command = Command::new(example());
    command.arg("0").arg(&path).stdout(Stdio::piped()).kill_on_drop(true);
    let mut example = command.spawn().unwrap();
    let mut lines = BufReader::new(example.stdout.take().unwrap()).lines();
    lines.next_line().await.unwrap().expect("its address");
    for expected in ["host returned compute1", "host failure compute1"] {
        assert_eq!(lines.next_line().await.unwrap().unwrap(), expected);
    }
}

/// The broken variants are the receivers: each has one fault, and these checks find it, and no others.
#[tokio::test]
async fn each_fault_is_found_by_its_checks() {
    let expected: [(Fault, &[&str]); 32] = [
        (ActsOnEachRepetition, &OF_REPETITIONS),
        (RefusesRepetitions, &OF_REPETITIONS),
        (ActsTwiceOnTwoAtOnce, &["at-once", "lost-answer"]),
        (KnowsHostsOnly, &["second-outage", "late-repetition"]),
        (KnowsIdsOnly, &["returned"]),
        (TakesReturnsForFailures, &["returned"]),
        (TakesLoneReturns, &["lone-return", "after-return"]),
        (ActsOnLateFailures, &["after-return"]),
        (TakesTestsForFailures, &["test"]),
        (TakesEveryTypeForAFailure, &["unknown-type"]),
        (TakesAnyVersion, &["other-version"]),
        (AcceptsGarbage, &["cut-off"]),
        (RejectsLaterVersions, &["minor-version"]),
        (RejectsUnknownFields, &["extension", "minor-version"]),
        (RejectsUnknownFieldsOfThePayload, &["minor-version"]),
        (RejectsUpperCase, &["upper-case"]),
        (TakesWrongSignatures, &["wrong-signature", "forged-first"]),
        (RecordsBeforeItVerifies, &["forged-first", "no-token"]),
        (TakesOldSignatures, &["old-signature"]),
        (TakesEarlySignatures, &["early-signature"]),
        (TakesOneSignatureOnly, &["two-signatures"]),
        (TakesUnsigned, &["no-signature"]),
        (TakesNoToken, &["no-token"]),
        (TakesAnyToken, &["no-token"]),
        (ForgetsWithTheReturn, &["returned"]),
        (KnowsTheLastTwentyOnly, &["many"]),
        (KnowsBodiesOnly, &["extension"]),
        (RejectsOldFailures, &["old"]),
        (RejectsLongMessages, &["extension"]),
        (Redirects, &["first"]),
        (IsUnavailable, &["first"]),
        (IsSilent, &["first"]),
    ];
    for few in expected.chunks(AT_ONCE) {
        let under_way: Vec<_> =
            few.iter().map(|(fault, _)| tokio::spawn(checked(Some(*fault), &ALL))).collect();
        for ((fault, checks), checking) in few.iter().zip(under_way) {
            let (code, found) = checking.await.unwrap();
            let checks: BTreeSet<String> = checks.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!((code, those(&found, "wrong")), (1, checks), "{fault:?}: {found:#}");
        }
    }
}

/// A receiver may act after it has answered. The broken variant judges as soon as all is there that must be: it passes the
/// receivers that do later what they must not.
#[tokio::test]
async fn what_a_receiver_does_after_its_answers_is_judged() {
    let right = Receiver { delay: LATE, ..Receiver::with(None) };
    let (right, repeats, newer) = tokio::join!(
        checked_of(right, &PATIENT),
        checked(Some(ActsLaterOnEachRepetition), &PATIENT),
        checked(Some(ActsLaterOnAnyVersion), &PATIENT),
    );
    assert_eq!((right.0, those(&right.1, "right").len()), (0, 25), "{:#}", right.1);
    for ((code, found), checks) in [(repeats, &OF_REPETITIONS[..]), (newer, &["other-version"])] {
        let checks: BTreeSet<String> = checks.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!((code, those(&found, "wrong")), (1, checks), "{found:#}");
    }
}
