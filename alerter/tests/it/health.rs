//! `/health`: totals by the specification, both formats, and answers while everything else hangs.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use alerter::config::HealthFormat;
use alerter::health::{self, Check, Fault, Health, Item, Pulse, Report, Shown, Status};
use alerter::moment::Moment;
use marks::register::Register;
use marks::time::Timestamp;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use crate::config;
use crate::site::{self, Alerter, Site, beat};

const TTL: Option<Duration> = Some(Duration::from_secs(300));

fn pulse() -> Pulse {
    Pulse { now: Moment::now(), store_busy: None }
}

fn later(seconds: u64) -> Pulse {
    let now = Moment::now();
    let instant = now.instant + Duration::from_secs(seconds);
    Pulse { now: Moment { instant, ..now }, store_busy: None }
}

fn driver(name: &str) -> Check {
    Check::Driver(name.to_owned())
}

fn status(health: &Health) -> Status {
    health.report(pulse(), TTL).status
}

fn shown(health: &Health, check: &Check) -> (Status, Option<String>) {
    let Shown { status, output, .. } = health.report(pulse(), TTL).checks[check].clone();
    (status, output)
}

/// S3-31, S3-51: a check without data passes, at the start and after a reload; the count begins at 0.
#[test]
fn nothing_known_passes() {
    let health = Health::default();
    let (report, tag) = health.report_with_tag(later(100_000), TTL);
    assert_eq!((report.status, report.checks.len()), (Status::Pass, 0));
    assert!(tag.starts_with("W/\"0-"), "{tag}");
    health.fail(Check::Store, "no room");
    assert_eq!(status(&health), Status::Fail);
    health.reset();
    let (report, again) = health.report_with_tag(pulse(), TTL);
    assert_eq!((report.status, report.checks.len()), (Status::Pass, 0));
    assert!(again.starts_with("W/\"0-"), "{again}");
    assert_ne!(again, tag, "the counts of two lives are distinguished");
}

/// S3-7, S3-8, S3-9, S3-10, S3-43, S3-44: by the age of each; 0 is for ever. The broken variant drops what has expired, and finds
/// that nothing known passes.
#[test]
fn what_is_too_old_is_unknown_and_stays_in_the_answer() {
    let health = Health::default();
    health.pass(Check::Store);
    assert_eq!(health.report(later(299), TTL).status, Status::Pass);
    let report = health.report(later(302), TTL);
    assert_eq!((report.status, report.checks.len()), (Status::Fail, 1), "all of it has expired");
    assert!(report.checks[&Check::Store].output.as_ref().unwrap().contains("longer than ttl"));
    assert_eq!(health.report(later(1_000_000), None).status, Status::Pass);
}

/// Each check, its name, and the worst that it makes of the whole.
fn every() -> [(Check, &'static str, Status); 9] {
    [
        (Check::Store, "store", Status::Fail),
        (Check::Register("attrd"), "attrd", Status::Fail),
        (Check::Register("cib"), "cib", Status::Fail),
        (Check::Register("etcd"), "etcd", Status::Fail),
        (Check::Drain, "drain", Status::Fail),
        (Check::Queue, "queue", Status::Warn),
        (driver("r"), "driver.r", Status::Warn),
        (Check::Storm, "storm", Status::Warn),
        (Check::Config, "config", Status::Warn),
    ]
}

/// S3-13, S3-15, S3-19, S3-41: a check has output exactly where it does not pass; faults of others do not make it fail.
#[test]
fn only_what_stops_our_own_work_fails() {
    for (check, _, worst) in every() {
        let health = Health::default();
        health.fail(check.clone(), "it is\nbroken");
        assert_eq!(shown(&health, &check), (worst, Some("it is broken".into())), "{check:?}");
        assert_eq!(check.may_fail(), worst == Status::Fail);
        health.pass(check.clone());
        assert_eq!(shown(&health, &check), (Status::Pass, None));
    }
}

/// S3-32, S3-48: the set of version 1.0. Another name belongs here, into docs/health.md, and makes another version.
#[test]
fn the_names_are_a_closed_set() {
    let all = every();
    // A new check must be listed above too.
    all.iter().for_each(|(check, ..)| match check {
        Check::Store | Check::Register(_) | Check::Drain | Check::Queue => {}
        Check::Driver(_) | Check::Storm | Check::Config => {}
    });
    assert!(all.iter().all(|(check, name, _)| check.name() == *name), "{all:?}");
    assert_eq!(Check::of_register(Register::None), None);
    let text = include_str!("../../../docs/health.md");
    assert!(all.iter().all(|(_, name, _)| text.contains(&format!("`{}`", name.replace(".r", ".ROUTE")))));
}

/// S3-11, S3-12: what is lost warns, and fails with the next try; what came back begins again. A route goes no further.
#[test]
fn what_is_lost_fails_with_the_next_try() {
    for (check, then) in [(Check::Store, Status::Fail), (driver("recovery"), Status::Warn)] {
        let health = Health::default();
        let mut words = Vec::new();
        for _ in 0..2 {
            health.pass(check.clone());
            for _ in 0..3 {
                health.lost(check.clone(), "gone");
                words.push(shown(&health, &check).0);
            }
        }
        let once = [Status::Warn, then, then];
        assert_eq!(words, [once, once].concat());
    }
    let health = Health::default();
    health.warn(Check::Store, "slow");
    health.lost(Check::Store, "gone");
    assert_eq!(status(&health), Status::Warn, "a warning is no loss before");
}

/// S3-20, S3-21, S3-22, S3-23: work says how its check is, for all that share it, and its error comes out as it was.
#[tokio::test]
async fn work_says_how_its_check_is() {
    let health = Health::default();
    let failing = |text: &'static str| async move { Err::<(), io::Error>(io::Error::other(text)) };
    let other = |error: &io::Error| match error.to_string().as_str() {
        "not mine" => Fault::Unrelated,
        text => Fault::Failed(text.to_owned()),
    };
    let error = health.track(Check::Store, other, failing("not mine")).await.unwrap_err();
    assert_eq!((error.to_string(), status(&health)), ("not mine".into(), Status::Pass));
    assert!(health.report(pulse(), TTL).checks.is_empty(), "that error is another matter");
    let error = health.track(Check::Store, other, failing("broken")).await.unwrap_err();
    assert_eq!(error.to_string(), "broken");
    assert_eq!(shown(&health, &Check::Store), (Status::Fail, Some("broken".into())));
    let answer = health.track(Check::Store, health::any::<io::Error>, async { Ok(7) }).await;
    assert_eq!((answer.unwrap(), status(&health)), (7, Status::Pass));
    health.track(Check::Store, health::any, failing("all count")).await.unwrap_err();
    assert_eq!(shown(&health, &Check::Store), (Status::Fail, Some("all count".into())));
}

/// S3-26: the count goes on with each change of the state, and with nothing else. The broken variant counts each word.
#[test]
fn the_tag_counts_changes() {
    let health = Health::default();
    let count = |pulse: Pulse| {
        let tag = health.report_with_tag(pulse, TTL).1;
        let number = tag.trim_start_matches("W/\"").split('-').next().unwrap();
        number.parse::<u64>().unwrap()
    };
    assert_eq!(count(pulse()), 0);
    (0..3).for_each(|_| health.pass(Check::Store));
    assert_eq!(count(pulse()), 1);
    (0..3).for_each(|_| health.warn(Check::Store, "slow"));
    assert_eq!(count(pulse()), 2);
    health.warn(Check::Store, "slower");
    assert_eq!(count(pulse()), 3);
    assert_eq!((count(later(302)), count(later(303))), (4, 4), "it expires once");
    health.warn(Check::Store, "slower");
    assert_eq!(count(pulse()), 5, "and is known again");
}

/// S3-41: what nobody says any more is still seen when asked for: a loop that stands, a disk that hangs.
#[test]
fn a_loop_that_stands_and_a_disk_that_hangs_are_seen() {
    let health = Health::default();
    health.came_round();
    health.pass(Check::Store);
    let (on_time, late) = (health.report(later(85), TTL), health.report(later(95), TTL));
    assert_eq!((on_time.status, late.status), (Status::Pass, Status::Fail));
    assert!(late.checks[&Check::Drain].output.as_ref().unwrap().contains("has made no progress"));
    health.came_round();
    for (seconds, status) in [(9, Status::Pass), (11, Status::Warn), (31, Status::Fail)] {
        let busy = Pulse { store_busy: Some(Duration::from_secs(seconds)), ..pulse() };
        assert_eq!(health.report(busy, TTL).status, status, "{seconds} s");
        health.pass(Check::Store);
    }
    let fresh = Health::default();
    assert_eq!(fresh.report(later(1000), TTL).status, Status::Pass, "it has not begun yet");
}

/// An idle daemon's checks do not expire: the loop comes round three times within each `ttl`.
#[test]
fn the_loop_comes_round_often_enough() {
    for ttl in [1, 2, 10, 89, 90, 91, 300, 31_536_000].map(Duration::from_secs) {
        let beat = beat(Some(ttl));
        assert!(beat * 3 <= ttl && beat <= Duration::from_secs(30), "{ttl:?}: {beat:?}");
    }
    assert_eq!(beat(None), Duration::from_secs(30));
}

fn sample() -> Report {
    // 2021-12-17T16:02:55Z, as in the specification.
    let at = Moment { instant: Instant::now(), wall: Timestamp(1_639_756_975_000) };
    let pass = |check| (check, Item { status: Status::Pass, output: None, at });
    let fail = Item { status: Status::Fail, output: Some("no room for \"x\"".into()), at };
    let items =
        BTreeMap::from([(Check::Store, fail), pass(Check::Register("attrd")), pass(driver("recovery"))]);
    health::sum_up(&items, at.instant, TTL)
}

/// S3-28, S3-29, S3-33: the specification's shape, to the letter.
#[test]
fn the_format_of_nova_is_as_it_stands_here() {
    let body = health::body(&sample(), "controller-1", HealthFormat::Nova);
    assert_eq!(
        body,
        "{\"status\":\"fail\",\"version\":\"1.0\",\"serviceId\":\"SERVICE\",\"description\":\"nova-host-alerter\",\
         \"notes\":{\"host\":\"controller-1\",\"hostname\":\"controller-1\"},\"checks\":{\
         \"attrd\":{\"status\":\"pass\",\"time\":\"2021-12-17T16:02:55+00:00\"},\
         \"driver.recovery\":{\"status\":\"pass\",\"time\":\"2021-12-17T16:02:55+00:00\"},\
         \"store\":{\"status\":\"fail\",\"time\":\"2021-12-17T16:02:55+00:00\",\"output\":\"no room for \\\"x\\\"\"}}}"
            .replace("SERVICE", &health::service_id("controller-1").to_string())
    );
}

/// What an endpoint must not reveal: it stands in the route's url.
const SECRET: &str = "s3kr1t";

/// `/health` of an alerter without a register.
struct Served {
    alerter: Alerter,
    socket: PathBuf,
    _room: config::Site,
    _served: site::Served,
}

impl Served {
    fn new(keys: &str) -> Self {
        let (site, room) = (Site::new(&[]), config::Site::new(""));
        let socket = room.path("health.sock");
        site.live_without_register();
        site.replace("127.0.0.1:9/nova", &format!("127.0.0.1:9/{SECRET}"));
        site.configure(&format!("[healthcheck]\nuri = \"unix://{}\"\n{keys}", socket.display()));
        let alerter = Alerter::start(&site, "ctl1");
        Self { _served: alerter.serve(), alerter, socket, _room: room }
    }

    /// One request; gives the head in lower case, and the body.
    async fn ask(&self, request: &str) -> (String, String) {
        let mut stream = loop {
            match UnixStream::connect(&self.socket).await {
                Ok(stream) => break stream,
                Err(_) => tokio::task::yield_now().await,
            }
        };
        stream.write_all(format!("{request}\r\n\r\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_lowercase(), body.to_owned())
    }

    async fn get(&self) -> (String, String) {
        self.ask("GET /health HTTP/1.1\r\nHost: localhost").await
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// S3-5, S3-14, S3-18, S3-24, S3-29, S3-30: each status has its code; the rest of the head is always the same.
#[tokio::test]
async fn codes_and_headers_follow_the_status() {
    let served = Served::new("");
    let health = served.alerter.health();
    for (status, code, cache) in [
        (Status::Pass, "http/1.1 200 ok", "max-age=300"),
        (Status::Warn, "http/1.1 200 ok", "max-age=300"),
        (Status::Fail, "http/1.1 503 service unavailable", "no-cache"),
    ] {
        match status {
            Status::Pass => health.pass(Check::Store),
            Status::Warn => health.warn(Check::Store, "why"),
            Status::Fail => health.fail(Check::Store, "why"),
        }
        let (head, body) = served.get().await;
        assert!(head.starts_with(&format!("{code}\r\n")), "{head}");
        assert_eq!(header(&head, "content-type"), Some("application/health+json"));
        assert_eq!(header(&head, "connection"), Some("close"));
        assert_eq!(header(&head, "cache-control"), Some(cache));
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["status"], status.as_str());
        assert_eq!(body["checks"]["store"].get("output").is_some(), status != Status::Pass);
        let (bare, nothing) = served.ask("HEAD /health HTTP/1.1\r\nHost: localhost").await;
        assert!(bare.starts_with(code) && nothing.is_empty());
        assert_eq!(header(&bare, "cache-control"), Some(cache));
    }
    for (request, code) in [
        ("GET / HTTP/1.1\r\nHost: localhost", "404"),
        ("GET /health/ HTTP/1.1\r\nHost: localhost", "404"),
        ("GET /healthz HTTP/1.1\r\nHost: localhost", "404"),
        ("GET /metrics HTTP/1.1\r\nHost: localhost", "404"),
        ("POST /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0", "405"),
        ("DELETE /health HTTP/1.1\r\nHost: localhost", "405"),
    ] {
        let (head, _) = served.ask(request).await;
        assert!(head.starts_with(&format!("http/1.1 {code} ")), "{request}: {head}");
    }
}

/// S3-25, S3-45: as `cache-control` says; a failure is never cached, unless the header is left out.
#[tokio::test]
async fn the_age_of_an_answer_is_as_configured() {
    for (keys, passing, failing) in [
        ("ttl = 10", Some("max-age=10"), Some("no-cache")),
        ("ttl = 0", None, None),
        ("cache-control = 0", None, None),
        ("cache-control = -1", Some("no-cache"), Some("no-cache")),
        ("ttl = 0\ncache-control = 3600", Some("max-age=3600"), Some("no-cache")),
    ] {
        let served = Served::new(keys);
        assert_eq!(header(&served.get().await.0, "cache-control"), passing, "{keys}");
        served.alerter.health().fail(Check::Store, "why");
        assert_eq!(header(&served.get().await.0, "cache-control"), failing, "{keys}");
    }
}

/// S3-26: a client that has the answer gets no body. A failure is sent again: a condition holds for a success alone.
#[tokio::test]
async fn a_known_answer_is_not_sent_again() {
    let served = Served::new("");
    let health = served.alerter.health();
    health.pass(Check::Store);
    let tag = header(&served.get().await.0, "etag").unwrap().to_owned().replace("w/", "W/");
    let request = |known: &str| format!("GET /health HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: {known}");
    for known in [tag.clone(), tag.replace("W/", ""), format!("\"x\", {tag}"), "*".to_owned()] {
        let (head, body) = served.ask(&request(&known)).await;
        assert!(head.starts_with("http/1.1 304 ") && body.is_empty(), "{known}: {head}");
        assert_eq!(header(&head, "cache-control"), Some("max-age=300"));
        assert!(header(&head, "etag").is_some());
    }
    assert!(served.ask(&request("\"x\"")).await.0.starts_with("http/1.1 200 "));
    health.warn(Check::Store, "slow");
    assert!(served.ask(&request(&tag)).await.0.starts_with("http/1.1 200 "), "it is another one");
    health.fail(Check::Store, "gone");
    let failing = header(&served.get().await.0, "etag").unwrap().replace("w/", "W/");
    assert!(served.ask(&request(&failing)).await.0.starts_with("http/1.1 503 "));
}

/// S3-1, S3-2, S3-3, S3-39, S3-52: the answer comes while the journal's thread is stuck. The broken variant asks the journal.
#[tokio::test]
async fn an_answer_comes_while_the_store_hangs() {
    let served = Served::new("");
    let (free, hangs) = served.alerter.store_hangs().await;
    let answer = tokio::time::timeout(Duration::from_secs(60), served.get()).await.unwrap();
    assert!(answer.0.starts_with("http/1.1 200 ") && !hangs.is_finished(), "{answer:?}");
    drop(free);
    hangs.await.unwrap();
}

/// S3-12, S3-13, S3-37, S3-41: what the work met, as the loop says it: a route that is tried again, a configuration that is not in
/// force, a journal without room. Nothing of the machine, of an address or a url is in the answer.
#[tokio::test]
async fn the_loop_says_what_it_met_and_nothing_of_the_machine() {
    let served = Served::new("");
    served.alerter.has_passed(true);
    let checks = |body: &str| serde_json::from_str::<Value>(body).unwrap()["checks"].clone();
    let all = checks(&served.get().await.1);
    let names: Vec<&String> = all.as_object().unwrap().keys().collect();
    assert_eq!(names, ["config", "drain", "driver.backup", "driver.nova", "queue", "storm"]);
    assert!(all.as_object().unwrap().values().all(|check| check["status"] == "pass"), "{all}");

    let detail = format!("POST http://me:{SECRET}@127.0.0.1:9/{SECRET}: refused");
    let why = "the new configuration /etc/secret.toml is not in force";
    served.alerter.meets_faults(("nova", &detail), why).await;
    served.alerter.has_passed(false);
    let (head, body) = served.get().await;
    assert!(head.starts_with("http/1.1 503 "));
    let all = checks(&body);
    assert_eq!(all["store"]["status"], "fail");
    for warned in ["config", "driver.nova", "queue"] {
        assert_eq!(all[warned]["status"], "warn", "{warned}");
        assert!(all[warned]["output"].as_str().unwrap().len() > 20, "{warned}");
    }
    let system = nix::sys::utsname::uname().unwrap();
    let words = [system.release(), system.version(), system.machine()];
    let of_the_machine = words.map(|word| word.to_string_lossy().to_lowercase());
    let text = format!("{head}{}", body.to_lowercase());
    let never = [
        "linux",
        "rust",
        "sqlite",
        "hyper",
        "axum",
        "tokio",
        "127.0.0.1",
        "/etc/",
        "marks.db",
        SECRET,
        env!("CARGO_PKG_VERSION"),
    ];
    for word in never.into_iter().chain(of_the_machine.iter().map(String::as_str)) {
        assert!(!text.contains(word), "{word}: {text}");
    }
    assert_eq!(header(&head, "server"), None);
    let root = serde_json::from_str::<Value>(&body).unwrap();
    assert_eq!(root["notes"], json!({ "host": "ctl1", "hostname": "ctl1" }));
}
