//! The built daemon's log: each line about a mark has its id, and no line has a secret.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tests::lab::wait;
use tests::process::Bound;
use tests::programs::{Site, built};
use tests::receiver::{Answer, Receiver};
use tests::trials::Group;

/// Longer than anything here takes, on a machine that is busy.
const LIMIT: Duration = Duration::from_secs(60);

/// Its tests; they run everywhere.
pub(crate) fn group() -> Group {
    Group::everywhere(tests::trials![each_line_about_a_mark_has_its_id, no_secret_is_in_any_line,])
}

/// A daemon whose stderr is read.
struct Daemon {
    child: Bound,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Daemon {
    fn start(site: &Site) -> Self {
        let mut command = Command::new(built("nova-host-alerter").unwrap());
        command.args(["run", "--config"]).arg(site.config()).stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let (stderr, kept) = (child.stderr.take().unwrap(), Arc::clone(&lines));
        thread::spawn(move || {
            BufReader::new(stderr)
                .lines()
                .map_while(Result::ok)
                .for_each(|line| kept.lock().unwrap().push(line));
        });
        let daemon = Self { child: Bound(child), lines };
        wait::until("the daemon answers", LIMIT, || Ok(site.answers()?.then_some(()))).unwrap();
        daemon
    }

    fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    /// Waits for a line with this in it.
    fn says(&self, what: &str) {
        let said = || Ok(self.lines().iter().any(|line| line.contains(what)).then_some(()));
        wait::until(what, LIMIT, said).unwrap_or_else(|why| panic!("{why}: {:#?}", self.lines()));
    }

    fn stop(mut self) -> Vec<String> {
        send(&self.child, Signal::SIGTERM);
        self.child.wait().unwrap();
        self.says("has stopped");
        self.lines()
    }
}

fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
}

fn alerter(site: &Site, words: &[&str]) {
    let ran = site.alerter(words).unwrap();
    assert!(ran.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

fn add(site: &Site, tables: &str) {
    let text = fs::read_to_string(site.config()).unwrap() + tables;
    fs::write(site.config(), text).unwrap();
}

/// Fenced, sent, refused, parked, released, tried again, acknowledged: a search for the mark's id finds all of it. The
/// broken variant with a line that has only the host's name is found by the name.
fn each_line_about_a_mark_has_its_id() {
    let receiver = Receiver::on_loopback().unwrap();
    receiver.answer(Answer::Status(422));
    let site = Site::new(receiver.address()).unwrap();
    let daemon = Daemon::start(&site);
    site.fence("compute1").unwrap();
    daemon.says("is rejected by route recovery");
    let shown: Value = serde_json::from_str(&site.said(&["show", "compute1", "--json"]).unwrap()).unwrap();
    let id = shown[0]["id"].as_str().unwrap_or_else(|| panic!("{shown}")).to_owned();
    receiver.answer(Answer::Status(200));
    alerter(&site, &["retry", "compute1"]);
    daemon.says("is acknowledged by route recovery");
    let lines = daemon.stop();
    let about: Vec<&String> =
        lines.iter().filter(|line| line.contains("compute1") || line.contains(&id)).collect();
    for line in &about {
        assert!(line.contains(&format!(" mark={id}")), "{line}");
    }
    for what in [
        "was fenced and will be reported",
        "is rejected",
        "asked for an attempt of the mark now",
        "is acknowledged",
    ] {
        assert!(about.iter().any(|line| line.contains(what)), "{what}: {about:#?}");
    }
    let acknowledged = about.iter().find(|line| line.contains("is acknowledged")).unwrap();
    assert!(acknowledged.contains(" host=compute1 route=recovery "), "{acknowledged}");
}

/// Resembles nothing else.
const SECRET: &str = "kUmQuAt-9f3a7c51-sEcReT-kUmQuAt-9f3a7c51";

/// An endpoint that fails in every way, and says the token back, has nothing of ours written into the log.
fn no_secret_is_in_any_line() {
    let receiver = Receiver::on_loopback().unwrap();
    let site = Site::with("").unwrap();
    let token = site.directory().join("token");
    fs::write(&token, SECRET).unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    let (address, token) = (receiver.address(), token.display().to_string());
    let route =
        |name: &str, more: &str| format!("[http.{name}]\nurl = \"http://{address}/{name}\"\n{more}\n");
    add(&site, "[log]\nlevel = \"debug\"\n");
    add(&site, &route("bearer", &format!("bearer-file = \"{token}\"")));
    add(&site, &route("basic", &format!("username = \"u\"\npassword-file = \"{token}\"")));
    add(&site, &route("header", &format!("headers = {{ X-Token = \"{SECRET}\" }}")));
    let body = format!("{{\"token\": \"{SECRET}\"}}");
    for status in ["401 Bearer", "302 Found", "422 Unprocessable", "500 Oops"] {
        let length = body.len();
        let head =
            format!("HTTP/1.1 {status}\r\nLocation: http://x/{SECRET}\r\nContent-Length: {length}\r\n\r\n");
        for _ in 0..3 {
            receiver.answer_next(Answer::Raw((head.clone() + &body).into_bytes()));
        }
    }
    receiver.answer(Answer::Raw(format!("{SECRET}\r\n\r\n").into_bytes()));
    let daemon = Daemon::start(&site);
    for host in ["compute1", "compute2"] {
        site.fence(host).unwrap();
    }
    // A refusal parks a route for a minute, unless an operator has it tried.
    wait::until("every kind of answer came", LIMIT, || {
        alerter(&site, &["retry", "--all"]);
        Ok((receiver.received().len() >= 15).then_some(()))
    })
    .unwrap();
    daemon.says("is not accepted by route");
    let lines = daemon.stop();
    let sent = receiver
        .received()
        .iter()
        .any(|got| got.header("authorization").is_some_and(|it| it.contains(SECRET)));
    assert!(sent, "the secret was never in use");
    for line in lines {
        assert!(!line.contains(&SECRET[..12]), "{line}");
    }
}
