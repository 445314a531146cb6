//! The notice channel of the built daemon: what an operator gets of a hold, of an endpoint that refuses, and of a journal
//! that cannot be written.

use std::fs;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use tests::lab::wait;
use tests::programs::Site;
use tests::receiver::{Answer, Receiver};
use tests::trials::Group;

/// Longer than the longest wait between two attempts.
const LIMIT: Duration = Duration::from_secs(40);

/// Its tests; they run everywhere.
pub(crate) fn group() -> Group {
    let tests = tests::trials![
        a_held_mark_is_sent_once_and_its_end_once,
        a_route_that_refuses_or_fails_is_reported_and_its_recovery,
        a_journal_that_is_locked_is_reported_from_memory,
        a_target_that_hangs_keeps_neither_a_mark_nor_the_stop,
    ];
    Group { cannot: None, tests }
}

/// A recovery controller, a target that gets the notices, and a site with both.
fn site(more: &str) -> (Receiver, Receiver, Site) {
    let (recovery, oncall) = (Receiver::on_loopback().unwrap(), Receiver::on_loopback().unwrap());
    let site = Site::new(recovery.address()).unwrap();
    let notice = format!("\n[notice.oncall]\nto = \"http\"\nurl = \"http://{}/\"\n{more}", oncall.address());
    fs::write(site.config(), fs::read_to_string(site.config()).unwrap() + &notice).unwrap();
    (recovery, oncall, site)
}

/// `raised held compute1` of each of the first `count` notices.
fn notices(oncall: &Receiver, count: usize) -> Vec<String> {
    let got = oncall.wait_for(count, LIMIT).unwrap();
    let word = |notice: &Value, key: &str| notice[key].as_str().unwrap_or("-").to_owned();
    let said = |body: &[u8]| {
        let notice: Value = serde_json::from_slice(body).unwrap();
        let subject = notice.get("host").or(notice.get("route")).and_then(Value::as_str).unwrap_or("-");
        format!("{} {} {subject}", word(&notice, "state"), word(&notice, "condition"))
    };
    got.iter().map(|request| said(&request.body)).collect()
}

/// Waits until the journal has so many rows of what was sent, and nothing is under way.
fn until_kept(site: &Site, rows: u32) {
    const COUNTS: &str = "SELECT count(*), count(*) FILTER (WHERE about LIKE '%perhaps%') FROM told";
    let journal = Connection::open_with_flags(site.journal(), OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let counts = || journal.query_row(COUNTS, [], |row| Ok((row.get::<_, u32>(0)?, row.get::<_, u32>(1)?)));
    wait::until("what was sent is kept", LIMIT, || Ok((counts()? == (rows, 0)).then_some(()))).unwrap();
}

/// S1-5: once, also where the daemon is started again in between; an operator ends the mark, and that is sent once too.
fn a_held_mark_is_sent_once_and_its_end_once() {
    let (recovery, oncall, mut site) = site("");
    let whole = fs::read_to_string(site.config()).unwrap();
    fs::write(site.config(), whole.replace("domain = \"my.cloud.com\"\n", "")).unwrap();
    oncall.answer_next(Answer::Status(500));
    site.start().unwrap();
    site.fence("compute1").unwrap();
    assert_eq!(notices(&oncall, 2), ["raised held compute1"; 2], "the target was down once");
    until_kept(&site, 1);
    site.end(Signal::SIGTERM).unwrap();
    site.start().unwrap();
    // Were the first one sent again, it would come before this one.
    site.fence("compute2").unwrap();
    assert_eq!(notices(&oncall, 3)[2], "raised held compute2");
    for host in ["compute1", "compute2"] {
        assert!(site.alerter(&["unmark", host, "--reason", "reported by hand"]).unwrap().status.success());
    }
    let mut ends = notices(&oncall, 5).split_off(3);
    ends.sort();
    assert_eq!(ends, ["cleared held compute1", "cleared held compute2"]);
    site.fence("compute3").unwrap();
    assert_eq!(notices(&oncall, 6)[5], "raised held compute3", "an end is sent once");
    assert_eq!(oncall.received().len(), 6);
    assert!(recovery.received().is_empty());
}

/// S1-5, S4-31: a refusal at once, a trouble when it lasts, and the recovery of both.
fn a_route_that_refuses_or_fails_is_reported_and_its_recovery() {
    let (mut recovery, oncall, mut site) = site("\n[delivery]\ndegraded-after = 1\n");
    recovery.answer(Answer::Status(401));
    site.start().unwrap();
    site.fence("compute1").unwrap();
    assert_eq!(notices(&oncall, 1), ["raised refused recovery"]);
    let tested = |name: &str| site.alerter(&["send-test", "--notice", name]).unwrap().status.success();
    assert!(tested("oncall") && !tested("other"));
    assert_eq!(oncall.wait_for(2, LIMIT).unwrap()[1].header("content-type"), Some("application/json"));
    recovery.answer(Answer::Status(200));
    assert!(site.alerter(&["retry", "--all"]).unwrap().status.success());
    assert_eq!(notices(&oncall, 3)[2], "cleared refused recovery");
    recovery.down();
    site.fence("compute2").unwrap();
    assert_eq!(notices(&oncall, 4)[3], "raised failing recovery");
    recovery.up().unwrap();
    assert_eq!(notices(&oncall, 5)[4], "cleared failing recovery");
    assert_eq!(oncall.received().len(), 5);
}

/// What was sent cannot be written down for as long as the journal is locked: it is not sent again for that.
fn a_journal_that_is_locked_is_reported_from_memory() {
    let (recovery, oncall, mut site) = site("");
    site.fence("compute1").unwrap();
    let holder = Connection::open(site.journal()).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    site.start().unwrap();
    assert_eq!(notices(&oncall, 1), ["raised journal -"]);
    assert!(recovery.received().is_empty());
    holder.execute_batch("ROLLBACK").unwrap();
    assert_eq!(notices(&oncall, 2)[1], "cleared journal -");
    recovery.wait_for(1, LIMIT).unwrap();
    assert_eq!(oncall.received().len(), 2);
}

/// S4-39: a notice informs, and nothing waits for what becomes of it.
fn a_target_that_hangs_keeps_neither_a_mark_nor_the_stop() {
    let (recovery, oncall, mut site) = site("");
    oncall.answer(Answer::Silence);
    recovery.answer_next(Answer::Status(401));
    site.start().unwrap();
    site.fence("compute1").unwrap();
    assert_eq!(notices(&oncall, 1), ["raised refused recovery"]);
    assert!(site.alerter(&["retry", "--all"]).unwrap().status.success());
    for host in ["compute2", "compute3"] {
        site.fence(host).unwrap();
    }
    recovery.wait_for(4, LIMIT).unwrap();
    let begun = Instant::now();
    site.end(Signal::SIGTERM).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(10), "Pacemaker would have killed it");
    assert_eq!(oncall.received().len(), 1, "one notice at a time");
}
