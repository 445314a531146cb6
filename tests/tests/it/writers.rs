//! Who writes which rows of the journal: the agent what is fenced, the alerter all else and what is marked by hand, and what only
//! reads: nothing.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use rusqlite::Connection;
use rusqlite::types::Value;
use tests::installed;
use tests::programs::{Site, built};
use tests::receiver::{Answer, Receiver};
use tests::trials::Group;

use crate::path::{LIMIT, until_settled};

/// Its tests. They need root: the monitor reads Pacemaker's file.
pub(crate) fn group() -> Group {
    Group { cannot: installed::lacks_root(), tests: tests::trials![each_kind_of_row_has_one_writer] }
}

type Tables = BTreeMap<String, Vec<Vec<Value>>>;

fn tables(site: &Site) -> Tables {
    let journal = Connection::open(site.journal()).unwrap();
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'";
    let mut query = journal.prepare(sql).unwrap();
    let names = query.query_map([], |row| row.get::<_, String>(0)).unwrap().map(Result::unwrap);
    names.map(|name| (name.clone(), rows(&journal, &name))).collect()
}

fn rows(journal: &Connection, table: &str) -> Vec<Vec<Value>> {
    let mut query = journal.prepare(&format!("SELECT * FROM {table}")).unwrap();
    let columns = query.column_count();
    let found = query.query_map([], |row| (0..columns).map(|at| row.get(at)).collect()).unwrap();
    found.map(Result::unwrap).collect()
}

/// The tables that are not as they were.
fn changed(before: &Tables, after: &Tables) -> Vec<String> {
    before.iter().filter(|(name, rows)| after[*name] != **rows).map(|(name, _)| name.clone()).collect()
}

/// Who wrote the newest row of the history.
fn newest_actor(site: &Site) -> String {
    let journal = Connection::open(site.journal()).unwrap();
    journal.query_row("SELECT actor FROM history ORDER BY seq DESC LIMIT 1", [], |row| row.get(0)).unwrap()
}

/// Runs the agent, which has to end with this code.
fn agent(site: &Site, action: &str, code: i32) {
    let mut command = Command::new(built("fence_mark").unwrap());
    let mut asked =
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let given = site.stdin_of_the_fencer("compute1").replace("action=off", &format!("action={action}"));
    // An action that reads no options may have ended before it has them.
    let _unread = asked.stdin.take().unwrap().write_all(given.as_bytes());
    assert_eq!(asked.wait().unwrap().code(), Some(code), "{action}");
}

/// S4-28: beside open marks, sent ones and an operator's word. The broken variants are the daemon's start, which changes more than the
/// agent may, and an operator's mark, whose fencing is the daemon's.
fn each_kind_of_row_has_one_writer() {
    let receiver = Receiver::on_loopback().unwrap();
    let mut site = Site::new(receiver.address()).unwrap();
    site.fence("compute1").unwrap();
    site.start().unwrap();
    until_settled(&site);
    receiver.answer(Answer::Status(503));
    let sent = receiver.received().len();
    site.fence("compute2").unwrap();
    receiver.wait_for(sent + 1, LIMIT).unwrap();
    site.end(Signal::SIGTERM).unwrap();

    let before = tables(&site);
    let reads = [&["list", "--all"][..], &["show", "compute1"], &["history"], &["history", "--summary"]];
    reads.iter().for_each(|words| drop(site.said(words).unwrap()));
    assert_eq!(site.alerter(&["status"]).unwrap().status.code(), Some(1), "it does not run");
    let reads = ["monitor", "status", "validate-all", "metadata", "manpage"];
    reads.iter().for_each(|action| agent(&site, action, 0));
    ["on", "reboot"].iter().for_each(|action| agent(&site, action, 1));
    assert_eq!(changed(&before, &tables(&site)), [""; 0]);
    site.fence("compute3").unwrap();
    let fenced = tables(&site);
    assert_eq!(changed(&before, &fenced), ["fencing", "history"]);
    assert_eq!(newest_actor(&site), "fence_mark");

    receiver.answer(Answer::Status(202));
    site.start().unwrap();
    until_settled(&site);
    site.end(Signal::SIGTERM).unwrap();
    let by_the_daemon = changed(&fenced, &tables(&site));
    assert!(!by_the_daemon.contains(&"fencing".to_owned()), "{by_the_daemon:?}");
    assert!(by_the_daemon.contains(&"delivery".to_owned()), "{by_the_daemon:?}");

    let before = tables(&site)["fencing"].len();
    site.start().unwrap();
    site.said(&["mark", "compute4", "--fenced", "--reason", "the rack is off"]).unwrap();
    until_settled(&site);
    site.end(Signal::SIGTERM).unwrap();
    assert_eq!(tables(&site)["fencing"].len(), before + 1, "an operator's mark has a fencing of its own");
}
