//! A program as a driver, run by the built daemon: from the fencing to the acknowledgement, and at the daemon's end.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::sync::mpsc::{Receiver as Channel, channel};
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use serde_json::Value;
use tests::installed::{self, source};
use tests::lab::wait;
use tests::programs::Site;
use tests::receiver::{Answer, Receiver};
use tests::trials::Group;

/// Longer than the longest wait between two attempts.
const LIMIT: Duration = Duration::from_secs(40);

/// Of the shell's example, which calls `curl`.
pub(crate) fn example() -> Group {
    let tests = tests::trials![a_program_gets_a_host_and_settles_it];
    Group { cannot: installed::cannot(&["curl"]), tests }
}

/// Its tests; they run everywhere.
pub(crate) fn group() -> Group {
    Group { cannot: None, tests: tests::trials![a_stop_ends_the_program_and_a_start_asks_again] }
}

/// A site whose one route is this command.
fn site(command: &[&str]) -> Site {
    site_of([("own", command)])
}

/// A site whose routes are these commands.
fn site_of<const N: usize>(commands: [(&str, &[&str]); N]) -> Site {
    let unused = Receiver::on_loopback().unwrap();
    let site = Site::new(unused.address()).unwrap();
    let text = fs::read_to_string(site.config()).unwrap();
    let (head, _) = text.split_once("[http.recovery]").unwrap();
    let table = |(name, command): (&str, &[&str])| {
        format!("[exec.{name}]\ncommand = {}\n", serde_json::to_string(command).unwrap())
    };
    let routes: String = commands.into_iter().map(table).collect();
    fs::write(site.config(), format!("{head}{routes}")).unwrap();
    site
}

fn mark(site: &Site) -> Option<Value> {
    let shown = site.said(&["show", "compute1", "--json"]).ok()?;
    serde_json::from_str::<Value>(&shown).ok().map(|shown| shown[0].clone())
}

/// S1-17, S1-33: refused once and taken then, with the same bytes; the shell of the example cuts the event out.
fn a_program_gets_a_host_and_settles_it() {
    let receiver = Receiver::on_loopback().unwrap();
    receiver.answer_next(Answer::Status(503));
    let (script, url) = (source("docs/examples/exec-driver.sh"), format!("http://{}/v1", receiver.address()));
    let mut site = site(&["/bin/sh", script.to_str().unwrap(), &url]);
    site.start().unwrap();
    site.fence("compute1").unwrap();
    let got = receiver.wait_for(2, LIMIT).unwrap();
    assert_eq!(got[0].body, got[1].body);
    let event: Value = serde_json::from_slice(&got[0].body).unwrap();
    assert_eq!(event["payload"]["hostname"], "compute1.my.cloud.com");
    assert_eq!(got[0].header("idempotency-key"), Some(event["id"].to_string().as_str()));
    let settled = || Ok(mark(&site).filter(|mark| mark["state"] == "acknowledged"));
    let mark = wait::until("compute1 is settled", LIMIT, settled).unwrap();
    assert_eq!(mark["deliveries"][0]["attempts"], 2, "{mark}");
}

/// Each report of the programs under test; `None` where all of them have ended.
fn reports(place: &Path) -> Channel<Option<String>> {
    let (sender, reports) = channel();
    let place = place.to_owned();
    thread::spawn(move || {
        // Opening waits for a program, and again for the next one.
        while let Ok(pipe) = File::open(&place) {
            let lines = BufReader::new(pipe).lines().map_while(Result::ok).map(Some);
            if lines.chain([None]).any(|report| sender.send(report).is_err()) {
                return;
            }
        }
    });
    reports
}

/// What it came to is not known then: the next daemon asks again.
fn a_stop_ends_the_program_and_a_start_asks_again() {
    let room = tempfile::tempdir().unwrap();
    let place = room.path().join("reports");
    nix::unistd::mkfifo(&place, Mode::S_IRWXU).unwrap();
    let hang = "trap '' TERM; exec 3> \"$1\"; echo started >&3; sleep 1000 & wait";
    let mut site = site(&["/bin/sh", "-c", hang, "sh", place.to_str().unwrap()]);
    let reports = reports(&place);
    site.fence("compute1").unwrap();
    for _ in 0..2 {
        site.start().unwrap();
        assert_eq!(reports.recv_timeout(LIMIT).unwrap(), Some("started".to_owned()));
        site.end(Signal::SIGTERM).unwrap();
        assert_eq!(reports.recv_timeout(LIMIT).unwrap(), None);
    }
}
