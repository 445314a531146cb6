//! `/health` of the built daemon, asked as operators and their tools ask, and read by a reader that knows only the formats.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;

use nix::sys::signal::Signal;
use rusqlite::Connection;
use serde_json::Value;
use tests::installed;
use tests::programs::Site;
use tests::receiver::{Receiver, own_loopback};
use tests::trials::Group;

use crate::path::{json, until};

/// Its tests, and why they cannot run here, if they cannot.
pub(crate) fn group() -> Group {
    let tests = tests::trials![
        both_formats_are_answered_at_both_addresses,
        a_dead_endpoint_warns_and_a_locked_journal_fails,
        an_idle_daemon_stays_well,
        a_killed_daemon_keeps_nobody_from_its_addresses,
        foreign_names_are_refused_where_only_some_are_allowed,
        the_example_of_the_specification_is_answered,
    ];
    Group { cannot: installed::cannot(&["curl"]), tests }
}

/// A daemon that is asked.
struct Asked {
    site: Site,
    receiver: Receiver,
    address: SocketAddr,
    socket: PathBuf,
}

impl Asked {
    fn stopped(keys: &str) -> Self {
        let receiver = Receiver::on_loopback().unwrap();
        let address = SocketAddr::new(own_loopback().into(), 7410);
        let tables = format!(
            "[http.recovery]\nurl = \"http://{}/v1/host-failures\"\n[healthcheck]\n\
             uri = \"tcp://{address},unix://SOCKET\"\n{keys}\n",
            receiver.address()
        );
        let site = Site::with(&tables).unwrap();
        let socket = site.directory().join("health.sock");
        let text = std::fs::read_to_string(site.config()).unwrap();
        std::fs::write(site.config(), text.replace("SOCKET", &socket.display().to_string())).unwrap();
        Self { site, receiver, address, socket }
    }

    fn running(keys: &str) -> Self {
        let mut asked = Self::stopped(keys);
        asked.site.start().unwrap();
        until("/health is served", || UnixStream::connect(&asked.socket).is_ok());
        asked
    }

    /// Status code and body.
    fn by_socket(&self) -> (u16, Value) {
        plainly(UnixStream::connect(&self.socket).unwrap())
    }

    fn by_tcp(&self) -> (u16, Value) {
        plainly(TcpStream::connect(self.address).unwrap())
    }

    fn by_curl(&self, words: &[&str], url: &str) -> (u16, Value) {
        let words = [&["-s", "-w", "\n%{http_code} %{content_type}"], words, &[url]].concat();
        let output = Command::new("curl").args(words).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let (body, rest) = text.rsplit_once('\n').unwrap();
        let (code, media) = rest.split_once(' ').unwrap();
        assert_eq!(media, "application/health+json");
        (code.parse().unwrap(), serde_json::from_str(body).unwrap())
    }
}

/// As socat and netcat would: a request by hand, and everything until the other end closes.
fn plainly(mut stream: impl Read + Write) -> (u16, Value) {
    stream
        .write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\nAccept: application/health+json\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.to_lowercase().contains("\r\ncontent-type: application/health+json\r\n"), "{head}");
    (head.split(' ').nth(1).unwrap().parse().unwrap(), serde_json::from_str(body).unwrap())
}

const STATUSES: [&str; 3] = ["pass", "warn", "fail"];

/// One check, as both formats know it.
fn read_check(check: &Value) {
    let status = check["status"].as_str().unwrap();
    assert!(STATUSES.contains(&status), "{check}");
    assert_eq!(check["output"].as_str().is_some_and(|why| !why.is_empty()), status != "pass", "{check}");
    let time = check["time"].as_str().unwrap();
    let (date, rest) = time.split_once('T').unwrap();
    assert!(date.len() == 10 && rest.len() == 14 && rest.ends_with("+00:00"), "{time}");
}

/// The names of the checks, of an answer that is as Nova's specification lays it out.
fn read_nova(answer: &Value) -> BTreeSet<String> {
    let root: Vec<&String> = answer.as_object().unwrap().keys().collect();
    assert_eq!(root, ["checks", "description", "notes", "serviceId", "status", "version"]);
    let notes: Vec<&String> = answer["notes"].as_object().unwrap().keys().collect();
    assert_eq!(notes, ["host", "hostname"]);
    let checks = answer["checks"].as_object().unwrap();
    checks.values().for_each(read_check);
    checks.keys().cloned().collect()
}

/// The same of the draft's layout: lists, and no colon in a name.
fn read_ietf(answer: &Value) -> BTreeSet<String> {
    assert!(answer["notes"].as_array().unwrap().iter().all(Value::is_string));
    assert_eq!(answer.get("output").is_some(), answer["status"] != "pass", "{answer}");
    let checks = answer["checks"].as_object().unwrap();
    for (name, list) in checks {
        assert!(!name.contains(':'), "{name}");
        let list = list.as_array().unwrap();
        assert_eq!(list.len(), 1);
        read_check(&list[0]);
        assert!(["component", "datastore", "system"].contains(&list[0]["componentType"].as_str().unwrap()));
    }
    checks.keys().cloned().collect()
}

/// S3-1, S3-5, S3-16, S3-17, S3-28, S3-47: curl and a bare socket get the same from the daemon, at both of its addresses.
fn both_formats_are_answered_at_both_addresses() {
    for (keys, read) in [("", read_nova as fn(&Value) -> _), ("format = \"ietf\"", read_ietf)] {
        let asked = Asked::running(keys);
        let expected = ["config", "drain", "driver.recovery", "queue", "storm", "store"];
        let expected: BTreeSet<String> = expected.map(str::to_owned).into();
        until("all checks are known", || read(&asked.by_socket().1) == expected);
        let socket = asked.socket.display().to_string();
        let answers = [
            asked.by_socket(),
            asked.by_tcp(),
            asked.by_curl(&[], &format!("http://{}/health", asked.address)),
            asked.by_curl(&["--unix-socket", &socket], "http://localhost/health"),
        ];
        for (code, answer) in answers {
            assert_eq!((code, &answer["status"], &answer["version"]), (200, &"pass".into(), &"1.0".into()));
            assert_eq!(answer["description"], "nova-host-alerter");
            assert_eq!(read(&answer), expected);
        }
    }
}

/// S3-10, S3-11, S3-12, S3-38, S3-41: a route goes no further than a warning, the journal fails, and is well when it can be written
/// again. No change of health makes a mark.
fn a_dead_endpoint_warns_and_a_locked_journal_fails() {
    let mut asked = Asked::stopped("");
    asked.receiver.down();
    asked.site.start().unwrap();
    asked.site.fence("compute1").unwrap();
    let check = |name: &str| {
        let (code, answer) = asked.by_socket();
        (code, answer["checks"][name]["status"].clone())
    };
    until("the route warns", || check("driver.recovery") == (200, "warn".into()));
    let holder = Connection::open(asked.site.journal()).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    until("the journal fails", || check("store") == (503, "fail".into()));
    holder.execute_batch("ROLLBACK").unwrap();
    until("the journal is well", || check("store") == (200, "pass".into()));
    assert_eq!(check("driver.recovery").1, "warn");
    let marks = json(&asked.site, &["list"]);
    assert_eq!(marks.to_string().matches("\"compute1\"").count(), 1, "{marks}");
    asked.receiver.up().unwrap();
    until("all is well", || asked.by_socket().1["status"] == "pass");
}

/// S3-7, S3-8: what has nothing to do says so again and again. The broken variant sleeps until it has: it expires.
fn an_idle_daemon_stays_well() {
    let asked = Asked::running("ttl = 12");
    let mut times = BTreeSet::new();
    until("it has said so five times", || {
        let (code, answer) = asked.by_socket();
        assert_eq!((code, answer["status"].as_str()), (200, Some("pass")), "{answer}");
        times.insert(answer["checks"]["store"]["time"].to_string());
        times.len() == 6
    });
}

/// S3-31, S3-51: a stale socket is replaced, and everything is forgotten; a daemon that ends in peace takes its file with it.
fn a_killed_daemon_keeps_nobody_from_its_addresses() {
    let mut asked = Asked::running("");
    asked.receiver.down();
    asked.site.fence("compute1").unwrap();
    until("the route warns", || asked.by_socket().1["status"] == "warn");
    asked.site.end(Signal::SIGKILL).unwrap();
    assert!(asked.socket.exists());
    asked.receiver.up().unwrap();
    asked.site.start().unwrap();
    until("it answers again", || UnixStream::connect(&asked.socket).is_ok());
    until("it is well", || asked.by_tcp().1["status"] == "pass");
    asked.site.end(Signal::SIGTERM).unwrap();
    assert!(!asked.socket.exists());
    TcpStream::connect(asked.address).unwrap_err();
}

/// What a request gets as its status, by TCP.
fn code(address: SocketAddr, request: &str) -> String {
    status_of(TcpStream::connect(address).unwrap(), request)
}

fn status_of(mut stream: impl Read + Write, request: &str) -> String {
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().to_owned()
}

fn get(path: &str, host: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

/// A web site that lets its own name lead to this machine reads neither health nor figures. The broken variant answers by any name.
fn foreign_names_are_refused_where_only_some_are_allowed() {
    let metrics = SocketAddr::new(own_loopback().into(), 7411);
    let keys = format!(
        "allowed-hosts = [\"lb.example.org\"]\n[metrics]\nuri = \"tcp://{metrics}\"\nallowed-hosts = [\"lb.example.org\"]"
    );
    let asked = Asked::running(&keys);
    until("/metrics is served", || TcpStream::connect(metrics).is_ok());
    let machine = nix::unistd::gethostname().unwrap().into_string().unwrap();
    for (address, path) in [(asked.address, "/health"), (metrics, "/metrics")] {
        let by = |host: &str| code(address, &get(path, host));
        for own in [&machine, "localhost", "LB.example.org:80", "[::1]:7410", &address.to_string()] {
            assert_eq!(by(own), "200", "{own}");
        }
        for foreign in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:7410", ""] {
            assert_eq!(by(foreign), "421", "{foreign}");
        }
        assert_eq!(code(address, &format!("GET {path} HTTP/1.0\r\n\r\n")), "200", "as HAProxy asks");
    }
    let by_socket = status_of(UnixStream::connect(&asked.socket).unwrap(), &get("/health", "evil.example"));
    assert_eq!(by_socket, "200", "a unix socket has no names to defend");
}

/// S3-1: `Host: example.org`, word by word, at both addresses; figures say more, and are answered over TCP under own names alone.
/// The broken variant refuses the example (421).
fn the_example_of_the_specification_is_answered() {
    let metrics = SocketAddr::new(own_loopback().into(), 7412);
    let asked = Asked::running(
        "[metrics]\nuri = \"tcp://METRICS,unix://SOCKET.metrics\""
            .replace("METRICS", &metrics.to_string())
            .as_str(),
    );
    let example = "GET /health HTTP/1.1\r\nHost: example.org\r\nAccept: application/health+json\r\n\r\n";
    assert_eq!(code(asked.address, example), "200");
    assert_eq!(status_of(UnixStream::connect(&asked.socket).unwrap(), example), "200");
    let socket = format!("{}.metrics", asked.socket.display());
    until("/metrics is served", || {
        UnixStream::connect(&socket).is_ok() && TcpStream::connect(metrics).is_ok()
    });
    assert_eq!(code(metrics, &get("/metrics", "example.org")), "421");
    assert_eq!(status_of(UnixStream::connect(&socket).unwrap(), &get("/metrics", "example.org")), "200");
}
