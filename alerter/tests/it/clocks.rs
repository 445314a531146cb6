//! Controllers whose clocks differ, times that lie ahead, and outages whose records come late: what is sent, and what is held where
//! everybody sees it. The site's clock is that of the alerter's controller.

use std::time::Duration;

use alerter::cluster::Matter;
use marks::id::NoteId;
use marks::mark::Settlement;
use marks::register::{Entry, Watermark};
use marks::rule::Rule;
use marks::time::Timestamp;
use pacemaker::evidence::Action;

use crate::site::{Alerter, Site, begun, lacks_evidence};

const DAY: f64 = 86_400.0;

/// `fence_mark` ran on another controller, whose clock is so many seconds ahead of the alerter's.
fn off_elsewhere(site: &mut Site, ahead: i64) {
    let mut fencing = site.fencing("ctl2", "compute1");
    for time in [&mut fencing.asked_at, &mut fencing.committed_at] {
        *time = Timestamp(time.0 + ahead * 1000);
    }
    site.mark("ctl2", &fencing);
}

/// What Pacemaker says of it, one source at a time.
fn witnesses() -> [fn(&mut Site); 3] {
    [
        |site| _ = site.alert("compute1", Action::Off, 0, "ctl1"),
        |site| site.remember("compute1", false),
        |site| site.hosts.get_mut("compute1").unwrap().fenced = site.now.seconds(),
    ]
}

/// B3: each of Pacemaker's sources proves the record of a controller whose clock is ahead or behind.
#[test]
fn a_mark_gets_its_proof_where_the_clocks_of_controllers_differ() {
    if lacks_evidence() {
        return;
    }
    for says in witnesses() {
        for ahead in [-119, -6, 0, 6, 60, 119] {
            let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
            site.die("compute1");
            site.advance(1.0);
            off_elsewhere(&mut site, ahead);
            alerter.run(&mut site, 2);
            assert_eq!(alerter.standings("compute1"), ["unproven"], "{ahead}");
            says(&mut site);
            alerter.run(&mut site, 20);
            assert_eq!(alerter.marks("compute1").len(), 1, "{ahead}");
            assert_eq!(site.notified.len(), 2, "{ahead}: {:?}", alerter.standings("compute1"));
        }
    }
}

/// B3: a clock that is ahead is reported, with what to do.
#[test]
fn a_clock_that_differs_is_seen_in_status() {
    let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
    let said = |alerter: &Alerter| {
        let reasons = alerter.shared().base.seen().faults();
        reasons
            .into_iter()
            .filter(|(matter, _)| *matter == Matter::ClockSkew)
            .map(|(_, why)| why)
            .collect::<Vec<_>>()
    };
    assert!(said(&alerter).is_empty());
    site.die("compute1");
    off_elsewhere(&mut site, 60);
    alerter.run(&mut site, 2);
    let [why] = &said(&alerter)[..] else { panic!("{:?}", said(&alerter)) };
    assert!(why.starts_with("the clock of ctl2 is ") && why.contains("NTP"), "{why}");
}

/// B3: what Pacemaker said of the first outage is dated after the return, and is read by an alerter that comes later. The host
/// lives: a mark of it would be false.
#[test]
fn a_host_that_is_back_is_not_marked_by_a_witness_whose_clock_is_ahead() {
    if lacks_evidence() {
        return;
    }
    let (mut site, mut first) = begun(&["compute1"], "ctl1");
    site.outage("compute1", "ctl1");
    first.run(&mut site, 28);
    assert_eq!(site.notified.len(), 2);
    // The controller that connects it has a clock that is 60 s behind.
    site.back("compute1", "ctl2");
    let behind = site.now.seconds() - 60;
    site.hosts.get_mut("compute1").unwrap().forget("ctl2");
    site.hosts.get_mut("compute1").unwrap().move_connection("ctl1", "ctl2", behind);
    first.run(&mut site, 4);
    site.lost.insert("ctl1");
    let mut second = Alerter::start(&site, "ctl3");
    second.run(&mut site, 60);
    assert_eq!(second.marks("compute1").len(), 1, "{:?}", second.standings("compute1"));
    assert_eq!(site.notified.len(), 2);
}

/// B4: evidence and history that are dated an hour ahead make their mark after the grace. The broken variant waits for the hour.
#[test]
fn what_lies_ahead_waits_no_longer_than_the_grace() {
    if lacks_evidence() {
        return;
    }
    for says in witnesses() {
        let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
        site.die("compute1");
        let now = site.now;
        site.now = now + Duration::from_secs(3600);
        says(&mut site);
        site.now = now;
        alerter.run(&mut site, 8);
        assert!(alerter.marks("compute1").is_empty(), "its record may come");
        alerter.run(&mut site, 16);
        let [row] = &alerter.marks("compute1")[..] else { panic!("no mark, or several") };
        assert!(row.failure_time <= site.now, "a time that lies ahead counts as now");
        assert_eq!(site.notified.len(), 2);
        let reasons = alerter.shared().base.seen().faults();
        assert!(reasons.iter().any(|(matter, _)| *matter == Matter::ClockSkew), "{reasons:?}");
        // It does not swallow the next one.
        site.back("compute1", "ctl1");
        alerter.run(&mut site, 4);
        site.outage("compute1", "ctl1");
        alerter.run(&mut site, 20);
        assert_eq!(alerter.marks("compute1").len(), 2);
    }
}

/// B4: an entry of the register that is dated years ahead silences nothing. The broken variant is one of a minute ago.
#[test]
fn a_watermark_that_lies_ahead_counts_for_nothing() {
    for (ahead, marks) in [(10.0 * 365.0 * DAY, 1), (100.0, 0)] {
        let mut site = Site::new(&["compute1"]);
        let at = site.now + Duration::from_secs_f64(ahead);
        site.publish(Entry::Watermark(Watermark { id: NoteId::generate(), at, by: "ctl9".into() }));
        let mut alerter = Alerter::start(&site, "ctl1");
        alerter.run(&mut site, 2);
        site.die("compute1");
        site.remember("compute1", false);
        alerter.run(&mut site, 40);
        assert_eq!(alerter.marks("compute1").len(), marks, "{ahead}");
    }
}

/// B5: a real failure 22 hours after a host that lived was confirmed by hand is sent, with its own time.
#[test]
fn a_failure_is_not_folded_into_a_confirmation_that_nothing_proved() {
    if lacks_evidence() {
        return;
    }
    let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
    site.confirm("compute1");
    alerter.run(&mut site, 24);
    assert_eq!(alerter.standings("compute1"), ["unconfirmed"]);
    site.advance(22.0 * 3600.0);
    alerter.run(&mut site, 4);
    let failed = site.now;
    site.outage("compute1", "ctl1");
    alerter.run(&mut site, 20);
    assert_eq!(alerter.standings("compute1"), ["unconfirmed", "journal"]);
    assert_eq!(site.notified.len(), 2);
    assert!(
        site.notified.iter().all(|notified| notified.failure_time >= failed.seconds()),
        "{:?}",
        site.notified
    );
}

/// B7: fenced again without having been connected, a day later: one mark, held where everybody sees it, whatever comes again; and
/// no other controller takes it for proven. After its end, and after a return, the next outage is sent.
#[test]
fn a_host_that_is_fenced_again_a_day_later_is_held() {
    if lacks_evidence() {
        return;
    }
    let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
    site.outage("compute1", "ctl1");
    alerter.run(&mut site, 20);
    let notified = site.notified.clone();
    assert_eq!(notified.len(), 2);
    site.advance(120.0);
    let near = site.off("ctl1", "compute1");
    alerter.run(&mut site, 4);
    assert_eq!(alerter.marks("compute1").len(), 1, "a repeated `off` is nothing new");
    assert_eq!(alerter.journal.rule_of(near).unwrap(), Some(Rule::AlreadyDown));
    site.advance(DAY);
    for again in [0.0, 900.0, 7200.0] {
        site.advance(again);
        site.off("ctl2", "compute1");
        site.seen_fenced("compute1");
        alerter.run(&mut site, 30);
        assert_eq!(alerter.standings("compute1"), ["journal", "fenced-again"], "{again}");
    }
    let mut other = Alerter::start(&site, "ctl2");
    other.run(&mut site, 30);
    assert_eq!(other.standings("compute1").last(), Some(&"fenced-again"));
    assert_eq!(site.notified, notified, "nobody is notified");
    let held = alerter.marks("compute1").pop().unwrap();
    assert!(alerter.journal.dismiss(held.id, "it was off all the time", "alice", site.now).unwrap());
    site.back("compute1", "ctl1");
    alerter.run(&mut site, 4);
    site.outage("compute1", "ctl1");
    alerter.run(&mut site, 20);
    let ends: Vec<_> = alerter.marks("compute1").iter().map(|row| row.settled.map(|(how, _)| how)).collect();
    assert_eq!(
        ends,
        [Some(Settlement::Acknowledged), Some(Settlement::Dismissed), Some(Settlement::Acknowledged)]
    );
}

/// B3: what was kept with an older outage proves a mark whose record comes later. The host and the controller that held its newest
/// connection were lost together, so that only the record knows of it.
#[test]
fn what_is_kept_proves_a_mark_whose_record_comes_later() {
    if lacks_evidence() {
        return;
    }
    let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
    site.outage("compute1", "ctl1");
    alerter.run(&mut site, 20);
    site.advance(3600.0);
    // Nobody polls while it is back, and what was seen of its return is lost with the controller that saw it.
    site.back("compute1", "ctl2");
    site.advance(3600.0);
    site.die("compute1");
    let late = site.fencing("ctl2", "compute1");
    site.hosts.get_mut("compute1").unwrap().forget("ctl2");
    site.alert("compute1", Action::Off, 0, "ctl3");
    alerter.run(&mut site, 4);
    site.mark("ctl2", &late);
    alerter.run(&mut site, 20);
    assert_eq!(site.notified_ids().len(), 2, "{:?}", alerter.standings("compute1"));
}
