//! What was removed from the journal long after its end is never sent again: not from the register, nor from Pacemaker's
//! memory, nor from the next `off`.

use std::collections::BTreeMap;

use marks::id::MarkId;
use marks::register::{Entry, Key};

use crate::site::{Alerter, Site, begun};

const DAY: f64 = 86_400.0;
const YEARS: f64 = 2.0 * 365.0 * DAY;

/// One outage that was sent, with its host back, long ago; and what the register had of it then.
fn long_ago() -> (Site, Alerter, BTreeMap<Key, Entry>) {
    let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
    alerter.meets_outage(&mut site, "compute1", "ctl1", 40);
    site.assert_all_notified();
    alerter.meets_return(&mut site, "compute1", "ctl1", 10);
    let register = site.register.clone();
    assert!(register.keys().any(|key| matches!(key, Key::Settled(_))), "{register:?}");
    site.advance(YEARS);
    alerter.run(&mut site, 4);
    (site, alerter, register)
}

/// All sources of the outage report it once more: the register with its end, and without it. An alerter that takes
/// what Pacemaker remembers of years ago for a new proof sends it again.
#[test]
fn a_mark_that_was_removed_is_never_sent_again() {
    for is_settled in [true, false] {
        let (mut site, mut alerter, register) = long_ago();
        let notified = site.notified.clone();
        // What the register had of it left it long before.
        site.register_forgets_outages();
        alerter.run(&mut site, 4);
        assert!(alerter.prune(&site) > 0);
        assert!(alerter.marks("compute1").is_empty());
        // A controller comes back that was away all the time, with all that it knew; and Pacemaker remembers the fencing.
        site.register = register;
        if !is_settled {
            site.register.retain(|key, _| !matches!(key, Key::Settled(_) | Key::Acknowledged(..)));
        }
        alerter.run(&mut site, 60);
        drop(alerter);
        let next = Alerter::at_work(&mut site, "ctl2", 60);
        assert_eq!(site.notified, notified, "sent once more ({is_settled})");
        let standings: &[&str] = if is_settled { &[] } else { &["outcome-unknown"] };
        assert_eq!(next.standings("compute1"), standings);
    }
}

/// What stands in the register stays, however old. The broken variant removes it all the same: the entry is read again.
#[test]
fn what_the_register_still_has_stays() {
    let (mut site, mut alerter, register) = long_ago();
    let kept: Vec<MarkId> = alerter.marks("compute1").iter().map(|row| row.id).collect();
    site.register = register;
    alerter.take_in(&site);
    alerter.prune(&site);
    assert_eq!(alerter.marks("compute1").iter().map(|row| row.id).collect::<Vec<_>>(), kept);
    alerter.run(&mut site, 4);
    site.register_forgets_outages();
    alerter.run(&mut site, 4);
    alerter.prune(&site);
    assert!(alerter.marks("compute1").is_empty());
}

/// A host that never came back: years later Pacemaker runs `off` again. It may be in the same outage still; nobody knows, and the
/// mark is held.
#[test]
fn a_host_that_never_came_back_keeps_its_mark() {
    let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
    alerter.meets_outage(&mut site, "compute1", "ctl1", 40);
    site.advance(YEARS);
    site.register_forgets_outages();
    alerter.run(&mut site, 4);
    alerter.prune(&site);
    let notified = site.notified.clone();
    site.off("ctl1", "compute1");
    alerter.run(&mut site, 60);
    assert_eq!(site.notified, notified);
    assert_eq!(alerter.standings("compute1"), ["journal", "fenced-again"]);
}

/// The next real failure is sent, whatever was removed before. The broken variant of all of this is an alerter that holds
/// everything back.
#[test]
fn the_next_outage_is_sent() {
    let (mut site, mut alerter, _) = long_ago();
    site.register_forgets_outages();
    alerter.run(&mut site, 4);
    alerter.prune(&site);
    alerter.meets_outage(&mut site, "compute1", "ctl1", 60);
    site.assert_all_notified();
    assert_eq!(site.notified_ids().len(), 2);
}

/// Without a reading of the register nobody knows what stands there. The broken variant is the same daemon after its first poll.
#[test]
fn nothing_is_removed_before_the_register_was_read() {
    let (mut site, mut alerter, _) = long_ago();
    site.register_forgets_outages();
    alerter.run(&mut site, 4);
    alerter = Alerter::start(&site, "ctl1");
    assert_eq!(alerter.prune(&site), 0);
    alerter.run(&mut site, 4);
    assert!(alerter.prune(&site) > 0);
}
