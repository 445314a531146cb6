//! The register is lost, or its entries have left it, and another alerter comes: no age and no lost register ends a mark that
//! nobody acknowledged, and nothing that was acknowledged long ago comes back.

use std::time::Duration;

use marks::register::Key;
use marks::time::Timestamp;

use crate::site::{Alerter, Site, begun};

const DAY: f64 = 86_400.0;

/// A site that lives so many days ago, so that its journals can be real ones.
fn before(days: u64, hosts: &[&'static str]) -> Site {
    Site::at(Timestamp::now() - Duration::from_secs(days * 86_400), hosts)
}

/// The broken variant of the row above: nobody knows that the register ever had them.
#[test]
fn what_never_stood_in_the_register_is_not_past() {
    let mut site = before(30, &["compute1"]);
    site.register_is_mute = true;
    site.die("compute1");
    site.off("ctl2", "compute1");
    site.register_is_mute = false;
    site.advance(60.0);
    site.back("compute1", "ctl1");
    site.advance(20.0 * DAY);
    let second = Alerter::at_work(&mut site, "ctl2", 60);
    assert_eq!(second.standings("compute1"), ["outcome-unknown"]);
    assert!(site.notified.is_empty());
}

/// The register on a controller that has joined lacks what the others know, and the first poll there cannot read the CIB. What the
/// agent recorded on it was notified by another alerter; it is no news, whether it is written down again before it was judged.
#[test]
fn a_fencing_that_was_not_judged_yet_is_not_published_as_news() {
    for is_back in [true, false] {
        let (mut site, mut first) = begun(&["compute1", "compute2"], "ctl1");
        let fencing = site.outage("compute1", "ctl2");
        first.run(&mut site, 20);
        if is_back {
            first.meets_return(&mut site, "compute1", "ctl1", 20);
        }
        site.lost.insert("ctl1");
        site.register_forgets_outages();
        site.cib_is_mute = true;
        let mut second = Alerter::start(&site, "ctl2");
        second.pass(&mut site);
        assert!(!site.register.contains_key(&Key::Fencing(fencing)), "it stands there as if it were new");
        site.cib_is_mute = false;
        second.run(&mut site, 60);
        // Down for sure, it is notified once more, under the same id; else an operator decides.
        let doubt = if is_back { vec!["outcome-unknown"] } else { vec!["journal"] };
        assert_eq!(second.standings("compute1"), doubt);
        assert_eq!((site.notified_ids().len(), site.notified.len()), (1, if is_back { 2 } else { 4 }));
    }
}

/// B2: what was sent is known where it was sent, however often it is written again.
#[test]
fn a_fencing_that_is_written_again_is_not_sent_again_by_the_alerter_that_sent_it() {
    let (mut site, mut first) = begun(&["compute1"], "ctl2");
    site.outage("compute1", "ctl1");
    first.notifies_all(&mut site, 20);
    first.meets_return(&mut site, "compute1", "ctl1", 2);
    site.register.clear();
    site.monitor("ctl1");
    assert!(site.register.keys().all(|key| matches!(key, Key::Again(_))), "{:?}", site.register);
    first.run(&mut site, 20);
    Alerter::start(&site, "ctl2").run(&mut site, 20);
    site.assert_all_notified();
    Alerter::start(&site, "ctl3").run(&mut site, 20);
    site.assert_all_notified();
}
