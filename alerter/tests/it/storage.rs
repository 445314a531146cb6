//! A host of which nobody says whether its instances are on shared storage: it is held, and reported once somebody says it.

use marks::fencing::Fencing;
use marks::register::Entry;

use crate::naming::{KNOWN_FROM, failed};
use crate::site::{Alerter, ROUTES, Site, begun, mark_of, started};

/// The configuration of every controller says nothing.
fn silent() -> Site {
    let site = Site::new(&["compute1"]);
    site.replace("on-shared-storage = true\n", "");
    site
}

fn storage(alerter: &Alerter) -> Vec<Option<bool>> {
    alerter.marks("compute1").iter().map(|row| row.on_shared_storage).collect()
}

/// S1-38: whatever says that the host was fenced; also after a restart, and on another controller. The broken variant takes "shared"
/// for granted.
#[test]
fn what_nobody_says_is_sent_to_nobody_until_the_configuration_says_it() {
    for from in KNOWN_FROM {
        let (mut site, alerter) = failed(from, silent(), |fencing| Entry::Mark(mark_of(fencing, "ctl3")));
        drop(alerter);
        for controller in ["ctl1", "ctl2"] {
            let alerter = Alerter::at_work(&mut site, controller, 40);
            assert_eq!(storage(&alerter), [None], "{from:?} on {controller}");
        }
        assert!(site.notified.is_empty(), "{from:?}: {:?}", site.notified);
        site.replace("[hosts]\n", "[hosts]\non-shared-storage = false\n");
        let alerter = Alerter::at_work(&mut site, "ctl1", 40);
        assert_eq!(storage(&alerter), [Some(false)], "{from:?}");
        site.assert_all_notified();
        assert_eq!(site.notified.len(), ROUTES.len());
    }
}

/// Only the option of `fence_mark` speaks for the host, and Pacemaker's alert was faster than its record. The broken variant waits for
/// the configuration.
#[test]
fn what_the_agent_says_later_completes_the_mark_of_an_alert() {
    let (mut site, mut alerter) = started(silent(), "ctl1");
    site.die("compute1");
    site.advance(1.0);
    let late = Fencing { given_shared_storage: Some(false), ..site.fencing("ctl3", "compute1") };
    site.advance(1.0);
    alerter.meets_fencing(&mut site, "compute1", 20);
    assert_eq!(storage(&alerter), [None]);
    site.mark("ctl3", &late);
    alerter.run(&mut site, 10);
    assert_eq!(storage(&alerter), [Some(false)]);
    site.assert_all_notified();
    assert_eq!(site.notified.len(), ROUTES.len());
}

/// A host comes back and fails again moments later, and power alone fences it. The broken variant joins it to the mark before, which
/// has settled: nobody is notified.
#[test]
fn a_host_that_power_alone_fences_right_after_its_return_is_reported_again() {
    for after in [0.5, 2.5, 4.5] {
        let (mut site, mut alerter) = begun(&["compute1"], "ctl1");
        site.fail("compute1", true);
        alerter.notifies_all(&mut site, 20);
        alerter.meets_return(&mut site, "compute1", "ctl1", 1);
        site.die("compute1");
        site.advance(after);
        alerter.meets_fencing(&mut site, "compute1", 40);
        site.assert_all_notified();
        assert_eq!(alerter.marks("compute1").len(), 2, "{after} s");
    }
}
