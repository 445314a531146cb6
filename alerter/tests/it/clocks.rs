//! Controllers whose clocks differ, times that lie ahead, and outages whose records come late: what is sent, and what is held where
//! everybody sees it. The site's clock is that of the alerter's controller.

use alerter::cluster::Matter;
use marks::time::Timestamp;
use pacemaker::evidence::Action;

use crate::site::{Alerter, Site, begun, lacks_evidence};

/// `fence_mark` ran on another controller, whose clock is so many seconds ahead of the alerter's.
fn off_elsewhere(site: &mut Site, ahead: i64) {
    let mut fencing = site.fencing("ctl2", "compute1");
    for time in [&mut fencing.asked_at, &mut fencing.committed_at] {
        *time = Timestamp(time.0 + ahead * 1000);
    }
    site.mark("ctl2", &fencing);
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
