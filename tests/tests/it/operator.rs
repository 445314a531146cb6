//! An operator's commands while something hangs: they take effect at once, and block nothing.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};
use serde_json::Value;
use tests::programs::{Site, built};
use tests::receiver::Receiver;
use tests::trials::Group;

use crate::path::{LIMIT, until};

/// Its tests; they run everywhere.
pub(crate) fn group() -> Group {
    Group::everywhere(tests::trials![
        what_is_dismissed_behind_a_hanging_program_is_never_sent,
        a_release_by_the_hosts_name_is_for_its_last_failure,
        a_hung_daemon_keeps_no_reader_waiting,
    ])
}

/// Writes down what it gets, and hangs until it is let go.
const PROGRAM: &str = r#"read -r event; echo "$event" >> "$1/notified"; read -r go < "$1/go""#;

/// A route with one place: the mark that waits for it has not begun, so that an operator can still end it. The broken
/// variant begins both and lets the second one wait in the driver, which sends it when it gets the place.
fn what_is_dismissed_behind_a_hanging_program_is_never_sent() {
    let home = tempfile::tempdir().unwrap();
    let (notified, go) = (home.path().join("notified"), home.path().join("go"));
    mkfifo(&go, Mode::S_IRWXU).unwrap();
    let command = format!("[\"/bin/sh\", \"-c\", '''{PROGRAM}''', \"sh\", \"{}\"]", home.path().display());
    let route = format!("[exec.recovery]\ncommand = {command}\nat-once = 1\ntimeout = 300\n");
    let mut site = Site::with(&route).unwrap();
    site.start().unwrap();
    site.fence("compute1").unwrap();
    until_notified(&notified, 1);
    site.fence("compute2").unwrap();
    until("compute2 is marked", || site.alerter(&["show", "compute2"]).unwrap().status.success());
    let unmark = |host| site.alerter(&["unmark", host, "--reason", "it lives"]).unwrap().status.code();
    assert_eq!([unmark("compute2"), unmark("compute2"), unmark("compute22")], [Some(0), Some(1), Some(1)]);
    site.fence("compute3").unwrap();
    for count in [2, 3] {
        OpenOptions::new().write(true).open(&go).unwrap().write_all(b"go\n").unwrap();
        if count == 2 {
            until_notified(&notified, count);
        }
    }
    site.end(Signal::SIGTERM).unwrap();
    let events = fs::read_to_string(&notified).unwrap();
    let hosts: Vec<bool> = events.lines().map(|event| event.contains("compute2.")).collect();
    assert_eq!(hosts, [false, false], "{events}");
}

fn until_notified(notified: &Path, count: usize) {
    let events = || fs::read_to_string(notified).unwrap_or_default();
    until("the program is notified", || events().lines().count() >= count);
}

/// A plugin of Nagios has 10 s. The journal is read without the daemon, and the output says so; the broken variant waits 40 s
/// without a word.
fn a_hung_daemon_keeps_no_reader_waiting() {
    let mut receiver = Receiver::on_loopback().unwrap();
    let mut site = Site::new(receiver.address()).unwrap();
    let pid = Pid::from_raw(site.start().unwrap().cast_signed());
    receiver.down();
    site.fence("compute1").unwrap();
    until("compute1 is marked", || site.alerter(&["show", "compute1"]).unwrap().status.success());
    let within = |limit: &str, words: &[&str]| {
        let mut command = Command::new("timeout");
        command.arg(limit).arg(built("nova-host-alerter").unwrap()).args(words);
        let ran = command.arg("--config").arg(site.config()).output().unwrap();
        (ran.status.code(), String::from_utf8(ran.stdout).unwrap())
    };
    kill(pid, Signal::SIGSTOP).unwrap();
    let (code, said) = within("10", &["status", "--json"]);
    let status: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((code, &status["read_from"], &status["open"]), (Some(1), &"journal".into(), &1.into()));
    let worst = &status["problems"][0];
    assert_eq!(worst["kind"], "silent");
    let sentence = "has not answered within 3 s: what follows is read from the journal";
    assert!(worst["what"].as_str().unwrap().ends_with(sentence), "{worst}");
    let (code, said) = within("10", &["status", "--check"]);
    assert!(code == Some(2) && said.contains(sentence) && said.contains("open=1;"), "{code:?} {said}");
    let (code, said) = within("10", &["status"]);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(code == Some(1) && said.contains(sentence) && said.contains("compute1"), "{code:?} {said}");
    for words in [&["list"][..], &["show", "compute1"], &["history"], &["history", "--summary"]] {
        assert_eq!(within("10", words).0, Some(0), "{words:?}");
    }
    kill(pid, Signal::SIGCONT).unwrap();
    until("it answers again", || {
        let ran = site.alerter(&["status", "--json"]).unwrap();
        assert!(matches!(ran.status.code(), Some(0 | 1)), "{}", ran.status);
        let status: Value = serde_json::from_slice(&ran.stdout).unwrap_or_default();
        status["read_from"] == "daemon and journal"
    });
}

/// The host fails twice while nobody takes its marks, and both are held as stale: an operator who checks it now vouches for the last
/// failure alone. The broken variant releases by an id.
fn a_release_by_the_hosts_name_is_for_its_last_failure() {
    let mut receiver = Receiver::on_loopback().unwrap();
    receiver.down();
    let route = format!(
        "[intake]\ncoalesce = 1\n[http.recovery]\nurl = \"http://{}/\"\nstale-after = 1\n",
        receiver.address()
    );
    let mut site = Site::with(&route).unwrap();
    site.start().unwrap();
    let mut ids = Vec::new();
    for count in 1..=2 {
        site.fence("compute1").unwrap();
        let is_held = |mark: &&Value| mark["deliveries"][0]["state"] == "held";
        until("the mark is held", || marks(&site).iter().filter(is_held).count() == count);
        ids = marks(&site).iter().map(|mark| mark["id"].as_str().unwrap().to_owned()).collect();
    }
    receiver.up().unwrap();
    for target in ["compute1", &ids[0]] {
        let words = ["release", target, "--reason", "it is off"];
        assert!(site.alerter(&words).unwrap().status.success());
        let notified = if target == "compute1" { &ids[1..] } else { &ids[..] };
        let requests = receiver.wait_for(notified.len(), LIMIT).unwrap();
        let bodies: Vec<String> =
            requests.iter().map(|request| String::from_utf8_lossy(&request.body).into_owned()).collect();
        for id in &ids {
            assert_eq!(bodies.iter().any(|body| body.contains(id)), notified.contains(id), "{bodies:?}");
        }
        let is_open = |mark: &&Value| mark["state"] == "open";
        let left = ids.len() - notified.len();
        until("it is settled", || marks(&site).iter().filter(is_open).count() == left);
    }
    site.end(Signal::SIGTERM).unwrap();
}

/// All marks, oldest first.
fn marks(site: &Site) -> Vec<Value> {
    let listed: Value = serde_json::from_str(&site.said(&["list", "--all", "--json"]).unwrap()).unwrap();
    let mut all = listed.as_array().cloned().unwrap_or_default();
    all.sort_by_key(|mark| mark["failure_time"].to_string());
    all
}
