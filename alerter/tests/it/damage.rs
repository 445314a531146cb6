//! A damaged row of the journal: reported, and no obstacle to other rows.

use crate::site::{Alerter, Damage, begun};

/// The mark's entries stand in the register, and each poll and each start reads them. The broken variant: a daemon that
/// ends at a row that it cannot believe notifies nobody, however often it is started.
#[test]
fn a_damaged_mark_that_stands_in_the_register_keeps_no_other_host_from_being_reported() {
    for damage in [Damage::OtherName, Damage::OtherNameAndUndecided] {
        let (mut site, mut alerter) = begun(&["compute1", "compute2"], "ctl1");
        alerter.meets_outage(&mut site, "compute1", "ctl1", 20);
        alerter.meets_return(&mut site, "compute1", "ctl2", 20);
        let (notified, kinds) = (site.notified.len(), ["m.", "r.", "s."]);
        let keys: Vec<String> = site.register.keys().map(ToString::to_string).collect();
        assert!(kinds.iter().all(|kind| keys.iter().any(|key| key.starts_with(kind))), "{keys:?}");
        site.homes.damage("ctl1", damage);
        alerter = Alerter::at_work(&mut site, "ctl1", 20);
        assert_eq!((alerter.reported("mark"), site.notified.len()), (1, notified));
        alerter.meets_outage(&mut site, "compute2", "ctl1", 20);
        site.assert_all_notified();
    }
}

/// What is damaged is its id: the register's entry makes it again, and its deliveries are still there. The broken variant:
/// they cannot be made a second time, and every start ends there.
#[test]
fn a_mark_that_lost_its_id_is_made_again_and_not_sent_again() {
    let (mut site, mut alerter) = begun(&["compute1", "compute2"], "ctl1");
    alerter.meets_outage(&mut site, "compute1", "ctl1", 20);
    site.homes.damage("ctl1", Damage::NoId);
    alerter = Alerter::start(&site, "ctl1");
    alerter.meets_outage(&mut site, "compute2", "ctl1", 20);
    site.assert_all_notified();
}
