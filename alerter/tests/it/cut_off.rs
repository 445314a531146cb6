//! A pass of the intake that a failed write cut off: the next one does the rest, whatever was in memory.

use crate::site::{Alerter, Cut, Site, begun};

/// One poll in which writes of one kind fail, and one in which they do not.
fn poll_twice(alerter: &mut Alerter, site: &Site, cut: Cut) {
    alerter.poll_is_cut_off(site, cut);
    assert!(alerter.marks("compute1").iter().all(|mark| mark.returned_at.is_none()));
    alerter.poll(site, false).unwrap();
}

/// The broken variant: a connection that is remembered before it is written down is never new again, and the next outage
/// of its host belongs to the first one.
#[test]
fn a_return_that_could_not_be_written_down_is_written_down_by_the_next_poll() {
    for cut in [Cut::Connections, Cut::Marks] {
        let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
        alerter.meets_outage(&mut site, "compute1", "ctl1", 20);
        site.back("compute1", "ctl2");
        poll_twice(&mut alerter, &site, cut);
        assert!(alerter.marks("compute1")[0].returned_at.is_some(), "{cut:?}");
        site.advance(600.0);
        alerter.meets_outage(&mut site, "compute1", "ctl1", 20);
        site.assert_all_notified();
    }
}

/// Its connection is known and its mark is new. The broken variant: the hosts with new marks are forgotten with the pass.
#[test]
fn a_host_that_was_back_before_it_was_marked_is_noted_as_back_by_the_next_poll() {
    let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
    site.die("compute1");
    let fencing = site.fencing("ctl1", "compute1");
    site.advance(10.0);
    site.back("compute1", "ctl2");
    alerter.poll(&site, false).unwrap();
    site.mark("ctl1", &fencing);
    poll_twice(&mut alerter, &site, Cut::Marks);
    let marks = alerter.marks("compute1");
    assert!(marks.len() == 1 && marks[0].returned_at.is_some(), "{marks:?}");
}
