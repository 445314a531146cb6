//! A cluster node that is a compute host too: each of its outages is notified, however short the time between them.

use std::time::Duration;

use marks::fencing::Fencing;
use pacemaker::evidence::Action;

use crate::site::{Outage, Site, started};

/// The node, which runs machines.
const NODE: &str = "ctl3";

/// How its fencing is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Record {
    /// By `fence_mark`, which read what the node did first since it joined.
    Whole,
    /// By `fence_mark`, which read no such thing.
    WithoutIncarnation,
    /// By Pacemaker's own alerts and history alone.
    EvidenceAlone,
}

fn site() -> Site {
    let mut site = Site::new(&["compute1"]);
    site.match_hosts(&format!("[\"compute*\", \"{NODE}\"]"));
    site.own_work.insert(NODE, (site.now - Duration::from_secs(3600)).seconds());
    site
}

fn die(site: &mut Site) {
    site.lost.insert(NODE);
    site.outages.push(Outage { host: NODE, began: site.now, ended: None, ids: Default::default() });
    site.advance(1.0);
}

/// `fence_mark off`, by a controller whose clock is ahead by so many seconds.
fn off(site: &mut Site, record: Record, ahead: u64) {
    let fencing = site.fencing("ctl2", NODE);
    let incarnation = fencing.incarnation.clone().filter(|_| record == Record::Whole);
    assert_eq!(incarnation.is_some(), record == Record::Whole);
    let ahead = |at| at + Duration::from_secs(ahead);
    let (asked_at, committed_at) = (ahead(fencing.asked_at), ahead(fencing.committed_at));
    site.mark("ctl2", &Fencing { incarnation, asked_at, committed_at, ..fencing });
}

/// It dies and is fenced: Pacemaker then forgets all that the node did.
fn fail(site: &mut Site, record: Record) {
    die(site);
    if record != Record::EvidenceAlone {
        off(site, record, 0);
    }
    ended(site);
}

fn ended(site: &mut Site) {
    site.advance(1.0);
    site.alert(NODE, Action::Off, 0, "ctl1");
    site.remember(NODE, false);
    site.own_work.remove(NODE);
}

fn come_back(site: &mut Site) {
    site.advance(7.0);
    site.lost.remove(NODE);
    for outage in site.outages.iter_mut().filter(|outage| outage.ended.is_none()) {
        outage.ended = Some(site.now);
    }
}

/// What it does first: it is probed for every resource.
fn work(site: &mut Site) {
    site.advance(1.0);
    site.own_work.insert(NODE, site.now.seconds());
}

/// Pacemaker alone reports a node that dies again six seconds after it has joined, and three after its first work was seen. The
/// join is the return: with its first work as the return, the second failure joins the first one's mark, and nobody hears of it.
#[test]
fn a_cluster_node_that_dies_seconds_after_its_first_work_is_notified() {
    let (mut site, mut alerter) = started(site(), "ctl1");
    fail(&mut site, Record::EvidenceAlone);
    alerter.run(&mut site, 2);
    come_back(&mut site);
    site.alert_of_join(NODE);
    alerter.pass(&mut site);
    site.advance(2.0);
    work(&mut site);
    alerter.pass(&mut site);
    site.advance(1.0);
    fail(&mut site, Record::EvidenceAlone);
    alerter.run(&mut site, 60);
    assert_eq!(alerter.marks(NODE).len(), 2);
    site.assert_all_notified();
}

/// The controller that fences it has a clock that is a minute ahead: the join seems to be before the fencing.
#[test]
fn a_clock_that_is_ahead_hides_no_return_of_a_cluster_node() {
    for record in [Record::Whole, Record::WithoutIncarnation] {
        let (mut site, mut alerter) = started(site(), "ctl1");
        for _ in 0..2 {
            die(&mut site);
            off(&mut site, record, 60);
            alerter.run(&mut site, 4);
            site.own_work.remove(NODE);
            come_back(&mut site);
            alerter.run(&mut site, 2);
            work(&mut site);
            alerter.run(&mut site, 4);
        }
        assert_eq!(alerter.marks(NODE).len(), 2, "{record:?}");
        assert!(alerter.marks(NODE).iter().all(|mark| mark.returned_at.is_some()), "{record:?}");
    }
}

/// The controller that fences it has a clock that is a minute behind: the join before seems to come after the fencing. The broken
/// variant takes it for the return from that, and the next sign of the same outage for another one.
#[test]
fn a_clock_that_is_behind_makes_no_return_of_a_cluster_node() {
    let (mut site, mut alerter) = started(site(), "ctl1");
    site.skews.insert("ctl2", -60_000);
    fail(&mut site, Record::Whole);
    alerter.run(&mut site, 100);
    come_back(&mut site);
    alerter.run(&mut site, 2);
    work(&mut site);
    alerter.run(&mut site, 4);
    die(&mut site);
    off(&mut site, Record::Whole, 0);
    alerter.run(&mut site, 2);
    assert_eq!(alerter.marks(NODE)[1].returned_at, None);
    ended(&mut site);
    alerter.run(&mut site, 60);
    assert_eq!(alerter.marks(NODE).len(), 2);
    site.assert_all_notified();
}
