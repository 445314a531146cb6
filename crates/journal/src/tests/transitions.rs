//! Every transition of a delivery's state: each operation of the journal is done to one in each state, and the changes
//! that SQLite saw are compared with the closed tables.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::tests::{Home, NOW, acknowledged, attempt, marked_for};
use crate::{Callback, Capacity, Done, Ended, Journal, NewDelivery, Says, Verdict};
use marks::chain::Link;
use marks::delivery::State;
use marks::id::MarkId;
use marks::mark::Settlement;
use marks::register::{Acknowledgement, Settled};
use marks::terms::{IfReturned, Terms};
use marks::time::Timestamp;

const LATER: Timestamp = Timestamp(NOW.0 + 3_600_000);
const ROUTE: &str = "recovery";

/// The way of a mark to [`ROUTE`], and what else there is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Shape {
    Required,
    NotRequired,
    Chain,
}

type Act = fn(&mut Journal, MarkId) -> Done;

fn again(state: State) -> Verdict {
    Verdict::Again { state, ambiguous: true, kind: "connect".into(), detail: "refused".into(), next_due: NOW }
}

fn answered(journal: &mut Journal, mark: MarkId, verdict: Verdict) -> Done {
    let ended = Ended { mark, route: ROUTE.into(), verdict, at: NOW };
    journal.dispatch(&[ended], &[], None, NOW).map(drop)
}

fn turn(journal: &mut Journal, terms: Terms) -> Done {
    journal.dispatch(&[], &[Capacity { terms, ..Capacity::of(ROUTE, 99) }], None, LATER).map(drop)
}

fn returned(journal: &mut Journal, mark: MarkId, if_returned: IfReturned) -> Done {
    journal.note_return(mark, NOW, NOW)?;
    turn(journal, Terms { if_returned, ..Terms::default() })
}

fn settled(journal: &mut Journal, mark: MarkId, how: Settlement) -> Done {
    journal.settled_elsewhere(&Settled { mark, how, at: NOW, by: "ctl2".into() }, NOW).map(drop)
}

fn sent_elsewhere(journal: &mut Journal, mark: MarkId) -> Done {
    let entry = Acknowledgement { mark, route: ROUTE.into(), at: NOW, by: "ctl2".into() };
    journal.acknowledged_elsewhere(&entry, false, NOW).map(drop)
}

fn said(journal: &mut Journal, mark: MarkId, says: &Says) -> Done {
    let confirming = vec![ROUTE.to_owned()];
    journal
        .call_back(&Callback { mark, route: None, confirming, actor: "portal".into() }, says, NOW)
        .map(drop)
}

/// For a mark whose other routes have all ended, as the horizon wants it: the rest of a settled mark.
fn no_news(journal: &mut Journal, mark: MarkId) -> Done {
    settled(journal, mark, Settlement::Acknowledged)?;
    journal.cancel_unrequired(LATER, LATER).map(drop)
}

const REFUSES: Says = Says::Refuses { reason: String::new(), next_due: NOW };
const HAS: Says = Says::Has { reference: None, reason: None };

/// All operations on an existing delivery.
const ACTS: [(&str, Act); 26] = [
    ("its turn comes", |j, _| turn(j, Terms::default())),
    ("its host is back, and it is held", |j, m| returned(j, m, IfReturned::Hold)),
    ("its host is back, and it is cancelled", |j, m| returned(j, m, IfReturned::Cancel)),
    ("it is stale", |j, _| turn(j, Terms { stale_after: Some(Duration::from_secs(1)), ..Terms::default() })),
    ("the answer is yes", |j, m| answered(j, m, acknowledged())),
    ("there is no answer", |j, m| answered(j, m, again(State::Pending))),
    ("the answer is no", |j, m| answered(j, m, again(State::Parked))),
    ("the answer needs a person", |j, m| answered(j, m, again(State::Held))),
    ("it is taken back", |j, m| j.take_back(&[(m, ROUTE)], NOW)),
    ("the daemon starts", |j, _| j.recover(NOW).map(drop)),
    ("the clock is set back", |j, _| j.put_off_no_longer_than(Timestamp(NOW.0 - 1)).map(drop)),
    ("retry", |j, m| j.retry_now(Some(m), "", "alice", NOW).map(drop)),
    ("release", |j, m| j.release_held(m, false, ("", "alice"), NOW).map(drop)),
    ("it is not stale", |j, _| j.free_stale(ROUTE, Timestamp(0), NOW).map(drop)),
    ("the route is well", |j, _| j.wake_parked(ROUTE, Timestamp(NOW.0 - 1)).map(drop)),
    ("dismiss", |j, m| j.dismiss(m, "", "alice", NOW).map(drop)),
    ("dismiss the route", |j, _| j.dismiss_on(ROUTE, "", "alice", NOW).map(drop)),
    ("it expires", |j, m| j.expire(m, "", NOW).map(drop)),
    ("it is no news", no_news),
    ("its receiver confirms", |j, m| said(j, m, &HAS)),
    ("its receiver refuses after all", |j, m| said(j, m, &REFUSES)),
    ("sent elsewhere", sent_elsewhere),
    ("dismissed elsewhere", |j, m| settled(j, m, Settlement::Dismissed)),
    ("expired elsewhere", |j, m| settled(j, m, Settlement::Expired)),
    ("its step is refused", |j, _| j.advance_chains(&|_| true, &|_| true, NOW).map(drop)),
    ("its step's time is over", |j, _| j.advance_chains(&|_| true, &|_| true, LATER).map(drop)),
];

fn marked(journal: &mut Journal, shape: Shape, number: usize) -> MarkId {
    let link = |step| (shape == Shape::Chain).then_some(Link { step, timeout: Duration::from_secs(60) });
    let to = |route: &str, required, step| NewDelivery {
        route: route.into(),
        body: Vec::new(),
        required,
        link: link(step),
    };
    let new = [to(ROUTE, shape != Shape::NotRequired, 1), to("wiki", shape != Shape::Required, 2)];
    let mark = marked_for(journal, &format!("compute{number}"), NOW, &new);
    journal.advance_chains(&|_| true, &|_| true, NOW).unwrap();
    mark
}

/// Brings it there through an attempt. A damaged one is quarantined by its next turn.
fn bring(journal: &mut Journal, mark: MarkId, state: State) {
    match state {
        State::Pending | State::Quarantined => drop(attempt(journal, mark, ROUTE, &again(State::Pending))),
        State::InFlight => journal.begin_attempt(mark, ROUTE).unwrap(),
        State::Acknowledged => drop(attempt(journal, mark, ROUTE, &acknowledged())),
        State::Held | State::Parked => drop(attempt(journal, mark, ROUTE, &again(state))),
        State::Dismissed => drop(journal.dismiss(mark, "", "alice", NOW).unwrap()),
        State::Cancelled => drop(journal.expire(mark, "", NOW).unwrap()),
    }
}

fn damage(home: &Home, mark: MarkId) {
    let sql = "UPDATE delivery SET body = x'00' WHERE mark = ?1 AND route = ?2";
    assert_eq!(home.raw().execute(sql, [mark.to_string().as_str(), ROUTE]).unwrap(), 1);
}

/// SQLite itself reports the changes, also those that our code would hide.
fn watch(journal: &Journal) {
    let sql = "CREATE TEMP TABLE moved (was TEXT, became TEXT, PRIMARY KEY (was, became));
         CREATE TEMP TRIGGER watch AFTER UPDATE OF state ON main.delivery WHEN old.state <> new.state
         BEGIN INSERT OR IGNORE INTO moved VALUES (old.state, new.state); END";
    journal.connection.execute_batch(sql).unwrap();
}

fn moved(journal: &Journal) -> BTreeSet<(String, String)> {
    let mut query = journal.connection.prepare("SELECT was, became FROM moved").unwrap();
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

/// Does everything to a delivery of this shape in this state, one mark for each operation, and returns the changes.
fn play(shape: Shape, state: State, is_damaged: bool) -> BTreeSet<(String, String)> {
    let (home, mut journal) = Home::alerter();
    watch(&journal);
    for (number, (act, act_on)) in ACTS.iter().enumerate() {
        let mark = marked(&mut journal, shape, number);
        bring(&mut journal, mark, state);
        if is_damaged || state == State::Quarantined {
            damage(&home, mark);
        }
        if state == State::Quarantined {
            turn(&mut journal, Terms::default()).unwrap();
        }
        if let Err(error) = act_on(&mut journal, mark) {
            assert_eq!(error.kind(), "transition", "{shape:?}, {state:?}, {act}: {error}");
        }
    }
    moved(&journal)
}

fn tables() -> BTreeSet<(String, String)> {
    let pairs = State::ALL.into_iter().flat_map(|was| State::ALL.map(|next| (was, next)));
    let may = |was: State, next| was != next && (was.may_become(next) || was.may_end_elsewhere(next));
    let words = |(was, next): (State, State)| (was.as_str().to_owned(), next.as_str().to_owned());
    pairs.filter(|(was, next)| may(*was, *next)).map(words).collect()
}

/// S4-51: every transition of the tables is made here by its real operation, and no other is.
#[test]
fn what_the_journal_does_is_what_the_tables_say() {
    let mut all = BTreeSet::new();
    for shape in [Shape::Required, Shape::NotRequired, Shape::Chain] {
        for state in State::ALL {
            for is_damaged in [false, true] {
                all.extend(play(shape, state, is_damaged));
            }
        }
    }
    let tables = tables();
    let beside: Vec<_> = all.difference(&tables).collect();
    let never: Vec<_> = tables.difference(&all).collect();
    assert!(beside.is_empty() && never.is_empty(), "beside: {beside:?}; never made: {never:?}");
}

/// The broken variant: a statement that ignores the tables is seen.
#[test]
fn a_statement_that_brings_a_sent_mark_back_is_seen() {
    let (_home, mut journal) = Home::alerter();
    watch(&journal);
    let mark = marked(&mut journal, Shape::Required, 1);
    bring(&mut journal, mark, State::Acknowledged);
    assert!(moved(&journal).is_subset(&tables()));
    journal
        .connection
        .execute("UPDATE delivery SET state = 'pending' WHERE state = 'acknowledged'", [])
        .unwrap();
    assert!(moved(&journal).contains(&("acknowledged".to_owned(), "pending".to_owned())));
    assert!(!moved(&journal).is_subset(&tables()));
}
