//! What another alerter makes of a lost controller: nothing lost, nothing sent twice (W-rows: facts on Pacemaker, section 8).

use marks::delivery::State;
use marks::host::HostName;
use marks::id::MarkId;
use marks::mark::Settlement;

use crate::site::{Alerter, CLOCKS, PATIENCE, Site, begun, started};

/// The audit itself finds each fault that it is for.
#[test]
fn the_audit_finds_what_is_wrong() {
    let (mut site, mut alerter) = begun(&["compute1", "compute2"], "ctl1");
    site.outage("compute1", "ctl1");
    assert_eq!(site.audit().len(), 2, "two routes were not notified");
    alerter.notifies_all(&mut site, 4);
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

/// W8: the same, and the register had not taken the mark: evidence makes it, with the same id on every controller.
#[test]
fn only_evidence_remains() {
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

/// W14, W16, issue 45, A1: one route has acknowledged and the other is down when the alerter moves: only the other is notified, also where
/// the clock is behind.
#[test]
fn a_failover_with_one_route_open() {
    for behind in [0, 150, 3_600, 10 * 365 * 86_400] {
        let site = Site::new(&["compute1"]);
        let site = if behind == 0 { site } else { site.with_clocks([0, -behind, 0]) };
        let (mut site, mut first) = started(site, "ctl1");
        site.advance(20.0);
        site.down.insert("backup");
        first.meets_outage(&mut site, "compute1", "ctl1", 10);
        assert_eq!(site.notified.len(), 1);
        drop(first);
        site.lost.insert("ctl1");
        site.down.clear();
        Alerter::start(&site, "ctl2").run(&mut site, 60);
        assert_eq!(site.audit(), [""; 0], "{behind} s behind");
    }
}

/// A route that is not required is notified late by the alerter that settled the mark; another one, which knows only that the
/// mark is settled, does not notify it, and does not say that it was notified.
#[test]
fn a_failover_with_a_route_open_that_is_not_required() {
    for moves in [false, true] {
        let mut site = Site::new(&["compute1"]);
        site.leave_the_backup_free();
        let mut alerter = Alerter::start(&site, "ctl1");
        site.down.insert("backup");
        alerter.meets_outage(&mut site, "compute1", "ctl1", 10);
        let settled = alerter.marks("compute1")[0].settled;
        assert!(settled.is_some_and(|(how, _)| how == Settlement::Acknowledged));
        site.down.clear();
        alerter = Alerter::at_work(&mut site, if moves { "ctl2" } else { "ctl1" }, 30);
        let notified: Vec<&str> = site.notified.iter().map(|notified| notified.route.as_str()).collect();
        let (wanted, end) = match moves {
            true => (&["nova"][..], State::Cancelled),
            false => (&["nova", "backup"][..], State::Acknowledged),
        };
        assert_eq!(notified, wanted);
        let mark = &alerter.marks("compute1")[0];
        assert_eq!(mark.settled, settled);
        let wanted = [("backup", end), ("nova", State::Acknowledged)];
        assert_eq!(alerter.deliveries(mark.id), wanted.map(|(route, end)| (route.to_owned(), end)));
    }
}

/// The broken variant of a failover with one route open: without the register the second alerter notifies both routes, and the audit says so.
#[test]
fn a_failover_without_the_register_is_caught() {
    let (mut site, mut first) = begun(&["compute1"], "ctl1");
    site.down.insert("backup");
    first.meets_outage(&mut site, "compute1", "ctl1", 10);
    site.down.clear();
    site.register.clear();
    Alerter::start(&site, "ctl2").run(&mut site, 30);
    assert!(site.audit().iter().any(|wrong| wrong.contains("sent 2 times to nova")), "{:?}", site.audit());
}

/// W14: the alerter is killed between the acknowledgement and the register. What was in flight is sent again, byte for
/// byte, and nothing else.
#[test]
fn a_kill_before_the_register_knows() {
    let (mut site, mut first) = begun(&["compute1"], "ctl1");
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

/// W10, W20: all controllers lose the register and the alerter moves. A host that is still gone is reported, under a new
/// name perhaps; one that is back may have been reported and is held.
#[test]
fn a_lost_register_and_another_alerter() {
    let (mut site, mut first) = begun(&["compute1", "compute2"], "ctl1");
    first.meets_outage(&mut site, "compute1", "ctl1", 20);
    site.back("compute1", "ctl2");
    site.advance(20.0);
    site.outage("compute2", "ctl1");
    site.lost.insert("ctl1");
    site.register.clear();
    let mut second = Alerter::at_work(&mut site, "ctl2", 60);
    assert_eq!(second.standings("compute1"), ["outcome-unknown"]);
    site.assert_all_notified();
    // The first one returns with its journal: what it knows ends the doubt.
    site.lost.clear();
    Alerter::start(&site, "ctl1").run(&mut site, 20);
    second.notifies_all(&mut site, 20);
}

/// Two alerters make a mark each of one outage, and the first one could send it to nobody, nor write it into the register.
/// When it starts again, its mark ends: the outage was sent as the other's. Where clocks do not show that it is one outage, it is held.
#[test]
fn an_open_mark_of_an_outage_that_another_alerter_sent_ends() {
    let [one, other] = &sent_by_another(begun(&["compute1"], "ctl1"))[..] else { panic!("not two marks") };
    assert_eq!((one.0, other.0), (Some(Settlement::Expired), Some(Settlement::Acknowledged)));
    for clocks in [CLOCKS[1], CLOCKS[3]] {
        let site = Site::new(&["compute1"]).with_clocks(clocks);
        let marks = sent_by_another(started(site, "ctl1"));
        let held = marks.iter().find(|(end, _)| end.is_none()).map(|(_, standing)| *standing);
        assert_eq!(held, Some("fenced-again"), "{clocks:?}");
    }
}

fn sent_by_another((mut site, mut first): (Site, Alerter)) -> Vec<(Option<Settlement>, &'static str)> {
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
    let again = Alerter::at_work(&mut site, "ctl1", 40);
    site.assert_all_notified();
    again
        .marks("compute1")
        .iter()
        .map(|mark| (mark.settled.map(|(how, _)| how), mark.standing.as_str()))
        .collect()
}

/// A host fails twice, and the connection between the two is forgotten, so both marks have the same one. The second mark
/// waits for the register when its daemon starts again: it is sent, whether the same alerter made the first one, shortly
/// before, or another one did, long before.
#[test]
fn a_second_outage_with_the_same_connection_is_not_taken_over() {
    for (first, later) in [("ctl3", 10.0), ("ctl3", 300.0), ("ctl1", 300.0)] {
        let mut site = Site::new(&["compute1"]);
        let mut alerter = Alerter::at_work(&mut site, first, 2);
        alerter.meets_outage(&mut site, "compute1", "ctl1", 20);
        alerter.meets_return(&mut site, "compute1", "ctl2", 2);
        alerter = Alerter::at_work(&mut site, "ctl3", 2);
        site.advance(later);
        site.hosts.get_mut("compute1").unwrap().forget("ctl2");
        site.lost.insert("ctl2");
        site.register_is_mute = true;
        alerter.meets_outage(&mut site, "compute1", "ctl3", 4);
        let marks = alerter.marks("compute1");
        assert_eq!((marks.len(), &marks[0].incarnation), (2, &marks[1].incarnation));
        alerter = Alerter::at_work(&mut site, "ctl3", 2);
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
    let mut site = Site::new(&["compute1"]);
    site.down.extend(["nova", "backup"]);
    let mut first = Alerter::start(&site, "ctl1");
    first.meets_outage(&mut site, "compute1", "ctl1", 20);
    drop(first);
    site.back("compute1", "ctl2");
    let register = std::mem::take(&mut site.register);
    let mut again = Alerter::at_work(&mut site, "ctl1", 4);
    assert_eq!(again.standings("compute1"), ["outcome-unknown"]);
    site.register.extend(register);
    site.down.clear();
    again.notifies_all(&mut site, 60);
}

/// W18: a mark that cannot be published waits for a minute and goes then.
#[test]
fn a_mute_register_delays_a_mark_and_loses_none() {
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
    let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
    alerter.is_reckless = true;
    site.register_is_mute = true;
    site.outage("compute1", "ctl1");
    alerter.pass(&mut site);
    assert!(!site.notified.is_empty());
}

/// W12, W17: both sides have notified one route each when the partition heals.
#[test]
fn two_registers_become_one() {
    let (mut site, mut one) = begun(&["compute1"], "ctl1");
    site.down.insert("backup");
    site.outage("compute1", "ctl1");
    one.keep_up(&mut site);
    let before = site.register.clone();
    one.run(&mut site, 4);
    let left = std::mem::replace(&mut site.register, before);
    site.down = ["nova"].into();
    let mut two = Alerter::at_work(&mut site, "ctl2", 4);
    site.register.extend(left);
    site.down.clear();
    two.run(&mut site, 20);
    one.notifies_all(&mut site, 20);
}
