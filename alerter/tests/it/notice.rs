//! The notice channel with real targets: a server, a program, the log; targets that fail, and daemons that end.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use alerter::base::Base;
use alerter::base::store::Store;
use alerter::config::Settings;
use alerter::delivery::endpoint::{Endpoint as Breaker, Sign};
use alerter::delivery::outbox::Outbox;
use alerter::state::Shared;
use alerter::surface::notice;
use journal::{Journal, Notified, Role, Taken};
use marks::fencing::Fencing;
use marks::host::HostName;
use marks::id::MarkId;
use marks::mark::{MarkRow, Proof, Standing};
use marks::time::Timestamp;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::unix::pipe;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::config::Site;
use crate::endpoint::{Endpoint, OK};
use crate::route::LONG;

const BUSY: &[u8] = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n";

/// A journal, and the daemon's part that sends its notices.
struct Daemon {
    shared: Arc<Shared>,
    stop: CancellationToken,
    task: JoinHandle<()>,
    journal: thread::JoinHandle<()>,
}

impl Daemon {
    fn start(journal: &Path, notices: &str) -> Self {
        let settings = settings(journal, notices);
        let (store, journal) = Store::start(Journal::open(journal, Role::Alerter).unwrap()).unwrap();
        let mut base = Base::new(settings, store, None);
        base.controller = "ctl1".into();
        let shared = Shared::new(base);
        let (shared, stop) = (Arc::new(shared), CancellationToken::new());
        let task = tokio::spawn(notice::run(Arc::clone(&shared), stop.clone()));
        let daemon = Self { shared, stop, task, journal };
        daemon.poll();
        daemon
    }

    /// The engine has polled.
    fn poll(&self) {
        self.shared.polled.notify_one();
    }

    /// A host was fenced, and nobody knows its name.
    async fn hold(&self, node: &str) -> MarkId {
        let (fencing, row) = nameless(node);
        let id = row.id;
        let make = move |journal: &mut Journal| {
            journal.append_fencing(&fencing)?;
            journal.make_mark(&row, Taken::Fencing(&fencing), &[], row.made_at)
        };
        self.shared.base.store.run(make).await.unwrap();
        self.poll();
        id
    }

    /// An operator ends a mark.
    async fn dismiss(&self, mark: MarkId) {
        let dismiss = move |journal: &mut Journal| journal.dismiss(mark, "enough", "alice", Timestamp::now());
        assert!(self.shared.base.store.run(dismiss).await.unwrap());
        self.poll();
    }

    /// Waits until the journal has so many rows of what the target was sent, and nothing is under way.
    async fn until_kept(&self, count: usize) {
        let is_sure = |row: &Notified| !row.about.contains("perhaps");
        let kept = || self.shared.base.store.run(|journal| journal.notices_sent("oncall"));
        loop {
            let rows = kept().await.unwrap().sound;
            if rows.len() == count && rows.iter().all(is_sure) {
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    /// The stop, which waits for nobody.
    async fn end(self) {
        self.stop.cancel();
        tokio::time::timeout(LONG, self.task).await.expect("it gives up what is under way").unwrap();
        drop(self.shared);
        self.journal.join().unwrap();
    }
}

fn settings(journal: &Path, notices: &str) -> Settings {
    let store = format!("[store]\npath = \"{}\"\nregister = \"none\"\n", journal.display());
    let route = "[http.recovery]\nurl = \"http://127.0.0.1:9/\"\n";
    Site::new(&format!("{store}{route}{notices}")).settings()
}

fn nameless(node: &str) -> (Fencing, MarkRow) {
    let fencing = samples::fencing(node, Timestamp::now());
    let row = MarkRow { fqdn: None, standing: Standing::Proven(Proof::Alone), ..samples::mark(&fencing) };
    (fencing, row)
}

/// A place for a journal.
fn place() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("state/marks.db");
    (directory, journal)
}

/// A target, and how much was read of what it got.
struct Oncall {
    endpoint: Endpoint,
    read: usize,
}

impl Oncall {
    /// One that is busy so many times, and takes everything then.
    async fn busy(times: usize) -> Self {
        let endpoint = Endpoint::acting(move |mut peer| async move {
            peer.request().await;
            peer.say(if peer.number <= times { BUSY } else { OK }).await;
        });
        Self { endpoint: endpoint.await, read: 0 }
    }

    /// One that takes everything, and at these connections hangs instead of saying so.
    async fn hanging(at: [usize; 2]) -> Self {
        let endpoint = Endpoint::acting(move |mut peer| async move {
            peer.request().await;
            if at.contains(&peer.number) {
                peer.gone().await;
            } else {
                peer.say(OK).await;
            }
        });
        Self { endpoint: endpoint.await, read: 0 }
    }

    /// Waits until it has read so many requests, whatever it made of them.
    async fn until_read(&self, count: usize) {
        let read = async {
            while self.endpoint.requests().len() < count {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(LONG, read).await.expect("it is sent");
    }

    /// Its table in the configuration.
    fn table(&self) -> String {
        table(&self.endpoint)
    }

    /// Waits for the next request to its end, and gives its body.
    async fn next(&mut self) -> Value {
        tokio::time::timeout(LONG, self.endpoint.connection_ended()).await.expect("it is sent");
        let request = self.endpoint.requests().swap_remove(self.read);
        self.read += 1;
        let body = request.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
        serde_json::from_slice(&request[body..]).unwrap()
    }

    /// `raised held compute1` of the next request.
    async fn next_said(&mut self) -> String {
        said(&self.next().await)
    }
}

fn table(endpoint: &Endpoint) -> String {
    format!("[notice.oncall]\nto = \"http\"\nurl = \"http://{}/notices\"\n", endpoint.address)
}

/// `raised held compute1`
fn said(notice: &Value) -> String {
    let word = |key: &str| notice[key].as_str().unwrap_or("-").to_owned();
    format!("{} {} {}", word("state"), word("condition"), word("host"))
}

/// S1-5: once, with the same bytes until it is taken, also by a daemon that was started in between; and once its end.
#[tokio::test]
async fn a_hold_is_sent_once_and_its_end_once() {
    let (_keep, journal) = place();
    let mut oncall = Oncall::busy(1).await;
    let daemon = Daemon::start(&journal, &oncall.table());
    let first = daemon.hold("compute1").await;
    assert_eq!(oncall.next_said().await, "raised held compute1");
    let raised = oncall.next().await;
    let requests = oncall.endpoint.requests();
    assert_eq!(requests[0], requests[1], "byte for byte");
    assert_eq!((&raised["event_type"], &raised["mark"]), (&"notice".into(), &first.to_string().into()));
    assert_eq!((&raised["kind"], &raised["controller"]), (&"no-fqdn".into(), &"ctl1".into()));
    let key = format!("idempotency-key: {}\r\n", raised["id"]);
    assert!(String::from_utf8_lossy(&requests[0]).contains(&key));
    daemon.until_kept(1).await;
    daemon.end().await;

    // Were the first one sent again, it would come before the second one.
    let daemon = Daemon::start(&journal, &oncall.table());
    daemon.hold("compute2").await;
    assert_eq!(oncall.next_said().await, "raised held compute2");
    daemon.until_kept(2).await;
    daemon.end().await;
    let daemon = Daemon::start(&journal, &oncall.table());
    daemon.dismiss(first).await;
    let cleared = oncall.next().await;
    assert_eq!(said(&cleared), "cleared held compute1");
    assert_eq!((&cleared["since"], &cleared["kind"]), (&raised["since"], &raised["kind"]));
    assert_ne!(cleared["id"], raised["id"]);
    daemon.until_kept(1).await;
    daemon.hold("compute3").await;
    assert_eq!(oncall.next_said().await, "raised held compute3", "the end is sent once");
    daemon.end().await;
}

/// S1-5: a daemon that ends does not learn what arrived; the next one takes it back where it is over, and sends an end
/// again that may have come.
#[tokio::test]
async fn what_was_under_way_when_a_daemon_ended_is_taken_back() {
    let (_keep, journal) = place();
    let mut oncall = Oncall::hanging([1, 2]).await;
    let daemon = Daemon::start(&journal, &oncall.table());
    let mark = daemon.hold("compute1").await;
    oncall.until_read(1).await;
    daemon.end().await;
    let raised = oncall.next().await;
    assert_eq!(said(&raised), "raised held compute1");

    let mut by_hand = Journal::open(&journal, Role::Alerter).unwrap();
    assert!(by_hand.dismiss(mark, "enough", "alice", Timestamp::now()).unwrap());
    drop(by_hand);
    let daemon = Daemon::start(&journal, &oncall.table());
    oncall.until_read(2).await;
    daemon.end().await;
    let cleared = oncall.next().await;
    assert_eq!((said(&cleared), &cleared["since"]), ("cleared held compute1".into(), &raised["since"]));

    let daemon = Daemon::start(&journal, &oncall.table());
    assert_eq!(oncall.next().await["id"], cleared["id"], "nobody knows whether it came");
    daemon.until_kept(0).await;
    daemon.end().await;
}

/// The operator gets what is true at the time when the target accepts it.
#[tokio::test]
async fn what_has_passed_while_the_target_was_down_is_not_sent() {
    let (_keep, journal) = place();
    let mut oncall = Oncall::busy(1).await;
    let daemon = Daemon::start(&journal, &oncall.table());
    let first = daemon.hold("compute1").await;
    assert_eq!(oncall.next_said().await, "raised held compute1");
    daemon.dismiss(first).await;
    daemon.hold("compute2").await;
    // The first one is sent once more where the pause is shorter than the time between two polls.
    let mut taken = oncall.next().await;
    if said(&taken) == "raised held compute1" {
        assert_eq!(oncall.next_said().await, "cleared held compute1");
        taken = oncall.next().await;
    }
    assert_eq!(said(&taken), "raised held compute2");
    daemon.end().await;
}

/// What the engine knows of the route's endpoint.
fn place_endpoint(shared: &Shared, endpoint: Breaker) {
    shared.routes.outboxes().insert("recovery".into(), Outbox::new(endpoint));
}

/// S1-5, S4-31: a route that refuses, and its recovery; a failure that lasts.
#[tokio::test]
async fn a_route_that_refuses_is_reported_until_it_accepts() {
    let (_keep, journal) = place();
    let mut oncall = Oncall::busy(0).await;
    let notices = format!("{}[delivery]\ndegraded-after = 1\n", oncall.table());
    let daemon = Daemon::start(&journal, &notices);
    let shared = &daemon.shared;
    let mut breaker = Breaker::new(1);
    let fails = |kind| {
        shared.routes.troubles().failed(
            "recovery",
            (kind, "somebody must fix it"),
            Duration::ZERO,
            Timestamp::now(),
        )
    };
    breaker.begin();
    breaker.end(&HostName::parse("compute1").unwrap(), Sign::Refuses, None, Instant::now(), 0.5);
    assert!(breaker.is_parked());
    fails("credentials");
    place_endpoint(shared, breaker);
    daemon.poll();
    let refused = oncall.next().await;
    assert_eq!((said(&refused), &refused["route"]), ("raised refused -".into(), &"recovery".into()));
    assert_eq!(refused["kind"], "credentials");

    // It cannot be reached now: no recovery. Nothing reports the time: the poll comes by itself.
    place_endpoint(shared, Breaker::in_trouble(1, Instant::now()));
    fails("connect");
    daemon.poll();
    assert_eq!(oncall.next_said().await, "raised failing -");
    assert!(shared.routes.troubles().accepted("recovery"));
    daemon.poll();
    let ends = [oncall.next_said().await, oncall.next_said().await];
    assert_eq!(ends, ["cleared refused -", "cleared failing -"]);
    daemon.end().await;
}

/// A program as a target, and the log as another beside it.
#[tokio::test]
async fn a_program_and_the_log_get_the_same() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
    crate::warnings::before_listening();
    let _while_this_lives = tracing::subscriber::set_default(subscriber);
    let (keep, journal) = place();
    let reports = keep.path().join("reports");
    nix::unistd::mkfifo(&reports, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let pipe = pipe::OpenOptions::new().read_write(true).open_receiver(&reports).unwrap();
    let mut lines = BufReader::new(pipe).lines();
    let command = serde_json::json!(["/bin/sh", "-c", "cat > \"$1\"", "sh", reports]);
    let notices =
        format!("[notice.oncall]\nto = \"exec\"\ncommand = {command}\n[notice.syslog]\nto = \"syslog\"\n");
    let daemon = Daemon::start(&journal, &notices);
    let mark = daemon.hold("compute1").await;
    let line = tokio::time::timeout(LONG, lines.next_line()).await.unwrap().unwrap().unwrap();
    let notice: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(said(&notice["event"]), "raised held compute1");
    assert_eq!(notice["id"], notice["event"]["id"]);
    daemon.until_kept(1).await;
    daemon.dismiss(mark).await;
    let line = tokio::time::timeout(LONG, lines.next_line()).await.unwrap().unwrap().unwrap();
    let notice: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(said(&notice["event"]), "cleared held compute1");
    daemon.end().await;
    let of_mark = |level: &str| {
        log.lines().iter().filter(|line| line.contains(level) && line.contains("condition=\"held\"")).count()
    };
    assert_eq!((of_mark("WARN"), of_mark("INFO")), (1, 1), "{:?}", log.lines());
    assert!(log.lines().iter().any(|line| line.contains(&format!("mark=\"{mark}\""))), "{:?}", log.lines());
}

/// What was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn lines(&self) -> Vec<String> {
        String::from_utf8_lossy(&self.0.lock().unwrap()).lines().map(str::to_owned).collect()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One that never answers keeps neither the other target nor the stop.
#[tokio::test]
async fn a_target_that_hangs_is_in_nobodys_way() {
    let (_keep, journal) = place();
    let mut healthy = Oncall::busy(0).await;
    let hanging = Endpoint::acting(|mut peer| async move { peer.gone().await }).await;
    let other = table(&hanging).replace("oncall", "other");
    let daemon = Daemon::start(&journal, &format!("{}{other}", healthy.table()));
    for host in ["compute1", "compute2"] {
        daemon.hold(host).await;
        assert_eq!(healthy.next_said().await, format!("raised held {host}"));
    }
    while hanging.connections() == 0 {
        tokio::task::yield_now().await;
    }
    daemon.end().await;
    assert_eq!(hanging.connections(), 1, "one notice at a time");
}

/// A target that comes back after it was taken out is a new one. The broken variant is the restart that leaves it in.
#[tokio::test]
async fn a_target_that_is_not_configured_any_more_is_forgotten() {
    for is_left_in in [false, true] {
        let (_keep, journal) = place();
        let mut oncall = Oncall::busy(0).await;
        let daemon = Daemon::start(&journal, &oncall.table());
        daemon.hold("compute1").await;
        assert_eq!(oncall.next_said().await, "raised held compute1");
        daemon.until_kept(1).await;
        daemon.end().await;
        let between = if is_left_in { oncall.table() } else { String::new() };
        let daemon = Daemon::start(&journal, &between);
        daemon.until_kept(usize::from(is_left_in)).await;
        daemon.end().await;
        let daemon = Daemon::start(&journal, &oncall.table());
        daemon.hold("compute2").await;
        let first = if is_left_in { "compute2" } else { "compute1" };
        assert_eq!(oncall.next_said().await, format!("raised held {first}"));
        daemon.end().await;
    }
}

/// A target that a reload brings is sent what holds, and one that it takes away hears no more. The broken variant is the
/// daemon before: without a target nothing is sent.
#[tokio::test]
async fn targets_come_and_go_with_the_configuration() {
    let (_keep, journal) = place();
    let endpoint = Endpoint::saying(OK).await;
    let daemon = Daemon::start(&journal, "");
    daemon.hold("c1").await;
    let oncall = format!("[notice.oncall]\nto = \"http\"\nurl = \"{}\"\n", endpoint.url());
    assert_eq!(endpoint.requests().len(), 0);
    daemon.shared.base.put_settings(Arc::new(settings(&journal, &oncall)));
    daemon.poll();
    daemon.until_kept(1).await;
    assert_eq!(endpoint.requests().len(), 1);
    daemon.shared.base.put_settings(Arc::new(settings(&journal, "")));
    daemon.poll();
    daemon.until_kept(0).await;
    daemon.hold("c2").await;
    daemon.end().await;
    assert_eq!(endpoint.requests().len(), 1);
}
