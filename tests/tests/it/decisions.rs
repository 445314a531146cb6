//! Pause and maintenance, as operators and their scripts give them.

use std::fs;
use std::process::Output;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;
use tests::lab::wait;
use tests::programs::Site;
use tests::trials::Group;

const LIMIT: Duration = Duration::from_secs(40);

const CONFIGURATION: &str =
    "[groups.rack1]\nhosts = [\"r1-*\"]\n[exec.recovery]\ncommand = [\"/bin/true\"]\n";

/// Its tests; they run everywhere.
pub(crate) fn group() -> Group {
    Group::everywhere(tests::trials![
        a_maintenance_ends_by_its_time_and_a_pause_does_not,
        names_that_nobody_knows_are_refused_with_the_known_ones,
        a_group_with_another_name_stays_paused,
    ])
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
