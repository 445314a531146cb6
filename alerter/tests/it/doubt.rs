//! Unproven fencings are not sent until Pacemaker or an operator vouches for them. Other events are no failure of a host at all.

use std::time::Duration;

use marks::fencing::{Fencing, Origin};
use marks::id::NoteId;
use marks::register::{Entry, Watermark};
use pacemaker::evidence::Action;

use crate::site::{Alerter, ROUTES, Site, begun, started, with_clocks};

/// A release counts on the controller where root gave it; on another one it is only known, since the register can be
/// written by others, and has to be given again.
#[test]
fn a_release_is_given_again_after_a_failover() {
    let (mut site, mut first) = begun(&["compute1"], "ctl1");
    site.die("compute1");
    let mut fencing = site.fencing("ctl1", "compute1");
    fencing.origin = Origin::Shell;
    site.mark("ctl1", &fencing);
    first.run(&mut site, 60);
    assert_eq!(first.standings("compute1"), ["unconfirmed"]);
    first.release(&site, fencing.id.into());
    first.keep_up(&mut site);
    site.lost.insert("ctl1");
    let mut second = Alerter::at_work(&mut site, "ctl2", 10);
    assert_eq!(second.standings("compute1"), ["unproven"]);
    assert!(site.notified.is_empty());
    second.release(&site, fencing.id.into());
    second.notifies_all(&mut site, 10);
    Alerter::start(&site, "ctl3").run(&mut site, 40);
    site.assert_all_notified();
}

/// W21: an operator confirms a host that the cluster sees as a member. Held, also after a failover, and also where Pacemaker cuts
/// its connection because of that word, as it does, and makes no new one for a while.
#[test]
fn a_confirmation_of_a_live_host() {
    for (is_cut, clocks) in with_clocks([false, true]) {
        let (mut site, mut first) = started(Site::new(&["compute1"]).with_clocks(clocks), "ctl1");
        site.confirm("compute1");
        site.hosts.get_mut("compute1").unwrap().member = Some(!is_cut);
        first.run(&mut site, 60);
        assert_eq!(first.standings("compute1"), ["unconfirmed"]);
        for controller in ["ctl2", "ctl3", "ctl1"] {
            let mut next = Alerter::start(&site, controller);
            site.advance(120.0);
            next.run(&mut site, 20);
            assert!(next.standings("compute1").iter().all(|word| *word == "unconfirmed"), "{controller}");
        }
        assert!(site.notified.is_empty());
    }
}

/// W21, W23: the history is cleaned up, and the connection to the host that was confirmed by hand is stopped or cut. What
/// the CIB still calls fenced is the same confirmation: held.
#[test]
fn a_confirmation_stays_one_when_the_history_is_gone() {
    for (moves, clocks) in with_clocks([false, true]) {
        let (mut site, mut alerter) = started(Site::new(&["compute1"]).with_clocks(clocks), "ctl1");
        site.confirm("compute1");
        alerter.run(&mut site, 60);
        site.history.clear();
        site.hosts.get_mut("compute1").unwrap().member = Some(false);
        if moves {
            alerter = Alerter::start(&site, "ctl2");
        }
        site.advance(120.0);
        alerter.run(&mut site, 20);
        assert_eq!(alerter.standings("compute1"), ["unconfirmed"], "to another controller: {moves}");
        assert!(site.notified.is_empty());
    }
}

/// The same, after an operator has ended the held mark, as docs/operate.md says of a host that lives: nothing is left that
/// could take in the failure, from every witness: on this controller, and on one that knows that mark by the register alone.
#[test]
fn a_confirmed_host_fails_after_its_mark_was_ended() {
    for (moves, is_marked, later) in [
        (false, true, 100_000.0),
        (false, false, 100_000.0),
        (true, true, 100_000.0),
        (true, false, 100_000.0),
        (false, true, 30.0),
        (true, true, 30.0),
    ] {
        let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
        if moves {
            site.lost.insert("ctl2");
        }
        site.confirm("compute1");
        alerter.run(&mut site, 20);
        assert_eq!(alerter.standings("compute1"), ["unconfirmed"]);
        let held = alerter.marks("compute1")[0].id;
        alerter.unmark(&site, held);
        alerter.run(&mut site, 4);
        site.lost.clear();
        site.advance(later);
        if moves {
            site.lost.insert("ctl1");
            alerter = Alerter::start(&site, "ctl2");
        } else {
            alerter.run(&mut site, 20);
        }
        site.fail("compute1", is_marked);
        alerter.run(&mut site, 60);
        let case = format!("to another controller: {moves}, marked: {is_marked}, after {later} s");
        assert!(site.audit().is_empty(), "{case}: {:#?}", site.audit());
        Alerter::start(&site, "ctl3").run(&mut site, 60);
        assert!(site.audit().is_empty(), "{case}, twice: {:#?}", site.audit());
    }
}

/// Somebody says by hand that a host has failed, and takes that back. What happens then is a failure of its own, even a moment later:
/// nobody's word but Pacemaker's shows that a host was down. Whoever said it, and whoever is the alerter.
#[test]
fn a_word_that_was_taken_back_swallows_no_failure() {
    for (origin, clocks) in with_clocks([Origin::Operator, Origin::Api, Origin::Shell]) {
        for (moves, is_marked) in [(false, true), (false, false), (true, true), (true, false)] {
            let (mut site, mut alerter) = started(Site::new(&["compute1"]).with_clocks(clocks), "ctl1");
            site.down.extend(ROUTES);
            let said = Fencing { origin, ..site.fencing("ctl1", "compute1") };
            site.mark("ctl1", &said);
            alerter.run(&mut site, 20);
            if origin != Origin::Operator {
                alerter.release(&site, said.id.into());
                alerter.run(&mut site, 4);
            }
            alerter.unmark(&site, said.id.into());
            alerter.run(&mut site, 4);
            site.down.clear();
            if moves {
                site.lost.insert("ctl1");
                alerter = Alerter::at_work(&mut site, "ctl3", 10);
            }
            let fencing = site.fail("compute1", is_marked);
            alerter.run(&mut site, 60);
            let case = format!(
                "{origin:?}, to another controller: {moves}, marked: {is_marked}, clocks: {clocks:?}"
            );
            assert!(site.audit().is_empty(), "{case}: {:#?}", site.audit());
            let sent = fencing.is_none_or(|id| site.notified_ids() == [id.to_string()]);
            assert!(sent, "{case}: {:#?}", site.notified);
        }
    }
}

/// The other way round: a mark was ended by mistake. Who marks the host again takes that back, on any controller; and what Pacemaker
/// does to the same outage later belongs to that mark.
#[test]
fn a_mark_by_hand_takes_back_an_end_by_mistake() {
    for (moves, clocks) in with_clocks([false, true]) {
        let (mut site, mut alerter) = started(Site::new(&["compute1"]).with_clocks(clocks), "ctl1");
        site.down.extend(ROUTES);
        let fencing = site.outage("compute1", "ctl1");
        alerter.run(&mut site, 20);
        alerter.unmark(&site, fencing.into());
        alerter.run(&mut site, 4);
        site.down.clear();
        if moves {
            site.lost.insert("ctl1");
            alerter = Alerter::at_work(&mut site, "ctl3", 10);
        }
        assert!(site.notified.is_empty(), "it was ended");
        let word = Fencing { origin: Origin::Operator, ..site.fencing("ctl2", "compute1") };
        site.mark("ctl2", &word);
        alerter.run(&mut site, 20);
        site.off("ctl2", "compute1");
        alerter.meets_fencing(&mut site, "compute1", 60);
        assert_eq!(site.notified_ids(), [word.id.to_string()], "to another controller: {moves}");
        site.assert_all_notified();
    }
}

/// The opposite: an operator ends the mark of a host that is really down. What Pacemaker does to the same outage later is
/// that mark's, on this controller and on another one.
#[test]
fn an_ended_mark_of_a_host_that_is_down_stays_ended() {
    for moves in [false, true] {
        let mut site = Site::new(&["compute1"]);
        site.down.extend(["nova", "backup"]);
        let mut alerter = Alerter::at_work(&mut site, "ctl1", 2);
        let fencing = site.outage("compute1", "ctl1");
        alerter.run(&mut site, 20);
        alerter.unmark(&site, fencing.into());
        alerter.run(&mut site, 4);
        site.down.clear();
        site.advance(600.0);
        if moves {
            alerter = Alerter::at_work(&mut site, "ctl2", 20);
        }
        site.off("ctl3", "compute1");
        site.advance(1.0);
        alerter.meets_fencing(&mut site, "compute1", 60);
        assert!(site.notified.is_empty(), "to another controller: {moves}: {:?}", site.notified);
    }
}

/// The broken variant: the confirmed host of the first row would be a member that was reported, and the audit says so.
#[test]
fn a_live_host_that_was_reported_is_caught() {
    let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
    site.confirm("compute1");
    alerter.run(&mut site, 60);
    let held = alerter.marks("compute1")[0].id;
    alerter.release(&site, held);
    alerter.run(&mut site, 4);
    assert!(site.audit().iter().any(|wrong| wrong.contains("was not fenced then")));
}

/// `node_fenced` of a member is a leftover or a confirmation: alone it makes nothing.
#[test]
fn node_fenced_of_a_member_makes_nothing() {
    let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
    site.hosts.get_mut("compute1").unwrap().fenced = site.now.seconds();
    site.advance(120.0);
    alerter.run(&mut site, 20);
    assert!(alerter.marks("compute1").is_empty());
}

/// Failed fencings and unfencings are no failures, and their files do not pile up. (What is pending has no alert, and the
/// reader of the history leaves it out.)
#[test]
fn failed_fencings_and_unfencings_make_nothing() {
    let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
    site.hosts.get_mut("compute1").unwrap().member = Some(false);
    for (action, rc) in [(Action::Off, -62), (Action::Reboot, 1), (Action::On, 0), (Action::On, -5)] {
        site.alert("compute1", action, rc, "ctl2");
        site.advance(1.0);
    }
    site.advance(120.0);
    alerter.run(&mut site, 20);
    assert!(alerter.marks("compute1").is_empty());
    assert_eq!(site.evidence_on("ctl1"), 0);
}

/// W20: what Pacemaker remembers from before the first start is not sent. It asks where its host is down (C10, `first_start`).
#[test]
fn the_first_start_of_all_sends_nothing_old() {
    let mut site = Site::new(&["compute1"]);
    site.die("compute1");
    site.remember("compute1", false);
    site.hosts.get_mut("compute1").unwrap().fenced = site.now.seconds();
    site.advance(60.0);
    let first = Alerter::at_work(&mut site, "ctl1", 60);
    assert_eq!(first.standings("compute1"), ["outcome-unknown"]);
    Alerter::start(&site, "ctl2").run(&mut site, 60);
    assert!(site.notified.is_empty());
}

/// W16: but what happened before the alerter moved to a controller where none ever ran is sent: the register knows when
/// the first one ran.
#[test]
fn the_first_start_on_another_controller_sends_what_happened_before() {
    for has_watermark in [true, false] {
        let mut site = Site::new(&["compute1"]);
        if has_watermark {
            let first = Watermark {
                id: NoteId::generate(),
                at: site.now - Duration::from_secs(9),
                by: "ctl1".into(),
            };
            site.publish(Entry::Watermark(first));
        }
        site.die("compute1");
        site.remember("compute1", false);
        site.hosts.get_mut("compute1").unwrap().fenced = site.now.seconds();
        site.lost.insert("ctl1");
        site.advance(60.0);
        Alerter::start(&site, "ctl2").run(&mut site, 60);
        assert_eq!(site.audit().is_empty(), has_watermark, "{:?}", site.audit());
    }
}
