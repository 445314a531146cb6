//! What another alerter makes of a lost controller: nothing lost, nothing sent twice (W-rows: facts on Pacemaker, section 8).

use std::time::Duration;

use marks::delivery::State;
use marks::host::HostName;
use marks::id::MarkId;
use marks::mark::Settlement;
use marks::register::{Entry, Key, Register};
use marks::time::Timestamp;

use crate::site::{Alerter, PATIENCE, Site, begun, lacks_evidence, refused, taken};

const DAY: f64 = 86_400.0;

/// The audit itself finds each fault that it is for.
#[test]
fn the_audit_finds_what_is_wrong() {
    if lacks_evidence() {
        return;
    }
    let mut site = Site::new(&["compute1", "compute2"]);
    let mut alerter = Alerter::start(&site, "ctl1");
    site.outage("compute1", "ctl1");
    assert_eq!(site.audit().len(), 2, "two routes were not notified");
    alerter.run(&mut site, 4);
    site.assert_all_notified();
    let mut again = site.notified[0].clone();
    site.notified.push(again.clone());
    assert!(site.audit()[0].contains("sent 2 times"));
    again.body.push(b' ');
    site.notified.push(again.clone());
    assert!(site.audit().iter().any(|wrong| wrong.contains("different bytes")));
    again.id.push('0');
    site.notified.push(again.clone());
    assert!(site.audit().iter().any(|wrong| wrong.contains("under 2 ids")));
    again.node = "compute2".into();
    site.notified.push(again);
    assert!(site.audit()[0].contains("was not fenced"));
}

/// W5, W6, W7: the answer of the first mark is lost, and another controller marks the same outage again. One mark.
#[test]
fn two_controllers_mark_one_outage() {
    if lacks_evidence() {
        return;
    }
    for second in [1.0, 60.0] {
        let (mut site, mut alerter) = begun(&["compute1"], "ctl3");
        site.die("compute1");
        let first = site.off("ctl1", "compute1");
        site.advance(second);
        alerter.pass(&mut site);
        site.off("ctl2", "compute1");
        site.advance(1.0);
        site.seen_fenced("compute1");
        alerter.run(&mut site, 40);
        site.assert_all_notified();
        assert_eq!(site.notified_ids(), [first.to_string()]);
        assert_eq!(alerter.journal.fence_count(first.into()).unwrap(), 2);
    }
}

/// W8: the controller that marked loses its power right after. Its `f.` entry and Pacemaker's evidence remain.
#[test]
fn the_controller_that_marked_is_lost() {
    if lacks_evidence() {
        return;
    }
    let (mut site, mut alerter) = begun(&["compute1"], "ctl2");
    site.die("compute1");
    let fencing = site.off("ctl1", "compute1");
    site.lost.insert("ctl1");
    alerter.pass(&mut site);
    assert_eq!(alerter.standings("compute1"), ["unproven"], "nobody else vouches for it yet");
    assert!(site.notified.is_empty());
    site.advance(1.0);
    site.seen_fenced("compute1");
    alerter.run(&mut site, 40);
    site.assert_all_notified();
    assert_eq!(site.notified_ids(), [fencing.to_string()]);
}

/// W8: the same, and the register had not taken the mark: evidence makes it, with the same id on every controller.
#[test]
fn only_evidence_remains() {
    if lacks_evidence() {
        return;
    }
    let (mut site, mut second) = begun(&["compute1"], "ctl2");
    site.register_is_mute = true;
    site.die("compute1");
    site.off("ctl1", "compute1");
    site.lost.insert("ctl1");
    site.advance(1.0);
    let operation = site.seen_fenced("compute1");
    site.register_is_mute = false;
    let fenced = site.now;
    while site.notified.is_empty() {
        second.pass(&mut site);
        site.advance(1.0);
    }
    assert!(site.now.since(fenced).as_secs() >= 10, "evidence alone waits for the record of fence_mark");
    let host = HostName::parse("compute1").unwrap();
    let id = MarkId::of_operation(&host, operation);
    assert_eq!(site.notified_ids(), [id.to_string()]);
    site.assert_all_notified();
    // A third controller that never heard of the register's entry makes the same mark.
    site.register.clear();
    let mut third = Alerter::start(&site, "ctl3");
    third.take_in(&site);
    site.advance(10.0);
    third.take_in(&site);
    assert_eq!(third.marks("compute1").iter().map(|mark| mark.id).collect::<Vec<_>>(), [id]);
}

/// W8: the controller with the journal returns after its outage was sent on evidence: its record joins.
#[test]
fn a_record_that_returns_late_joins_the_mark_that_evidence_made() {
    if lacks_evidence() {
        return;
    }
    let (mut site, mut second) = begun(&["compute1"], "ctl2");
    site.register_is_mute = true;
    site.die("compute1");
    let fencing = site.off("ctl1", "compute1");
    site.lost.insert("ctl1");
    site.seen_fenced("compute1");
    site.register_is_mute = false;
    second.run(&mut site, 30);
    site.assert_all_notified();
    site.lost.clear();
    for (late, starts) in [(10.0, false), (600.0, true)] {
        site.advance(late);
        let record = site.open("ctl1").unpublished(site.outages[0].began);
        let record = record.unwrap().sound.into_iter().find(|found| found.id == fencing).unwrap();
        site.publish(Entry::Fencing(record));
        second.run(&mut site, 20);
        if starts {
            Alerter::start(&site, "ctl1").run(&mut site, 30);
        }
        site.assert_all_notified();
    }
}

/// W14, W16: one route has acknowledged and the other is down when the alerter moves: only the other is notified.
#[test]
fn a_failover_with_one_route_open() {
    if lacks_evidence() {
        return;
    }
    let mut site = Site::new(&["compute1"]);
    let mut first = Alerter::start(&site, "ctl1");
    site.down.insert("backup");
    site.outage("compute1", "ctl1");
    first.run(&mut site, 10);
    assert_eq!(site.notified.len(), 1);
    drop(first);
    site.lost.insert("ctl1");
    site.down.clear();
    let mut second = Alerter::start(&site, "ctl2");
    second.run(&mut site, 30);
    site.assert_all_notified();
}

/// A route that is not required is notified late by the alerter that settled the mark; another one, which knows only that the
/// mark is settled, does not notify it, and does not say that it was notified.
#[test]
fn a_failover_with_a_route_open_that_is_not_required() {
    if lacks_evidence() {
        return;
    }
    for moves in [false, true] {
        let mut site = Site::new(&["compute1"]);
        site.leave_the_backup_free();
        let mut alerter = Alerter::start(&site, "ctl1");
        site.down.insert("backup");
        site.outage("compute1", "ctl1");
        alerter.run(&mut site, 10);
        let settled = alerter.marks("compute1")[0].settled;
        assert!(settled.is_some_and(|(how, _)| how == Settlement::Acknowledged));
        site.down.clear();
        alerter = Alerter::start(&site, if moves { "ctl2" } else { "ctl1" });
        alerter.run(&mut site, 30);
        let notified: Vec<&str> = site.notified.iter().map(|notified| notified.route.as_str()).collect();
        let (wanted, end) = match moves {
            true => (&["nova"][..], State::Cancelled),
            false => (&["nova", "backup"][..], State::Acknowledged),
        };
        assert_eq!(notified, wanted);
        let mark = &alerter.marks("compute1")[0];
        assert_eq!(mark.settled, settled);
        let deliveries = alerter.journal.deliveries_of(mark.id).unwrap().sound;
        let ends: Vec<State> = deliveries.iter().map(|delivery| delivery.state).collect();
        assert_eq!(ends, [end, State::Acknowledged], "backup, nova");
    }
}

/// W19: the host is back before its outage could be sent, and the alerter moves. It is sent all the same, once.
#[test]
fn a_return_before_the_delivery() {
    if lacks_evidence() {
        return;
    }
    for moves in [false, true] {
        let mut site = Site::new(&["compute1"]);
        let mut alerter = Alerter::start(&site, "ctl1");
        site.down.extend(["nova", "backup"]);
        site.outage("compute1", "ctl1");
        alerter.run(&mut site, 10);
        site.back("compute1", "ctl3");
        alerter.run(&mut site, 10);
        site.down.clear();
        if moves {
            alerter = Alerter::start(&site, "ctl2");
        }
        alerter.run(&mut site, 30);
        site.assert_all_notified();
        assert!(alerter.marks("compute1")[0].returned_at.is_some());
    }
}

/// The broken variant of a failover with one route open: without the register the second alerter notifies both routes, and the audit says so.
#[test]
fn a_failover_without_the_register_is_caught() {
    if lacks_evidence() {
        return;
    }
    let mut site = Site::new(&["compute1"]);
    let mut first = Alerter::start(&site, "ctl1");
    site.down.insert("backup");
    site.outage("compute1", "ctl1");
    first.run(&mut site, 10);
    site.down.clear();
    site.register.clear();
    let mut second = Alerter::start(&site, "ctl2");
    second.run(&mut site, 30);
    assert!(site.audit().iter().any(|wrong| wrong.contains("sent 2 times to nova")), "{:?}", site.audit());
}

/// W16: nothing is sent again after a failover, whether the host is gone or back, however often the alerter moves.
#[test]
fn a_failover_after_the_end() {
    if lacks_evidence() {
        return;
    }
    for back in [false, true] {
        let mut site = Site::new(&["compute1"]);
        let mut first = Alerter::start(&site, "ctl1");
        let fencing = site.outage("compute1", "ctl1");
        first.run(&mut site, 10);
        if back {
            site.back("compute1", "ctl2");
            first.run(&mut site, 10);
        }
        for controller in ["ctl2", "ctl3", "ctl1", "ctl2"] {
            let mut next = Alerter::start(&site, controller);
            next.run(&mut site, 40);
            let marks = next.marks("compute1");
            assert_eq!(marks.len(), 1, "{controller}");
            assert!(matches!(marks[0].settled, Some((Settlement::Acknowledged, _))));
            site.advance(200.0);
        }
        site.assert_all_notified();
        assert_eq!(site.notified_ids(), [fencing.to_string()]);
    }
}

/// W17: the old alerter was stopped in the middle of an attempt and resumes when the new one has sent everything. Its
/// late failure, or its late acknowledgement, changes nothing.
#[test]
fn an_old_alerter_resumes() {
    if lacks_evidence() {
        return;
    }
    for fails in [true, false] {
        let mut site = Site::new(&["compute1"]);
        let mut old = Alerter::start(&site, "ctl1");
        site.down.insert("backup");
        site.outage("compute1", "ctl1");
        old.take_in(&site);
        old.keep_up(&mut site);
        let due = old.begin(&site, "nova").unwrap();
        site.down.clear();
        let mut new = Alerter::start(&site, "ctl2");
        new.run(&mut site, 40);
        site.assert_all_notified();
        let verdict = if fails { refused(&site) } else { taken() };
        site.advance(600.0);
        if fails {
            old.run(&mut site, 2);
            old.finish(&site, &due, &verdict);
        } else {
            old.finish(&site, &due, &verdict);
            old.run(&mut site, 2);
        }
        old.run(&mut site, 60);
        new.run(&mut site, 20);
        site.assert_all_notified();
        for alerter in [&old, &new] {
            assert!(alerter.marks("compute1").iter().all(|mark| mark.settled.is_some()));
        }
        let acknowledged = |entry: &Entry| matches!(entry, Entry::Acknowledged(taken) if taken.by == "ctl2");
        assert_eq!(site.register.values().filter(|entry| acknowledged(entry)).count(), 2, "its word stands");
    }
}

/// W14: the alerter is killed between the acknowledgement and the register. What was in flight is sent again, byte for
/// byte, and nothing else.
#[test]
fn a_kill_before_the_register_knows() {
    if lacks_evidence() {
        return;
    }
    let mut site = Site::new(&["compute1"]);
    let mut first = Alerter::start(&site, "ctl1");
    site.outage("compute1", "ctl1");
    first.take_in(&site);
    first.keep_up(&mut site);
    first.send(&mut site);
    site.lost.insert("ctl1");
    drop(first);
    Alerter::start(&site, "ctl2").run(&mut site, 40);
    let again = |route: &str| format!("compute1 was sent 2 times to {route}");
    assert_eq!(site.audit(), [again("nova"), again("backup")], "the same id and the same bytes");
}

/// W20: the whole cluster is stopped and started: register, history, `node_fenced` and all connections are forgotten,
/// and a host that is still down is fenced again. Gives what the audit says.
fn restarted(pause: f64, is_notified_before: bool) -> Vec<String> {
    let mut site = Site::new(&["compute1"]);
    let mut first = Alerter::start(&site, "ctl1");
    if !is_notified_before {
        site.down.extend(["nova", "backup"]);
    }
    site.outage("compute1", "ctl1");
    first.run(&mut site, 20);
    drop(first);
    site.register.clear();
    site.history.clear();
    site.down.clear();
    let host = site.hosts.get_mut("compute1").unwrap();
    (host.member, host.fenced) = (None, 0);
    host.connections.clear();
    site.advance(pause);
    let mut again = Alerter::start(&site, "ctl1");
    again.run(&mut site, 4);
    site.hosts.get_mut("compute1").unwrap().member = Some(false);
    site.off("ctl2", "compute1");
    site.advance(1.0);
    site.seen_fenced("compute1");
    again.run(&mut site, 40);
    Alerter::start(&site, "ctl2").run(&mut site, 40);
    site.audit()
}

/// See [`restarted`].
#[test]
fn a_restart_of_the_cluster() {
    if !lacks_evidence() {
        for is_notified_before in [false, true] {
            assert_eq!(
                restarted(100.0, is_notified_before),
                Vec::<String>::new(),
                "notified before: {is_notified_before}"
            );
        }
    }
}

/// The same with a pause that is longer than `coalesce`: no connection is known any more, so nobody knows whether the
/// host was back meanwhile. In doubt it is sent again, under another id; it is down both times. W20
#[test]
fn after_a_long_restart_a_host_that_is_fenced_again_is_reported_again() {
    if !lacks_evidence() {
        for is_notified_before in [false, true] {
            let findings = restarted(600.0, is_notified_before);
            let twice = findings
                .iter()
                .filter(|finding| finding.contains("sent 2 times") || finding.contains("2 ids"));
            assert_eq!(twice.count(), findings.len(), "{findings:?}");
        }
    }
}

/// W10: attrd loses everything while an alerter runs: what should stand is written again, all of it.
#[test]
fn a_lost_register_is_written_again() {
    if lacks_evidence() {
        return;
    }
    let mut site = Site::new(&["compute1", "compute2"]);
    let mut alerter = Alerter::start(&site, "ctl1");
    site.outage("compute1", "ctl1");
    alerter.run(&mut site, 20);
    site.down.insert("backup");
    site.outage("compute2", "ctl2");
    alerter.run(&mut site, 20);
    let before: Vec<Key> = site.register.keys().cloned().collect();
    assert!(before.len() >= 9, "f, m, two a and s; f, m and one a; w: {before:?}");
    site.register.clear();
    alerter.run(&mut site, 2);
    assert_eq!(site.register.keys().cloned().collect::<Vec<_>>(), before);
    site.down.clear();
    Alerter::start(&site, "ctl3").run(&mut site, 40);
    alerter.run(&mut site, 20);
    site.assert_all_notified();
}

/// W10, W20: all controllers lose the register and the alerter moves. A host that is still gone is reported, under a new
/// name perhaps; one that is back may have been reported and is held.
#[test]
fn a_lost_register_and_another_alerter() {
    if lacks_evidence() {
        return;
    }
    let mut site = Site::new(&["compute1", "compute2"]);
    let mut first = Alerter::start(&site, "ctl1");
    site.outage("compute1", "ctl1");
    first.run(&mut site, 20);
    site.back("compute1", "ctl2");
    site.advance(20.0);
    site.outage("compute2", "ctl1");
    site.lost.insert("ctl1");
    site.register.clear();
    let mut second = Alerter::start(&site, "ctl2");
    second.run(&mut site, 60);
    assert_eq!(second.standings("compute1"), ["outcome-unknown"]);
    site.assert_all_notified();
    // The first one returns with its journal: what it knows ends the doubt.
    site.lost.clear();
    let mut back = Alerter::start(&site, "ctl1");
    back.run(&mut site, 20);
    second.run(&mut site, 20);
    site.assert_all_notified();
}

/// An alerter is lost with an open mark, and another one sends it; the host comes back. Then all controllers stop, which
/// forgets the register, and the first one becomes active again: its journal still has the mark open. Gives the audit's
/// findings, with all that this one and the next alerters make of it.
fn open_in_an_old_journal(is_compared: bool) -> (Vec<String>, Vec<&'static str>) {
    let mut site = Site::new(&["compute1"]);
    site.down.extend(["nova", "backup"]);
    let mut first = Alerter::start(&site, "ctl1");
    site.outage("compute1", "ctl1");
    first.run(&mut site, 20);
    drop(first);
    site.down.clear();
    Alerter::start(&site, "ctl2").run(&mut site, 60);
    site.assert_all_notified();
    site.back("compute1", "ctl2");
    site.register.clear();
    site.history.clear();
    let mut again = Alerter::start(&site, "ctl1");
    again.upkeep.settled_in = !is_compared;
    again.run(&mut site, 60);
    let mut standings = again.standings("compute1");
    let mut third = Alerter::start(&site, "ctl3");
    third.run(&mut site, 60);
    standings.extend(third.standings("compute1"));
    (site.audit(), standings)
}

/// W20: it may have been sent, and the host is back: held there, and by each alerter after it.
#[test]
fn an_open_mark_of_an_old_journal_is_held_when_the_register_is_lost() {
    if !lacks_evidence() {
        let (findings, standings) = open_in_an_old_journal(true);
        assert_eq!(findings, Vec::<String>::new());
        assert_eq!(standings, ["outcome-unknown", "outcome-unknown"]);
        assert!(!open_in_an_old_journal(false).0.is_empty(), "without that rule it is sent twice");
    }
}

/// Two alerters make a mark each of one outage, and the first one could send it to nobody, nor write it into the register.
/// When it starts again, its mark ends: the outage was sent as the other's.
#[test]
fn an_open_mark_of_an_outage_that_another_alerter_sent_ends() {
    if lacks_evidence() {
        return;
    }
    let (mut site, mut first) = begun(&["compute1"], "ctl1");
    site.register_is_mute = true;
    site.down.extend(["nova", "backup"]);
    site.die("compute1");
    site.off("ctl1", "compute1");
    first.run(&mut site, 2);
    drop(first);
    site.register_is_mute = false;
    site.down.clear();
    site.lost.insert("ctl1");
    site.advance(60.0);
    site.off("ctl2", "compute1");
    site.advance(1.0);
    site.seen_fenced("compute1");
    Alerter::start(&site, "ctl2").run(&mut site, 40);
    site.assert_all_notified();
    site.lost.clear();
    let mut again = Alerter::start(&site, "ctl1");
    again.run(&mut site, 40);
    site.assert_all_notified();
    let ends: Vec<_> = again.marks("compute1").iter().map(|mark| mark.settled.map(|(how, _)| how)).collect();
    assert_eq!(ends, [Some(Settlement::Expired), Some(Settlement::Acknowledged)]);
}

/// A host fails twice, and the connection between the two is forgotten, so both marks have the same one. The second mark
/// waits for the register when its daemon starts again: it is sent, whether the same alerter made the first one, shortly
/// before, or another one did, long before.
#[test]
fn a_second_outage_with_the_same_connection_is_not_taken_over() {
    if lacks_evidence() {
        return;
    }
    for (first, later) in [("ctl3", 10.0), ("ctl3", 300.0), ("ctl1", 300.0)] {
        let mut site = Site::new(&["compute1"]);
        let mut alerter = Alerter::start(&site, first);
        alerter.run(&mut site, 2);
        site.outage("compute1", "ctl1");
        alerter.run(&mut site, 20);
        site.back("compute1", "ctl2");
        alerter.run(&mut site, 2);
        alerter = Alerter::start(&site, "ctl3");
        alerter.run(&mut site, 2);
        site.advance(later);
        site.hosts.get_mut("compute1").unwrap().forget("ctl2");
        site.lost.insert("ctl2");
        site.register_is_mute = true;
        site.outage("compute1", "ctl3");
        alerter.run(&mut site, 4);
        let marks = alerter.marks("compute1");
        assert_eq!((marks.len(), &marks[0].incarnation), (2, &marks[1].incarnation));
        alerter = Alerter::start(&site, "ctl3");
        alerter.run(&mut site, 2);
        site.register_is_mute = false;
        alerter.run(&mut site, 40);
        let case = format!("the first mark is made on {first}, {later} s before");
        assert!(site.audit().is_empty(), "{case}: {:#?}", site.audit());
    }
}

/// A controller that has just joined polls before its peers have shared what they know: held for a moment, and sent when
/// the register is there.
#[test]
fn a_register_that_comes_late_ends_the_doubt() {
    if lacks_evidence() {
        return;
    }
    let mut site = Site::new(&["compute1"]);
    site.down.extend(["nova", "backup"]);
    let mut first = Alerter::start(&site, "ctl1");
    site.outage("compute1", "ctl1");
    first.run(&mut site, 20);
    drop(first);
    site.back("compute1", "ctl2");
    let register = std::mem::take(&mut site.register);
    let mut again = Alerter::start(&site, "ctl1");
    again.run(&mut site, 4);
    assert_eq!(again.standings("compute1"), ["outcome-unknown"]);
    site.register.extend(register);
    site.down.clear();
    again.run(&mut site, 60);
    site.assert_all_notified();
}

/// W18: a mark that cannot be published waits for a minute and goes then.
#[test]
fn a_mute_register_delays_a_mark_and_loses_none() {
    if lacks_evidence() {
        return;
    }
    let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
    site.register_is_mute = true;
    site.outage("compute1", "ctl1");
    alerter.pass(&mut site);
    let made = alerter.marks("compute1")[0].made_at;
    while site.now.since(made) < PATIENCE {
        alerter.pass(&mut site);
        assert!(site.notified.is_empty(), "{} after it was made", site.now.since(made).as_secs());
        site.advance(1.0);
    }
    alerter.pass(&mut site);
    site.assert_all_notified();
}

/// The broken variant of the row above: without the gate the mark goes at once.
#[test]
fn without_the_gate_a_mark_does_not_wait_for_the_register() {
    if lacks_evidence() {
        return;
    }
    let mut site = Site::new(&["compute1"]);
    let mut alerter = Alerter::start(&site, "ctl1");
    alerter.is_reckless = true;
    site.register_is_mute = true;
    site.outage("compute1", "ctl1");
    alerter.pass(&mut site);
    assert!(!site.notified.is_empty());
}

/// W30, and a controller that was off for a week: what its journal holds open may have been sent, and is held; what it only
/// recorded, and the register once had, is past.
#[test]
fn an_old_journal_becomes_active_after_a_week() {
    if lacks_evidence() {
        return;
    }
    let real = Timestamp::now();
    let mut site = Site::at(real - Duration::from_secs(8 * 86_400), &["compute1", "compute2"]);
    // It marked compute1, and its alerter could notify nobody; compute2 it only recorded.
    let mut first = Alerter::start(&site, "ctl1");
    site.down.extend(["nova", "backup"]);
    site.outage("compute1", "ctl1");
    first.run(&mut site, 10);
    drop(first);
    let recorded = site.outage("compute2", "ctl1");
    site.open("ctl1").note_published(Register::Attrd, &[Key::Fencing(recorded).to_string()]).unwrap();
    site.lost.insert("ctl1");
    site.down.clear();
    let mut second = Alerter::start(&site, "ctl2");
    second.run(&mut site, 60);
    site.assert_all_notified();
    let notified = site.notified.len();
    // Everything else is gone meanwhile: the register was cleared, the hosts are back.
    for host in ["compute1", "compute2"] {
        site.back(host, "ctl2");
    }
    site.advance(8.0 * DAY);
    site.register.clear();
    site.history.clear();
    site.lost.clear();
    let mut old = Alerter::start(&site, "ctl1");
    old.run(&mut site, 60);
    assert_eq!(site.notified.len(), notified, "{:#?}", site.notified);
    assert_eq!(old.standings("compute1"), ["outcome-unknown"]);
    assert_eq!(old.marks("compute1")[0].settled, None, "nobody here knows that it was sent");
    assert!(old.marks("compute2").is_empty(), "what was only recorded makes no mark");
}

/// W11: the register is set back to an old state, or to nothing, by an administrator; the alerter moves or stays. What
/// comes back to life is not reported again.
#[test]
fn a_register_that_is_set_back() {
    if lacks_evidence() {
        return;
    }
    for moves in [false, true] {
        let mut site = Site::new(&["compute1", "compute2"]);
        let mut alerter = Alerter::start(&site, "ctl1");
        site.down.insert("backup");
        site.outage("compute1", "ctl1");
        alerter.pass(&mut site);
        let old = site.register.clone();
        site.down.clear();
        alerter.run(&mut site, 20);
        site.outage("compute2", "ctl2");
        alerter.run(&mut site, 20);
        site.register = old;
        alerter.run(&mut site, 4);
        if moves {
            alerter = Alerter::start(&site, "ctl2");
        }
        alerter.run(&mut site, 40);
        site.assert_all_notified();
        assert!(alerter.marks("compute1").iter().all(|mark| mark.settled.is_some()));
    }
}

/// W11: of the register's word on a mark that evidence made, only the end is left. The evidence makes the same mark on
/// another controller, and it has ended there too.
#[test]
fn an_end_without_its_mark() {
    if lacks_evidence() {
        return;
    }
    let (mut site, mut first) = begun(&["compute1"], "ctl1");
    site.die("compute1");
    site.seen_fenced("compute1");
    first.run(&mut site, 30);
    site.assert_all_notified();
    site.register.retain(|key, _| !matches!(key, Key::Mark(_)));
    Alerter::start(&site, "ctl2").run(&mut site, 40);
    site.assert_all_notified();
}

/// W12: a controller is alone: without quorum its alerter makes and sends nothing, whatever it sees. The union counts.
#[test]
fn a_partition() {
    if lacks_evidence() {
        return;
    }
    let (mut site, mut alone) = begun(&["compute1"], "ctl1");
    site.die("compute1");
    // Both sides mark; the smaller one cannot write the register.
    site.quorum = false;
    site.off("ctl1", "compute1");
    site.advance(1.0);
    site.seen_fenced("compute1");
    alone.run(&mut site, 100);
    assert!(alone.marks("compute1").is_empty() && site.notified.is_empty());
    site.quorum = true;
    let fencing = site.off("ctl2", "compute1");
    let mut other = Alerter::start(&site, "ctl2");
    other.run(&mut site, 10);
    site.assert_all_notified();
    assert_eq!(site.notified_ids(), [fencing.to_string()]);
    alone.run(&mut site, 20);
    site.assert_all_notified();
    assert_eq!(alone.marks("compute1").len(), 1, "its own record joins the mark of the others");
}

/// W12, W17: both sides have notified one route each when the partition heals.
#[test]
fn two_registers_become_one() {
    if lacks_evidence() {
        return;
    }
    let mut site = Site::new(&["compute1"]);
    let mut one = Alerter::start(&site, "ctl1");
    site.down.insert("backup");
    site.outage("compute1", "ctl1");
    one.keep_up(&mut site);
    let before = site.register.clone();
    one.run(&mut site, 4);
    let left = std::mem::replace(&mut site.register, before);
    site.down = ["nova"].into();
    let mut two = Alerter::start(&site, "ctl2");
    two.run(&mut site, 4);
    site.register.extend(left);
    site.down.clear();
    two.run(&mut site, 20);
    one.run(&mut site, 20);
    site.assert_all_notified();
}
