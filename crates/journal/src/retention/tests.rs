//! What goes and what stays, compared with broken variants that would make a mark again or lose an open one.

use crate::history::ALERTER;
use std::time::Duration;

use super::*;
use crate::tests::{Home, NOW, acknowledged, attempt, fencing, marked};
use crate::{HistoryFilter, Role};
use marks::fencing::Fencing;
use marks::id::NoteId;
use marks::outage::Outage;
use marks::register::{About, Decision, Ending, Register, Scope};
use marks::rule::Rule;

const DAY: Duration = Duration::from_secs(86_400);
/// Long after everything that the tests write at `NOW`.
const LATE: Timestamp = Timestamp(NOW.0 + 500 * 86_400_000);

fn bounds() -> Bounds {
    let before = LATE - DAY * 400;
    Bounds { before, decided_before: LATE - DAY * 30, max_bytes: u64::MAX, floor: LATE - DAY * 7 }
}

/// A whole round; gives how many rows, marks and others were removed.
fn prune_with(journal: &mut Journal, bounds: &Bounds, stands: &dyn Fn(&str) -> bool) -> usize {
    let (mut round, mut removed) = (Round::default(), 0);
    while !round.is_done() {
        removed += journal.prune(bounds, &mut round, stands, LATE).unwrap();
    }
    removed
}

fn prune(journal: &mut Journal) -> usize {
    prune_with(journal, &bounds(), &|_| false)
}

/// A mark that was sent and whose host came back.
fn sent(journal: &mut Journal, host: &str, at: Timestamp) -> MarkId {
    let mark = marked(journal, host, at);
    assert!(attempt(journal, mark, "recovery", &acknowledged()));
    assert!(journal.note_return(mark, at + Duration::from_secs(600), at).unwrap());
    mark
}

fn count(home: &Home, table: &str) -> i64 {
    home.raw().query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}

fn is_there(journal: &Journal, mark: MarkId) -> bool {
    journal.find_mark(mark).unwrap().is_some()
}

#[test]
fn a_mark_that_is_long_over_goes_with_all_that_is_about_it() {
    let (home, mut journal) = Home::alerter();
    let mark = sent(&mut journal, "compute1", NOW);
    let keys = [format!("m.{mark}"), format!("s.{mark}"), format!("f.{mark}"), format!("a.{mark}.recovery")];
    journal.note_published(Register::Attrd, &keys).unwrap();
    assert!(prune(&mut journal) > 0);
    for table in ["mark", "delivery", "folded", "fencing", "published", "sighting", "decision", "hold"] {
        assert_eq!(count(&home, table), 0, "{table}");
    }
    let left = journal.history(&HistoryFilter::default()).unwrap().sound;
    assert!(left.iter().all(|row| row.event == "pruned"), "{left:?}");
    assert!(left[0].detail.contains("rows of the history were removed"), "{left:?}");
    assert!(left[1].detail.contains("1 marks that had ended were removed"), "{left:?}");
    assert!(journal.unfolded_fencings().unwrap().sound.is_empty(), "nothing is new again");
    assert_eq!(prune(&mut journal), 0);
}

/// A flipped byte keeps its own rows, and no others. The broken variant, which reads every id as text, ends each round at
/// the same mark, and once ended the daemon.
#[test]
fn an_id_that_is_no_text_any_more_keeps_its_mark_alone() {
    let (home, mut journal) = Home::alerter();
    let [hurt, sound] = ["compute1", "compute2"].map(|host| sent(&mut journal, host, NOW));
    let flip = "UPDATE folded SET fencing = CAST(x'ff' AS TEXT) WHERE mark = ?1";
    let raw = home.raw();
    raw.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
    assert_eq!(raw.execute(flip, [hurt.to_string()]).unwrap(), 1);
    let lone = "INSERT INTO ending (decision, at, actor, reason, digest) VALUES (CAST(x'ff' AS TEXT), 1, '', '', x'')";
    raw.execute(lone, []).unwrap();
    assert!(prune(&mut journal) > 0);
    assert!(is_there(&journal, hurt) && !is_there(&journal, sound));
    assert_eq!(count(&home, "ending"), 1);
}

/// The broken variant removes the row that a fencing was taken in, and not the fencing: it is new again, and its mark is
/// made once more.
#[test]
fn a_fencing_goes_with_the_record_that_it_was_taken_in() {
    for whole in [true, false] {
        let (home, mut journal) = Home::alerter();
        sent(&mut journal, "compute1", NOW);
        match whole {
            true => drop(prune(&mut journal)),
            false => drop(home.raw().execute("DELETE FROM folded", []).unwrap()),
        }
        assert_eq!(journal.unfolded_fencings().unwrap().sound.is_empty(), whole);
    }
}

/// Each case alone would be removed but for the one named thing; `true` is its broken variant: without that thing it
/// goes.
#[test]
fn what_is_open_young_or_needed_stays() {
    type Change = fn(&mut Journal, &Home, MarkId);
    let cases: [(&str, Change); 6] = [
        ("it was fenced again yesterday", |journal, _, mark| {
            let late = LATE - DAY;
            let again = Fencing { asked_at: late, committed_at: late, ..fencing("compute1") };
            journal.append_fencing(&again).unwrap();
            journal.add_to_mark(&again, (mark, Rule::SameConnection), late).unwrap();
        }),
        ("it came back yesterday", |_, home, mark| {
            let mut journal = home.open(Role::Alerter);
            let write = |transaction: &Transaction<'_>| -> Wrote {
                let row = row::load(transaction, mark)?.unwrap();
                Ok(row::update(transaction, &MarkRow { returned_at: Some(LATE - DAY), ..row })?)
            };
            journal.write(write).unwrap();
        }),
        ("its host was never seen to be back", |_, home, mark| {
            let mut journal = home.open(Role::Alerter);
            let write = |transaction: &Transaction<'_>| -> Wrote {
                let row = row::load(transaction, mark)?.unwrap();
                Ok(row::update(transaction, &MarkRow { returned_at: None, ..row })?)
            };
            journal.write(write).unwrap();
        }),
        ("its row is damaged", |_, home, _| {
            home.raw().execute("UPDATE mark SET fqdn = 'compute9.example.org'", []).unwrap();
        }),
        ("a delivery's row is damaged", |_, home, _| {
            home.raw().execute("UPDATE delivery SET body = x'00'", []).unwrap();
        }),
        ("what took its fencing in is damaged", |_, home, _| {
            home.raw().execute("UPDATE folded SET digest = x'00'", []).unwrap();
        }),
    ];
    for (why, change) in cases {
        for is_broken in [false, true] {
            let (home, mut journal) = Home::alerter();
            let mark = sent(&mut journal, "compute1", NOW);
            if !is_broken {
                change(&mut journal, &home, mark);
            }
            prune(&mut journal);
            assert_eq!(is_there(&journal, mark), !is_broken, "{why}");
        }
    }
}

/// The entry would be read again, and the mark made once more.
#[test]
fn what_stands_in_the_register_stays() {
    for kind in ["m", "s", "f", "r"] {
        let (_home, mut journal) = Home::alerter();
        let mark = sent(&mut journal, "compute1", NOW);
        prune_with(&mut journal, &bounds(), &|key| key == format!("{kind}.{mark}"));
        assert!(is_there(&journal, mark), "{kind}");
        prune(&mut journal);
        assert!(!is_there(&journal, mark), "the broken variant");
    }
}

/// Otherwise an older mark would become the host's newest one, and take in records of the next outage.
#[test]
fn a_host_loses_its_oldest_mark_first() {
    let (_home, mut journal, never_back) = Home::marked();
    assert!(attempt(&mut journal, never_back, "recovery", &acknowledged()));
    let back = sent(&mut journal, "Compute1", NOW + DAY);
    prune(&mut journal);
    assert!(is_there(&journal, never_back) && is_there(&journal, back));
    assert!(journal.note_return(never_back, NOW + DAY, NOW).unwrap());
    prune(&mut journal);
    assert!(!is_there(&journal, never_back) && !is_there(&journal, back));
}

/// Removal does not change later decisions: for every next fencing the remaining outages give the same result as all.
#[test]
fn no_outage_is_forgotten_that_a_fencing_of_today_could_belong_to() {
    let (_home, mut journal) = Home::alerter();
    for day in [0, 10, 20] {
        sent(&mut journal, "compute1", NOW + DAY * day);
    }
    let before = journal.outages_of(&marks::host::HostName::parse("compute1").unwrap()).unwrap();
    prune(&mut journal);
    let after = journal.outages_of(&marks::host::HostName::parse("compute1").unwrap()).unwrap();
    let gone: Vec<&Outage> = before.iter().filter(|outage| !after.contains(outage)).collect();
    assert_eq!(gone.len(), 3);
    assert!(gone.iter().all(|outage| outage.returned_at.is_some_and(|back| back < bounds().before)));
}

#[test]
fn a_fencing_that_made_no_mark_goes_and_one_that_was_never_read_stays() {
    let (home, mut journal) = Home::alerter();
    let (aside, new) = (fencing("ctl1"), fencing("compute1"));
    journal.append_fencing(&aside).unwrap();
    journal.set_aside(&aside, (Rule::NotCovered, "no compute host"), NOW).unwrap();
    journal.append_fencing(&new).unwrap();
    let young = Fencing { asked_at: LATE, committed_at: LATE, ..fencing("ctl2") };
    journal.append_fencing(&young).unwrap();
    journal.set_aside(&young, (Rule::NotCovered, "no compute host"), LATE).unwrap();
    prune_with(&mut journal, &bounds(), &|key| key == format!("f.{}", aside.id));
    assert_eq!(count(&home, "fencing"), 3);
    prune(&mut journal);
    assert_eq!(count(&home, "fencing"), 2);
    assert_eq!(journal.unfolded_fencings().unwrap().sound, [new]);
}

/// The broken variant checks the file's size, which never shrinks: it would remove everything.
#[test]
fn too_large_a_history_goes_before_its_time_but_nothing_of_the_last_week() {
    let (_home, mut journal) = Home::alerter();
    for (days, detail) in [(30, "a month old"), (8, "a week old"), (1, "of yesterday")] {
        let (event, actor) = ("forgotten", ALERTER);
        let at = LATE - DAY * days;
        let row = NewHistory { at, event, mark: None, node: None, route: None, outcome: None, detail, actor };
        journal.append_history(&row).unwrap();
    }
    let left = |journal: &Journal| -> Vec<String> {
        let rows = journal.history(&HistoryFilter::default()).unwrap().sound;
        rows.into_iter().filter(|row| row.event != "pruned").map(|row| row.detail).collect()
    };
    let max_bytes = journal.used().unwrap();
    assert_eq!(prune_with(&mut journal, &Bounds { max_bytes, ..bounds() }, &|_| false), 0);
    assert_eq!(prune_with(&mut journal, &Bounds { max_bytes: max_bytes - 1, ..bounds() }, &|_| false), 2);
    assert_eq!(left(&journal), ["of yesterday"]);
    assert!(std::fs::metadata(journal.path()).unwrap().len() > 0);
}

/// The known fault of the first round: operators' decisions were never removed. Those in effect stay forever.
#[test]
fn decisions_go_a_month_after_their_end_and_never_before() {
    let (home, mut journal) = Home::alerter();
    let mut decide = |about, at| {
        let (id, actor, reason) = (NoteId::generate(), "alice".to_owned(), "new switch".to_owned());
        assert!(journal.decide(&Decision { id, about, at, actor, reason }).unwrap());
        id
    };
    let pause = || About::Pause { scope: Scope::All, until: None };
    let until = |until| About::Maintenance { scope: Scope::Group("rack1".into()), until };
    let (in_force, ended) = (decide(pause(), NOW), decide(pause(), NOW));
    let _over = decide(until(NOW + DAY), NOW);
    let young = decide(until(LATE - DAY), NOW);
    let _released = decide(About::ReleaseGroup("rack1".into()), NOW);
    let end = |id, at| Ending { id, at, actor: "bob".into(), reason: "done".into() };
    assert!(journal.end_decision(&end(ended, NOW)).unwrap());
    assert!(journal.adopt_ending(&end(NoteId::generate(), NOW), NOW).unwrap());
    let version = journal.decisions_version().unwrap();
    let stands = format!("p.{ended}.end");
    prune_with(&mut journal, &bounds(), &|key| key == stands);
    assert_eq!((count(&home, "decision"), count(&home, "ending")), (3, 1), "its end is in the register");
    prune(&mut journal);
    assert_eq!((count(&home, "decision"), count(&home, "ending")), (2, 0));
    let left = journal.decisions_in_force(NOW + Duration::from_secs(1)).unwrap().sound;
    assert!(left.iter().all(|decision| [in_force, young].contains(&decision.id)));
    assert_eq!(journal.decisions_version().unwrap(), version, "a plan that was made by it stays right");
    let pause = Decision {
        id: NoteId::generate(),
        about: pause(),
        at: LATE,
        actor: "alice".into(),
        reason: "again".into(),
    };
    journal.decide(&pause).unwrap();
    assert!(journal.decisions_version().unwrap() > version);
}
