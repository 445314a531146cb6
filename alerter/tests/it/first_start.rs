//! An alerter that starts where none ever ran and where the register is empty: a host that is down and fenced, of which nothing is
//! known, is a record that asks. It is never sent by itself.

use std::time::Duration;

use marks::fencing::{Fencing, Origin};
use marks::mark::Settlement;
use marks::register::Key;
use marks::time::Timestamp;

use crate::site::{Alerter, Kind, Mark, ROUTES, Site, begun};

const DAY: f64 = 86_400.0;

/// What Pacemaker remembers of a fencing from before.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Remembers {
    /// The history and `node_fenced`.
    All,
    /// `node_fenced` alone: the history was cleaned up.
    NodeFenced,
    /// The history alone, of a cluster node that is a compute host.
    History,
    /// A confirmation by hand, and a fencing a minute before it.
    ByHand,
}

/// A host that was fenced so many seconds ago, and no alerter was ever there. Each controller dates its history with its own clock.
fn before(remembers: Remembers, ago: f64) -> Site {
    let began = Timestamp::now() - Duration::from_secs_f64(ago + 100.0);
    let mut site = Site::at(Timestamp::from_seconds(began.seconds()), &["compute1", "compute2"]);
    if remembers == Remembers::History {
        site.make_cluster_node("compute1", Kind::Flag);
    }
    site.skews = [("ctl2", 3000), ("ctl3", -2000)].into();
    site.dates_history = true;
    site.advance(100.0);
    site.die("compute1");
    site.remember("compute1", false);
    if remembers == Remembers::ByHand {
        site.advance(60.0);
        site.remember("compute1", true);
    }
    let host = site.hosts.get_mut("compute1").unwrap();
    host.work = None;
    if remembers != Remembers::History {
        host.fenced = site.now.seconds();
    }
    if remembers == Remembers::NodeFenced {
        site.history.clear();
    }
    site.advance(ago);
    site
}

fn rows(alerter: &Alerter) -> Vec<Mark> {
    let mut all = alerter.marks("compute1");
    all.extend(alerter.marks("compute2"));
    all
}

/// How many marks wait for a person.
fn asks(alerter: &Alerter) -> usize {
    rows(alerter).iter().filter(|row| alerter.is_held(row.id)).count()
}

/// C10: it asks once, whatever Pacemaker remembers and however long ago it was, also after a restart and while the host stays down. An
/// operator's word settles it for good: after a restart, on another controller, and where the register has cleared what is older than
/// seven days. The broken variants take the alerter for the cluster's first and are silent, or ask again on each controller.
#[test]
fn a_host_that_is_down_from_before_asks_once() {
    let all = [Remembers::All, Remembers::NodeFenced, Remembers::History, Remembers::ByHand];
    for (remembers, ago) in all.into_iter().flat_map(|one| [60.0, 20.0 * DAY].map(|ago| (one, ago))) {
        for is_released in [false, true] {
            let case = format!("{remembers:?}, {ago} s ago, released: {is_released}");
            let mut site = before(remembers, ago);
            let mut first = Alerter::at_work(&mut site, "ctl1", 60);
            assert_eq!(first.standings("compute1"), ["outcome-unknown"], "{case}");
            first = Alerter::at_work(&mut site, "ctl1", 60);
            assert_eq!((asks(&first), rows(&first).len(), site.notified.len()), (1, 1, 0), "{case}");
            let id = rows(&first)[0].id;
            match is_released {
                true => first.release(&site, id),
                false => first.unmark(&site, id),
            }
            first.run(&mut site, 20);
            let sent = if is_released { ROUTES.len() } else { 0 };
            for (controller, later) in
                [("ctl1", 0.0), ("ctl2", 0.0), ("ctl2", 8.0 * DAY), ("ctl3", 8.0 * DAY)]
            {
                site.advance(later);
                let next = Alerter::at_work(&mut site, controller, 60);
                next.clear(&mut site);
                let ended = rows(&next).iter().all(|row| row.settled.is_some());
                assert_eq!((asks(&next), ended), (0, true), "{case}, on {controller} after {later} s");
                assert_eq!(site.notified.len(), sent, "{case}, on {controller} after {later} s");
            }
        }
    }
}

/// What speaks of no host that is down, or of one that is none of ours, asks nothing. The broken variant asks for every line that
/// Pacemaker remembers.
#[test]
fn what_is_back_or_not_covered_asks_nothing() {
    type Change = fn(&mut Site);
    let changes: [(&str, Change); 6] = [
        ("back", |site| site.back("compute1", "ctl1")),
        ("back and lost again, without a fencing", |site| {
            site.back("compute1", "ctl1");
            site.hosts.get_mut("compute1").unwrap().member = Some(false);
        }),
        ("a member, with a leftover", |site| site.hosts.get_mut("compute1").unwrap().member = Some(true)),
        ("nobody says whether it is there", |site| site.hosts.get_mut("compute1").unwrap().member = None),
        ("not covered", |site| site.match_hosts("[\"compute2\"]")),
        ("not in the cluster any more", |site| drop(site.hosts.remove("compute1"))),
    ];
    for (what, change) in changes {
        let mut site = before(Remembers::All, 3600.0);
        change(&mut site);
        site.advance(60.0);
        for controller in ["ctl1", "ctl2"] {
            let alerter = Alerter::at_work(&mut site, controller, 60);
            assert!(rows(&alerter).is_empty(), "{what}, on {controller}: {:?}", rows(&alerter));
        }
    }
    let mut site = before(Remembers::History, 3600.0);
    site.back("compute1", "ctl1");
    site.hosts.get_mut("compute1").unwrap().member = Some(false);
    let alerter = Alerter::at_work(&mut site, "ctl1", 60);
    assert!(rows(&alerter).is_empty(), "a cluster node was there since, and was stopped");
}

/// A host that was fenced several times before asks for the outage in which it is, and no older one.
#[test]
fn only_the_last_fencing_asks() {
    for kind in [Kind::Remote, Kind::Flag] {
        let mut site = before(if kind == Kind::Remote { Remembers::All } else { Remembers::History }, 3600.0);
        for days in [1.0, 3.0] {
            let mut older = site.history[0].clone();
            older.at = older.at - Duration::from_secs_f64(days * DAY);
            site.history.insert(0, older);
        }
        let last = site.history.last().unwrap().at;
        let alerter = Alerter::at_work(&mut site, "ctl1", 60);
        let times: Vec<Timestamp> = rows(&alerter).iter().map(|row| row.failure_time).collect();
        assert_eq!(times, [last], "{kind:?}");
    }
}

/// The register and the journals are gone, and with them that the outage was sent: it asks, and nothing is sent by itself, whatever
/// the agents of other controllers still know. When Pacemaker fences the host once more, that goes out.
#[test]
fn where_register_and_journal_are_gone_it_asks() {
    for is_fenced_again in [false, true] {
        let (mut site, mut first) = begun(&["compute1"], "ctl1");
        site.lost.insert("ctl2");
        first.meets_outage(&mut site, "compute1", "ctl1", 20);
        site.assert_all_notified();
        let sent = site.notified.len();
        site.register.clear();
        site.lost = ["ctl1"].into();
        site.advance(600.0);
        let mut second = Alerter::at_work(&mut site, "ctl2", 60);
        assert_eq!((second.standings("compute1"), site.notified.len()), (vec!["outcome-unknown"], sent));
        if is_fenced_again {
            second.meets_fencing(&mut site, "compute1", 60);
            assert_eq!(site.notified.len(), 2 * sent, "it is down now, and that is news");
        }
        assert_eq!(rows(&second).len(), 1);
    }
}

/// Another one writes what it knows while it asks: a fencing that `fence_mark` recorded elsewhere joins it, and proves nothing of now.
#[test]
fn a_record_of_another_controller_joins_what_asks() {
    let mut site = before(Remembers::All, 600.0);
    let old = Fencing {
        asked_at: site.now - Duration::from_secs(602),
        committed_at: site.now - Duration::from_secs(601),
        ..site.fencing("ctl3", "compute1")
    };
    let mut alerter = Alerter::at_work(&mut site, "ctl1", 60);
    assert_eq!(alerter.standings("compute1"), ["outcome-unknown"]);
    site.mark("ctl3", &old);
    alerter.run(&mut site, 60);
    assert_eq!((alerter.standings("compute1"), site.notified.len()), (vec!["outcome-unknown"], 0));
    assert!(site.register.contains_key(&Key::Fencing(old.id)));
}

/// Who says that the host has failed ends the question; so does its end by hand, and the host's next failure is sent.
#[test]
fn a_word_of_a_person_ends_it_and_the_next_failure_goes() {
    for is_marked in [false, true] {
        let mut site = before(Remembers::All, 600.0);
        let mut alerter = Alerter::at_work(&mut site, "ctl1", 60);
        if is_marked {
            let word = Fencing { origin: Origin::Operator, ..site.fencing("ctl1", "compute1") };
            site.mark("ctl1", &word);
            alerter.run(&mut site, 20);
            assert_eq!(site.notified.len(), ROUTES.len());
        } else {
            alerter.unmark(&site, rows(&alerter)[0].id);
        }
        assert_eq!(asks(&alerter), 0);
        site.back("compute1", "ctl1");
        site.advance(60.0);
        alerter.run(&mut site, 20);
        let sent = site.notified.len();
        alerter.meets_outage(&mut site, "compute1", "ctl2", 40);
        assert_eq!(site.notified.len(), sent + ROUTES.len(), "marked: {is_marked}");
        let ended =
            rows(&alerter).iter().filter_map(|row| row.settled).map(|(how, _)| how).collect::<Vec<_>>();
        let first = if is_marked { Settlement::Acknowledged } else { Settlement::Dismissed };
        assert_eq!(ended, [first, Settlement::Acknowledged]);
    }
}
