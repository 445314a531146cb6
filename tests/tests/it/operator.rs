//! What an operator does while something hangs: it counts at once, and holds nothing back.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use tests::lab::wait;
use tests::programs::{Site, built};
use tests::receiver::{Answer, Receiver};
use tests::trials::Group;

const LIMIT: Duration = Duration::from_secs(40);

/// Its tests; they run everywhere.
pub(crate) fn group() -> Group {
    let tests = tests::trials![
        what_is_dismissed_behind_a_hanging_program_is_never_told,
        a_stop_waits_for_no_test_message,
    ];
    Group { cannot: None, tests }
}

/// Writes down what it is told, and hangs until it is let go.
const PROGRAM: &str = r#"read -r event; echo "$event" >> "$1/told"; read -r go < "$1/go""#;

/// A route with one place: the mark that waits for it has not begun, so that an operator can still end it. The broken
/// variant begins both and lets the second one wait in the driver, which tells it when it gets the place.
fn what_is_dismissed_behind_a_hanging_program_is_never_told() {
    let home = tempfile::tempdir().unwrap();
    let (told, go) = (home.path().join("told"), home.path().join("go"));
    mkfifo(&go, Mode::S_IRWXU).unwrap();
    let command = format!("[\"/bin/sh\", \"-c\", '''{PROGRAM}''', \"sh\", \"{}\"]", home.path().display());
    let route = format!("[exec.recovery]\ncommand = {command}\nat-once = 1\ntimeout = 300\n");
    let mut site = Site::with(&route).unwrap();
    site.start().unwrap();
    site.fence("compute1").unwrap();
    until_told(&told, 1);
    site.fence("compute2").unwrap();
    wait::until("compute2 is marked", LIMIT, || {
        let shown = site.alerter(&["show", "compute2"])?;
        Ok(shown.status.success().then_some(()))
    })
    .unwrap();
    assert!(site.alerter(&["unmark", "compute2", "--reason", "it lives"]).unwrap().status.success());
    site.fence("compute3").unwrap();
    for count in [2, 3] {
        OpenOptions::new().write(true).open(&go).unwrap().write_all(b"go\n").unwrap();
        if count == 2 {
            until_told(&told, count);
        }
    }
    site.end(Signal::SIGTERM).unwrap();
    let events = fs::read_to_string(&told).unwrap();
    let hosts: Vec<bool> = events.lines().map(|event| event.contains("compute2.")).collect();
    assert_eq!(hosts, [false, false], "{events}");
}

fn until_told(told: &Path, count: usize) {
    wait::until("the program is told", LIMIT, || {
        let events = fs::read_to_string(told).unwrap_or_default();
        Ok((events.lines().count() >= count).then_some(()))
    })
    .unwrap();
}

/// An operator's request that hangs at an endpoint keeps neither the journal nor its lock.
fn a_stop_waits_for_no_test_message() {
    let receiver = Receiver::on_loopback().unwrap();
    receiver.answer(Answer::Silence);
    let mut site = Site::new(receiver.address()).unwrap();
    site.start().unwrap();
    let mut command = Command::new(built("nova-host-alerter").unwrap());
    command.arg("send-test").arg("--config").arg(site.config());
    let mut test = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    receiver.wait_for(1, LIMIT).unwrap();
    let begun = Instant::now();
    site.end(Signal::SIGTERM).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(10), "Pacemaker would have killed it");
    assert!(!test.wait().unwrap().success(), "nobody knows whether the test message was taken");
    site.start().unwrap();
    site.end(Signal::SIGTERM).unwrap();
}
