//! Pause and maintenance, as operators and their scripts give them.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};
use serde_json::Value;
use tests::lab::wait;
use tests::programs::{Site, built};
use tests::trials::Group;

const LIMIT: Duration = Duration::from_secs(40);

const CONFIGURATION: &str =
    "[groups.rack1]\nhosts = [\"r1-*\"]\n[exec.recovery]\ncommand = [\"/bin/true\"]\n";

/// Its tests; they run everywhere.
pub(crate) fn group() -> Group {
    let tests = tests::trials![
        a_maintenance_ends_with_its_command,
        a_signal_reaches_the_command_and_the_maintenance_ends,
        what_the_caller_ignores_the_command_ignores_too,
        a_maintenance_is_ended_by_the_next_daemon,
        without_waiting_for_a_daemon_it_is_said_that_the_maintenance_goes_on,
        a_maintenance_ends_by_its_time_and_a_pause_does_not,
        names_that_nobody_knows_are_refused_with_the_known_ones,
        what_is_decided_is_listed_without_a_daemon,
        a_group_with_another_name_stays_paused,
    ];
    Group { cannot: None, tests }
}

fn running() -> Site {
    let mut site = Site::with(CONFIGURATION).unwrap();
    site.start().unwrap();
    site
}

#[track_caller]
fn done(site: &Site, words: &[&str]) -> String {
    let output = site.alerter(words).unwrap();
    assert!(output.status.success(), "{words:?}: {}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned()).concat()
}

/// The hosts and groups on maintenance.
fn listed(site: &Site) -> Vec<String> {
    let all: Value = serde_json::from_str(&done(site, &["maintenance", "list", "--json"])).unwrap();
    let name = |one: &Value| one["host"].as_str().or(one["group"].as_str()).unwrap().to_owned();
    all.as_array().unwrap().iter().map(name).collect()
}

/// Event and sentence of each decision, oldest first.
fn story(site: &Site) -> Vec<(String, String)> {
    let all: Value = serde_json::from_str(&done(site, &["history", "--json"])).unwrap();
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    all.as_array().unwrap().iter().map(|row| (text(row, "event"), text(row, "detail"))).collect()
}

/// S0-3, S0-38, S0-40: it holds while the command runs and ends with it, whatever became of the command, and the caller
/// sees the command's own code. The broken variant ends it only where the command succeeds.
fn a_maintenance_ends_with_its_command() {
    let mut site = running();
    let (own, config) = (built("nova-host-alerter").unwrap(), site.config());
    let list = format!("{} maintenance list --json --config {}", own.display(), config.display());
    let seen = site.directory().join("seen");
    for (ending, wanted) in [("exit 0", 0), ("exit 17", 17), ("kill -KILL $$", 137)] {
        let script = format!("{list} > {}; {ending}", seen.display());
        let output = bracket(&site, &script).output().unwrap();
        assert_eq!(output.status.code(), Some(wanted), "{}", said(&output));
        let meanwhile = fs::read_to_string(&seen).unwrap();
        assert!(meanwhile.contains("\"compute1\""), "{meanwhile}");
        assert_eq!(listed(&site), Vec::<String>::new());
        let (event, detail) = story(&site).pop().unwrap();
        assert_eq!(event, "maintenance-ended");
        assert!(detail.ends_with(&format!("ended with {wanted}")), "{detail}");
    }
    let words = ["run", "compute1", "--reason", "x", "--for", "1h", "--json", "--", "/no/such/command"];
    let output = alerter(&site, &words).output().unwrap();
    assert_eq!(output.status.code(), Some(127));
    let ran: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&ran["code"], &ran["ended"]), (&Value::from(127), &Value::from(true)));
    site.end(Signal::SIGTERM).unwrap();
    let output = bracket(&site, &format!("touch {}/ran", site.directory().display())).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "without a daemon there is no maintenance");
    assert!(!site.directory().join("ran").exists(), "and without that no command is run");
}

/// A program that ignores no signal, whatever these tests were started by.
fn unignoring(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("env");
    command.arg("--default-signal").arg(program);
    command
}

fn alerter(site: &Site, words: &[&str]) -> Command {
    let mut command = unignoring(built("nova-host-alerter").unwrap());
    command.arg("--config").arg(site.config()).arg("maintenance").args(words).stdin(Stdio::null());
    command
}

fn bracket(site: &Site, script: &str) -> Command {
    let words = ["run", "compute1", "--reason", "new disk", "--for", "1h", "--", "/bin/sh", "-c", script];
    alerter(site, &words)
}

/// S0-40: a signal to the bracket ends the operation, and no command is left behind. The broken variant dies of
/// the signal: the command goes on, and so does the maintenance.
fn a_signal_reaches_the_command_and_the_maintenance_ends() {
    let mut site = running();
    let (up, down) = (site.directory().join("up"), site.directory().join("down"));
    for (signal, word) in [(Signal::SIGTERM, "TERM"), (Signal::SIGINT, "INT"), (Signal::SIGHUP, "HUP")] {
        let script = format!(
            "trap 'echo {word} > {}; exit 5' {word}; echo $$ > {}; while :; do sleep 0.05; done",
            down.display(),
            up.display()
        );
        let mut running = bracket(&site, &script).stderr(Stdio::null()).spawn().unwrap();
        let command = until_written(&up);
        assert_eq!(listed(&site), ["compute1"]);
        kill(Pid::from_raw(running.id().cast_signed()), signal).unwrap();
        assert_eq!(running.wait().unwrap().code(), Some(5), "{word}");
        assert_eq!(fs::read_to_string(&down).unwrap().trim(), word);
        assert!(!Path::new(&format!("/proc/{command}")).exists(), "the command is left behind");
        assert_eq!(listed(&site), Vec::<String>::new());
        fs::remove_file(&up).unwrap();
    }
    site.end(Signal::SIGTERM).unwrap();
}

/// `nohup` and jobs in the background: the mask of ignored signals (proc(5)) is odd where SIGHUP is among them. The broken
/// variant listens to every signal, and the command would die of a terminal that goes away.
fn what_the_caller_ignores_the_command_ignores_too() {
    let mut site = running();
    let (own, config) = (built("nova-host-alerter").unwrap(), site.config());
    let check = "grep -q '^SigIgn:.*[13579bdf]$' /proc/self/status";
    for (trap, wanted) in [("trap '' HUP;", 0), ("", 1)] {
        let script = format!(
            "{trap} exec {} --config {} maintenance run compute1 --reason x --for 1h -- {check}",
            own.display(),
            config.display()
        );
        let output = unignoring("/bin/sh").args(["-c", &script]).output().unwrap();
        assert_eq!(output.status.code(), Some(wanted), "{trap}: {}", said(&output));
    }
    site.end(Signal::SIGTERM).unwrap();
}

/// Runs a command within a maintenance and kills the daemon meanwhile; returns when the end of the maintenance was asked for
/// without success.
fn bracket_without_its_daemon(site: &mut Site) -> (Child, BufReader<ChildStderr>) {
    let (up, go) = (site.directory().join("up"), site.directory().join("go"));
    mkfifo(&go, Mode::S_IRWXU).unwrap();
    let script = format!("echo $$ > {}; read -r word < {}; exit 5", up.display(), go.display());
    let mut running = bracket(site, &script).stderr(Stdio::piped()).spawn().unwrap();
    until_written(&up);
    site.end(Signal::SIGKILL).unwrap();
    fs::write(&go, "go\n").unwrap();
    let mut said = BufReader::new(running.stderr.take().unwrap());
    until_said(&mut said, "has not ended yet");
    (running, said)
}

/// Reads until a line has this in it.
fn until_said(said: &mut impl BufRead, wanted: &str) -> String {
    let mut lines = said.lines().map(Result::unwrap);
    lines.find(|line| line.contains(wanted)).unwrap_or_else(|| panic!("it never said {wanted}"))
}

/// S0-40: the alerter moves just when the command ends. The broken variant asks once: the maintenance lasts until its time.
fn a_maintenance_is_ended_by_the_next_daemon() {
    let mut site = running();
    let (mut running, mut said) = bracket_without_its_daemon(&mut site);
    assert_eq!(listed(&site), ["compute1"]);
    site.start().unwrap();
    until_said(&mut said, "1 maintenance(s)");
    assert_eq!(running.wait().unwrap().code(), Some(5));
    assert_eq!(listed(&site), Vec::<String>::new());
    site.end(Signal::SIGTERM).unwrap();
}

fn without_waiting_for_a_daemon_it_is_said_that_the_maintenance_goes_on() {
    let mut site = running();
    let (mut running, mut said) = bracket_without_its_daemon(&mut site);
    kill(Pid::from_raw(running.id().cast_signed()), Signal::SIGTERM).unwrap();
    let loud = until_said(&mut said, "ATTENTION");
    assert!(loud.contains("`nova-host-alerter maintenance end compute1`"), "{loud}");
    assert_eq!(running.wait().unwrap().code(), Some(5), "the command's own code");
    assert_eq!(listed(&site), ["compute1"]);
}

fn until_written(path: &Path) -> String {
    wait::until("the command runs", LIMIT, || {
        let text = fs::read_to_string(path).unwrap_or_default();
        Ok(text.ends_with('\n').then(|| text.trim().to_owned()))
    })
    .unwrap()
}

/// S0-40: it is not ended, and the daemon dies meanwhile. A pause without a time stays until `resume`, and says how many
/// there were.
fn a_maintenance_ends_by_its_time_and_a_pause_does_not() {
    let mut site = running();
    done(&site, &["maintenance", "begin", "--group", "rack1", "--reason", "switch", "--for", "1s"]);
    for _ in 0..2 {
        done(&site, &["pause", "--reason", "move"]);
    }
    done(&site, &["pause", "--group", "rack1", "--reason", "move", "--for", "2h"]);
    site.end(Signal::SIGKILL).unwrap();
    site.start().unwrap();
    wait::until("the maintenance is over", LIMIT, || Ok(listed(&site).is_empty().then_some(()))).unwrap();
    assert!(done(&site, &["maintenance", "end", "--group", "rack1"]).contains("no maintenance"));
    assert!(done(&site, &["resume", "--reason", "moved"]).starts_with("2 pause(s) of all groups"));
    assert!(done(&site, &["resume"]).starts_with("there is no pause"));
    assert!(done(&site, &["resume", "--group", "rack1"]).starts_with("1 pause(s) of group rack1"));
    let events: Vec<String> = story(&site).into_iter().map(|(event, _)| event).collect();
    assert_eq!(events, ["maintenance-began", "paused", "paused", "paused", "resumed", "resumed", "resumed"]);
    site.end(Signal::SIGTERM).unwrap();
}

fn names_that_nobody_knows_are_refused_with_the_known_ones() {
    let mut site = running();
    for words in [
        &["pause", "--group", "rack2", "--reason", "x"][..],
        &["resume", "--group", "rack2"],
        &["release", "--group", "rack2", "--reason", "x"],
        &["maintenance", "begin", "--group", "rack2", "--reason", "x", "--for", "1h"],
        &["maintenance", "end", "--group", "rack2"],
    ] {
        let output = site.alerter(words).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(said(&output).contains("known are rack1, default"), "{}", said(&output));
    }
    let output = site.alerter(&["pause", "--reason", " "]).unwrap();
    assert!(output.status.code() == Some(2) && said(&output).contains("needs a reason"), "{}", said(&output));
    let output = site.alerter(&["release", "--group", "rack1", "--reason", "seen"]).unwrap();
    assert_eq!(output.status.code(), Some(1), "what is not held is not released");
    assert!(said(&output).contains("no storm holds a mark of group rack1"), "{}", said(&output));
    done(&site, &["pause", "--group", "default", "--reason", "x", "--json"]);
    site.end(Signal::SIGTERM).unwrap();
}

fn what_is_decided_is_listed_without_a_daemon() {
    let mut site = running();
    done(&site, &["maintenance", "begin", "compute1", "--reason", "new disk", "--for", "2h"]);
    done(&site, &["maintenance", "begin", "compute2", "--reason", "new disk", "--for", "2h"]);
    assert!(
        done(&site, &["maintenance", "end", "COMPUTE2"]).starts_with("1 maintenance(s) of host COMPUTE2")
    );
    site.end(Signal::SIGTERM).unwrap();
    let shown = done(&site, &["maintenance", "list"]);
    assert!(shown.contains("host compute1") && shown.contains("new disk"), "{shown}");
    assert_eq!(shown.lines().count(), 2, "{shown}");
}

/// S0-3: the name goes while the daemon is down. Nobody knows which hosts were meant, so all are held, loudly, until the pause of
/// that name is ended. A daemon that drops what it has no group for acknowledges the mark at once.
fn a_group_with_another_name_stays_paused() {
    let mut site = running();
    done(&site, &["pause", "--group", "rack1", "--reason", "move"]);
    site.end(Signal::SIGTERM).unwrap();
    let text = fs::read_to_string(site.config()).unwrap();
    fs::write(site.config(), text.replace("[groups.rack1]", "[groups.row1]")).unwrap();
    site.start().unwrap();
    site.fence("r1-c1").unwrap();
    let state = || {
        let all: Value = serde_json::from_str(&done(&site, &["list", "--all", "--json"])).unwrap();
        all[0]["state"].as_str().filter(|state| *state != "open").map(str::to_owned)
    };
    let settled = || wait::until("it is held or sent", LIMIT, || Ok(state())).unwrap();
    assert_eq!(settled(), "held");
    let check = site.alerter(&["status", "--check"]).unwrap();
    assert_eq!(check.status.code(), Some(2), "{}", said(&check));
    let status = said(&site.alerter(&["status"]).unwrap());
    assert!(status.contains("`nova-host-alerter resume --group rack1`"), "{status}");
    assert!(done(&site, &["resume", "--group", "rack1"]).starts_with("1 pause(s) of group rack1"));
    wait::until("it is sent", LIMIT, || Ok((state().as_deref() == Some("acknowledged")).then_some(())))
        .unwrap();
    site.end(Signal::SIGTERM).unwrap();
}
