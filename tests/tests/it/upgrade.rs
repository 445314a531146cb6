//! Programs of one release and a journal of the next, in the middle of an outage: whatever meets, nothing is lost.

use nix::sys::signal::Signal;
use rusqlite::Connection;
use rusqlite::types::Value;
use tests::programs::Site;
use tests::receiver::{Answer, Receiver};
use tests::releases::{BACK, NEXT};
use tests::trials::Group;

use crate::path::{LIMIT, until};

/// Its tests. They need nothing but the built programs.
pub(crate) fn group() -> Group {
    Group::everywhere(tests::trials![
        a_daemon_leaves_the_next_schema_alone_and_sends_once_it_is_back,
        a_running_daemon_goes_on_when_its_journal_is_of_the_next_schema,
        the_schema_of_before_is_refused_and_whole,
    ])
}

/// Two indexes that journals had until Nov 22, as the statements of that day made them.
const BEFORE: &str = "CREATE INDEX delivery_ended ON delivery (route, state) WHERE state IN ('acknowledged', 'dismissed', 'cancelled');
    CREATE INDEX mark_settled ON mark (settlement, settled_at) WHERE settlement IS NOT NULL";

/// A site with one open mark whose endpoint is out of order, and no daemon.
fn outage() -> (Receiver, Site, Vec<u8>) {
    let receiver = Receiver::on_loopback().unwrap();
    receiver.answer(Answer::Status(503));
    let mut site = Site::new(receiver.address()).unwrap();
    site.fence("compute1").unwrap();
    site.start().unwrap();
    let first = receiver.wait_for(1, LIMIT).unwrap();
    (receiver, site, first[0].body.clone())
}

fn change(site: &Site, statements: &str) {
    Connection::open(site.journal()).unwrap().execute_batch(statements).unwrap();
}

/// Every row of the tables that decide what is sent.
fn rows(site: &Site) -> Vec<Vec<Value>> {
    let journal = Connection::open(site.journal()).unwrap();
    let tables = ["fencing", "mark", "folded", "delivery", "decision", "ending", "history"];
    let mut all = Vec::new();
    for table in tables {
        let mut query = journal.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let columns = query.column_count();
        let found =
            query.query_map([], |row| (0..columns).map(|at| row.get::<_, Value>(at)).collect()).unwrap();
        all.extend(found.map(Result::unwrap));
    }
    all
}

/// The message of a start that fails.
fn refusal(site: &Site) -> String {
    let before = rows(site);
    let ran = site.alerter(&["run"]).unwrap();
    assert!(!ran.status.success());
    assert_eq!(rows(site), before, "a row was touched");
    String::from_utf8(ran.stderr).unwrap()
}

/// The open mark is sent, with the bytes of the first attempt.
fn assert_sent(receiver: &Receiver, site: &mut Site, body: &[u8]) {
    receiver.answer(Answer::Status(202));
    site.start().unwrap();
    until("the mark is settled", || {
        site.said(&["list", "--all", "--json"]).unwrap().contains("\"acknowledged\"")
    });
    assert!(receiver.received().iter().all(|request| request.body == body), "sent with other bytes");
}

/// S1-16, S4-50: an older daemon starts on a newer journal: it says so and touches nothing, and the agent says the same. Once the release
/// that knows it is back, the mark is sent byte for byte.
fn a_daemon_leaves_the_next_schema_alone_and_sends_once_it_is_back() {
    let (receiver, mut site, body) = outage();
    site.end(Signal::SIGTERM).unwrap();
    change(&site, NEXT);
    let said = refusal(&site);
    assert!(said.contains("has schema 2, but this release supports only 1"), "{said}");
    let refused = site.fence("compute2").unwrap_err().to_string();
    assert!(refused.contains("but this release supports only"), "{refused}");
    change(&site, BACK);
    assert_sent(&receiver, &mut site, &body);
}

/// S1-16, S4-50: what is open when the schema changes below a daemon is sent by it.
fn a_running_daemon_goes_on_when_its_journal_is_of_the_next_schema() {
    let (receiver, mut site, body) = outage();
    change(&site, NEXT);
    receiver.answer(Answer::Status(202));
    until("the mark is settled below the daemon", || {
        let journal = Connection::open(site.journal()).unwrap();
        journal.query_row("SELECT settlement IS NOT NULL FROM mark", [], |row| row.get::<_, bool>(0)).unwrap()
    });
    assert!(receiver.received().iter().all(|request| request.body == body), "sent with other bytes");
    site.end(Signal::SIGTERM).unwrap();
    assert!(refusal(&site).contains("but this release supports only"));
}

/// There is no release before the first: a journal of an earlier state is left as it is, and is sent once it is of this one.
fn the_schema_of_before_is_refused_and_whole() {
    let (receiver, mut site, body) = outage();
    site.end(Signal::SIGTERM).unwrap();
    change(&site, BEFORE);
    let said = refusal(&site);
    assert!(
        said.contains("has not the tables of this release: wait until `list` of the other one is empty"),
        "{said}"
    );
    change(&site, "DROP INDEX delivery_ended; DROP INDEX mark_settled");
    assert_sent(&receiver, &mut site, &body);
}
