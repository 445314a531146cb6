//! Exports and reports agree with the journal: each figure is compared with a query of the database itself.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use alerter::cli::Cli;
use alerter::commands;
use alerter::surface::markup::sent;
use alerter::surface::report::{Numbers, page, read};
use clap::Parser as _;
use journal::{Journal, NewHistory, Role};
use marks::host::HostName;
use marks::time::Timestamp;
use rusqlite::{Connection, params};
use serde_json::Value;

use crate::config;
use crate::site::{Alerter, Site, lacks_evidence};

/// Four outages of three hosts: one host twice, one while a route is down, one that an operator ends; and an `off` that is
/// repeated.
fn story() -> (Site, Alerter, Timestamp) {
    let mut site = Site::new(&["compute1", "compute2", "compute3"]);
    let from = site.now;
    let mut alerter = Alerter::start(&site, "ctl1");
    alerter.run(&mut site, 2);
    for _ in 0..2 {
        site.outage("compute1", "ctl1");
        alerter.run(&mut site, 40);
        site.back("compute1", "ctl1");
        alerter.run(&mut site, 400);
    }
    site.down.insert("nova");
    site.outage("compute2", "ctl1");
    alerter.run(&mut site, 60);
    site.off("ctl1", "compute2");
    alerter.run(&mut site, 20);
    site.outage("compute3", "ctl1");
    alerter.run(&mut site, 20);
    let third = alerter.marks("compute3")[0].id;
    alerter.unmark(&site, third);
    site.down.clear();
    alerter.run(&mut site, 900);
    (site, alerter, from)
}

fn ask(raw: &Connection, sql: &str) -> u64 {
    raw.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap().try_into().unwrap()
}

#[test]
fn the_figures_of_a_report_are_those_of_the_journal() {
    if lacks_evidence() {
        return;
    }
    let (site, alerter, from) = story();
    let facts = read::read(&alerter.journal, from, site.now, |_| ()).unwrap();
    let numbers = Numbers::of(&facts, from, site.now);
    let raw = Connection::open(alerter.journal.path()).unwrap();
    let count = |sql: &str| usize::try_from(ask(&raw, &format!("SELECT count(*) FROM {sql}"))).unwrap();
    let outages = &numbers.outages;
    assert_eq!((outages.all, outages.hosts), (count("mark"), count("(SELECT DISTINCT node FROM mark)")));
    assert_eq!((outages.all, outages.acknowledged), (4, count("mark WHERE settlement = 'acknowledged'")));
    assert_eq!((outages.dismissed, outages.open), (count("mark WHERE settlement = 'dismissed'"), 0));
    assert_eq!(numbers.duplicates, count("history WHERE event = 'fenced-again'"));
    assert!(numbers.duplicates > 0);
    for route in ["nova", "backup"] {
        let of = &numbers.by_route[route];
        let taken = format!("FROM delivery WHERE state = 'acknowledged' AND route = '{route}'");
        assert_eq!(of.count as u64, ask(&raw, &format!("SELECT count(*) {taken}")), "{route}");
        assert_eq!(of.max, ask(&raw, &format!("SELECT max(ended_at - failure_time) {taken}")), "{route}");
    }
    let slowest = "SELECT max(t) FROM (SELECT max(d.ended_at - d.failure_time) t FROM delivery d JOIN mark m ON m.id = d.mark
                   WHERE m.settlement = 'acknowledged' GROUP BY d.mark)";
    assert_eq!(numbers.acknowledged.unwrap().max, ask(&raw, slowest));
    assert_eq!((numbers.slowest[0].host.as_str(), numbers.slowest.len()), ("compute2", 3));
    assert!(numbers.slowest[0].causes.iter().any(|cause| cause.starts_with("not-accepted (nova)")));
    assert_eq!((numbers.repeated.len(), numbers.repeated[0].host.as_str()), (1, "compute1"));
    let trouble: Vec<&str> = numbers.trouble.iter().map(|trouble| trouble.route.as_str()).collect();
    assert_eq!(trouble, ["nova"]);
    assert!(numbers.trouble[0].to.is_some());
    assert_eq!((numbers.operators.len(), numbers.operators[0].actor.as_str()), (1, "alice"));
    assert_eq!((numbers.ended.len(), numbers.damaged), (1, 0));
    let page = sent(page(&numbers, "ctl1", &Default::default()));
    assert!(page.contains("<dt>outages</dt><dd>4</dd>") && page.contains("<dt>acknowledged</dt><dd>3</dd>"));
}

/// The broken variant reads all days: what came before or after counts too.
#[test]
fn a_report_is_about_its_days_alone() {
    if lacks_evidence() {
        return;
    }
    let (site, alerter, from) = story();
    for (from, to) in [(from - std::time::Duration::from_secs(60), from), (site.now, Timestamp(i64::MAX))] {
        let facts = read::read(&alerter.journal, from, to, |_| ()).unwrap();
        let numbers = Numbers::of(&facts, from, to);
        assert_eq!((numbers.outages.all, numbers.held.times, numbers.duplicates), (0, 0, 0));
        assert!(numbers.trouble.is_empty() && numbers.operators.is_empty() && numbers.ended.is_empty());
    }
}

/// A journal with so many rows in its history, and a configuration that names it.
fn room(rows: i64) -> (config::Site, Journal, PathBuf) {
    let room = config::Site::new("");
    let path = room.path("state/marks.db");
    let room =
        room.with("alerter.toml", format!("[store]\npath = \"{}\"\nregister = \"none\"\n", path.display()));
    let mut journal = Journal::open(&path, Role::Alerter).unwrap();
    for number in 1..=rows {
        write(&mut journal, &format!("row, number {number}"));
    }
    (room, journal, path)
}

fn write(journal: &mut Journal, detail: &str) {
    let node = HostName::parse("compute1").unwrap();
    let (at, event, actor) = (Timestamp(1_800_000_000_000), "retry", "alice (uid 0)");
    let row = NewHistory {
        at,
        event,
        mark: None,
        node: Some(&node),
        route: Some("recovery"),
        outcome: None,
        detail,
        actor,
    };
    journal.append_history(&row).unwrap();
}

fn run(room: &config::Site, line: &str) -> (String, String) {
    let (config, output) = (room.path("alerter.toml"), room.path("out"));
    let words = ["nova-host-alerter", "--config", config.to_str().unwrap()];
    let words = words.into_iter().chain(line.split(' ')).chain(["--output", output.to_str().unwrap()]);
    let code = commands::run(&Cli::parse_from(words)).unwrap();
    (format!("{code:?}"), fs::read_to_string(output).unwrap())
}

/// In order, more than are in memory at once, and while the daemon has the journal open; the next reading goes on after its
/// last row.
#[test]
fn the_history_is_exported_in_order_and_goes_on_where_it_ended() {
    let (room, mut journal, _) = room(600);
    let numbers = |text: &str| -> Vec<i64> {
        let read = |line: &str| serde_json::from_str::<Value>(line).unwrap()["seq"].as_i64().unwrap();
        text.lines().map(read).collect()
    };
    let (code, text) = run(&room, "history export");
    assert_eq!((code, numbers(&text)), (format!("{:?}", ExitCode::SUCCESS), (1..=600).collect()));
    write(&mut journal, "one more");
    assert_eq!(numbers(&run(&room, "history export --after 600").1), [601]);
    let (_, text) = run(&room, "history export --format csv --after 599");
    let wanted = "seq,at,event,mark,host,route,outcome,detail,actor\r\n\
         600,2027-01-15T08:00:00.000Z,retry,,compute1,recovery,,\"row, number 600\",alice (uid 0)\r\n\
         601,2027-01-15T08:00:00.000Z,retry,,compute1,recovery,,one more,alice (uid 0)\r\n";
    assert_eq!(text, wanted);
    let (_, text) = run(&room, "history export --until 2027-01-15T08:00:00Z");
    assert_eq!(text, "");
}

/// The broken variant skips it and reports success.
#[test]
fn a_damaged_row_makes_an_export_fail_and_the_rest_is_there() {
    let (room, _journal, path) = room(5);
    let raw = Connection::open(path).unwrap();
    raw.execute("DELETE FROM history WHERE seq = 3", []).unwrap();
    let sql = "INSERT INTO history (seq, at, event, detail, actor, digest) VALUES (3, ?1, 'retry', 'x', 'mallory', x'00')";
    raw.execute(sql, params![1_800_000_000_000_i64]).unwrap();
    let (code, text) = run(&room, "history export");
    assert_eq!((code, text.lines().count()), (format!("{:?}", ExitCode::FAILURE), 4));
    assert!(!text.contains("mallory"));
    let (_, page) = run(&room, "report --since 2027-01-01 --until 2027-02-01");
    assert!(
        page.starts_with("<!DOCTYPE html>") && page.contains("1 damaged rows") && !page.contains("mallory")
    );
    let (_, json) = run(&room, "report --since 2027-01-01 --until 2027-02-01 --json");
    let numbers: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((numbers["damaged"].as_u64(), numbers["outages"]["all"].as_u64()), (Some(1), Some(0)));
}
